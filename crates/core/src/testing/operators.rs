//! Every operator there is, as values that can be made.

use std::sync::Arc;

use super::schema::{Content, OPAQUE, Schema, Schematic};
use crate::error::Result;
use crate::ops::*;

/// A type of operator.
pub struct Known {
    /// The name in Rust.
    pub type_name: &'static str,
    pub schema: Schema,
    pub build: fn(&Content) -> Arc<dyn Operator>,
}

macro_rules! operators {
    ($($t:ident,)*) => {
        /// All types of operators.
        pub fn operators() -> Vec<Known> {
            vec![$(Known {
                type_name: stringify!($t),
                schema: $t::schema(),
                build: |content| Arc::new($t::build(content)),
            },)*]
        }
    };
}
operators! {
    AffineGrid,
    AffineQuantize,
    ArgReduce,
    Attention,
    AveragePool,
    BatchNorm,
    BatchToSpace,
    Binary,
    BitCast,
    Cast,
    CastLike,
    CenterCropPad,
    Clip,
    Col2Im,
    Compress,
    Concat,
    ConcatFromSequence,
    ConstantOfShape,
    Conv,
    ConvInteger,
    ConvTranspose,
    CountNgrams,
    Cumulative,
    Custom,
    DeformConv,
    DepthToSpace,
    DequantizeLinear,
    Det,
    DictVectorizer,
    Dropout,
    DynamicQuantizeLinear,
    Einsum,
    Expand,
    ExpertMatMul,
    ExpertMatMulNBits,
    EyeLike,
    Flatten,
    Gather,
    GatherBlockQuantized,
    GatherCast,
    GatherElements,
    GatherNd,
    Gemm,
    GridSample,
    GroupNorm,
    Gru,
    If,
    ImageDecoder,
    InstanceNorm,
    LayerNorm,
    Lookup,
    Loop,
    LpNorm,
    LpPool,
    Lrn,
    Lstm,
    MapValues,
    MatMul,
    MatMulInteger,
    MatMulIntegerToFloat,
    MatMulNBits,
    MaxPool,
    MaxRoiPool,
    MaxUnpool,
    MeanVarianceNorm,
    NonMaxSuppression,
    NonZero,
    OneHot,
    OptionalAbsent,
    OptionalGetElement,
    OptionalHasElement,
    Pad,
    PairwiseCoupling,
    QLinearBinary,
    QLinearConv,
    QLinearMatMul,
    QuantizeLinear,
    QuantizedBinary,
    QuantizedLstm,
    QuantizedResize,
    QuantizedSoftmax,
    Random,
    Range,
    Reduce,
    RegexFullMatch,
    Requantize,
    Reshape,
    Resize,
    ReverseSequence,
    RmsNorm,
    Rnn,
    RoiAlign,
    RotaryEmbedding,
    Scan,
    ScatterElements,
    ScatterNd,
    SequenceAt,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    ShapeOf,
    Size,
    Slice,
    Softmax,
    SpaceToBatch,
    SpaceToDepth,
    Split,
    SplitToSequence,
    Squeeze,
    StringConcat,
    StringNormalizer,
    StringSplit,
    TableLookup,
    TensorScatter,
    Tile,
    TopK,
    Transpose,
    TreeEnsemble,
    Trilu,
    Unary,
    Unique,
    UnpackQkv,
    Unsqueeze,
    Where,
    ZipMap,
}

impl Schematic for PictureReader {
    fn schema() -> Schema {
        Schema::Opaque
    }

    fn build(content: &Content) -> Self {
        type Size = fn(&[u8]) -> Result<[usize; 2]>;
        fn size<const SIDE: usize>(_: &[u8]) -> Result<[usize; 2]> {
            Ok([SIDE, SIDE])
        }
        fn decode(_: &[u8], _: PixelFormat) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
        let sizes: [Size; OPAQUE] = [size::<1>, size::<2>, size::<3>];
        match content {
            Content::Opaque(which) => PictureReader {
                size: sizes[*which],
                decode,
            },
            other => panic!("{other:?} is no reader"),
        }
    }
}

impl Schematic for Attributes {
    fn schema() -> Schema {
        <Vec<(String, Attribute)>>::schema()
    }

    fn build(content: &Content) -> Self {
        let list = <Vec<(String, Attribute)>>::build(content).into_iter();
        // Each name differs, so that every item counts.
        let named = list
            .enumerate()
            .map(|(i, (name, a))| (format!("{i}{name}"), a));
        Attributes(named.collect())
    }
}

impl Schematic for Custom {
    fn schema() -> Schema {
        Schema::Pair(Box::new([Schema::Opaque, Attributes::schema()]))
    }

    fn build(content: &Content) -> Self {
        static DEFINITIONS: std::sync::OnceLock<[Arc<CustomOperator>; OPAQUE]> =
            std::sync::OnceLock::new();
        let define = |_| {
            let infer = |_: &Attributes, ctx: &InferContext| Ok(vec![ctx.fact(0)?.clone()]);
            Arc::new(CustomOperator::new("com.example", "Same", infer))
        };
        let definitions = DEFINITIONS.get_or_init(|| [0; OPAQUE].map(define));
        match content {
            Content::List(items) => match &items[..] {
                [Content::Opaque(which), attributes] => {
                    let definition = definitions[*which].clone();
                    Custom::new(definition, Attributes::build(attributes))
                }
                other => panic!("{other:?} is no custom operator"),
            },
            other => panic!("{other:?} is no custom operator"),
        }
    }
}
