//! Convolution as a matrix product: a row of A for each output pixel.
//!
//! The taps of a row of the kernel lie side by side in channels-last data, so a row of A is
//! `kernel height` runs of `kernel width * channels` elements, read where they are. Where windows
//! reach into padding, a strip of the input is copied first with its padding around it; where
//! there are groups, each group's channels are gathered by the same copy.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::memory::collect;
use kilim_core::ops::Activation;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};

use super::{Common, Convolve, Operands, Shape};
use crate::gemm::{
    Depth, Form, Matrix, Panels, Product, Reading, RowStarts, Rows, Segment, append, multiply,
};
use crate::isa::Isa;
use crate::math;
use crate::memory::share;
use crate::window::{inside, reach};
use kilim_host::{Build, CpuRun, Shared, Table};

/// Elements that a padded strip of the input may have, to stay in the second-level cache.
const STRIP: usize = 96 * 1024;
/// Pixels that a strip should have at least.
const STRIP_PIXELS: usize = 64;
/// Pixels that a strip should have at least where threads would have none otherwise: two tiles of rows.
const FEW_PIXELS: usize = 24;
/// Operations that a part of a strip should have at least.
const PART: usize = 1 << 12;

/// Parts in which several threads do work that costs so much: two for each thread where they are long.
fn wanted(threads: usize, cost: usize) -> usize {
    match cost / PART {
        most if most >= 4 * threads => 2 * threads,
        most => most.min(threads),
    }
}

/// Columns of a panel of packed weights.
pub(super) fn panel(isa: Isa) -> usize {
    isa.tile_vectors() * isa.lanes()
}

/// The columns of a part, in whole panels but for the last.
pub(super) fn columns(isa: Isa, m: usize, parts: usize, part: usize) -> Range<usize> {
    let panel = panel(isa);
    let panels = share(m.div_ceil(panel), parts, part);
    panels.start * panel..m.min(panels.end * panel)
}

pub(crate) struct Dense {
    common: Common,
    depth: Depth,
    /// Where the window of each pixel of a strip begins; empty for a 1x1 window without strides,
    /// whose rows lie one after another.
    starts: Table<u32>,
    /// Elements from a row of A to the next where `starts` is empty.
    stride: usize,
    /// Output rows of a strip.
    strip_rows: usize,
    strips: usize,
    /// Parts of the outputs that a strip is computed in, where there are fewer strips than threads.
    parts: usize,
    /// Elements of a padded strip, if strips are copied.
    copied: Option<usize>,
}

/// The weights `[m, c / groups, y, x]` as packed columns for each group.
///
/// # Errors
/// `Limit` where memory is short, `Aborted` where the building is to stop.
pub(crate) fn pack_weights(
    cpu: &CpuRun,
    isa: Isa,
    shape: &Shape,
    weights: &Tensor,
) -> Result<AlignedBytes> {
    let (c, taps, m) = (shape.group_channels(), shape.taps(), shape.group_outputs());
    let panels = Panels::new(isa, m);
    let size = panels.elements(c * taps);
    let mut bytes = AlignedBytes::with_capacity(size * shape.groups * size_of::<f32>())?;
    let starts = collect(0..taps)?;
    let rows = RowStarts {
        starts: &starts,
        inner: c,
        step: taps,
    };
    let matrix = Matrix {
        rows,
        column_stride: c * taps,
        reading: Reading::WEIGHT,
    };
    for group in 0..shape.groups {
        append(
            cpu,
            panels,
            matrix,
            (Form::Float32, weights),
            group * m * c * taps,
            &mut bytes,
        )?;
    }
    Ok(bytes)
}

