//! The geometry of sliding windows: convolution, its transpose, pooling.

use std::ops::Range;

use super::conv::Padding;
use super::rules::{too_large, wrong_count};
use crate::dim::Dim;
use crate::error::{Result, shape_error, value_error};

/// One spatial axis of a sliding window, resolved: sizes in elements, `output` in windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowAxis {
    pub input: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    /// Padding before the input.
    pub begin: usize,
    /// Padding after the input. With `ceil_mode` the last window may reach past it.
    pub end: usize,
    pub output: usize,
}

impl WindowAxis {
    /// An axis that data does not have: one element, one tap.
    pub const POINT: WindowAxis = WindowAxis {
        input: 1,
        kernel: 1,
        stride: 1,
        dilation: 1,
        begin: 0,
        end: 0,
        output: 1,
    };

    /// The elements that a window spans, holes of the dilation included.
    pub fn extent(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    /// The input element that window `output` begins on, negative inside the padding.
    pub fn start(&self, output: usize) -> isize {
        (output * self.stride) as isize - self.begin as isize
    }

    /// The kernel positions of window `output` that lie inside the input.
    pub fn taps(&self, output: usize) -> Range<usize> {
        let start = self.start(output);
        let first = start.min(0).unsigned_abs().div_ceil(self.dilation);
        let room = (self.input as isize - start).max(0) as usize;
        let last = room.div_ceil(self.dilation).min(self.kernel);
        first.min(last)..last
    }

    /// How many kernel positions of window `output` lie inside the padded input.
    pub fn padded_taps(&self, output: usize) -> usize {
        let room = (self.begin + self.input + self.end).saturating_sub(output * self.stride);
        room.div_ceil(self.dilation).min(self.kernel)
    }
}

/// The attributes of one axis, before the input's size is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisRule {
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub padding: AxisPadding,
    pub ceil_mode: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisPadding {
    Explicit(usize, usize),
    SameUpper,
    SameLower,
    Valid,
}

impl AxisPadding {
    /// Divides `total` between begin and end: the odd element at the end, or at the beginning.
    fn divide(total: usize, odd_at_end: bool) -> (usize, usize) {
        let (half, rest) = (total / 2, total - total / 2);
        if odd_at_end {
            (half, rest)
        } else {
            (rest, half)
        }
    }
}

/// A per-axis attribute; empty means `default` for all, zero is refused.
pub(crate) fn attribute(values: &[usize], axes: usize, name: &str) -> Result<Vec<usize>> {
    if values.is_empty() {
        return Ok(vec![1; axes]);
    }
    if values.len() != axes {
        return Err(wrong_count(name, axes, values.len()));
    }
    if values.contains(&0) {
        return Err(value_error(format!("{name} must not be 0")));
    }
    Ok(values.to_vec())
}

/// The paddings of every axis.
pub(crate) fn paddings(padding: &Padding, axes: usize) -> Result<Vec<AxisPadding>> {
    Ok(match padding {
        Padding::Explicit(p) if p.is_empty() => vec![AxisPadding::Explicit(0, 0); axes],
        Padding::Explicit(p) if p.len() != 2 * axes => {
            return Err(wrong_count("pads", 2 * axes, p.len()));
        }
        Padding::Explicit(p) => (0..axes)
            .map(|i| AxisPadding::Explicit(p[i], p[axes + i]))
            .collect(),
        Padding::SameUpper => vec![AxisPadding::SameUpper; axes],
        Padding::SameLower => vec![AxisPadding::SameLower; axes],
        Padding::Valid => vec![AxisPadding::Valid; axes],
    })
}

/// The rules of all axes for a known kernel.
pub(crate) fn window_rules(
    kernel: &[usize],
    strides: &[usize],
    dilations: &[usize],
    padding: &Padding,
    ceil_mode: bool,
) -> Result<Vec<AxisRule>> {
    let axes = kernel.len();
    let strides = attribute(strides, axes, "strides")?;
    let dilations = attribute(dilations, axes, "dilations")?;
    let pads = paddings(padding, axes)?;
    Ok((0..axes)
        .map(|i| AxisRule {
            kernel: kernel[i],
            stride: strides[i],
            dilation: dilations[i],
            padding: pads[i],
            ceil_mode,
        })
        .collect())
}

/// The output dimensions for dimensions that may be symbolic.
pub(crate) fn window_dims(
    input: &[Dim],
    kernel: &[Dim],
    strides: &[usize],
    dilations: &[usize],
    padding: &Padding,
    ceil_mode: bool,
) -> Result<Vec<Dim>> {
    // With SAME the output does not depend on the kernel.
    let sizes: Vec<usize> = kernel.iter().map(|k| k.known().unwrap_or(1)).collect();
    let rules = window_rules(&sizes, strides, dilations, padding, ceil_mode)?;
    let dims = rules.iter().zip(kernel).zip(input);
    dims.map(|((rule, kernel), input)| {
        let same = matches!(
            rule.padding,
            AxisPadding::SameUpper | AxisPadding::SameLower
        );
        match kernel {
            Dim::Known(_) => rule.dim(input),
            _ if same => rule.dim(input),
            _ => Ok(Dim::Unknown),
        }
    })
    .collect()
}

impl AxisRule {
    /// `(kernel - 1) * dilation + 1`, checked.
    pub(crate) fn extent(&self) -> Result<usize> {
        self.kernel
            .checked_sub(1)
            .and_then(|k| k.checked_mul(self.dilation))
            .and_then(|e| e.checked_add(1))
            .ok_or_else(|| value_error("a kernel must have a size that is not 0 and fits"))
    }

