//! The layers, each with what brings it into the graph.

mod arrange;
mod attention;
mod binary;
mod conv;
mod data;
mod norm;
mod pointwise;
mod pool;
mod product;
mod quantized;
mod recurrent;
mod reduce;
mod resize;
mod slice;
mod window;

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::UnaryKind;

use super::import::Import;
use super::layer::Layer;
use crate::build::{OpTable, unknown_operator};

/// The values that a layer writes.
pub type Outputs = Result<Vec<ValueId>>;

/// Brings a layer into the graph.
pub type MapFn = fn(&mut Import, &Layer) -> Outputs;

/// What is known of a layer.
pub struct Row {
    pub map: MapFn,
    /// The ranks of the blobs that it reads, the last for all that follow; 0 where a blob may be of any. Empty where outputs have
    /// the rank of the input.
    pub ranks: &'static [usize],
}

/// A layer whose inputs may be of any rank, which is that of its outputs.
const fn any(map: MapFn) -> Row {
    Row { map, ranks: &[] }
}

/// A layer that needs blobs of these ranks.
const fn of(ranks: &'static [usize], map: MapFn) -> Row {
    Row { map, ranks }
}

static LAYERS: OpTable<&str, Row> = OpTable(&[
    ("AbsVal", any(|i, l| pointwise::of(i, l, UnaryKind::Abs))),
    ("BNLL", any(|i, l| pointwise::of(i, l, UnaryKind::Softplus))),
    ("BatchNorm", any(norm::batch_norm)),
    ("Bias", any(norm::bias)),
    ("BinaryOp", any(binary::binary_op)),
    ("CELU", any(pointwise::celu)),
    ("Cast", any(data::cast)),
    ("Clip", any(pointwise::clipped)),
    ("Concat", any(arrange::concat)),
    (
        "Convolution",
        of(&[3], |i, l| conv::convolution(i, l, 2, false)),
    ),
    (
        "Convolution1D",
        of(&[2], |i, l| conv::convolution(i, l, 1, false)),
    ),
    (
        "Convolution3D",
        of(&[4], |i, l| conv::convolution(i, l, 3, false)),
    ),
    (
        "ConvolutionDepthWise",
        of(&[3], |i, l| conv::convolution(i, l, 2, true)),
    ),
    (
        "ConvolutionDepthWise1D",
        of(&[2], |i, l| conv::convolution(i, l, 1, true)),
    ),
    (
        "ConvolutionDepthWise3D",
        of(&[4], |i, l| conv::convolution(i, l, 3, true)),
    ),
    ("Crop", any(slice::crop)),
    ("CumulativeSum", any(reduce::cumulative_sum)),
    (
        "Deconvolution",
        of(&[3], |i, l| conv::deconvolution(i, l, 2, false)),
    ),
    (
        "Deconvolution1D",
        of(&[2], |i, l| conv::deconvolution(i, l, 1, false)),
    ),
    (
        "Deconvolution3D",
        of(&[4], |i, l| conv::deconvolution(i, l, 3, false)),
    ),
    (
        "DeconvolutionDepthWise",
        of(&[3], |i, l| conv::deconvolution(i, l, 2, true)),
    ),
    (
        "DeconvolutionDepthWise1D",
        of(&[2], |i, l| conv::deconvolution(i, l, 1, true)),
    ),
    (
        "DeconvolutionDepthWise3D",
        of(&[4], |i, l| conv::deconvolution(i, l, 3, true)),
    ),
    ("DeepCopy", any(arrange::split)),
    ("Dequantize", any(quantized::dequantize)),
    ("Dropout", any(pointwise::dropout)),
    ("ELU", any(pointwise::elu)),
    ("Einsum", of(&[0], reduce::einsum)),
    ("Eltwise", any(binary::eltwise)),
    ("Embed", of(&[1], product::embed)),
    ("Erf", any(|i, l| pointwise::of(i, l, UnaryKind::Erf))),
    ("Exp", any(pointwise::exp)),
    ("ExpandDims", of(&[0], arrange::expand_dims)),
    ("Flatten", of(&[0], arrange::flatten)),
    ("Flip", any(slice::flip)),
    ("Fold", of(&[2], resize::fold)),
    ("GELU", any(pointwise::gelu)),
    ("GLU", any(arrange::glu)),
    ("GRU", of(&[2], recurrent::gru)),
    ("Gemm", of(&[2], product::gemm)),
    ("GridSample", of(&[3], resize::grid_sample)),
    ("GroupNorm", any(norm::group_norm)),
    ("HardSigmoid", any(pointwise::hard_sigmoid)),
    ("HardSwish", any(pointwise::hard_swish)),
    ("InnerProduct", of(&[0], product::inner_product)),
    ("InstanceNorm", of(&[3], norm::instance_norm)),
    ("Interp", of(&[3, 0], resize::interp)),
    ("LRN", of(&[3], norm::lrn)),
    ("LSTM", of(&[2], recurrent::lstm)),
    ("LayerNorm", any(norm::layer_norm)),
    ("Log", any(pointwise::log)),
    ("MVN", any(norm::mean_variance)),
    ("MatMul", of(&[0], product::matmul)),
    ("MemoryData", any(data::memory)),
    ("Mish", any(|i, l| pointwise::of(i, l, UnaryKind::Mish))),
    ("MultiHeadAttention", of(&[2], attention::multi_head)),
    ("Noop", any(arrange::noop)),
    ("Normalize", of(&[3], norm::normalize)),
    ("PReLU", any(pointwise::prelu)),
    ("Padding", any(slice::padding)),
    ("Permute", any(arrange::permute)),
    ("PixelShuffle", of(&[3], arrange::pixel_shuffle)),
    ("Pooling", of(&[3], |i, l| pool::pooling(i, l, 2))),
    ("Pooling1D", of(&[2], |i, l| pool::pooling(i, l, 1))),
    ("Pooling3D", of(&[4], |i, l| pool::pooling(i, l, 3))),
    ("Power", any(pointwise::power)),
    ("Quantize", any(quantized::quantize)),
    ("RMSNorm", any(norm::rms_norm)),
    ("RNN", of(&[2], recurrent::rnn)),
    ("ReLU", any(pointwise::relu)),
    ("Reduction", of(&[0], reduce::reduction)),
    ("Reorg", of(&[3], arrange::reorg)),
    ("Requantize", any(quantized::requantize)),
    ("Reshape", of(&[0], arrange::reshape)),
    ("RotaryEmbed", of(&[3, 2], attention::rotary)),
    ("SDPA", of(&[3, 3, 3, 2, 3], attention::sdpa)),
    ("SELU", any(pointwise::selu)),
    ("Scale", any(norm::scale)),
    ("Shrink", any(pointwise::shrink)),
    ("ShuffleChannel", of(&[3], arrange::shuffle_channel)),
    (
        "Sigmoid",
        any(|i, l| pointwise::of(i, l, UnaryKind::Sigmoid)),
    ),
    ("Slice", any(slice::slice)),
    ("Softmax", any(reduce::softmax)),
    (
        "Softplus",
        any(|i, l| pointwise::of(i, l, UnaryKind::Softplus)),
    ),
    ("Split", any(arrange::split)),
    ("Squeeze", of(&[0], arrange::squeeze)),
    (
        "Swish",
        any(|i, l| pointwise::of(i, l, UnaryKind::Swish { alpha: 1.0 })),
    ),
    ("TanH", any(|i, l| pointwise::of(i, l, UnaryKind::Tanh))),
    ("Threshold", any(pointwise::threshold)),
    ("Tile", any(arrange::tile)),
    ("UnaryOp", any(pointwise::unary_op)),
    ("Unfold", of(&[3], resize::unfold)),
]);

