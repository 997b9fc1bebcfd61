//! The layers, each with what brings it into the graph, and with what it has in the file of the weights.

mod arrange;
mod binary;
mod conv;
mod data;
mod norm;
mod pointwise;
mod pool;
mod product;
mod recurrent;
mod reduce;
mod sample;
mod slice;
mod stored;
mod window;

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, ReduceKind, UnaryKind};

use super::bytes::Bytes;
use super::import::Import;
use super::layer::Layer;
use super::model::Stored;
use super::stream::Stream;
use crate::build::{OpTable, unknown_operator};

/// The values that a layer writes.
pub type Outputs = Result<Vec<ValueId>>;

/// Brings a layer into the graph.
pub type MapFn = fn(&mut Import, &Layer) -> Outputs;

/// Reads what a layer has in the file of the weights.
pub type StoredFn = fn(&mut Stream) -> Result<Stored>;

/// What is known of a layer.
struct Row {
    map: MapFn,
    stored: StoredFn,
    bytes: Bytes,
}

impl Row {
    /// The layer has a form in 8 bits, whose results are rounded.
    const fn rounded(self) -> Row {
        Row {
            bytes: Bytes::Rounded,
            ..self
        }
    }

    /// The layer has a form in 8 bits, which passes its numbers on.
    const fn passed(self) -> Row {
        Row {
            bytes: Bytes::Passed,
            ..self
        }
    }
}

/// A layer without weights.
const fn plain(map: MapFn) -> Row {
    with(stored::nothing, map)
}

const fn with(stored: StoredFn, map: MapFn) -> Row {
    Row {
        map,
        stored,
        bytes: Bytes::Never,
    }
}

/// A function of two blobs, or of a blob and weights.
const fn pair(map: MapFn) -> Row {
    with(stored::one, map)
}

