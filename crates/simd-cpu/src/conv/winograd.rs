//! Winograd's minimal filtering for 3x3 windows without strides: F(2x2, 3x3) and F(4x4, 3x3)
//! (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
//!
//! An output tile of `OUT x OUT` pixels comes from an input tile of `IN x IN`. Transformed, each
//! of the `IN * IN` points is a matrix product over channels with rows for tiles. A block of
//! tiles is transformed, multiplied and transformed back while it is in the cache.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kilim_core::ops::Activation;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};

use super::{Common, Convolve, Operands, Shape};
use crate::gemm::{
    Depth, Matrix, NO_CLAMP, Panels, Product, Reading, RowStarts, Rows, multiply, split_activation,
};
use crate::isa::{Isa, Simd, Task, read, write};
use crate::math;
use crate::memory::{Shared, share};
use kilim_reference_cpu::frame::CpuRun;

/// Elements that the transformed tiles of a block may have.
const BLOCK: usize = 192 * 1024;
/// Channels of which filters are transformed together.
const CHANNELS: usize = 16;
/// Tiles of a block at least, so that the products are not flat.
const MIN_TILES: usize = 12;

pub(crate) struct Winograd<const IN: usize> {
    common: Common,
    depth: Depth,
    /// Tiles along y and x.
    grid: [usize; 2],
    /// Blocks of tiles in the whole batch.
    blocks: usize,
    sizes: Sizes,
}

/// Sizes of a block's scratch memory, in elements.
#[derive(Clone, Copy)]
struct Sizes {
    /// From a tile to the next: channels and outputs in whole vectors.
    c: usize,
    m: usize,
    /// From a point's tiles to the next point's. Not a power of two, or the points of a tile would
    /// fight for the same cache lines.
    c_point: usize,
    m_point: usize,
}

/// The weights `[m, c, 3, 3]`, transformed, as packed columns for each point.
pub(crate) fn pack_weights<const IN: usize>(
    isa: Isa,
    shape: &Shape,
    weights: &Tensor,
) -> Result<AlignedBytes> {
    let (c, m) = (shape.window.channels, shape.m);
    let panels = Panels::new(isa, m);
    let point = panels.elements(c);
    let size = IN * IN * point * size_of::<f32>();
    let mut packed = AlignedBytes::with_capacity(size)?;
    let widest = panels.each().map(|(_, width)| width).max().unwrap_or(0);
    let mut filters = vec![0.0; 9 * CHANNELS * widest];
    let mut room = Vec::new();
    for (first, width) in panels.each() {
        let used = width.min(m - first);
        let weights = weights.run(first * c * 9..(first + used) * c * 9, &mut room)?;
        for channel in (0..c).step_by(CHANNELS) {
            let rows = CHANNELS.min(c - channel);
            let taps = Matrix {
                rows: RowStarts::even(9 * rows, 1),
                column_stride: 9 * c,
                reading: Reading::PLAIN,
            };
            let filters = &mut filters[..9 * rows * width];
            taps.panel(&weights[9 * channel..], used, width, filters);
            let to = &mut packed.spare::<f32>()[first * c + channel * width..];
            transform_filters::<IN>(isa, filters, width, to, point);
        }
    }
    // SAFETY: at each point all rows of all panels were written.
    unsafe { packed.assume_init(size) }
    Ok(packed)
}

/// A function of its own, which a browser optimises while the first layers are packed.
#[inline(never)]
fn transform_filters<const IN: usize>(
    isa: Isa,
    filters: &[f32],
    width: usize,
    to: &mut [MaybeUninit<f32>],
    point: usize,
) {
    isa.dispatch(FilterPoints::<IN> {
        filters,
        width,
        to,
        point,
    });
}

/// Transforms filters, of which `width` stand side by side.
struct FilterPoints<'a, const IN: usize> {
    /// Nine rows of taps for each channel.
    filters: &'a [f32],
    width: usize,
    /// At each point a row for each channel.
    to: &'a mut [MaybeUninit<f32>],
    /// From a point to the next.
    point: usize,
}

