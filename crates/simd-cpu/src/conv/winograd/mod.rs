//! Winograd's minimal filtering for 3x3 windows without strides: F(2x2, 3x3) and F(4x4, 3x3)
//! (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
//!
//! An output tile of `OUT x OUT` pixels comes from an input tile of `IN x IN`. Transformed, each
//! of the `IN * IN` points is a matrix product over channels with rows for tiles. A block of
//! tiles is transformed, multiplied and transformed back while it is in the cache.

mod filters;
mod lines;
mod tiles;

use std::sync::Arc;

pub(crate) use filters::pack_weights;
use kilim_core::Result;
use kilim_core::ops::Activation;
use kilim_core::tensor::AlignedBytes;

use super::{Common, Convolve, Operands, Shape};
use crate::gemm::{Depth, NO_CLAMP, Panels, Product, Rows, multiply};
use crate::isa::Isa;
use crate::math;
use crate::memory::share;
use kilim_host::{CpuRun, Shared};
use tiles::{FromPoints, Source, ToPoints};

/// Elements that the transformed tiles of a block may have.
const BLOCK: usize = 192 * 1024;
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
    /// Elements from a tile to the next, whole vectors: channels in `c`, outputs in `m`.
    c: usize,
    m: usize,
    /// Elements from a point's tiles to the next point's. Not a power of two, or the points of a tile would
    /// fight for the same cache lines.
    c_point: usize,
    m_point: usize,
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
        // As many for each thread, where they stay large enough.
        let blocks = match blocks.next_multiple_of(threads) {
            even if even * MIN_TILES <= tiles => even,
            _ => blocks,
        };
        let most = tiles.div_ceil(blocks);
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
            common: Common::new(isa, shape, activation, weights),
        }
    }

    /// Elements of scratch memory for one thread: a patch, transformed input, and products.
    fn thread_scratch(&self) -> usize {
        let s = &self.sizes;
        IN * IN * (s.c + s.c_point + s.m_point)
    }

    fn block(
        &self,
        cpu: &CpuRun,
        index: usize,
        operands: &Operands,
        output: Shared<f32>,
        scratch: &mut [f32],
    ) -> Result<()> {
        let common = &self.common;
        let (w, s, m) = (&common.shape.window, self.sizes, common.shape.m);
        let all = w.batch * self.grid[0] * self.grid[1];
        let tiles = share(all, self.blocks, index);
        let (patch, scratch) = scratch.split_at_mut(IN * IN * s.c);
        let (points, products) = scratch.split_at_mut(IN * IN * s.c_point);
        for (i, tile) in tiles.clone().enumerate() {
            cpu.spend(IN * IN * w.channels)?;
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
        let products = Shared::new(products);
        let cost = (tiles.len() * m).saturating_mul(w.channels);
        let multiply_point = |point: usize, cpu: &CpuRun| {
            let product = Product {
                isa: common.isa,
                a: points[point * s.c_point..][..tiles.len() * s.c].as_ptr(),
                rows: Rows::Strided(s.c),
                depth: &self.depth,
                b: packed[point * size..][..size].as_ptr(),
                m: tiles.len(),
                n: m,
                c: products.at(point * s.m_point, tiles.len() * s.m),
                c_stride: s.m,
                bias: std::ptr::null(),
                residual: std::ptr::null(),
                clamp: NO_CLAMP,
            };
            // SAFETY: the slices have a row for each tile, and the rows have all channels; each point has its own.
            unsafe { multiply(&product, cpu) }
        };
        // The only block is computed by all threads.
        cpu.split(IN * IN, common.isa.cost(cost), |mut piece, cpu| {
            piece.try_for_each(|point| multiply_point(point, cpu))
        })?;
        for (i, tile) in tiles.enumerate() {
            cpu.spend(IN * IN * m)?;
            let corner = self.corner(tile);
            let task = FromPoints::<IN> {
                // SAFETY: the products are there, and are only read from now on.
                from: unsafe { products.part(i * s.m, IN * IN * s.m_point - i * s.m) },
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
        Ok(())
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

impl<const IN: usize> Convolve for Winograd<IN> {
    fn convolve(
        &self,
        cpu: &CpuRun,
        operands: &Operands,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        let output = Shared::new(out);
        // The products of a block.
        let products = IN * IN * self.sizes.m_point;
        let products = products.saturating_mul(self.common.shape.window.channels);
        let cost = self.common.isa.cost(products);
        cpu.rows_with(self.blocks, (), scratch, cost, |piece, (), scratch, cpu| {
            piece
                .into_iter()
                .try_for_each(|block| self.block(cpu, block, operands, output, scratch))
        })?;
        math::activate(cpu, self.common.isa, self.common.rest, out)
    }

    fn scratch(&self) -> usize {
        self.thread_scratch()
    }
}
