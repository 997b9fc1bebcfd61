//! Blocks of pictures.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, Padding};
use kilim_core::tensor::Tensor;

use super::GraphBuilder;

/// Numbers of the convolution that finds blocks.
const MOST_NUMBERS: usize = 1 << 22;

impl GraphBuilder {
    /// The blocks of a picture of `channels` as columns `[batch, channels * taps, blocks]`, which convolutions with one tap each find.
    /// `window` is strides, dilations and padding.
    ///
    /// # Errors
    /// `Unsupported` where blocks are very large.
    pub fn unfolded(
        &mut self,
        x: ValueId,
        channels: usize,
        kernel: &[usize],
        window: (Vec<usize>, Vec<usize>, Padding),
    ) -> Result<ValueId> {
        let taps = kernel.iter().fold(1usize, |n, &k| n.saturating_mul(k));
        let numbers = taps.saturating_mul(taps).saturating_mul(channels);
        if numbers > MOST_NUMBERS {
            return Err(unsupported("blocks of so many pixels"));
        }
        let mut identity = Tensor::zeros(DType::F32, &[channels, taps, taps])?;
        let numbers = identity.make_mut::<f32>()?;
        for (row, numbers) in numbers.chunks_exact_mut(taps).enumerate() {
            numbers[row % taps] = 1.0;
        }
        let shape = [&[channels * taps, 1], kernel].concat();
        let weights = identity.reshaped(&shape)?;
        let (strides, dilations, padding) = window;
        let conv = Conv {
            strides,
            dilations,
            padding,
            groups: channels,
            channels_last: false,
            activation: Activation::None,
        };
        let weights = self.node_constant("blocks", weights);
        let y = self.op(conv, &[x, weights])?;
        self.reshape(y, &[0, (channels * taps) as i64, -1])
    }
}
