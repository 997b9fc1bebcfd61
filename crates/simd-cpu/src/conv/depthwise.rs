//! Depthwise convolution: one output channel for each input channel, vectors across channels.
//!
//! Several neighbouring pixels are computed together, so that weights, and inputs that their
//! windows share, are loaded once. Windows that reach into padding leave out taps.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::ops::Activation;
use kilim_core::tensor::AlignedBytes;

use super::{Common, Convolve, Operands, Shape};
use crate::gemm::Reading;
use crate::isa::{Isa, Simd, Task, read, write};
use crate::math;
use crate::window::interior;
use kilim_host::{CpuRun, by};

/// Pixels that are computed together.
const PIXELS: usize = 4;

pub(crate) struct Depthwise {
    common: Common,
}

/// The weights `[c, 1, y, x]` as `[y, x, c]`, each row of channels filled up to whole vectors.
///
/// # Errors
/// `Limit` where memory is short, `Aborted` where the building is to stop.
pub(crate) fn pack_weights(
    cpu: &CpuRun,
    isa: Isa,
    shape: &Shape,
    weights: &[f32],
) -> Result<AlignedBytes> {
    let (c, taps) = (shape.m, shape.taps());
    let width = c.next_multiple_of(isa.lanes());
    let mut bytes = AlignedBytes::zeroed(taps * width * size_of::<f32>())?;
    let packed: &mut [f32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
    cpu.pieces(c * taps, 2, |piece| {
        for i in piece {
            packed[i % taps * width + i / taps] = Reading::WEIGHT.read(weights[i]);
        }
        Ok(())
    })?;
    Ok(bytes)
}

impl Depthwise {
    pub(crate) fn new(
        isa: Isa,
        shape: Shape,
        activation: Activation,
        weights: Arc<AlignedBytes>,
    ) -> Depthwise {
        Depthwise {
            common: Common::new(isa, shape, activation, weights),
        }
    }
}

impl Convolve for Depthwise {
    fn convolve(
        &self,
        cpu: &CpuRun,
        operands: &Operands,
        out: &mut [f32],
        _: &mut [f32],
    ) -> Result<()> {
        let Common {
            isa, shape, rest, ..
        } = &self.common;
        let w = &shape.window;
        let size = w.x.output * shape.m;
        // Two vectors take about as long as an operation.
        let cost = size.saturating_mul(shape.taps()) / (2 * isa.lanes());
        let rows = w.batch * w.y.output;
        cpu.rows(rows, by(out, size), cost, |piece, out, cpu| {
            for (row, out) in piece.zip(out.chunks_exact_mut(size)) {
                isa.dispatch(Row::new(cpu, &self.common, operands, row, out))?;
                math::activate(cpu, *isa, *rest, out)?;
            }
            Ok(())
        })
    }

    fn scratch(&self) -> usize {
        0
    }
}

/// One row of the output. The pointers are good for what the shape says.
struct Row<'a> {
    cpu: &'a CpuRun<'a>,
    common: &'a Common,
    sight: Sight,
    /// The row's first pixel, or null.
    residual: *const f32,
    out: *mut f32,
}

/// What the windows of a row see: of the taps above each other those that are inside of the image.
#[derive(Clone, Copy)]
struct Sight {
    /// The input row of the first row of taps.
    input: *const f32,
    /// Elements from one's input row to the next one's.
    step: usize,
    rows: usize,
    /// The first tap.
    tap: usize,
    weights: *const f32,
    bias: *const f32,
}

impl<'a> Row<'a> {
    fn new(
        cpu: &'a CpuRun,
        common: &'a Common,
        operands: &Operands,
        row: usize,
        out: &mut [f32],
    ) -> Row<'a> {
        let w = &common.shape.window;
        let (image, y) = (row / w.y.output, row % w.y.output);
        let weights: &[f32] = bytemuck::cast_slice(common.weights.as_slice());
        let size = w.x.output * w.channels;
        assert!(out.len() == size && common.shape.m == w.channels);
        assert!(operands.bias.is_none_or(|b| b.len() == w.channels));
        assert!(
            operands
                .residual
                .is_none_or(|r| r.len() >= (row + 1) * size)
        );
        let image = &operands.input[image * w.image()..][..w.image()];
        let taps = w.y.taps(y);
        let first = match taps.is_empty() {
            true => 0,
            false => y * w.y.stride + taps.start * w.y.dilation - w.y.begin,
        };
        Row {
            cpu,
            common,
            sight: Sight {
                input: image[first * w.x.input * w.channels..].as_ptr(),
                step: w.y.dilation * w.x.input * w.channels,
                rows: taps.len(),
                tap: taps.start * w.x.kernel,
                weights: weights.as_ptr(),
                bias: operands.bias_from(0),
            },
            residual: operands.residual_from(row * size),
            out: out.as_mut_ptr(),
        }
    }
}

impl Task for Row<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        let x = self.common.shape.window.x;
        let known = if x.dilation == 1 { x.kernel } else { 0 };
        // SAFETY: `Row::new` checked the sizes.
        unsafe {
            match (known, x.stride) {
                (3, 1) => self.pixels::<S, 3, 1>(s),
                (3, 2) => self.pixels::<S, 3, 2>(s),
                (5, 1) => self.pixels::<S, 5, 1>(s),
                (5, 2) => self.pixels::<S, 5, 2>(s),
                _ => self.pixels::<S, 0, 0>(s),
            }
        }
    }
}