    /// Resolves the axis for an input of this size.
    pub(crate) fn resolve(&self, input: usize) -> Result<WindowAxis> {
        let extent = self.extent()?;
        let (begin, end, output) = match self.padding {
            AxisPadding::SameUpper | AxisPadding::SameLower => {
                let output = input.div_ceil(self.stride);
                let reach = output
                    .saturating_sub(1)
                    .checked_mul(self.stride)
                    .and_then(|r| r.checked_add(extent))
                    .ok_or_else(too_large)?;
                let total = if output == 0 {
                    0
                } else {
                    reach.saturating_sub(input)
                };
                let (begin, end) =
                    AxisPadding::divide(total, self.padding == AxisPadding::SameUpper);
                (begin, end, output)
            }
            // The specification's formula for VALID rounds down in either mode.
            AxisPadding::Valid => (0, 0, self.output(input, 0, input, false)?),
            AxisPadding::Explicit(begin, end) => {
                let padded = input
                    .checked_add(begin)
                    .and_then(|n| n.checked_add(end))
                    .filter(|&n| n <= isize::MAX as usize)
                    .ok_or_else(too_large)?;
                (
                    begin,
                    end,
                    self.output(input, begin, padded, self.ceil_mode)?,
                )
            }
        };
        self.axis(input, [begin, end], output)
    }

    /// The axis, if positions of its kernel in all windows can be counted.
    fn axis(&self, input: usize, [begin, end]: [usize; 2], output: usize) -> Result<WindowAxis> {
        let counted = |n: Option<usize>| n.is_some_and(|n| n <= isize::MAX as usize);
        let padded = input.checked_add(begin).and_then(|n| n.checked_add(end));
        let last = output.saturating_sub(1).checked_mul(self.stride);
        let extent = self.extent()?;
        let reach = last.and_then(|n| n.checked_add(extent));
        if !counted(padded) || !counted(reach) {
            return Err(too_large());
        }
        Ok(WindowAxis {
            input,
            kernel: self.kernel,
            stride: self.stride,
            dilation: self.dilation,
            begin,
            end,
            output,
        })
    }