/// The names are those of `core/layer_type.cc`. Some mean the same.
static LAYERS: OpTable<&str, Row> = OpTable(&[
    ("Abs", plain(|i, l| pointwise::of(i, l, UnaryKind::Abs))),
    ("Acos", plain(|i, l| pointwise::of(i, l, UnaryKind::Acos))),
    (
        "Add",
        pair(|i, l| binary::of(i, l, BinaryKind::Add)).rounded(),
    ),
    ("And", pair(binary::and)),
    ("ArgMaxOrMin", plain(reduce::arg)),
    ("Asin", plain(|i, l| pointwise::of(i, l, UnaryKind::Asin))),
    ("Atan", plain(|i, l| pointwise::of(i, l, UnaryKind::Atan))),
    ("BatchNormCxx", with(stored::two, norm::batch_norm)),
    ("BatchNormalization", with(stored::two, norm::batch_norm)),
    ("BiasAdd", with(stored::one, norm::bias_add)),
    ("Cast", plain(data::cast)),
    ("Ceil", plain(|i, l| pointwise::of(i, l, UnaryKind::Ceil))),
    ("Clip", plain(pointwise::clip)),
    ("Concat", plain(arrange::concat).rounded()),
    ("Const", with(stored::one, data::constant)),
    (
        "ConstantOfShape",
        with(stored::one, data::constant_of_shape),
    ),
    (
        "Convolution",
        with(stored::convolution, |i, l| conv::convolution(i, l, 2)).rounded(),
    ),
    (
        "Convolution1D",
        with(stored::named_with_bias, |i, l| conv::convolution(i, l, 1)),
    ),
    (
        "Convolution3D",
        with(stored::named_with_bias, |i, l| conv::convolution(i, l, 3)),
    ),
    ("Cos", plain(|i, l| pointwise::of(i, l, UnaryKind::Cos))),
    (
        "Deconvolution",
        with(stored::convolution, conv::deconvolution),
    ),
    ("Div", pair(|i, l| binary::of(i, l, BinaryKind::Div))),
    ("Elu", plain(pointwise::elu)),
    ("Equal", plain(binary::equal)),
    ("Erf", plain(|i, l| pointwise::of(i, l, UnaryKind::Erf))),
    ("Exp", plain(|i, l| pointwise::of(i, l, UnaryKind::Exp))),
    ("Expand", plain(arrange::expand)),
    ("Flatten", plain(arrange::flatten)),
    ("Floor", plain(|i, l| pointwise::of(i, l, UnaryKind::Floor))),
    (
        "GELU",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Gelu { tanh: false })),
    ),
    ("GLU", plain(arrange::glu)),
    ("Gather", with(stored::gather, slice::gather)),
    ("GatherND", plain(slice::gather_nd)),
    (
        "Greater",
        pair(|i, l| binary::of(i, l, BinaryKind::Greater)),
    ),
    ("GridSample", plain(sample::grid_sample)),
    ("GroupNorm", plain(norm::group_norm)),
    ("HardSigmoid", plain(pointwise::hard_sigmoid)),
    ("HardSwish", plain(pointwise::hard_swish)),
    (
        "InnerProduct",
        with(stored::product, product::inner_product).rounded(),
    ),
    ("InstBatchNormCxx", with(stored::two, norm::instance_norm)),
    ("LRN", plain(norm::lrn)),
    ("LSTMONNX", plain(recurrent::lstm)),
    ("LayerNorm", plain(norm::layer_norm)),
    ("Less", pair(|i, l| binary::of(i, l, BinaryKind::Less))),
    ("Log", plain(|i, l| pointwise::of(i, l, UnaryKind::Log))),
    ("LogSigmoid", plain(pointwise::log_sigmoid)),
    ("LogSoftmax", plain(reduce::log_softmax)),
    ("MatMul", with(stored::matrix, product::matmul)),
    ("Maximum", pair(|i, l| binary::of(i, l, BinaryKind::Max))),
    ("Minimum", pair(|i, l| binary::of(i, l, BinaryKind::Min))),
    ("Mul", pair(|i, l| binary::of(i, l, BinaryKind::Mul))),
    ("Neg", plain(|i, l| pointwise::of(i, l, UnaryKind::Neg))),
    ("Normalize", plain(norm::normalize)),
    ("Not", plain(binary::not)),
    ("OneHot", plain(data::one_hot)),
    ("PReLU", with(stored::named, pointwise::prelu)),
    ("Pad", plain(slice::pad)),
    ("PadV2", plain(slice::pad_v2)),
    ("Permute", plain(arrange::permute).passed()),
    ("PixelShuffle", plain(arrange::pixel_shuffle)),
    ("Pooling", plain(|i, l| pool::pooling(i, l, 2)).passed()),
    ("Pooling1D", plain(|i, l| pool::pooling(i, l, 1))),
    ("Pooling3D", plain(|i, l| pool::pooling(i, l, 3))),
    ("Power", plain(pointwise::power)),
    ("Range", plain(data::range)),
    (
        "ReLU",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Relu)).passed(),
    ),
    ("ReLU6", plain(pointwise::relu6)),
    (
        "Reciprocal",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Reciprocal)),
    ),
    ("ReduceL1", plain(|i, l| reduce::of(i, l, ReduceKind::L1))),
    ("ReduceL2", plain(|i, l| reduce::of(i, l, ReduceKind::L2))),
    (
        "ReduceLogSum",
        plain(|i, l| reduce::of(i, l, ReduceKind::LogSum)),
    ),
    (
        "ReduceLogSumExp",
        plain(|i, l| reduce::of(i, l, ReduceKind::LogSumExp)),
    ),
    ("ReduceMax", plain(|i, l| reduce::of(i, l, ReduceKind::Max))),
    (
        "ReduceMean",
        plain(|i, l| reduce::of(i, l, ReduceKind::Mean)),
    ),
    ("ReduceMin", plain(|i, l| reduce::of(i, l, ReduceKind::Min))),
    (
        "ReduceProd",
        plain(|i, l| reduce::of(i, l, ReduceKind::Prod)),
    ),
    ("ReduceSum", plain(|i, l| reduce::of(i, l, ReduceKind::Sum))),
    (
        "ReduceSumSquare",
        plain(|i, l| reduce::of(i, l, ReduceKind::SumSquare)),
    ),
    (
        "Reduce_Sum",
        plain(|i, l| reduce::of(i, l, ReduceKind::Sum)),
    ),
    ("Relu", plain(|i, l| pointwise::of(i, l, UnaryKind::Relu))),
    ("Relu6", plain(pointwise::relu6)),
    ("Reorg", plain(arrange::reorg)),
    ("Repeat", plain(arrange::tile)),
    ("Reshape", plain(arrange::reshape).passed()),
    ("Rsqrt", plain(pointwise::rsqrt)),
    ("Scale", with(stored::named_with_bias, norm::batch_norm)),
    ("ScatterElements", plain(slice::scatter_elements)),
    ("ScatterND", with(stored::scatter, slice::scatter_nd)),
    ("Selu", plain(pointwise::selu)),
    ("Shape", plain(data::shape)),
    ("ShuffleChannel", plain(arrange::shuffle_channel)),
    (
        "Sigmoid",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Sigmoid)).rounded(),
    ),
    ("Sign", plain(|i, l| pointwise::of(i, l, UnaryKind::Sign))),
    ("Sin", plain(|i, l| pointwise::of(i, l, UnaryKind::Sin))),
    ("Size", plain(data::size)),
    ("Softmax", plain(reduce::softmax)),
    ("SoftmaxCaffe", plain(reduce::softmax)),
    (
        "Softplus",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Softplus)),
    ),
    (
        "Softsign",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Softsign)),
    ),
    ("Split", plain(arrange::split)),
    ("SplitV", plain(slice::split)),
    ("Sqrt", plain(|i, l| pointwise::of(i, l, UnaryKind::Sqrt))),
    ("SquaredDifference", pair(binary::squared_difference)),
    ("Squeeze", plain(arrange::squeeze)),
    ("StridedSlice", plain(slice::strided)),
    ("StridedSliceV2", plain(slice::strided_v2)),
    ("Sub", pair(|i, l| binary::of(i, l, BinaryKind::Sub))),
    (
        "Swish",
        plain(|i, l| pointwise::of(i, l, UnaryKind::Swish { alpha: 1.0 })),
    ),
    ("Tan", plain(|i, l| pointwise::of(i, l, UnaryKind::Tan))),
    ("Tanh", plain(|i, l| pointwise::of(i, l, UnaryKind::Tanh))),
    ("Tile", plain(arrange::tile)),
    ("TopK", plain(reduce::top_k)),
    ("Unsqueeze", plain(arrange::unsqueeze)),
    ("Upsample", plain(sample::upsample).rounded()),
    ("Where", plain(binary::choose)),
]);

