//! The operators, each with its name and what brings it into the graph.

mod arrange;
mod binary;
mod conv;
mod norm;
mod pointwise;
mod pool;
mod product;
mod reduce;
mod sample;

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use super::import::Import;
use super::network::Network;
use super::node::Node;
use crate::build::{OpTable, unknown_operator};

/// The values that a node writes.
pub type Outputs = Result<Vec<ValueId>>;

/// Brings a node into the graph.
pub type MapFn = fn(&mut Import, &Node) -> Outputs;

/// The numbers of operators that hold tensors and do nothing.
pub const CONSTANT: u32 = 4;
pub const INPUT: u32 = 12;

/// The number of the operator that tells how many channels an input has.
pub const CONVOLUTION: u32 = 5;

/// The number of the operator that has no parameters in old files.
pub const SPLIT: u32 = 29;

/// An operator by its name in `serializer/tmfile/tm2_format.h`.
struct Row {
    name: &'static str,
    map: MapFn,
}

const fn row(name: &'static str, map: MapFn) -> Row {
    Row { name, map }
}

static OPERATORS: OpTable<u32, Row> = OpTable(&[
    (1, row("BatchNormalization", norm::batch_norm)),
    (3, row("Concat", arrange::concat)),
    (CONVOLUTION, row("Convolution", conv::convolution)),
    (6, row("Deconvolution", conv::deconvolution)),
    (8, row("Dropout", arrange::same)),
    (9, row("Eltwise", binary::eltwise)),
    (10, row("Flatten", arrange::flatten)),
    (11, row("FullyConnected", product::fully_connected)),
    (13, row("LRN", norm::lrn)),
    (15, row("Permute", arrange::permute)),
    (16, row("Pooling", pool::pooling)),
    (17, row("PReLU", pointwise::prelu)),
    (20, row("ReLu", pointwise::relu)),
    (21, row("ReLu6", pointwise::relu6)),
    (23, row("Reshape", arrange::reshape)),
    (26, row("Scale", norm::scale)),
    (27, row("Slice", arrange::slice)),
    (28, row("Softmax", reduce::softmax)),
    (SPLIT, row("Split", arrange::split)),
    (
        33,
        row("Logistic", |i, n| pointwise::of(i, n, UnaryKind::Sigmoid)),
    ),
    (36, row("Tanh", |i, n| pointwise::of(i, n, UnaryKind::Tanh))),
    (
        37,
        row("Sigmoid", |i, n| pointwise::of(i, n, UnaryKind::Sigmoid)),
    ),
    (38, row("Squeeze", arrange::squeeze)),
    (40, row("Pad", arrange::pad)),
    (42, row("ArgMax", |i, n| reduce::arg(i, n, true))),
    (43, row("ArgMin", |i, n| reduce::arg(i, n, false))),
    (45, row("Reduction", reduce::reduction)),
    (
        46,
        row("Maximum", |i, n| binary::of_all(i, n, BinaryKind::Max)),
    ),
    (
        47,
        row("Minimum", |i, n| binary::of_all(i, n, BinaryKind::Min)),
    ),
    (
        49,
        row("Addn", |i, n| binary::of_all(i, n, BinaryKind::Add)),
    ),
    (50, row("SwapAxis", arrange::swap_axes)),
    (51, row("Upsample", sample::upsample)),
    (55, row("ShuffleChannel", arrange::shuffle_channel)),
    (59, row("Unary", pointwise::unary)),
    (60, row("Expanddims", arrange::expand_dims)),
    (61, row("Bias", norm::bias)),
    (62, row("Noop", arrange::same)),
    (64, row("Hardsigmoid", pointwise::hard_sigmoid)),
    (66, row("InstanceNorm", norm::instance_norm)),
    (
        68,
        row("Absval", |i, n| pointwise::of(i, n, UnaryKind::Abs)),
    ),
    (
        70,
        row("HardSwish", |i, n| {
            pointwise::of(i, n, UnaryKind::HardSwish)
        }),
    ),
    (71, row("Interp", sample::interp)),
    (72, row("Selu", pointwise::selu)),
    (73, row("Elu", pointwise::elu)),
    (
        74,
        row("BroadMul", |i, n| binary::of_all(i, n, BinaryKind::Mul)),
    ),
    (77, row("Transpose", arrange::transpose)),
    (83, row("Ceil", |i, n| pointwise::of(i, n, UnaryKind::Ceil))),
    (84, row("SquaredDifference", binary::squared_difference)),
    (87, row("Clip", pointwise::clip)),
    (88, row("Unsqueeze", arrange::unsqueeze)),
    (91, row("MatMul", product::matmul)),
    (97, row("Mish", |i, n| pointwise::of(i, n, UnaryKind::Mish))),
    (99, row("LogSoftmax", reduce::log_softmax)),
    (
        102,
        row("Softplus", |i, n| pointwise::of(i, n, UnaryKind::Softplus)),
    ),
    (
        103,
        row("Reciprocal", |i, n| {
            pointwise::of(i, n, UnaryKind::Reciprocal)
        }),
    ),
    (
        106,
        row("Gelu", |i, n| {
            pointwise::of(i, n, UnaryKind::Gelu { tanh: false })
        }),
    ),
    (107, row("LayerNorm", norm::layer_norm)),
]);