impl<const IN: usize> Task for FilterPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        assert!(self.width.is_multiple_of(S::LANES));
        let least = s.splat(f32::MIN_POSITIVE);
        let rows = self.filters.len() / (9 * self.width);
        let last = (IN * IN - 1) * self.point;
        assert!(last + rows * self.width <= self.to.len());
        for row in 0..rows {
            for column in (0..self.width).step_by(S::LANES) {
                let from = self.filters[row * 9 * self.width + column..].as_ptr();
                let to = self.to[row * self.width + column..].as_mut_ptr();
                let to = to.cast::<f32>();
                // SAFETY: nine rows of whole vectors, and one at each point, by the assertions.
                unsafe {
                    let tap = |i: usize| s.load(from.add(i * self.width));
                    let lines = [0, 3, 6].map(|y| [tap(y), tap(y + 1), tap(y + 2)]);
                    let lines = lines.map(|line| filter_line::<S, IN>(s, line));
                    for x in 0..IN {
                        let column = filter_line::<S, IN>(s, lines.map(|line| line[x]));
                        for (y, v) in column.into_iter().enumerate() {
                            let subnormal = s.less(s.abs(v), least);
                            let v = s.select(subnormal, s.splat(0.0), v);
                            s.store(to.add((y * IN + x) * self.point), v);
                        }
                    }
                }
            }
        }
    }
}

/// A line of the filter at the points 0, 1, -1, (2, -2,) and infinity.
#[inline(always)]
fn filter_line<S: Simd, const IN: usize>(s: S, g: [S::V; 3]) -> [S::V; IN] {
    let mut t = [g[2]; IN];
    let (even, odd) = (s.add(g[0], g[2]), g[1]);
    if IN == 4 {
        let half = s.splat(0.5);
        t[0] = g[0];
        t[1] = s.mul(half, s.add(even, odd));
        t[2] = s.mul(half, s.sub(even, odd));
    } else {
        let (two, four) = (s.splat(2.0), s.splat(4.0));
        let (even2, odd2) = (s.fma(four, g[2], g[0]), s.mul(two, g[1]));
        t[0] = s.mul(s.splat(0.25), g[0]);
        t[1] = s.div(s.add(even, odd), s.splat(-6.0));
        t[2] = s.div(s.sub(odd, even), s.splat(6.0));
        t[3] = s.div(s.add(even2, odd2), s.splat(24.0));
        t[4] = s.div(s.sub(even2, odd2), s.splat(24.0));
    }
    t
}

/// The transform of a line of input.
#[inline(always)]
fn input_line<S: Simd, const IN: usize>(s: S, d: [S::V; IN]) -> [S::V; IN] {
    let mut t = d;
    if IN == 4 {
        t[0] = s.sub(d[0], d[2]);
        t[1] = s.add(d[1], d[2]);
        t[2] = s.sub(d[2], d[1]);
        t[3] = s.sub(d[1], d[3]);
    } else {
        let (two, four, five) = (s.splat(2.0), s.splat(4.0), s.splat(-5.0));
        let even = s.fma(s.splat(-4.0), d[2], d[4]);
        let odd = s.fma(s.splat(-4.0), d[1], d[3]);
        let even2 = s.sub(d[4], d[2]);
        let odd2 = s.mul(two, s.sub(d[3], d[1]));
        t[0] = s.fma(four, d[0], s.fma(five, d[2], d[4]));
        t[1] = s.add(even, odd);
        t[2] = s.sub(even, odd);
        t[3] = s.add(even2, odd2);
        t[4] = s.sub(even2, odd2);
        t[5] = s.fma(four, d[1], s.fma(five, d[3], d[5]));
    }
    t
}

