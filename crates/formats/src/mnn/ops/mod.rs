//! The operators by their numbers in the schema (`OpType`), each with what brings it into the graph.

mod arrange;
mod control;
mod conv;
mod data;
mod index;
mod norm;
mod pointwise;
mod pool;
mod product;
mod reduce;
mod resize;
mod slice;

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::UnaryKind;

use super::import::Import;
use super::op::Op;
use crate::build::OpTable;

/// The values that an operator gives.
pub type Outputs = Result<Vec<ValueId>>;

/// Brings an operator into the graph.
pub type MapFn = fn(&mut Import, &Op) -> Outputs;

/// What is known of an operator.
pub struct Row {
    name: &'static str,
    pub map: MapFn,
}

const fn row(name: &'static str, map: MapFn) -> Row {
    Row { name, map }
}

static OPERATORS: OpTable<i32, Row> = OpTable(&[
    (2, row("ArgMax", |i, o| index::arg(i, o, true))),
    (
        5,
        row("BatchToSpaceND", |i, o| arrange::batches(i, o, true)),
    ),
    (7, row("BinaryOp", pointwise::binary)),
    (9, row("Cast", pointwise::cast)),
    (10, row("Concat", arrange::concat)),
    (11, row("Const", data::constant)),
    (
        12,
        row("Convolution", |i, o| conv::convolution(i, o, false)),
    ),
    (
        13,
        row("ConvolutionDepthwise", |i, o| conv::convolution(i, o, true)),
    ),
    (14, row("Crop", slice::crop)),
    (
        17,
        row("Deconvolution", |i, o| conv::deconvolution(i, o, false)),
    ),
    (
        18,
        row("DeconvolutionDepthwise", |i, o| {
            conv::deconvolution(i, o, true)
        }),
    ),
    (22, row("Eltwise", pointwise::eltwise)),
    (23, row("ELU", pointwise::elu)),
    (26, row("ExpandDims", arrange::expand_dims)),
    (27, row("Fill", data::fill)),
    (28, row("Flatten", arrange::flatten)),
    (30, row("Gather", index::gather)),
    (31, row("GatherV2", index::gather)),
    (33, row("InnerProduct", product::inner_product)),
    (35, row("Interp", resize::interp)),
    (37, row("LRN", norm::lrn)),
    (38, row("LSTM", |i, o| product::recurrent(i, o, 4))),
    (39, row("MatMul", product::matmul)),
    (43, row("Normalize", norm::normalize)),
    (44, row("Pack", arrange::pack)),
    (45, row("Padding", slice::padding)),
    (46, row("Permute", arrange::permute)),
    (47, row("Pooling", pool::pooling)),
    (49, row("PReLU", pointwise::prelu)),
    (65, row("Range", data::range)),
    (66, row("Rank", data::rank)),
    (68, row("Reduction", reduce::reduction)),
    (69, row("ReLU", pointwise::relu)),
    (70, row("ReLU6", pointwise::clip)),
    (73, row("Reshape", arrange::reshape)),
    (74, row("Resize", resize::resize)),
    (75, row("RNN", |i, o| product::recurrent(i, o, 1))),
    (77, row("Scale", norm::scale)),
    (78, row("Selu", pointwise::selu)),
    (80, row("Shape", data::shape)),
    (
        81,
        row("Sigmoid", |i, o| pointwise::of(i, o, UnaryKind::Sigmoid)),
    ),
    (82, row("Size", data::size)),
    (83, row("Slice", slice::slice)),
    (84, row("SliceTf", slice::slice_tf)),
    (85, row("Softmax", reduce::softmax)),
    (
        86,
        row("SpaceToBatchND", |i, o| arrange::batches(i, o, false)),
    ),
    (90, row("Squeeze", arrange::squeeze)),
    (91, row("StridedSlice", slice::strided_slice)),
    (92, row("CastLike", pointwise::cast_like)),
    (95, row("TanH", |i, o| pointwise::of(i, o, UnaryKind::Tanh))),
    (97, row("Threshold", pointwise::threshold)),
    (98, row("Tile", arrange::tile)),
    (99, row("TopKV2", index::top_k)),
    (100, row("Transpose", arrange::permute)),
    (101, row("UnaryOp", pointwise::unary)),
    (102, row("Unpack", arrange::unpack)),
    (103, row("Where", index::non_zero)),
    (106, row("BatchMatMul", product::matmul)),
    (107, row("Unsqueeze", arrange::unsqueeze)),
    (109, row("DepthToSpace", |i, o| arrange::blocks(i, o, true))),
    (
        110,
        row("SpaceToDepth", |i, o| arrange::blocks(i, o, false)),
    ),
    (111, row("ReverseSequence", slice::reverse_sequence)),
    (112, row("Pooling3D", pool::pooling_3d)),
    (
        113,
        row("Convolution3D", |i, o| conv::convolution(i, o, false)),
    ),
    (115, row("GatherND", index::gather_nd)),
    (118, row("ScatterNd", index::scatter_nd)),
    (119, row("OneHot", data::one_hot)),
    (120, row("BroadcastTo", arrange::broadcast)),
    (129, row("ConvertTensor", arrange::convert)),
    (130, row("ArgMin", |i, o| index::arg(i, o, false))),
    (131, row("LinSpace", data::lin_space)),
    (142, row("Reverse", slice::reverse)),
    (148, row("CumSum", reduce::cumulative_sum)),
    (150, row("CumProd", reduce::cumulative_product)),
    (151, row("ScatterElements", index::scatter_elements)),
    (152, row("GatherElements", index::gather_elements)),
    (257, row("Select", data::select)),
    (258, row("ZerosLike", data::zeros_like)),
    (262, row("Identity", pointwise::same)),
    (266, row("TrainableParam", data::constant)),
    (
        268,
        row("ConvTranspose3D", |i, o| conv::deconvolution(i, o, false)),
    ),
    (600, row("While", control::repeat)),
    (601, row("If", control::branch)),
    (603, row("LayerNorm", norm::layer_norm)),
    (604, row("GridSample", resize::grid_sample)),
]);

