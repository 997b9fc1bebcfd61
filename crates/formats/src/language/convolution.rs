//! The short convolution that layers of LFM 2 have in place of attention (`src/models/lfm2.cpp`).

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, Fact, Padding, Slice, Split};

use super::decoder::Decoder;
use super::invalid;

impl Decoder<'_> {
    /// Whether a layer convolves in place of attending.
    pub fn convolves(&self, layer: usize) -> bool {
        self.weights
            .has(&self.tensor(layer, "shortconv.conv.weight"))
    }

    /// `out(c · conv(b · x))` of the three parts `b`, `c` and `x` of `in(x)`, with a kernel for each channel. What the next words read of
    /// these is a cache `[batch, width, kernel - 1]`.
    pub fn convolution(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let [input, kernel, output] = ["in_proj", "conv.weight", "out_proj"]
            .map(|what| self.tensor(layer, &format!("shortconv.{what}")));
        let width = self.sizes.width;
        let taps = self.weights.columns(&kernel)?;
        let Some(held) = taps.checked_sub(1).filter(|&n| n > 0) else {
            return Err(invalid("a convolution of one word").with_input(kernel));
        };
        let parts = self.product(x, &input, width.saturating_mul(3))?;
        let b = &mut self.b;
        let sizes = b.i64s(&[width as i64; 3])?;
        let parts = b.apply(Split { axis: 2 }, &[Some(parts), Some(sizes)], 3)?;
        let taken = b.mul(parts[0], parts[2])?;
        let taken = b.transpose(taken, &[0, 2, 1])?;
        let batch = Dim::Symbol(Arc::from("batch_size"));
        let shape = Shape(vec![batch, Dim::Known(width), Dim::Known(held)]);
        let past = b.add_input(&format!("past_conv.{layer}"), Fact::new(DType::F32, shape))?;
        let all = b.concat(&[past, taken], 2)?;
        let weights = self.weights.plain(&kernel, &[width, taps])?;
        let weights = weights.bytes_as(weights.dtype(), &[width, 1, taps])?;
        let weights = b.add_constant(&kernel, weights);
        let weights = b.cast(weights, DType::F32)?;
        let convolved = b.op(
            Conv {
                strides: vec![1],
                dilations: vec![1],
                padding: Padding::Valid,
                groups: width,
                channels_last: false,
                activation: Activation::None,
            },
            &[all, weights],
        )?;
        let (end, axis) = (b.dim(all, 2)?, b.i64s(&[2])?);
        let size = b.i64s(&[held as i64])?;
        let start = b.sub(end, size)?;
        let state = b.op(Slice, &[all, start, end, axis])?;
        let name = format!("present_conv.{layer}");
        let state = b.name(state, &name);
        self.given.push((name, state));
        let b = &mut self.b;
        let convolved = b.transpose(convolved, &[0, 2, 1])?;
        let y = b.mul(parts[1], convolved)?;
        self.product(y, &output, width)
    }
}