/// The inverse transform: `IN - 2` elements of output, the rest is rubbish.
#[inline(always)]
fn output_line<S: Simd, const IN: usize>(s: S, m: [S::V; IN]) -> [S::V; IN] {
    let mut y = m;
    let (sum, difference) = (s.add(m[1], m[2]), s.sub(m[1], m[2]));
    if IN == 4 {
        y[0] = s.add(m[0], sum);
        y[1] = s.sub(difference, m[3]);
    } else {
        let (sum2, difference2) = (s.add(m[3], m[4]), s.sub(m[3], m[4]));
        y[0] = s.add(s.add(m[0], sum), sum2);
        y[1] = s.fma(s.splat(2.0), difference2, difference);
        y[2] = s.fma(s.splat(4.0), sum2, sum);
        y[3] = s.add(s.fma(s.splat(8.0), difference2, difference), m[5]);
    }
    y
}

impl<const IN: usize> Winograd<IN> {
    const OUT: usize = IN - 2;

    pub(crate) fn new(
        isa: Isa,
        shape: Shape,
        activation: Activation,
        weights: Arc<AlignedBytes>,
        threads: usize,
    ) -> Winograd<IN> {
        let w = &shape.window;
        let grid = [w.y, w.x].map(|a| a.output.div_ceil(Self::OUT));
        let tiles = w.batch * grid[0] * grid[1];
        let [c, m] = [w.channels, shape.m].map(|n| n.next_multiple_of(isa.lanes()));
        let fitting = (BLOCK / (IN * IN * (c + m))).max(MIN_TILES);
        let blocks = tiles.div_ceil(fitting);
        let most = tiles.div_ceil(blocks);
        let (clamp, rest) = split_activation(activation);
        Winograd {
            depth: Depth::dense(isa, w.channels),
            grid,
            blocks,
            sizes: Sizes {
                c,
                m,
                c_point: most * c + 16,
                m_point: most * m + 16,
            },
            common: Common {
                isa,
                shape,
                weights,
                clamp,
                rest,
                threads: threads.clamp(1, blocks),
            },
        }
    }

    /// Elements of scratch memory for one thread: a patch, transformed input, and products.
    fn thread_scratch(&self) -> usize {
        let s = &self.sizes;
        IN * IN * (s.c + s.c_point + s.m_point)
    }

    fn block(&self, index: usize, operands: &Operands, output: &Shared, scratch: &mut [f32]) {
        let common = &self.common;
        let (w, s, m) = (&common.shape.window, self.sizes, common.shape.m);
        let all = w.batch * self.grid[0] * self.grid[1];
        let tiles = share(all, self.blocks, index);
        let (patch, scratch) = scratch.split_at_mut(IN * IN * s.c);
        let (points, products) = scratch.split_at_mut(IN * IN * s.c_point);
        for (i, tile) in tiles.clone().enumerate() {
            let corner = self.corner(tile);
            let from = self.source(&corner, operands.input, patch);
            common.isa.dispatch(ToPoints::<IN> {
                from,
                channels: w.channels,
                to: &mut points[i * s.c..],
                point: s.c_point,
            });
        }
        let packed: &[f32] = bytemuck::cast_slice(common.weights.as_slice());
        let size = Panels::new(common.isa, m).elements(w.channels);
        for point in 0..IN * IN {
            let product = Product {
                isa: common.isa,
                a: points[point * s.c_point..][..tiles.len() * s.c].as_ptr(),
                rows: Rows::Strided(s.c),
                depth: &self.depth,
                b: packed[point * size..][..size].as_ptr(),
                m: tiles.len(),
                n: m,
                c: products[point * s.m_point..][..tiles.len() * s.m].as_mut_ptr(),
                c_stride: s.m,
                bias: std::ptr::null(),
                residual: std::ptr::null(),
                clamp: NO_CLAMP,
            };
            // SAFETY: the slices have a row for each tile, and the rows have all channels.
            unsafe { multiply(&product) }
        }
        for (i, tile) in tiles.enumerate() {
            let corner = self.corner(tile);
            let task = FromPoints::<IN> {
                from: &products[i * s.m..],
                point: s.m_point,
                channels: m,
                bias: operands.bias,
                residual: operands.residual,
                clamp: common.clamp,
                output,
                first: ((corner.image * w.y.output + corner.y) * w.x.output + corner.x) * m,
                row: w.x.output * m,
                rows: Self::OUT.min(w.y.output - corner.y),
                columns: Self::OUT.min(w.x.output - corner.x),
            };
            common.isa.dispatch(task);
        }
    }

