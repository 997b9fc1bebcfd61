//! The half that listens: two convolutions over the spectrum, and layers of attention.

use kilim_core::dim::Dim;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Conv, Padding, UnaryKind};

use super::ENCODED;
use super::invalid;
use super::network::{Network, floats};

/// Frames of the spectrum that a kernel sees.
const KERNEL: usize = 3;
/// Frames of the spectrum for a place.
const STRIDE: usize = 2;

impl Network<'_> {
    /// Adds the encoder: `input_features` `[batch, bands, frames]` in, `last_hidden_state` `[batch, places, width]` out.
    ///
    /// # Errors
    /// `InvalidModel` where tensors and sizes do not fit, `Unsupported` for what Kilim does not have, `Limit` for too many nodes.
    pub fn encoder(&mut self) -> Result<()> {
        let (bands, places, width) = (self.sizes.bands, self.sizes.places, self.sizes.width);
        let frames = places.checked_mul(STRIDE);
        let frames = frames.ok_or_else(|| invalid("a window of too many places"))?;
        let features = floats([Dim::Known(bands), Dim::Known(frames)]);
        let x = self.b.add_input("input_features", features)?;
        let x = self.convolution(x, "encoder.conv1", bands, 1)?;
        let x = self.convolution(x, "encoder.conv2", width, STRIDE)?;
        let around = self.b.enter("encoder.positional_embedding");
        let x = self.b.transpose(x, &[0, 2, 1])?;
        let at = self.constant("encoder.positional_embedding", &[places, width])?;
        let mut x = self.b.add(x, at)?;
        self.b.leave(around);
        for layer in 0..self.sizes.layers {
            self.go_on()?;
            x = self.listening(x, &format!("encoder.blocks.{layer}"))?;
        }
        let around = self.b.enter("encoder.ln_post");
        let x = self.norm(x, "encoder.ln_post")?;
        let x = self.b.name(x, ENCODED[0]);
        self.b.leave(around);
        self.b.add_output(ENCODED[0], x)
    }

    /// A convolution along the frames, whose output is activated.
    fn convolution(
        &mut self,
        x: ValueId,
        name: &str,
        channels: usize,
        stride: usize,
    ) -> Result<ValueId> {
        let width = self.sizes.width;
        let around = self.b.enter(name);
        let weight = self.constant(&format!("{name}.weight"), &[width, channels, KERNEL])?;
        // Files have a column where others have a list.
        let bias = self.constant(&format!("{name}.bias"), &[width, 1])?;
        let bias = self.b.squeeze(bias, &[1])?;
        let op = Conv {
            strides: vec![stride],
            dilations: vec![1],
            padding: Padding::Explicit(vec![1, 1]),
            groups: 1,
            channels_last: false,
            activation: Activation::None,
        };
        let y = self.b.op(op, &[x, weight, bias])?;
        let y = self.b.unary(UnaryKind::Gelu { tanh: false }, y)?;
        self.b.leave(around);
        Ok(y)
    }

    fn listening(&mut self, x: ValueId, layer: &str) -> Result<ValueId> {
        let name = format!("{layer}.attn");
        let heads = self.sizes.heads;
        let around = self.b.enter(&name);
        let y = self.norm(x, &format!("{layer}.attn_ln"))?;
        let mut parts = [None; 3];
        for (part, what) in parts.iter_mut().zip(["query", "key", "value"]) {
            *part = Some(self.in_heads(y, &format!("{name}.{what}"), heads)?);
        }
        let y = self.attend(false, &parts, heads, &name)?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        self.hidden(x, layer)
    }
}
