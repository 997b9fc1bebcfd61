//! Operators: one struct of attributes each, with shape inference. Their meaning is that of the
//! newest ONNX opset; every format is mapped onto them. A file holds a family.

pub mod attention;
mod axes;
mod case;
pub mod control;
pub mod conv;
mod coordinates;
pub mod coupling;
pub mod custom;
pub mod einsum;
pub mod elementwise;
pub mod experts;
pub mod fixed;
pub mod generate;
pub mod index;
pub mod lookup;
pub mod map;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod packed;
pub mod picture;
pub mod pool;
pub mod qkv;
pub mod qlinear;
pub mod quant;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod regions;
mod renumber;
pub mod resize;
pub mod rotary;
pub(crate) mod rules;
pub mod select;
pub mod sequence;
pub mod sort;
pub mod text;
pub mod trees;
pub(crate) mod window;

pub use crate::fact::{Cost, Fact, InputFact};
pub use crate::graph::{Activation, InferContext, Operator};
pub use crate::reflect::{Attribute, Attributes};
pub use attention::{Align, Attention};
pub use axes::{check_rank, normalize_axes, normalize_axis};
pub use case::CaseMapping;
#[cfg(target_arch = "wasm32")]
pub use case::set_case_mapping;
pub use control::{If, Loop, Scan};
pub use conv::{Col2Im, Col2ImGeometry, Conv, ConvGeometry, ConvTranspose, DeformConv, Padding};
pub use coupling::PairwiseCoupling;
pub use custom::{
    Custom, CustomOperator, CustomOperators, HostInput, HostOutput, ShaderKernel, ShaderNumber,
    ShaderTensor,
};
pub use einsum::{Einsum, EinsumPlan};
pub use elementwise::{
    Binary, BinaryKind, BitCast, Cast, CastLike, Clip, Dropout, Unary, UnaryKind, Where,
};
pub use experts::{ExpertMatMul, ExpertMatMulNBits};
pub use fixed::{
    AffineQuantize, Combination, Neighbours, QuantizedBinary, QuantizedResize, QuantizedSoftmax,
    Requantize, TableLookup, Tabulated,
};
pub use generate::{ConstantOfShape, EyeLike, Range, ShapeOf, Size};
pub use index::{
    Gather, GatherCast, GatherElements, GatherNd, OneHot, ScatterElements, ScatterNd,
    ScatterReduction, TensorScatter,
};
pub use lookup::{CountNgrams, Lookup};
pub use map::{DictVectorizer, MapValues, ZipMap};
pub use matmul::{Det, Gemm, MatMul, MatMulGeometry};
pub use movement::{
    BatchBlocks, BatchToSpace, CenterCropPad, Concat, CropPadAxis, DepthToSpace, Expand, Flatten,
    Pad, PadAxis, PadMode, Reshape, ReverseSequence, Slice, SliceAxis, SpaceToBatch, SpaceToDepth,
    Split, Squeeze, Tile, Transpose, Trilu, Unsqueeze,
};
pub use norm::{
    BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LpNorm, Lrn, MeanVarianceNorm, RmsNorm,
};
pub use packed::{GatherBlockQuantized, MatMulNBits, numbers_in_byte};
pub use picture::{ImageDecoder, PictureReader, PixelFormat, unreadable};
pub use pool::{AveragePool, LpPool, MaxPool, MaxUnpool, PoolGeometry, Window};
pub use qkv::UnpackQkv;
pub use qlinear::{Affine, QLinearBinary, QLinearConv, QLinearMatMul, clamped_range};
pub use quant::{
    ConvInteger, DequantizeLinear, DynamicQuantizeLinear, Granularity, MatMulInteger,
    MatMulIntegerToFloat, QuantizeLinear,
};
pub use random::{Distribution, Random};
pub use recurrent::{
    CellActivation, Direction, Gru, Lstm, QuantizedLstm, Recurrent, RecurrentGeometry, Rnn,
};
pub use reduce::{ArgReduce, Cumulative, Reduce, ReduceKind, Softmax, SoftmaxKind};
pub use regions::{MaxRoiPool, RoiAlign};
pub use resize::{
    AffineGrid, AspectPolicy, CoordinateMode, GridMode, GridPadding, GridSample, NearestMode,
    Resize, ResizeAxis, ResizeMode,
};
pub use rotary::{Angles, RotaryEmbedding};
pub use rules::InputValues;
pub use select::{Compress, NonMaxSuppression, NonZero, Unique, UniqueParts, non_max_suppression};
pub use sequence::{
    ConcatFromSequence, OptionalAbsent, OptionalGetElement, OptionalHasElement, SequenceAt,
    SequenceConstruct, SequenceErase, SequenceInsert, SequenceLength, SplitToSequence,
};
pub use sort::TopK;
pub use text::{CaseChange, RegexFullMatch, StringConcat, StringNormalizer, StringSplit};
pub use trees::{Aggregate, Branch, Next, TreeEnsemble, TreeNode, Trees};
pub use window::WindowAxis;

#[cfg(test)]
mod tests;