    fn corner(&self, tile: usize) -> Corner {
        let [rows, columns] = self.grid;
        Corner {
            image: tile / (rows * columns),
            y: tile / columns % rows * Self::OUT,
            x: tile % columns * Self::OUT,
        }
    }

    /// Where the input of a tile is: in the image, or copied with padding into `patch`.
    fn source<'a>(&self, corner: &Corner, input: &'a [f32], patch: &'a mut [f32]) -> Source<'a> {
        let w = &self.common.shape.window;
        let c = w.channels;
        let image = &input[corner.image * w.image()..][..w.image()];
        let y = corner.y.wrapping_sub(w.y.begin);
        let x = corner.x.wrapping_sub(w.x.begin);
        let fits = |at: usize, size: usize| at < size && size - at >= IN;
        if fits(y, w.y.input) && fits(x, w.x.input) {
            return Source {
                data: &image[(y * w.x.input + x) * c..],
                row: w.x.input * c,
                column: c,
            };
        }
        let patch = &mut patch[..IN * IN * c];
        for (i, row) in patch.chunks_exact_mut(IN * c).enumerate() {
            let y = y.wrapping_add(i);
            for (j, pixel) in row.chunks_exact_mut(c).enumerate() {
                let x = x.wrapping_add(j);
                if y < w.y.input && x < w.x.input {
                    pixel.copy_from_slice(&image[(y * w.x.input + x) * c..][..c]);
                } else {
                    pixel.fill(0.0);
                }
            }
        }
        Source {
            data: patch,
            row: IN * c,
            column: c,
        }
    }
}

/// The first pixel of an output tile.
struct Corner {
    image: usize,
    y: usize,
    x: usize,
}

/// An input tile: where its first pixel is, and how far the next row and column are.
struct Source<'a> {
    data: &'a [f32],
    row: usize,
    column: usize,
}

/// Transforms an input tile.
struct ToPoints<'a, const IN: usize> {
    from: Source<'a>,
    channels: usize,
    /// The tile's channels at the first point; the others follow `point` elements apart.
    to: &'a mut [f32],
    point: usize,
}

impl<const IN: usize> Task for ToPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (c, from) = (self.channels, &self.from);
        assert!((IN - 1) * (from.row + from.column) + c <= from.data.len());
        let whole = c.next_multiple_of(S::LANES);
        assert!((IN * IN - 1) * self.point + whole <= self.to.len());
        let (data, to) = (from.data.as_ptr(), self.to.as_mut_ptr());
        for channel in (0..c).step_by(S::LANES) {
            // SAFETY: by the assertions all pixels have `c` channels, and all points whole vectors.
            unsafe {
                if c - channel >= S::LANES {
                    self.vector::<S, true>(s, data.add(channel), S::LANES, to.add(channel));
                } else {
                    self.vector::<S, false>(s, data.add(channel), c - channel, to.add(channel));
                }
            }
        }
    }
}

impl<const IN: usize> ToPoints<'_, IN> {
    /// # Safety
    /// `data` is good for `count` elements at each pixel, `to` for a vector at each point.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn vector<S: Simd, const FULL: bool>(
        &self,
        s: S,
        data: *const f32,
        count: usize,
        to: *mut f32,
    ) {
        let mut t = [[s.splat(0.0); IN]; IN];
        for x in 0..IN {
            let mut line = [s.splat(0.0); IN];
            for (y, v) in line.iter_mut().enumerate() {
                let at = y * self.from.row + x * self.from.column;
                // SAFETY: the caller's promise.
                *v = unsafe { read::<S, FULL>(s, data.add(at), count) };
            }
            for (t, v) in t.iter_mut().zip(input_line(s, line)) {
                t[x] = v;
            }
        }
        for (y, line) in t.into_iter().enumerate() {
            let line = input_line(s, line);
            for (x, v) in line.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { s.store(to.add((y * IN + x) * self.point), v) }
            }
        }
    }
}

