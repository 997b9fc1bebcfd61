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

use super::dense::{columns, panel};
use super::{Common, Convolve, Operands, Shape};
use crate::gemm::{Depth, NO_CLAMP, Panels, Product, Rows, multiply};
use crate::isa::Isa;
use crate::math;
use crate::memory::share;
use kilim_host::{CpuRun, Shared, by};
use tiles::{FromPoints, Source, ToPoints};

/// Elements that the transformed tiles of a block may have.
const BLOCK: usize = 192 * 1024;
/// Tiles of a block at least, so that the products are not flat.
const MIN_TILES: usize = 12;
/// Parts of the outputs in which the products of a point are computed where all threads compute one block, at most.
const COLUMN_PARTS: usize = 4;

pub(crate) struct Winograd<const IN: usize> {
    common: Common,
    depth: Depth,
    /// Tiles along y and x.
    grid: [usize; 2],
    /// Blocks of tiles in the whole batch. Each is computed by a thread, the only one by all.
    blocks: usize,
    threads: usize,
    sizes: Sizes,
}

/// Sizes of a block's scratch memory, in elements.
#[derive(Clone, Copy)]
struct Sizes {
    /// Tiles of the largest block.
    tiles: usize,
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
            even if even == blocks || even * MIN_TILES <= tiles => even,
            _ if threads > 1 => 1,
            _ => blocks,
        };
        let most = tiles.div_ceil(blocks);
        Winograd {
            depth: Depth::dense(isa, w.channels),
            grid,
            blocks,
            threads,
            sizes: Sizes {
                tiles: most,
                c,
                m,
                c_point: most * c + 16,
                m_point: most * m + 16,
            },
            common: Common::new(isa, shape, activation, weights),
        }
    }

    /// Elements of scratch memory for a block: transformed input, and padded patches of the tiles, then products.
    fn block_scratch(&self) -> usize {
        let s = &self.sizes;
        IN * IN * (s.c_point + s.m_point.max(s.tiles * s.c))
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
        let (count, patch) = (tiles.len(), IN * IN * s.c);
        let (points, rest) = scratch.split_at_mut(IN * IN * s.c_point);
        let points = Shared::new(points);
        let patches = by(&mut rest[..count * patch], patch);
        let cost = IN * IN * w.channels;
        cpu.rows(count, patches, cost, |piece, patches, _| {
            for (i, patch) in piece.zip(patches.chunks_exact_mut(patch)) {
                let corner = self.corner(tiles.start + i);
                common.isa.dispatch(ToPoints::<IN> {
                    from: self.source(&corner, operands.input, patch),
                    channels: w.channels,
                    to: points,
                    first: i * s.c,
                    point: s.c_point,
                });
            }
            Ok(())
        })?;
        // SAFETY: the tiles are transformed, and are only read from now on.
        let points: &[f32] = unsafe { points.part(0, IN * IN * s.c_point) };
        let products = Shared::new(&mut rest[..IN * IN * s.m_point]);
        self.multiply(cpu, count, points, products)?;
        // SAFETY: the products are there, and are only read from now on.
        let products: &[f32] = unsafe { products.part(0, IN * IN * s.m_point) };
        cpu.split(count, IN * IN * m, |piece, _| {
            for i in piece {
                let corner = self.corner(tiles.start + i);
                common.isa.dispatch(FromPoints::<IN> {
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
                });
            }
            Ok(())
        })
    }

    /// The products of `tiles` tiles at all points.
    fn multiply(
        &self,
        cpu: &CpuRun,
        tiles: usize,
        points: &[f32],
        products: Shared<f32>,
    ) -> Result<()> {
        let common = &self.common;
        let (channels, s, m) = (common.shape.window.channels, self.sizes, common.shape.m);
        let packed: &[f32] = bytemuck::cast_slice(common.weights.as_slice());
        let size = Panels::new(common.isa, m).elements(channels);
        // Points alone are few for many threads.
        let parts = match cpu.threads() {
            1 => 1,
            _ => m.div_ceil(panel(common.isa)).min(COLUMN_PARTS),
        };
        let cost = (tiles * m).saturating_mul(channels) / parts;
        cpu.split(IN * IN * parts, common.isa.cost(cost), |mut piece, cpu| {
            piece.try_for_each(|i| {
                let (point, part) = (i / parts, i % parts);
                let product = Product {
                    isa: common.isa,
                    a: points[point * s.c_point..][..tiles * s.c].as_ptr(),
                    rows: Rows::Strided(s.c),
                    depth: &self.depth,
                    b: packed[point * size..][..size].as_ptr().into(),
                    m: tiles,
                    n: m,
                    c: products.at(point * s.m_point, tiles * s.m),
                    c_stride: s.m,
                    bias: std::ptr::null(),
                    residual: std::ptr::null(),
                    clamp: NO_CLAMP,
                };
                let product = product.columns(columns(common.isa, m, parts, part));
                // SAFETY: the slices have a row for each tile, and the rows have all channels; each point has its own, and each
                // part of it its own columns.
                unsafe { multiply(&product, cpu) }
            })
        })
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
        if self.blocks == 1 {
            self.block(cpu, 0, operands, output, scratch)?;
            return math::activate(cpu, self.common.isa, self.common.rest, out);
        }
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
        match self.blocks {
            1 => self.block_scratch().div_ceil(self.threads),
            _ => self.block_scratch(),
        }
    }
}