impl Row<'_> {
    /// `KX` and `SX` are the horizontal taps and stride, or zero where they are not known.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    ///
    /// # Safety
    /// The pointers are good for what the shape says.
    #[inline(always)]
    unsafe fn pixels<S: Simd, const KX: usize, const SX: usize>(&self, s: S) -> Result<()> {
        let w = &self.common.shape.window;
        let pixel = (self.sight.rows * w.x.kernel).saturating_mul(w.channels) / 8;
        let inner = interior(&w.x);
        // SAFETY: each call gets the taps of its pixels that are inside of the image.
        unsafe {
            for x in (0..inner.start).chain(inner.end..w.x.output) {
                self.cpu.spend(pixel)?;
                self.channels::<S, 1, 0, 0>(s, x, w.x.taps(x));
            }
            let mut x = inner.start;
            while x + PIXELS <= inner.end {
                self.cpu.spend(PIXELS * pixel)?;
                self.channels::<S, PIXELS, KX, SX>(s, x, 0..w.x.kernel);
                x += PIXELS;
            }
            while x < inner.end {
                self.cpu.spend(pixel)?;
                self.channels::<S, 1, KX, SX>(s, x, 0..w.x.kernel);
                x += 1;
            }
        }
        Ok(())
    }

    /// All channels of `P` pixels from `x` on.
    ///
    /// # Safety
    /// The pointers are good for what the shape says; `taps` are inside of the image for all pixels.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn channels<S: Simd, const P: usize, const KX: usize, const SX: usize>(
        &self,
        s: S,
        x: usize,
        taps: Range<usize>,
    ) {
        let w = &self.common.shape.window;
        let c = w.channels;
        let width = c.next_multiple_of(S::LANES);
        let left = (x * w.x.stride + taps.start * w.x.dilation - w.x.begin) * c;
        let (low, high) = self.common.clamp;
        // A copy: the output might lie over what is read through a reference.
        let tile = Tile {
            sight: Sight {
                input: self.sight.input.wrapping_add(left),
                weights: (self.sight.weights).wrapping_add((self.sight.tap + taps.start) * width),
                ..self.sight
            },
            channels: c,
            taps: taps.len(),
            pixel_step: if KX > 0 { SX } else { w.x.stride } * c,
            tap_step: if KX > 0 { 1 } else { w.x.dilation } * c,
            weight_step: w.x.kernel * width,
            residual: match self.residual.is_null() {
                true => self.residual,
                false => self.residual.wrapping_add(x * c),
            },
            out: self.out.wrapping_add(x * c),
            low: s.splat(low),
            high: s.splat(high),
        };
        let whole = c - c % S::LANES;
        // SAFETY: full vectors below `whole`, the rest is shorter than a vector; pixels and taps
        // are inside of the image, the weights, and the output row.
        unsafe {
            for channel in (0..whole).step_by(S::LANES) {
                tile.compute::<P, KX, true>(s, channel);
            }
            if whole < c {
                tile.compute::<P, KX, false>(s, whole);
            }
        }
    }
}

/// Some pixels next to each other.
struct Tile<S: Simd> {
    /// What the windows see, from the first pixel's first tap on.
    sight: Sight,
    channels: usize,
    /// Taps of a row of a window.
    taps: usize,
    /// Elements of the input from a pixel to the next, and from a tap.
    pixel_step: usize,
    tap_step: usize,
    /// Elements from the weights of a row of taps to the next.
    weight_step: usize,
    residual: *const f32,
    out: *mut f32,
    low: S::V,
    high: S::V,
}

impl<S: Simd> Tile<S> {
    /// One vector of channels of `P` pixels. `KX` are the taps of a row, or zero where they are not
    /// known; `FULL` where the vector has all its channels.
    ///
    /// # Safety
    /// All the pointers are good for `P` pixels, `channel` is one of theirs.
    #[inline(always)]
    unsafe fn compute<const P: usize, const KX: usize, const FULL: bool>(
        &self,
        s: S,
        channel: usize,
    ) {
        let c = self.channels;
        let count = if FULL { S::LANES } else { c - channel };
        let width = c.next_multiple_of(S::LANES);
        let bias = self.sight.bias;
        // SAFETY: all pointers are good for `P` pixels from `channel` on, a whole vector of channels if `FULL`.
        unsafe {
            let mut acc = [if bias.is_null() {
                s.splat(0.0)
            } else {
                read::<S, FULL>(s, bias.add(channel), count)
            }; P];
            let mut row = self.sight.input.wrapping_add(channel);
            let mut weights = self.sight.weights.wrapping_add(channel);
            for _ in 0..self.sight.rows {
                for t in 0..if KX > 0 { KX } else { self.taps } {
                    let weight = s.load(weights.add(t * width));
                    for (p, acc) in acc.iter_mut().enumerate() {
                        let at = p * self.pixel_step + t * self.tap_step;
                        let x = read::<S, FULL>(s, row.add(at), count);
                        *acc = s.fma(x, weight, *acc);
                    }
                }
                row = row.wrapping_add(self.sight.step);
                weights = weights.wrapping_add(self.weight_step);
            }
            for (p, acc) in acc.into_iter().enumerate() {
                let at = p * c + channel;
                let mut v = acc;
                if !self.residual.is_null() {
                    v = s.add(v, read::<S, FULL>(s, self.residual.add(at), count));
                }
                v = s.min(s.max(v, self.low), self.high);
                write::<S, FULL>(s, self.out.add(at), v, count);
            }
        }
    }
}
