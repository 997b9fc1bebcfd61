//! The geometry of a sliding window over channels-last data, brought to two spatial axes.

use std::ops::Range;

use kilim_core::ops::WindowAxis;

/// A window over `[batch, y.input, x.input, channels]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub batch: usize,
    pub channels: usize,
    pub y: WindowAxis,
    pub x: WindowAxis,
}

impl Window {
    /// `None` where there are more than two spatial axes, a size is zero, or an image has more
    /// elements than offsets of 32 bits reach.
    pub(crate) fn new(batch: usize, channels: usize, axes: &[WindowAxis]) -> Option<Window> {
        let (y, x) = match *axes {
            [x] => (WindowAxis::POINT, x),
            [y, x] => (y, x),
            _ => return None,
        };
        let sizes = [batch, channels, y.input, x.input, y.output, x.output];
        let padded = reach(&y)
            .max(y.input)
            .checked_mul(reach(&x).max(x.input))?
            .checked_mul(channels)?;
        let fits = !sizes.contains(&0) && u32::try_from(padded).is_ok();
        fits.then_some(Window {
            batch,
            channels,
            y,
            x,
        })
    }

    /// Elements of one image of the input.
    pub(crate) fn image(&self) -> usize {
        self.y.input * self.x.input * self.channels
    }
}

/// Elements with padding that all windows together touch.
pub(crate) fn reach(axis: &WindowAxis) -> usize {
    axis.output.saturating_sub(1) * axis.stride + axis.extent()
}

/// True where no window touches padding.
pub(crate) fn inside(axis: &WindowAxis) -> bool {
    axis.begin == 0 && reach(axis) <= axis.input
}

/// The outputs whose windows touch no padding.
pub(crate) fn interior(axis: &WindowAxis) -> Range<usize> {
    let first = axis.begin.div_ceil(axis.stride).min(axis.output);
    let end = match (axis.input + axis.begin).checked_sub(axis.extent()) {
        Some(last) => (last / axis.stride + 1).min(axis.output),
        None => 0,
    };
    first..end.max(first)
}