/// Operators that are known, with the reason why they cannot be run.
static REFUSED: OpTable<i32, (&str, &str)> = OpTable(&[
    (0, ("AbsVal", "an operator that MNN itself does not run")),
    (15, ("CropAndResize", "parts of pictures of one size")),
    (
        20,
        (
            "DetectionOutput",
            "boxes that depend on the data; take the tensors that it reads as outputs",
        ),
    ),
    (21, ("Dropout", "an operator that MNN itself does not run")),
    (
        40,
        (
            "MoE",
            "experts of a language model, which lie in files of their own",
        ),
    ),
    (
        42,
        (
            "NonMaxSuppressionV2",
            "boxes that depend on the data; take the tensors that it reads as outputs",
        ),
    ),
    (
        50,
        ("PriorBox", "boxes that are only of use to DetectionOutput"),
    ),
    (51, ("Proposal", "boxes that depend on the data")),
    (76, ("ROIPooling", "pooling of boxes")),
    (
        96,
        ("TfQuantizedConv2D", "a convolution that computes in 8 bits"),
    ),
    (
        105,
        ("RNNSequenceGRU", "a recurrent layer of an older converter"),
    ),
    (
        116,
        (
            "DetectionPostProcess",
            "boxes that depend on the data; take the tensors that it reads as outputs",
        ),
    ),
    (122, ("Interp3D", "sampling of volumes")),
    (128, ("Raster", "memory as MNN lays it out when it runs")),
    (143, ("ROIAlign", "pooling of boxes")),
    (256, ("Plugin", "an operator that a program brings along")),
    (
        267,
        (
            "BatchNorm",
            "an operator of MNN's converter, which writes Scale for it",
        ),
    ),
    (
        299,
        (
            "Attention",
            "a cache of keys and values that MNN keeps itself",
        ),
    ),
    (304, ("GroupNorm", "an operator of MNN for CUDA")),
    (305, ("LinearAttention", "a state that MNN keeps itself")),
    (
        306,
        ("RoPE", "an operator of a language model that MNN fused"),
    ),
    (
        307,
        (
            "FusedLinear",
            "an operator of a language model that MNN fused",
        ),
    ),
    (
        308,
        (
            "GatedRMSNorm",
            "an operator of a language model that MNN fused",
        ),
    ),
    (
        512,
        ("Extra", "an operator that the converter did not know"),
    ),
    (513, ("ConvInt8", "a convolution that computes in 8 bits")),
    (514, ("Int8ToFloat", "data of 8 bits")),
    (
        515,
        ("DepthwiseConvInt8", "a convolution that computes in 8 bits"),
    ),
    (517, ("FloatToInt8", "data of 8 bits")),
    (518, ("EltwiseInt8", "data of 8 bits")),
]);

/// What is known of an operator.
pub fn find(kind: i32) -> Option<&'static Row> {
    OPERATORS.find(&kind)
}

/// What refusals call an operator.
pub fn name(kind: i32) -> String {
    let known = find(kind).map(|row| row.name);
    match known.or_else(|| REFUSED.find(&kind).map(|row| row.0)) {
        Some(name) => name.to_string(),
        None => format!("operator number {kind}"),
    }
}

/// Why an operator that no table of operators has is refused. `version` is that of the converter that made the file.
pub fn refusal(kind: i32, version: &str) -> Error {
    match (REFUSED.find(&kind), version) {
        (Some((_, what)), _) => unsupported(*what),
        (None, "") => unsupported("unknown operator"),
        (None, version) => unsupported(format!("unknown operator of MNN {version}")),
    }
}

/// A list with a number for each channel of `x`, in a shape that broadcasts.
fn along_channels(imp: &mut Import, op: &Op, list: ValueId, x: ValueId) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    let behind = match op.layout().channels_last() {
        true => 0,
        false => rank.saturating_sub(2),
    };
    let axes: Vec<i64> = (1..=behind as i64).collect();
    imp.unsqueeze(list, &axes)
}

#[cfg(test)]
mod tests {
    use super::{OPERATORS, REFUSED};

    #[test]
    fn operators_are_sorted_and_unique() {
        assert_eq!(OPERATORS.misplaced(), None);
        assert_eq!(REFUSED.misplaced(), None);
    }
}