/// Transforms products back, and finishes an output tile.
struct FromPoints<'a, const IN: usize> {
    /// The tile's channels at the first point; the others follow `point` elements apart.
    from: &'a [f32],
    point: usize,
    channels: usize,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    clamp: (f32, f32),
    output: &'a Shared,
    /// The tile's first element in the output, and elements of a row of the output.
    first: usize,
    row: usize,
    rows: usize,
    columns: usize,
}

impl<const IN: usize> Task for FromPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let m = self.channels;
        let whole = m.next_multiple_of(S::LANES);
        assert!((IN * IN - 1) * self.point + whole <= self.from.len());
        assert!(self.bias.is_none_or(|b| b.len() == m));
        let end = self.first + (self.rows - 1) * self.row + self.columns * m;
        assert!(self.residual.is_none_or(|r| end <= r.len()));
        for channel in (0..m).step_by(S::LANES) {
            // SAFETY: by the assertions; each tile of the output is written once.
            unsafe {
                if m - channel >= S::LANES {
                    self.vector::<S, true>(s, channel, S::LANES);
                } else {
                    self.vector::<S, false>(s, channel, m - channel);
                }
            }
        }
    }
}

impl<const IN: usize> FromPoints<'_, IN> {
    /// # Safety
    /// `run` checked the sizes; `channel` is one of the output's, with `count` from there on.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn vector<S: Simd, const FULL: bool>(&self, s: S, channel: usize, count: usize) {
        let from = self.from[channel..].as_ptr();
        let bias = match self.bias {
            // SAFETY: bias has `count` channels from `channel` on.
            Some(bias) => unsafe { read::<S, FULL>(s, bias[channel..].as_ptr(), count) },
            None => s.splat(0.0),
        };
        let (low, high) = (s.splat(self.clamp.0), s.splat(self.clamp.1));
        let mut t = [[s.splat(0.0); IN]; IN];
        for x in 0..IN {
            let mut line = [s.splat(0.0); IN];
            for (y, v) in line.iter_mut().enumerate() {
                // SAFETY: every point has whole vectors.
                *v = unsafe { s.load(from.add((y * IN + x) * self.point)) };
            }
            for (t, v) in t.iter_mut().zip(output_line(s, line)) {
                t[x] = v;
            }
        }
        for (y, line) in t.into_iter().enumerate().take(self.rows) {
            let line = output_line(s, line);
            for (x, v) in line.into_iter().enumerate().take(self.columns) {
                let at = self.first + y * self.row + x * self.channels + channel;
                let mut v = s.add(v, bias);
                // SAFETY: `run` checked that the tile is inside of the residual; parts of the
                // output that belong to different tiles and channels do not overlap.
                unsafe {
                    if let Some(residual) = self.residual {
                        let r = residual[at..].as_ptr();
                        v = s.add(v, read::<S, FULL>(s, r, count));
                    }
                    v = s.min(s.max(v, low), high);
                    let out = self.output.part(at, count).as_mut_ptr();
                    write::<S, FULL>(s, out, v, count);
                }
            }
        }
    }
}

impl<const IN: usize> Convolve for Winograd<IN> {
    fn convolve(&self, cpu: CpuRun, operands: &Operands, out: &mut [f32], scratch: &mut [f32]) {
        let (output, scratch) = (Shared::new(out), Shared::new(scratch));
        let (threads, size) = (self.common.threads, self.thread_scratch());
        cpu.split(threads, 1, &|parts| {
            for part in parts {
                // SAFETY: each part has its own piece of scratch memory.
                let scratch = unsafe { scratch.part(part * size, size) };
                for block in share(self.blocks, threads, part) {
                    self.block(block, operands, &output, scratch);
                }
            }
        });
        math::activate(self.common.isa, self.common.rest, out);
    }

    fn scratch(&self) -> usize {
        self.common.threads * self.thread_scratch()
    }
}
