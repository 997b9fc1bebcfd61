//! One output channel for each input channel, vectors across channels.
//!
//! Numbers that a machine multiplies together, two `i16` or four bytes, are those of one channel in rows below each other.
//! For each row of the output the rows of the input that it needs are woven into lines of such groups first. A weight that
//! no byte holds is the sum of two, each with a tap of its own.

use std::array::from_fn;

use kilim_core::Result;
use kilim_core::tensor::AlignedBytes;
use kilim_host::{Build, CpuRun, Table};

use super::product::Form;
use super::weights::Known;
use crate::isa::{IntegerTask, Integers, Isa};
use crate::window::{Window, reach};

/// Pixels that are computed together.
const PIXELS: usize = 4;

/// Elements behind a line that vectors of channels may read.
const SLACK: usize = 16;

/// Channels filled up to whole vectors.
pub(super) fn width(isa: Isa, channels: usize) -> usize {
    channels.next_multiple_of(isa.integer_sizes().0)
}

/// How windows are taken apart.
pub(super) struct Depthwise {
    window: Window,
    form: Form,
    /// Elements of a line: those of a row of the strip.
    line: usize,
    /// Where each tap is in the lines, from the window's beginning on.
    taps: Table<usize>,
}

impl Depthwise {
    /// Windows whose weights are sums of so many bytes, or words.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub(super) fn new(
        window: Window,
        form: Form,
        parts: usize,
        build: &Build,
    ) -> Result<Depthwise> {
        let (x, c) = (window.x, window.channels);
        let line = reach(&x) * c;
        let taps = window.y.kernel.div_ceil(form.group()) * x.kernel;
        let at = |i: usize| {
            let tap = i % taps;
            tap / x.kernel * line + tap % x.kernel * x.dilation * c
        };
        Ok(Depthwise {
            taps: build.table((0..parts * taps).map(at), 1)?,
            window,
            form,
            line,
        })
    }

    fn lines(&self) -> usize {
        self.window.y.kernel.div_ceil(self.form.group())
    }

    /// The taps, if they are next to each other; else zero.
    fn neighbours(&self) -> usize {
        let x = &self.window.x;
        match x.dilation == 1 && self.taps.len() == x.kernel {
            true => x.kernel,
            false => 0,
        }
    }

    /// Elements, in `i32`, of the lines of an output row.
    pub(super) fn room(&self) -> usize {
        self.lines() * self.line + SLACK
    }

    /// Groups of multiplied numbers of a pixel and a channel.
    pub(super) fn depth(&self) -> usize {
        self.taps.len()
    }

    /// The weights as `[taps, width]`, in groups.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(super) fn pack(&self, cpu: &CpuRun, isa: Isa, known: &Known) -> Result<AlignedBytes> {
        let (y, x) = (self.window.y.kernel, self.window.x.kernel);
        let (channels, group) = (self.window.channels, self.form.group());
        let width = width(isa, channels);
        let mut bytes = AlignedBytes::zeroed(self.taps.len() * width * size_of::<i32>())?;
        let to: &mut [i32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
        let taps = self.lines() * x;
        cpu.pieces(self.taps.len() * channels, 2 * group, |piece| {
            for i in piece {
                let (tap, channel) = (i / channels, i % channels);
                let (part, tap) = (tap / taps, tap % taps);
                let (row, column) = (tap / x * group, tap % x);
                let number = |r: usize| match row + r < y {
                    true => known.number(channel, (row + r) * x + column),
                    false => 0,
                };
                to[(part * taps + tap) * width + channel] = match self.form {
                    Form::Words => i32::from(number(0)) & 0xffff | i32::from(number(1)) << 16,
                    Form::Bytes(_) => {
                        let byte = |r: usize| {
                            let number = number(r);
                            let first = number.clamp(i8::MIN.into(), i8::MAX.into());
                            (if part == 0 { first } else { number - first }) as u8
                        };
                        i32::from_le_bytes(from_fn(byte))
                    }
                };
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Computes the sums of output rows.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub(super) fn compute(&self, cpu: &CpuRun, isa: Isa, rows: Rows) -> Result<()> {
        let (y, channels) = (self.window.y, self.window.channels);
        let pixels = self.window.x.output;
        let count = rows.sums.len() / (pixels * channels);
        let width = width(isa, channels);
        let touched = (count.max(1) - 1) * y.stride + y.extent();
        assert!(
            rows.sums.len() == count * pixels * channels
                && rows.input.len() >= touched * self.line * self.form.size()
                && rows.weights.len() >= self.taps.len() * width
                && rows.bias.len() >= width
                && rows.lines.len() >= self.room()
        );
        let task = Compute {
            of: self,
            rows,
            cpu,
        };
        match self.form {
            Form::Words => isa.dispatch_integers(task),
            Form::Bytes(fours) => fours.dispatch(task),
        }
    }
}

/// Output rows below each other.
pub(super) struct Rows<'a> {
    /// The padded strip, in the numbers that are multiplied.
    pub input: &'a [u8],
    /// Packed for the instruction set.
    pub weights: &'a [i32],
    /// Filled up to whole vectors.
    pub bias: &'a [i32],
    /// Room for what [`Depthwise::room`] says.
    pub lines: &'a mut [i32],
    pub sums: &'a mut [i32],
}

/// Exists only where [`Depthwise::compute`] looked at its sizes.
struct Compute<'a> {
    of: &'a Depthwise,
    rows: Rows<'a>,
    cpu: &'a CpuRun<'a>,
}

impl IntegerTask for Compute<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<P: Integers>(self, p: P) -> Result<()> {
        let Compute { of, rows, cpu } = self;
        let Rows {
            input,
            weights,
            bias,
            lines,
            sums,
        } = rows;
        let (w, c) = (&of.window, of.window.channels);
        let pixel = of.taps.len().saturating_mul(c.div_ceil(P::LANES));
        for (row, sums) in sums.chunks_exact_mut(w.x.output * c).enumerate() {
            cpu.spend(of.lines() * of.line / P::LANES)?;
            for (i, to) in lines.chunks_exact_mut(of.line).take(of.lines()).enumerate() {
                let from = |r: usize| {
                    // Where the taps end, the weights of a group are zeros.
                    let tap = (i * P::GROUP + r).min(w.y.kernel - 1);
                    let row = row * w.y.stride + tap * w.y.dilation;
                    let bytes = of.line * of.form.size();
                    &input[row * bytes..][..bytes]
                };
                p.weave(from, to);
            }
            let at = Pixels {
                lines: lines.as_ptr(),
                step: w.x.stride * c,
                taps: &of.taps,
                weights: weights.as_ptr(),
                bias: bias.as_ptr(),
                channels: c,
                sums: sums.as_mut_ptr(),
            };
            let whole = w.x.output - w.x.output % PIXELS;
            // SAFETY: `Depthwise::compute` looked at the sizes; pixels are those of a row.
            unsafe {
                for first in (0..whole).step_by(PIXELS) {
                    cpu.spend(PIXELS * pixel)?;
                    match (of.neighbours(), w.x.stride) {
                        (3, 1) => tile::<P, PIXELS, 3, 1>(p, at, first),
                        (3, 2) => tile::<P, PIXELS, 3, 2>(p, at, first),
                        _ => tile::<P, PIXELS, 0, 0>(p, at, first),
                    }
                }
                for first in whole..w.x.output {
                    cpu.spend(pixel)?;
                    tile::<P, 1, 0, 0>(p, at, first);
                }
            }
        }
        Ok(())
    }
}