impl Dense {
    pub(crate) fn new(
        build: &Build,
        isa: Isa,
        shape: Shape,
        activation: Activation,
        weights: Arc<AlignedBytes>,
    ) -> Result<Dense> {
        let mut shape = shape;
        let pointwise = shape.taps() == 1
            && [shape.window.y, shape.window.x]
                .iter()
                .all(|a| a.stride == 1 && inside(a));
        if pointwise {
            // All images are one.
            let w = &mut shape.window;
            let pixels = w.batch * w.y.output * w.x.output;
            (w.batch, w.y.input, w.y.output) = (1, pixels, pixels);
            (w.x.input, w.x.output) = (1, 1);
        }
        let w = shape.window;
        let (y, x) = (w.y, w.x);
        let copied = !(inside(&y) && inside(&x)) || (shape.groups > 1 && x.kernel > 1);
        let (channels, width) = if copied {
            (shape.group_channels(), reach(&x))
        } else {
            (w.channels, x.input)
        };

        let row = width * channels;
        let rows_fitting = (STRIP / row.max(1)).saturating_sub(y.extent()) / y.stride + 1;
        let rows_wanted = STRIP_PIXELS.div_ceil(x.output);
        let strip_rows = if copied {
            rows_fitting.max(rows_wanted)
        } else {
            (8 * STRIP_PIXELS).div_ceil(x.output)
        };
        let threads = build.threads();
        let most_parts = match shape.groups {
            1 => shape.m.div_ceil(panel(isa)),
            _ => 1,
        };
        let products = (y.output * x.output * w.batch)
            .saturating_mul(shape.m * shape.taps() * shape.group_channels());
        let wanted = wanted(threads, isa.cost(products));
        let strips = y.output.div_ceil(strip_rows.clamp(1, y.output));
        let strips = match threads {
            1 => strips,
            _ => wanted
                .div_ceil((w.batch * most_parts).max(1))
                .min(y.output.div_ceil(FEW_PIXELS.div_ceil(x.output)))
                .max(strips),
        };
        let strip_rows = y.output.div_ceil(strips);
        let strips = y.output.div_ceil(strip_rows);

        let c = shape.group_channels();
        let (along, len) = match x.dilation == 1 && c == channels {
            true => (1, x.kernel * c),
            false => (x.kernel, c),
        };
        let run = |i: usize| Segment {
            offset: (i / along * y.dilation * row + i % along * x.dilation * channels) as u32,
            len: len as u32,
        };
        let runs = build.table((0..y.kernel * along).map(run), 4)?;
        let starts = if pointwise {
            Table::EMPTY
        } else {
            let start = |pixel: usize| {
                let (oy, ox) = (pixel / x.output, pixel % x.output);
                (oy * y.stride * row + ox * x.stride * channels) as u32
            };
            build.table((0..strip_rows * x.output).map(start), 4)?
        };
        let depth = Depth::of(isa, &runs);
        let products = (strip_rows * x.output).saturating_mul(shape.m);
        let parts = match shape.groups {
            1 if threads > 1 && strips * w.batch < 2 * threads => {
                let strips = strips * w.batch;
                let cost = isa.cost(products.saturating_mul(depth.k()));
                let wanted = self::wanted(threads, cost.saturating_mul(strips));
                wanted.div_ceil(strips.max(1)).clamp(1, most_parts)
            }
            _ => 1,
        };
        Ok(Dense {
            depth,
            parts,
            starts,
            stride: channels,
            strip_rows,
            strips,
            copied: copied.then_some(((strip_rows - 1) * y.stride + y.extent()) * row),
            common: Common::new(isa, shape, activation, weights),
        })
    }

