//! Layers with weights of 8 bits, and layers between float and 8 bits. A scale is what numbers are multiplied with to become integers
//! from -127 to 127 (`src/layer/quantize.cpp`).

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DequantizeLinear, QuantizeLinear, UnaryKind};
use kilim_core::tensor::Tensor;

use super::{Outputs, pointwise};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// The largest integer; there are as many below zero.
const MOST: f32 = 127.0;

/// The scales of a layer that computes in 8 bits.
pub struct Scales {
    weights: Vec<f32>,
    channels: usize,
    input: f32,
    output: Option<f32>,
}

impl Scales {
    /// Reads the scales behind the weights of a convolution or product; nothing where it computes in floats. `grouped` layers have a
    /// scale for each group, or one for all.
    pub fn read(
        imp: &mut Import,
        layer: &Layer,
        channels: usize,
        groups: usize,
        grouped: bool,
    ) -> Result<Option<Scales>> {
        let term = layer.params.int(8, 0)?;
        if term == 0 {
            return Ok(None);
        }
        let count = match (grouped, term) {
            (false, _) => channels,
            (true, 2 | 102) => 1,
            (true, _) => groups,
        };
        let mut read = |count: usize| -> Result<Vec<f32>> {
            let value = imp.plain("scale", &[count])?;
            let tensor = imp
                .constant(value)
                .ok_or_else(|| invalid("a scale is no constant"))?;
            let mut scales = with_room(count)?;
            scales.extend_from_slice(tensor.as_slice::<f32>()?);
            Ok(scales)
        };
        let weights = read(count)?;
        let input = read(1)?[0];
        let output = if term > 100 { Some(read(1)?[0]) } else { None };
        Ok(Some(Scales {
            weights,
            channels,
            input,
            output,
        }))
    }

    /// The numbers that are left of the layer's input.
    pub fn input(&self, imp: &mut Import, x: ValueId) -> Result<ValueId> {
        rounded(imp, x, self.input)
    }

    /// The numbers that are left of the layer's output.
    pub fn output(&self, imp: &mut Import, y: ValueId) -> Result<ValueId> {
        self.output.map_or(Ok(y), |scale| rounded(imp, y, scale))
    }

    /// The numbers that weights stand for. Those in floats are rounded as ncnn does it when it reads them.
    pub fn weights(&self, imp: &mut Import, stored: Tensor) -> Result<ValueId> {
        let each = self.channels.checked_div(self.weights.len()).unwrap_or(0);
        let mut inverse = with_room(self.channels)?;
        for &scale in &self.weights {
            let inverted = if scale == 0.0 { 0.0 } else { 1.0 / scale };
            inverse.extend(std::iter::repeat_n(inverted, each));
        }
        let scale = Tensor::from_slice(&[self.channels], &inverse)?;
        let scale = imp.node_constant("scales", scale);
        let integers = match stored.dtype() {
            DType::I8 => imp.node_constant("weights", stored),
            _ => {
                let weights = widened(imp, stored)?;
                let quantize = QuantizeLinear {
                    axis: 0,
                    block: 0,
                    output: Some(DType::I8),
                };
                imp.op(quantize, &[weights, scale])?
            }
        };
        imp.op(DequantizeLinear { axis: 0, block: 0 }, &[integers, scale])
    }
}

/// An empty list with room for so many numbers.
fn with_room(count: usize) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    let reserved = numbers.try_reserve_exact(count);
    reserved.map_err(|_| {
        Error::new(
            ErrorCode::Limit,
            "there is no memory for the scales of a layer",
        )
    })?;
    Ok(numbers)
}

/// Stored weights as `float32`.
pub fn widened(imp: &mut Import, stored: Tensor) -> Result<ValueId> {
    if stored.dtype() == DType::I8 {
        return Err(invalid("weights are integers, but the layer has no scales"));
    }
    let weights = imp.node_constant("weights", stored);
    imp.cast(weights, DType::F32)
}

/// Weights of a layer that computes in floats: integers are multiples of one scale for each row.
pub fn of_rows(imp: &mut Import, stored: Tensor, scales: Option<ValueId>) -> Result<ValueId> {
    let Some(scales) = scales else {
        return widened(imp, stored);
    };
    let weights = imp.node_constant("weights", stored);
    let weights = imp.cast(weights, DType::F32)?;
    imp.div(weights, scales)
}

/// `x` as integers, and these as floats again.
fn rounded(imp: &mut Import, x: ValueId, scale: f32) -> Result<ValueId> {
    let inverse = if scale == 0.0 { 1.0 } else { 1.0 / scale };
    let least = UnaryKind::Clip {
        min: f64::from(-MOST * inverse),
        max: f64::INFINITY,
    };
    let x = imp.unary(least, x)?;
    let scale = imp.float(inverse)?;
    let quantize = QuantizeLinear {
        axis: 0,
        block: 0,
        output: Some(DType::I8),
    };
    let x = imp.op(quantize, &[x, scale])?;
    imp.op(DequantizeLinear { axis: 0, block: 0 }, &[x, scale])
}

/// Scales or biases of the layer for the outermost dimension of `x`: one for all, or one for each channel.
fn factors(imp: &mut Import, x: ValueId, what: &str, count: usize) -> Result<ValueId> {
    let value = imp.plain(what, &[count])?;
    match count {
        1 => Ok(value),
        _ => imp.per_channel(value, x),
    }
}

/// Numbers rounded to integers from -127 to 127, as `int8`.
fn to_bytes(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let x = imp.unary(UnaryKind::Round, x)?;
    let range = UnaryKind::Clip {
        min: f64::from(-MOST),
        max: f64::from(MOST),
    };
    let x = imp.unary(range, x)?;
    imp.cast(x, DType::I8)
}

pub fn quantize(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let scale = factors(imp, x, "scale", layer.positive(0, 1)?)?;
    let x = imp.mul(x, scale)?;
    Ok(vec![to_bytes(imp, x)?])
}

pub fn dequantize(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let scale = factors(imp, x, "scale", layer.positive(0, 1)?)?;
    let x = imp.cast(x, DType::F32)?;
    let mut y = imp.mul(x, scale)?;
    let biases = layer.params.count(1, 0)?;
    if biases > 0 {
        let bias = factors(imp, x, "bias", biases)?;
        y = imp.add(y, bias)?;
    }
    Ok(vec![y])
}

pub fn requantize(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let into = factors(imp, x, "scale in", layer.positive(0, 1)?)?;
    let out = factors(imp, x, "scale out", layer.positive(1, 1)?)?;
    let x = imp.cast(x, DType::F32)?;
    let mut y = imp.mul(x, into)?;
    let biases = layer.params.count(2, 0)?;
    if biases > 0 {
        let bias = factors(imp, x, "bias", biases)?;
        y = imp.add(y, bias)?;
    }
    y = pointwise::activated(imp, layer, y, [3, 4])?;
    y = imp.mul(y, out)?;
    Ok(vec![to_bytes(imp, y)?])
}
