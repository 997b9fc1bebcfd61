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
use crate::gemm::{Reading, split_activation};
use crate::isa::{Isa, Simd, Task, read, write};
use crate::math;
use crate::memory::{Shared, share};
use crate::window::interior;
use kilim_reference_cpu::frame::CpuRun;

/// Pixels that are computed together.
const PIXELS: usize = 4;

pub(crate) struct Depthwise {
    common: Common,
}

/// The weights `[c, 1, y, x]` as `[y, x, c]`, each row of channels filled up to whole vectors.
pub(crate) fn pack_weights(isa: Isa, shape: &Shape, weights: &[f32]) -> Result<AlignedBytes> {
    let (c, taps) = (shape.m, shape.taps());
    let width = c.next_multiple_of(isa.lanes());
    let mut bytes = AlignedBytes::zeroed(taps * width * size_of::<f32>())?;
    let packed: &mut [f32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
    for (i, &w) in weights[..c * taps].iter().enumerate() {
        packed[i % taps * width + i / taps] = Reading::WEIGHT.read(w);
    }
    Ok(bytes)
}

impl Depthwise {
    pub(crate) fn new(
        isa: Isa,
        shape: Shape,
        activation: Activation,
        weights: Arc<AlignedBytes>,
        threads: usize,
    ) -> Depthwise {
        let (clamp, rest) = split_activation(activation);
        let rows = shape.window.batch * shape.window.y.output;
        Depthwise {
            common: Common {
                isa,
                shape,
                weights,
                clamp,
                rest,
                threads: threads.clamp(1, rows),
            },
        }
    }
}

impl Convolve for Depthwise {
    fn convolve(&self, cpu: CpuRun, operands: &Operands, out: &mut [f32], _: &mut [f32]) {
        let output = Shared::new(out);
        let (w, threads) = (&self.common.shape.window, self.common.threads);
        cpu.split(threads, 1, &|parts| {
            for part in parts {
                for row in share(w.batch * w.y.output, threads, part) {
                    let size = w.x.output * self.common.shape.m;
                    // SAFETY: each row of the output is computed once.
                    let out = unsafe { output.part(row * size, size) };
                    let task = Row::new(&self.common, operands, row, out);
                    self.common.isa.dispatch(task);
                    math::activate(self.common.isa, self.common.rest, out);
                }
            }
        });
    }

    fn scratch(&self) -> usize {
        0
    }
}

/// One row of the output. The pointers are good for what the shape says.
struct Row<'a> {
    common: &'a Common,
    /// The image's first pixel.
    input: *const f32,
    weights: *const f32,
    bias: *const f32,
    /// The row's first pixel, or null.
    residual: *const f32,
    out: *mut f32,
    /// The row in its image.
    y: usize,
}

impl<'a> Row<'a> {
    fn new(common: &'a Common, operands: &Operands, row: usize, out: &mut [f32]) -> Row<'a> {
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
        Row {
            common,
            input: operands.input[image * w.image()..][..w.image()].as_ptr(),
            weights: weights.as_ptr(),
            bias: operands.bias_from(0),
            residual: operands.residual_from(row * size),
            out: out.as_mut_ptr(),
            y,
        }
    }
}

impl Task for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
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
    /// # Safety
    /// The pointers are good for what the shape says.
    #[inline(always)]
    unsafe fn pixels<S: Simd, const KX: usize, const SX: usize>(&self, s: S) {
        let w = &self.common.shape.window;
        let inner = interior(&w.x);
        // SAFETY: each call gets the taps of its pixels that are inside of the image.
        unsafe {
            for x in (0..inner.start).chain(inner.end..w.x.output) {
                self.channels::<S, 1, 0, 0>(s, x, w.x.taps(x));
            }
            let mut x = inner.start;
            while x + PIXELS <= inner.end {
                self.channels::<S, PIXELS, KX, SX>(s, x, 0..w.x.kernel);
                x += PIXELS;
            }
            while x < inner.end {
                self.channels::<S, 1, KX, SX>(s, x, 0..w.x.kernel);
                x += 1;
            }
        }
    }

    /// All channels of `P` pixels from `x` on.
    ///
    /// # Safety
    /// As above; `taps` are inside of the image for all pixels.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn channels<S: Simd, const P: usize, const KX: usize, const SX: usize>(
        &self,
        s: S,
        x: usize,
        taps: Range<usize>,
    ) {
        let c = self.common.shape.m;
        let whole = c - c % S::LANES;
        // SAFETY: full vectors below `whole`, the rest is shorter than a vector.
        unsafe {
            for channel in (0..whole).step_by(S::LANES) {
                self.tile::<S, P, KX, SX, true>(s, x, taps.clone(), channel);
            }
            if whole < c {
                self.tile::<S, P, KX, SX, false>(s, x, taps.clone(), whole);
            }
        }
    }

    /// One vector of channels of `P` pixels. `FULL` where the vector has all its channels.
    ///
    /// # Safety
    /// As above; `channel` is one of the image's.
    #[inline(always)]
    unsafe fn tile<S: Simd, const P: usize, const KX: usize, const SX: usize, const FULL: bool>(
        &self,
        s: S,
        x: usize,
        taps: Range<usize>,
        channel: usize,
    ) {
        let w = &self.common.shape.window;
        let c = w.channels;
        let count = if FULL { S::LANES } else { c - channel };
        let width = c.next_multiple_of(S::LANES);
        let left = (x * w.x.stride + taps.start * w.x.dilation - w.x.begin) * c + channel;
        // SAFETY: pixels and channels are inside of the image, the weights, and the output row.
        unsafe {
            let mut acc = [if self.bias.is_null() {
                s.splat(0.0)
            } else {
                read::<S, FULL>(s, self.bias.add(channel), count)
            }; P];
            for ty in w.y.taps(self.y) {
                let y = self.y * w.y.stride + ty * w.y.dilation - w.y.begin;
                let row = self.input.add(y * w.x.input * c + left);
                let tap = ty * w.x.kernel + taps.start;
                let weights = self.weights.add(tap * width + channel);
                if KX > 0 {
                    for t in 0..KX {
                        let weight = s.load(weights.add(t * width));
                        for (p, acc) in acc.iter_mut().enumerate() {
                            let x = read::<S, FULL>(s, row.add((p * SX + t) * c), count);
                            *acc = s.fma(x, weight, *acc);
                        }
                    }
                } else {
                    for t in 0..taps.len() {
                        let weight = s.load(weights.add(t * width));
                        for (p, acc) in acc.iter_mut().enumerate() {
                            let at = (p * w.x.stride + t * w.x.dilation) * c;
                            let x = read::<S, FULL>(s, row.add(at), count);
                            *acc = s.fma(x, weight, *acc);
                        }
                    }
                }
            }
            let (low, high) = self.common.clamp;
            let (low, high) = (s.splat(low), s.splat(high));
            for (p, acc) in acc.into_iter().enumerate() {
                let at = (x + p) * c + channel;
                let mut v = acc;
                if !self.residual.is_null() {
                    v = s.add(v, read::<S, FULL>(s, self.residual.add(at), count));
                }
                v = s.min(s.max(v, low), high);
                write::<S, FULL>(s, self.out.add(at), v, count);
            }
        }
    }
}