/// A layer that cannot be run.
struct Refused {
    why: &'static str,
    stored: StoredFn,
}

const fn no(why: &'static str) -> Refused {
    no_with(stored::nothing, why)
}

const fn no_with(stored: StoredFn, why: &'static str) -> Refused {
    Refused { why, stored }
}

/// Layers that are known, with the reason why they cannot be run.
static REFUSED: OpTable<&str, Refused> = OpTable(&[
    ("BitShift", no("shifts of integers")),
    (
        "BlobScale",
        no_with(stored::blob_scale, "a scale, which is no layer"),
    ),
    (
        "CbamFusedPooling",
        no("a layer that TNN puts together itself"),
    ),
    (
        "CbamFusedReduce",
        no("a layer that TNN puts together itself"),
    ),
    (
        "DetectionOutput",
        no("boxes that depend on the data; take the blobs that it reads as outputs"),
    ),
    (
        "DetectionPostProcess",
        no_with(
            stored::named,
            "boxes that depend on the data; take the blobs that it reads as outputs",
        ),
    ),
    (
        "Einsum",
        no("an equation, whose commas end the lines of the file"),
    ),
    (
        "HDRGuide",
        no_with(stored::six, "tables for pictures of high contrast"),
    ),
    ("Histogram", no("counts of numbers")),
    ("Inverse", no("the inverse of a matrix")),
    ("NonMaxSuppression", no("boxes that depend on the data")),
    ("NonZero", no("places that depend on the data")),
    (
        "PriorBox",
        no("boxes that are only of use to DetectionOutput"),
    ),
    ("ROIPooling", no("pooling of boxes")),
    (
        "Reformat",
        no("a layout of blobs, which TNN chooses when it runs"),
    ),
    ("RoiAlign", no("pooling of boxes")),
    (
        "Scatter",
        no_with(
            stored::scatter,
            "a layer that TNN replaced by ScatterElements",
        ),
    ),
    ("SignedMul", no("signs times those of the first channel")),
]);

/// What stands in front of a kind whose weights are of 8 bits, and of one whose blobs are, too.
const WEIGHTS_IN_BYTES: &str = "DynamicRangeQuantized";
const ALL_IN_BYTES: &str = "Quantized";

/// What brings a layer into the graph, and what it does with numbers of 8 bits where it is of these.
pub fn find(kind: &str) -> Option<(MapFn, Bytes)> {
    if let Some(row) = LAYERS.find(kind) {
        return Some((row.map, Bytes::Never));
    }
    let row = LAYERS.find(kind.strip_prefix(ALL_IN_BYTES)?)?;
    (row.bytes != Bytes::Never).then_some((row.map, row.bytes))
}

/// What reads the weights of a layer.
pub fn layout(kind: &str) -> Option<StoredFn> {
    let begins = [WEIGHTS_IN_BYTES, ALL_IN_BYTES].into_iter();
    let mut bare = begins.filter_map(|begin| kind.strip_prefix(begin));
    let kind = bare.next().unwrap_or(kind);
    let refused = || REFUSED.find(kind).map(|refused| refused.stored);
    LAYERS.find(kind).map(|row| row.stored).or_else(refused)
}

/// Why a layer that no table of layers has is refused.
pub fn refusal(kind: &str) -> Error {
    if let Some(refused) = REFUSED.find(kind) {
        return unsupported(refused.why);
    }
    match (
        kind.starts_with(WEIGHTS_IN_BYTES),
        kind.starts_with(ALL_IN_BYTES),
    ) {
        (true, _) => unsupported("weights of 8 bits for data in floats"),
        (_, true) => unsupported("a layer that TNN does not have in 8 bits"),
        _ => unknown_operator(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, REFUSED};

    #[test]
    fn layers_are_sorted_and_unique() {
        assert_eq!(LAYERS.misplaced(), None);
        assert_eq!(REFUSED.misplaced(), None);
    }
}