    /// Computes part `index` of all strips of the batch; `scratch` has room for a padded strip.
    fn strip(
        &self,
        cpu: &CpuRun,
        index: usize,
        operands: &Operands,
        output: Shared<f32>,
        scratch: &mut [f32],
    ) -> Result<()> {
        let Common {
            isa,
            shape,
            weights,
            clamp,
            rest,
            ..
        } = &self.common;
        let w = &shape.window;
        let (index, part) = (index / self.parts, index % self.parts);
        let (image, first) = (index / self.strips, index % self.strips * self.strip_rows);
        let rows = self.strip_rows.min(w.y.output - first);
        let pixels = rows * w.x.output;
        let begin = (image * w.y.output + first) * w.x.output * shape.m;
        let out = output.at(begin, pixels * shape.m);
        let input = &operands.input[image * w.image()..][..w.image()];
        let packed: &[f32] = bytemuck::cast_slice(weights.as_slice());
        let (c, m) = (shape.group_channels(), shape.group_outputs());
        let size = Panels::new(*isa, m).elements(self.depth.k());
        for group in 0..shape.groups {
            let a = if self.copied.is_some() {
                self.copy_strip(cpu, input, first, rows, group * c, scratch)?;
                &*scratch
            } else {
                &input[first * w.y.stride * w.x.input * w.channels + group * c..]
            };
            let rows = if self.starts.is_empty() {
                Rows::Strided(self.stride)
            } else {
                Rows::Listed(&self.starts[..pixels])
            };
            assert!(rows.start(pixels - 1) + self.depth.reach() <= a.len());
            let product = Product {
                isa: *isa,
                a: a.as_ptr(),
                rows,
                depth: &self.depth,
                b: packed[group * size..][..size].as_ptr().into(),
                m: pixels,
                n: m,
                c: out.wrapping_add(group * m),
                c_stride: shape.m,
                bias: operands.bias_from(group * m),
                residual: operands.residual_from(begin + group * m),
                clamp: *clamp,
            };
            let product = match self.parts {
                1 => product,
                parts => product.columns(columns(*isa, m, parts, part)),
            };
            // SAFETY: the last row of A was found to be inside above, and rows grow; `size`
            // elements of B are there; C, bias and residual have `m` channels from the group's
            // first on. The parts of strips are disjoint, and each is computed once.
            unsafe { multiply(&product, cpu)? }
        }
        if *rest == Activation::None {
            return Ok(());
        }
        if self.parts == 1 {
            // SAFETY: strips are disjoint, and each is computed once.
            let out = unsafe { output.part(begin, pixels * shape.m) };
            return math::activate(cpu, *isa, *rest, out);
        }
        let columns = columns(*isa, m, self.parts, part);
        for pixel in 0..pixels {
            let at = begin + pixel * m + columns.start;
            // SAFETY: the columns of this part, of a strip that no other part has.
            let out = unsafe { output.part(at, columns.len()) };
            math::activate(cpu, *isa, *rest, out)?;
        }
        Ok(())
    }

    /// Copies what `rows` output rows from `first` on touch, padding included.
    fn copy_strip(
        &self,
        cpu: &CpuRun,
        input: &[f32],
        first: usize,
        rows: usize,
        from: usize,
        to: &mut [f32],
    ) -> Result<()> {
        let w = &self.common.shape.window;
        let (c, width) = (self.common.shape.group_channels(), reach(&w.x));
        let used = ((rows - 1) * w.y.stride + w.y.extent()) * width * c;
        let inside = w.x.input.min(width.saturating_sub(w.x.begin));
        for (i, row) in to[..used].chunks_exact_mut(width * c).enumerate() {
            cpu.spend(width * c)?;
            let y = (first * w.y.stride + i).wrapping_sub(w.y.begin);
            if y >= w.y.input {
                row.fill(0.0);
                continue;
            }
            let source = &input[y * w.x.input * w.channels..][..w.x.input * w.channels];
            let (left, right) = row.split_at_mut((w.x.begin * c).min(width * c));
            let (middle, right) = right.split_at_mut(inside * c);
            left.fill(0.0);
            right.fill(0.0);
            if c == w.channels {
                middle.copy_from_slice(&source[..inside * c]);
            } else {
                for (to, pixel) in middle
                    .chunks_exact_mut(c)
                    .zip(source.chunks_exact(w.channels))
                {
                    to.copy_from_slice(&pixel[from..from + c]);
                }
            }
        }
        Ok(())
    }
}

impl Convolve for Dense {
    fn convolve(
        &self,
        cpu: &CpuRun,
        operands: &Operands,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        let parts = self.strips * self.common.shape.window.batch * self.parts;
        let products = (out.len() / parts).saturating_mul(self.depth.k());
        let cost = self.common.isa.cost(products);
        let output = Shared::new(out);
        cpu.rows_with(parts, (), scratch, cost, |piece, (), scratch, cpu| {
            piece
                .into_iter()
                .try_for_each(|part| self.strip(cpu, part, operands, output, scratch))
        })
    }

    fn scratch(&self) -> usize {
        self.copied.unwrap_or(0)
    }
}