    fn output(&self, input: usize, begin: usize, padded: usize, ceil: bool) -> Result<usize> {
        let extent = self.extent()?;
        let short = || {
            shape_error("a window is larger than the padded input")
                .with_expected(format!("{extent} elements or more"))
                .with_got(format!("{padded} elements"))
        };
        if !ceil {
            let room = padded.checked_sub(extent).ok_or_else(short)?;
            return Ok(room / self.stride + 1);
        }
        let output = match padded.checked_sub(extent) {
            Some(room) => room.div_ceil(self.stride) + 1,
            None if extent - padded < self.stride && padded > 0 => 1,
            None => return Err(short()),
        };
        // A window that would begin in the padding behind the input is left out.
        let begins_behind = (output - 1)
            .checked_mul(self.stride)
            .is_none_or(|start| start >= input + begin);
        Ok(if begins_behind && output > 1 {
            output - 1
        } else {
            output
        })
    }

    /// The output dimension for a dimension that may be symbolic.
    pub(crate) fn dim(&self, input: &Dim) -> Result<Dim> {
        match input {
            Dim::Known(n) => Ok(Dim::Known(self.resolve(*n)?.output)),
            other if self.stride == 1 => {
                let keeps = match self.padding {
                    AxisPadding::SameUpper | AxisPadding::SameLower => true,
                    AxisPadding::Valid => self.extent()? == 1,
                    AxisPadding::Explicit(b, e) => b.checked_add(e) == Some(self.extent()? - 1),
                };
                Ok(if keeps { other.clone() } else { Dim::Unknown })
            }
            _ => Ok(Dim::Unknown),
        }
    }

    /// The axis of the transposed operator, whose output may be asked for. The larger half of an
    /// odd padding comes first, but for SAME_UPPER.
    pub(crate) fn resolve_transposed(
        &self,
        input: usize,
        output_padding: usize,
        asked: Option<usize>,
    ) -> Result<WindowAxis> {
        let full = input
            .saturating_sub(1)
            .checked_mul(self.stride)
            .and_then(|n| n.checked_add(self.extent().ok()?))
            .and_then(|n| n.checked_add(output_padding))
            .filter(|&n| n <= isize::MAX as usize)
            .ok_or_else(too_large)?;
        let same = matches!(
            self.padding,
            AxisPadding::SameUpper | AxisPadding::SameLower
        );
        let asked = match asked {
            None if same => Some(input.checked_mul(self.stride).ok_or_else(too_large)?),
            other => other,
        };
        let (begin, end, output) = match (asked, self.padding) {
            (Some(output), padding) => {
                let total = full.saturating_sub(output);
                let (b, e) = AxisPadding::divide(total, padding == AxisPadding::SameUpper);
                (b, e, output)
            }
            (None, AxisPadding::Explicit(b, e)) => {
                let pads = b.checked_add(e).ok_or_else(too_large)?;
                let output = full.checked_sub(pads).ok_or_else(|| {
                    shape_error("the padding is larger than the output")
                        .with_expected(format!("at most {full}"))
                        .with_got(pads)
                })?;
                (b, e, output)
            }
            (None, _) => (0, 0, full),
        };
        self.axis(input, [begin, end], output)
    }
}

/// The index of the channel dimension, and those of the spatial ones.
pub(crate) fn layout(rank: usize, channels_last: bool) -> (usize, Range<usize>) {
    if channels_last {
        (rank - 1, 1..rank - 1)
    } else {
        (1, 2..rank)
    }
}

/// Batch, channels and spatial dimensions in the order of the layout.
pub(crate) fn arrange<T: Clone>(
    batch: T,
    channels: T,
    spatial: &[T],
    channels_last: bool,
) -> Vec<T> {
    let mut shape = vec![batch];
    if channels_last {
        shape.extend_from_slice(spatial);
        shape.push(channels);
    } else {
        shape.push(channels);
        shape.extend_from_slice(spatial);
    }
    shape
}