/// The pixels of a row of the output.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    lines: *const i32,
    /// Elements of a line from a pixel to the next.
    step: usize,
    taps: &'a [usize],
    weights: *const i32,
    bias: *const i32,
    channels: usize,
    sums: *mut i32,
}

/// All channels of `N` pixels from `first` on. `KX` are the taps of a row where they are the only ones and next to each other,
/// with `SX` pixels from window to window; zero where that is not known.
///
/// # Safety
/// The pixels are in the row; lines, weights, bias and sums have the sizes that [`Depthwise::compute`] looks at.
#[inline(always)]
unsafe fn tile<P: Integers, const N: usize, const KX: usize, const SX: usize>(
    p: P,
    row: Pixels,
    first: usize,
) {
    let channels = row.channels;
    let width = channels.next_multiple_of(P::LANES);
    let input = row.lines.wrapping_add(first * row.step);
    for channel in (0..channels).step_by(P::LANES) {
        // SAFETY: vectors of channels are inside of the lines, their slack, and the weights.
        unsafe {
            let input = input.add(channel);
            let weights = row.weights.add(channel);
            let mut sums = [p.load(row.bias.add(channel)); N];
            if KX > 0 {
                let mut of_taps = [p.splat(0); KX];
                for (t, weight) in of_taps.iter_mut().enumerate() {
                    *weight = p.load(weights.add(t * width));
                }
                for column in 0..(N - 1) * SX + KX {
                    let x = p.load(input.add(column * channels));
                    for (i, sum) in sums.iter_mut().enumerate() {
                        if column >= i * SX && column < i * SX + KX {
                            *sum = p.dot(x, of_taps[column - i * SX], *sum);
                        }
                    }
                }
            } else {
                for (t, &tap) in row.taps.iter().enumerate() {
                    let weight = p.load(weights.add(t * width));
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let x = p.load(input.add(tap + i * row.step));
                        *sum = p.dot(x, weight, *sum);
                    }
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let to = row.sums.add((first + i) * channels + channel);
                if channels - channel >= P::LANES {
                    p.store(to, sum);
                } else {
                    let mut whole = [0; SLACK];
                    p.store(whole.as_mut_ptr(), sum);
                    let rest = whole.iter().take(channels - channel).enumerate();
                    for (k, &sum) in rest {
                        *to.add(k) = sum;
                    }
                }
            }
        }
    }
}
