//! The geometry of a sliding window over channels-last data, brought to two spatial axes.

use kilim_core::ops::Padding;

/// One spatial axis, and what the window does on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub input: usize,
    pub output: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    /// Padding before the first element.
    pub begin: usize,
}

impl Axis {
    const POINT: Axis = Axis {
        input: 1,
        output: 1,
        kernel: 1,
        stride: 1,
        dilation: 1,
        begin: 0,
    };

    /// Elements that the window spans.
    pub(crate) fn span(self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// Elements with padding that all windows together touch.
    pub(crate) fn reach(self) -> usize {
        (self.output - 1) * self.stride + self.span()
    }

    /// True where no window touches padding.
    pub(crate) fn inside(self) -> bool {
        self.begin == 0 && self.reach() <= self.input
    }

    /// Taps of window `o` that are inside of the data.
    #[inline(always)]
    pub(crate) fn taps(self, o: usize) -> std::ops::Range<usize> {
        let start = o * self.stride;
        let first = self.begin.saturating_sub(start).div_ceil(self.dilation);
        let room = (self.input + self.begin).saturating_sub(start);
        let end = room.div_ceil(self.dilation).min(self.kernel);
        first.min(end)..end
    }

    /// The outputs whose windows touch no padding.
    pub(crate) fn interior(self) -> std::ops::Range<usize> {
        let first = self.begin.div_ceil(self.stride).min(self.output);
        let end = match (self.input + self.begin).checked_sub(self.span()) {
            Some(last) => (last / self.stride + 1).min(self.output),
            None => 0,
        };
        first..end.max(first)
    }
}

/// A window over `[batch, y.input, x.input, channels]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub batch: usize,
    pub channels: usize,
    pub y: Axis,
    pub x: Axis,
}

impl Window {
    /// `None` where there are more than two spatial axes or a size is zero. `kernel` is per
    /// spatial axis; shapes are channels-last.
    pub(crate) fn new(
        input: &[usize],
        output: &[usize],
        kernel: &[usize],
        strides: &[usize],
        dilations: &[usize],
        padding: &Padding,
    ) -> Option<Window> {
        let rank = kernel.len();
        if !(1..=2).contains(&rank) || input.len() != rank + 2 || output.len() != rank + 2 {
            return None;
        }
        let mut axes = [Axis::POINT; 2];
        for i in 0..rank {
            let axis = &mut axes[2 - rank + i];
            *axis = Axis {
                input: input[1 + i],
                output: output[1 + i],
                kernel: kernel[i],
                stride: strides.get(i).copied().unwrap_or(1),
                dilation: dilations.get(i).copied().unwrap_or(1),
                begin: 0,
            };
            let sizes = [
                axis.input,
                axis.output,
                axis.kernel,
                axis.stride,
                axis.dilation,
            ];
            if sizes.contains(&0) {
                return None;
            }
            let missing = axis.reach().saturating_sub(axis.input);
            axis.begin = match padding {
                Padding::Explicit(pads) => pads.get(i).copied().unwrap_or(0),
                Padding::SameUpper => missing / 2,
                Padding::SameLower => missing.div_ceil(2),
                Padding::Valid => 0,
            };
        }
        let [y, x] = axes;
        let sizes = [input[0], input[rank + 1], output[rank + 1]];
        (!sizes.contains(&0)).then_some(Window {
            batch: input[0],
            channels: input[rank + 1],
            y,
            x,
        })
    }

    /// Elements of one image of the input.
    pub(crate) fn image(&self) -> usize {
        self.y.input * self.x.input * self.channels
    }

    /// Pixels of one image of the output.
    pub(crate) fn pixels(&self) -> usize {
        self.y.output * self.x.output
    }
}