/// Layers that are known, with the reason why they cannot be run.
static REFUSED: OpTable<&str, &str> = OpTable(&[
    (
        "ArgMax",
        "the positions of the largest numbers as floats, which a program finds in the blob itself",
    ),
    ("CopyTo", "writing into a part of a blob"),
    (
        "DeformableConv2D",
        "a convolution at positions that another layer computes",
    ),
    (
        "DetectionOutput",
        "boxes that depend on the data; take the blobs that it reads as outputs",
    ),
    ("Diag", "the diagonal of a matrix"),
    ("InverseSpectrogram", "sound of a spectrum"),
    ("PSROIPooling", "pooling of boxes"),
    (
        "Packing",
        "a layout of blobs, which ncnn chooses when it runs",
    ),
    ("PriorBox", "boxes that are only of use to DetectionOutput"),
    ("Proposal", "boxes that depend on the data"),
    ("ROIAlign", "pooling of boxes"),
    ("ROIPooling", "pooling of boxes"),
    ("SPP", "pooling in pyramids"),
    ("Spectrogram", "the spectrum of sound"),
    ("StatisticsPooling", "means and deviations of channels"),
    (
        "YoloDetectionOutput",
        "boxes that depend on the data; take the blobs that it reads as outputs",
    ),
    (
        "Yolov3DetectionOutput",
        "boxes that depend on the data; take the blobs that it reads as outputs",
    ),
]);

/// What is known of a layer.
pub fn find(kind: &str) -> Option<&'static Row> {
    LAYERS.find(kind)
}

/// Why a layer that no table of layers has is refused.
pub fn refusal(kind: &str) -> Error {
    match REFUSED.find(kind) {
        Some(what) => unsupported(*what),
        None => unknown_operator(),
    }
}

/// A size that must be known when the model is read.
fn fixed(imp: &Import, x: ValueId, axis: i64, what: &str) -> Result<usize> {
    let size = imp.length(x, axis).known();
    size.ok_or_else(|| unsupported(format!("{what}, which is open")))
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
