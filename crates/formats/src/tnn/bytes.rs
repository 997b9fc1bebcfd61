//! Layers whose blobs are integers of 8 bits (`Quantized…`), in the graph as the floats that they stand for. A blob has a scale, for each
//! channel or for all, in the file of the weights: a number is an integer from -128 to 127 times it (`utils/naive_compute.cc`).

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DequantizeLinear, QuantizeLinear};
use kilim_core::tensor::Tensor;

use super::import::Import;
use super::invalid;
use super::layer::Layer;
use super::stream::Buffer;

/// What a layer does with numbers of 8 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// Nothing: there is no such layer.
    Never,
    /// Finds others, which are rounded with the scale of the blob that it writes.
    Rounded,
    /// Passes them on, as they are or as means of them.
    Passed,
}

/// What the name of a blob's scale ends in (`BLOB_SCALE_SUFFIX` in `interpreter/tnn/objseri.h`).
const SUFFIX: &str = "_scale_data_";

/// The places of zeros and scales behind weights and bias, and in what a blob has.
const OF_WEIGHTS: [usize; 2] = [2, 3];
const OF_BLOB: [usize; 2] = [0, 1];

/// Scales from what is stored.
fn scales(stored: &[Option<Buffer>], [zeros, scales]: [usize; 2]) -> Result<Vec<f32>> {
    if let Some(Some(zeros)) = stored.get(zeros)
        && zeros.tensor.to_i64s()?.iter().any(|&zero| zero != 0)
    {
        return Err(unsupported("integers whose zero is another number"));
    }
    match stored.get(scales) {
        Some(Some(scales)) if scales.dtype() == DType::F32 => {
            let scales = scales.tensor.as_slice::<f32>()?;
            match scales.iter().all(|s| s.is_finite() && *s >= 0.0) {
                true => Ok(scales.to_vec()),
                false => Err(invalid("a scale is negative")),
            }
        }
        _ => Err(invalid("the scales of integers are missing")),
    }
}

impl Import<'_> {
    /// The scale of a blob whose numbers have one; `None` where the weights are not there.
    ///
    /// # Errors
    /// `InvalidModel` where the file has no scale of the blob.
    pub fn blob_scale(&mut self, blob: &str) -> Result<Option<Vec<f32>>> {
        match self.stored(&format!("{blob}{SUFFIX}"))? {
            Some(stored) => Ok(Some(scales(&stored, OF_BLOB)?)),
            None => Ok(None),
        }
    }

    /// What is left of `x` in integers with these scales: one, or one for each channel.
    pub fn in_bytes(&mut self, x: ValueId, scales: &[f32]) -> Result<ValueId> {
        let scale = match scales {
            [one] => Tensor::scalar(*one)?,
            all => Tensor::from_slice(&[all.len()], all)?,
        };
        let scale = self.node_constant("scale", scale);
        let quantize = QuantizeLinear {
            axis: 1,
            block: 0,
            output: Some(DType::I8),
        };
        let x = self.op(quantize, &[x, scale])?;
        self.op(DequantizeLinear { axis: 1, block: 0 }, &[x, scale])
    }

    /// Weights in `int8` with the biases that belong to them, for data with the scale `of_data`. The scales of the file are products with
    /// that, and biases are multiples of them.
    ///
    /// # Errors
    /// `InvalidModel` where numbers are missing or are too many.
    pub fn weights_in_bytes(
        &mut self,
        layer: &Layer,
        of_data: f32,
        shape: &[usize],
    ) -> Result<Vec<ValueId>> {
        let outputs = shape.first().copied().unwrap_or(0);
        let stored = self.stored(layer.name)?.unwrap_or_default();
        let weights = match stored.first() {
            Some(Some(buffer)) if buffer.dtype() == DType::I8 => buffer.tensor.reshaped(shape)?,
            _ => return Err(invalid("weights in 8 bits are missing")),
        };
        let mut products = scales(&stored, OF_WEIGHTS)?;
        if let [one] = products[..] {
            products = vec![one; outputs];
        }
        if products.len() != outputs {
            return Err(invalid("the scales are of another number than the outputs"));
        }
        let own: Vec<f32> = products.iter().map(|p| p / of_data).collect();
        let own = Tensor::from_slice(&[outputs], &own)?;
        let own = self.node_constant("scales", own);
        let weights = self.node_constant("weights", weights);
        let mut made = vec![self.op(DequantizeLinear { axis: 0, block: 0 }, &[weights, own])?];
        if let Some(Some(bias)) = stored.get(1) {
            let sums = bias.tensor.to_i64s()?;
            if sums.len() != outputs {
                return Err(invalid("the biases are of another number than the outputs"));
            }
            let bias: Vec<f32> = sums
                .iter()
                .zip(&products)
                .map(|(&n, p)| n as f32 * p)
                .collect();
            let bias = Tensor::from_slice(&[outputs], &bias)?;
            made.push(self.node_constant("bias", bias));
        }
        Ok(made)
    }
}
