//! Networks in words, `.param.bin`: what a `.param` says, without names (`Net::load_param_bin` in `src/net.cpp`). All words are
//! little-endian and of 32 bits.

use kilim_core::Limits;
use kilim_core::error::{Result, unsupported};

use super::invalid;
use super::network::{Blobs, LayerInfo, MAGIC, Network, layers};
use super::params::{Form, Params, Value, id_of};

/// What ends the parameters of a layer.
const END: i32 = -233;

/// Set in the types of layers that a program brought itself (`LayerType::CustomBit`).
const CUSTOM: u32 = 1 << 8;

/// The types of layers in the order of their numbers (`src/CMakeLists.txt`; numbers are never given to another type).
#[rustfmt::skip]
static KINDS: &[&str] = &[
    "AbsVal", "ArgMax", "BatchNorm", "Bias", "BNLL", "Concat", "Convolution", "Crop", "Deconvolution", "Dropout", "Eltwise",
    "ELU", "Embed", "Exp", "Flatten", "InnerProduct", "Input", "Log", "LRN", "MemoryData", "MVN", "Pooling", "Power", "PReLU",
    "Proposal", "Reduction", "ReLU", "Reshape", "ROIPooling", "Scale", "Sigmoid", "Slice", "Softmax", "Split", "SPP", "TanH",
    "Threshold", "Tile", "RNN", "LSTM", "BinaryOp", "UnaryOp", "ConvolutionDepthWise", "Padding", "Squeeze", "ExpandDims",
    "Normalize", "Permute", "PriorBox", "DetectionOutput", "Interp", "DeconvolutionDepthWise", "ShuffleChannel", "InstanceNorm",
    "Clip", "Reorg", "YoloDetectionOutput", "Quantize", "Dequantize", "Yolov3DetectionOutput", "PSROIPooling", "ROIAlign",
    "Packing", "Requantize", "Cast", "HardSigmoid", "SELU", "HardSwish", "Noop", "PixelShuffle", "DeepCopy", "Mish",
    "StatisticsPooling", "Swish", "Gemm", "GroupNorm", "LayerNorm", "Softplus", "GRU", "MultiHeadAttention", "GELU",
    "Convolution1D", "Pooling1D", "ConvolutionDepthWise1D", "Convolution3D", "ConvolutionDepthWise3D", "Pooling3D", "MatMul",
    "Deconvolution1D", "DeconvolutionDepthWise1D", "Deconvolution3D", "DeconvolutionDepthWise3D", "Einsum", "DeformableConv2D",
    "GLU", "Fold", "Unfold", "GridSample", "CumulativeSum", "CopyTo", "Erf", "Diag", "CELU", "Shrink", "RMSNorm", "Spectrogram",
    "InverseSpectrogram", "Flip", "SDPA", "RotaryEmbed",
];

/// Whether a file begins like a network in words.
pub fn probe(bytes: &[u8]) -> bool {
    bytes.len() >= 12 && bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads a network.
///
/// # Errors
/// `InvalidModel` and `InvalidGraph` where it is garbled, `Limit` where it has too many layers.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Network> {
    let mut words = Words(bytes);
    words.int()?;
    let count = layers(words.int()?.into(), limits)?;
    words.int()?;
    let mut blobs = Blobs::default();
    let mut network = Network {
        layers: Vec::new(),
        blobs: Vec::new(),
    };
    for i in 0..count {
        let kind = words.word()?;
        let name = format!("layer {i}");
        let kind = match KINDS.get(kind as usize) {
            Some(kind) => (*kind).to_string(),
            None if kind & CUSTOM != 0 => format!("custom layer {}", kind & !CUSTOM),
            None => format!("layer type {kind}"),
        };
        let layer = words.layer(&kind, &name, &mut blobs);
        network.layers.push(layer.map_err(|e| e.at(&name, &kind))?);
    }
    network.blobs = blobs.into_names();
    Ok(network)
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let parts = self.0.split_at_checked(len);
        let (bytes, rest) = parts.ok_or_else(|| invalid("the file ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |word, &b| word << 8 | u32::from(b)))
    }

    fn int(&mut self) -> Result<i32> {
        Ok(self.word()? as i32)
    }

    fn layer(&mut self, kind: &str, name: &str, blobs: &mut Blobs) -> Result<LayerInfo> {
        let (inputs, outputs) = (self.int()?, self.int()?);
        let bottoms = (0..inputs)
            .map(|_| blobs.read(&self.int()?.to_string()))
            .collect::<Result<_>>()?;
        let tops = (0..outputs)
            .map(|_| blobs.write(&self.int()?.to_string()))
            .collect::<Result<_>>()?;
        Ok(LayerInfo {
            kind: kind.to_string(),
            name: name.to_string(),
            bottoms,
            tops,
            params: self.params()?,
        })
    }

    fn params(&mut self) -> Result<Params> {
        let mut params = Params::default();
        loop {
            let key = self.int()?;
            if key == END {
                return Ok(params);
            }
            let (id, form) = id_of(key)?;
            let value = match form {
                Form::One => Value::Word(self.word()?),
                Form::List => Value::Words(self.list()?),
                Form::Text => Value::Text(self.text()?),
            };
            params.set(id, value);
        }
    }

    fn length(&mut self) -> Result<usize> {
        usize::try_from(self.int()?).map_err(|_| invalid("a parameter has a negative length"))
    }

    fn list(&mut self) -> Result<Vec<u32>> {
        let bytes = self.length()?.checked_mul(4);
        let mut list = Words(self.bytes(bytes.unwrap_or(usize::MAX))?);
        (0..list.0.len() / 4).map(|_| list.word()).collect()
    }

    /// A text, with zeros up to a whole word behind it.
    fn text(&mut self) -> Result<String> {
        let length = self.length()?;
        let padded = length.checked_next_multiple_of(4).unwrap_or(usize::MAX);
        let text = self.bytes(padded)?[..length].to_vec();
        String::from_utf8(text).map_err(|_| unsupported("a text that is not UTF-8"))
    }
}