/// Operators that are known by their names, which cannot be run, each with what it does.
static REFUSED: OpTable<u32, (&str, &str)> = OpTable(&[
    (0, ("Accuracy", "a measure of training")),
    (2, ("Resize", "an older form of Interp")),
    (7, ("DetectionOutput", "boxes that depend on the data")),
    (14, ("Normalize", "norms of channels")),
    (
        18,
        ("PriorBox", "boxes that are only of use to DetectionOutput"),
    ),
    (19, ("Region", "boxes that depend on the data")),
    (22, ("Reorg", "squares of pixels as channels")),
    (24, ("ROIPooling", "pooling of boxes")),
    (25, ("RPN", "boxes that depend on the data")),
    (
        30,
        ("DetectionPostProcess", "boxes that depend on the data"),
    ),
    (
        31,
        (
            "Gemm",
            "products with factors, which Tengine has as FullyConnected",
        ),
    ),
    (32, ("Generic", "an operator of another program")),
    (34, ("LSTM", "a recurrent operator")),
    (35, ("RNN", "a recurrent operator")),
    (
        39,
        (
            "Fused.BNScaleReLu",
            "operators that Tengine puts together itself",
        ),
    ),
    (
        41,
        (
            "StridedSlice",
            "parts whose size Tengine infers in a way of its own",
        ),
    ),
    (44, ("TopKV2", "the largest numbers")),
    (48, ("GRU", "a recurrent operator")),
    (52, ("SpaceToBatchND", "blocks of pixels as batches")),
    (53, ("BatchToSpaceND", "batches as blocks of pixels")),
    (54, ("Resize", "an older form of Interp")),
    (56, ("Crop", "parts of pictures")),
    (57, ("Roialign", "pooling of boxes")),
    (58, ("Psroipooling", "pooling of boxes")),
    (63, ("Threshold", "numbers above a threshold")),
    (65, ("Embedding", "rows by number")),
    (67, ("MVN", "norms of pictures")),
    (69, ("Cast", "changes of element type")),
    (75, ("Logical", "functions of flags")),
    (76, ("Gather", "numbers by their places")),
    (78, ("Comparison", "comparisons")),
    (79, ("SpaceToDepth", "squares of pixels as channels")),
    (80, ("DepthToSpace", "channels as squares of pixels")),
    (81, ("Reverse", "tensors backwards")),
    (82, ("SparseToDense", "lists of places")),
    (85, ("Round", "rounding")),
    (86, ("ZerosLike", "zeros")),
    (89, ("ReduceL2", "norms")),
    (90, ("Mean", "means of tensors")),
    (92, ("Expand", "tensors that are repeated")),
    (93, ("Scatter", "writing into parts of a tensor")),
    (94, ("Shape", "sizes as numbers")),
    (95, ("Where", "a choice between tensors")),
    (96, ("Tile", "tensors that are repeated")),
    (98, ("L2Pool", "roots of means of squares")),
    (100, ("ReLU1", "numbers between -1 and 1")),
    (101, ("L2Normalization", "norms of channels")),
    (
        105,
        (
            "SpatialTransformer",
            "sampling at positions that are computed",
        ),
    ),
]);

/// What brings an operator into the graph.
pub fn find(operator: u32) -> Option<MapFn> {
    OPERATORS.find(&operator).map(|row| row.map)
}

/// What an operator is called.
pub fn name(operator: u32) -> String {
    match (OPERATORS.find(&operator), REFUSED.find(&operator)) {
        (Some(row), _) => row.name.to_string(),
        (_, Some((name, _))) => (*name).to_string(),
        _ => format!("operator number {operator}"),
    }
}

/// Why an operator that cannot be run is refused.
pub fn refusal(operator: u32) -> Error {
    match REFUSED.find(&operator) {
        Some((_, what)) => unsupported(*what),
        None => unknown_operator(),
    }
}

/// The channels that the first convolution expects of the tensor that it reads.
pub fn channels(network: &Network, tensor: usize) -> Option<usize> {
    let mut nodes = network.nodes.iter();
    let node = nodes.find(|n| n.operator == CONVOLUTION && n.inputs.first() == Some(&tensor))?;
    let weights = &network.tensors[*node.inputs.get(1)?];
    let each = usize::try_from(*weights.dims.get(1)?).ok()?;
    let channels = each.checked_mul(conv::groups(node.params?).ok()?)?;
    (channels > 0).then_some(channels)
}

#[cfg(test)]
mod tests {
    use super::{OPERATORS, REFUSED};

    #[test]
    fn operators_are_sorted_and_unique() {
        assert_eq!(OPERATORS.misplaced(), None);
        assert_eq!(REFUSED.misplaced(), None);
    }

    #[test]
    fn no_operator_is_both_run_and_refused() {
        assert!(
            REFUSED
                .0
                .iter()
                .all(|(number, _)| OPERATORS.find(number).is_none())
        );
    }
}
