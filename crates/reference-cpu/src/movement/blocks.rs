//! SpaceToBatch and BatchToSpace: the positions within a block of space are images of a batch.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{BatchBlocks, BatchToSpace, SpaceToBatch};
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, by};

use super::data;

pub fn accepts<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 2)
}

pub fn build_space_to_batch(
    _: &SpaceToBatch,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let out = &node.outputs[0];
    Ok(Box::new(ToBatch(Blocks::new(node, data(node)?, out)?)))
}

pub fn build_batch_to_space(
    _: &BatchToSpace,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let out = &node.outputs[0];
    Ok(Box::new(ToSpace(Blocks::new(node, out, data(node)?)?)))
}

/// A spatial axis.
struct Axis {
    /// Elements in the tensor whose space is large, and in the other.
    wide: usize,
    narrow: usize,
    block: usize,
    /// Padding before the large one.
    begin: usize,
}

struct Blocks {
    /// Images of the tensor whose space is large.
    batch: usize,
    axes: Vec<Axis>,
    /// Bytes behind the axes.
    pixel: usize,
}

impl Blocks {
    /// `wide` is the tensor whose space is large.
    fn new(node: &NodeSpec, wide: &TensorSpec, narrow: &TensorSpec) -> Result<Blocks> {
        let rank = wide.shape.len();
        let blocks = BatchBlocks::new(node, rank)?;
        let spatial = blocks.block.len();
        let axes = (0..spatial).map(|d| Axis {
            wide: wide.shape[d + 1],
            narrow: narrow.shape[d + 1],
            block: blocks.block[d],
            begin: blocks.pads[d].0,
        });
        Ok(Blocks {
            batch: wide.shape[0],
            axes: axes.collect(),
            pixel: wide.shape[spatial + 1..].iter().product::<usize>() * wide.dtype.size(),
        })
    }

    /// Copies the pixels of an output; `source` gives the one in the input that each is, if any.
    fn run(&self, io: &mut Io, source: impl Fn(usize) -> Option<usize> + Sync) -> Result<()> {
        let (x, y, pixel) = (io.input_bytes(0), io.output_bytes(0), self.pixel);
        let Some(pixels) = y.len().checked_div(pixel) else {
            return Ok(());
        };
        let cost = COST * (1 + self.axes.len()) + pixel / 8;
        io.cpu().rows(pixels, by(y, pixel), cost, |piece, y, cpu| {
            for (i, y) in piece.zip(y.chunks_exact_mut(pixel)) {
                match source(i) {
                    Some(i) => cpu.copy(&x[i * pixel..][..pixel], y)?,
                    None => cpu.fill(y, 0)?,
                }
            }
            Ok(())
        })
    }
}

/// Operations of finding a pixel along an axis.
const COST: usize = 16;

struct ToBatch(Blocks);

impl Kernel for ToBatch {
    fn run(&self, io: &mut Io) -> Result<()> {
        let blocks = &self.0;
        let narrow = blocks.axes.iter().fold(1, |n, a| n * a.narrow);
        let images = blocks.batch * narrow;
        blocks.run(io, |pixel| {
            // The number of the position within a block comes first, then the image.
            let (mut position, mut rest) = (pixel / images, pixel % images);
            let (mut at, mut step) = (0, 1);
            for axis in blocks.axes.iter().rev() {
                let padded = rest % axis.narrow * axis.block + position % axis.block;
                let i = padded.checked_sub(axis.begin).filter(|&i| i < axis.wide)?;
                at += i * step;
                step *= axis.wide;
                rest /= axis.narrow;
                position /= axis.block;
            }
            Some(rest * step + at)
        })
    }
}

struct ToSpace(Blocks);

impl Kernel for ToSpace {
    fn run(&self, io: &mut Io) -> Result<()> {
        let blocks = &self.0;
        blocks.run(io, |pixel| {
            let mut rest = pixel;
            let (mut at, mut step) = (0, 1);
            let (mut position, mut area) = (0, 1);
            for axis in blocks.axes.iter().rev() {
                let padded = rest % axis.wide + axis.begin;
                at += padded / axis.block * step;
                step *= axis.narrow;
                position += padded % axis.block * area;
                area *= axis.block;
                rest /= axis.wide;
            }
            Some((position * blocks.batch + rest) * step + at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn space_to_batch_and_back() {
        let x: Vec<i32> = (1..=15).collect();
        let x = tensor(&[1, 3, 5, 1], &x);
        let block = tensor::<i64>(&[2], &[2, 2]);
        let margins = tensor::<i64>(&[2, 2], &[1, 0, 0, 1]);
        let y = run_as::<i32>(&SpaceToBatch, &[&x, &block, &margins], &[4, 2, 3, 1]);
        assert_eq!(y[..6], [0, 0, 0, 6, 8, 10]);
        assert_eq!(y[18..], [2, 4, 0, 12, 14, 0]);
        let y = tensor(&[4, 2, 3, 1], &y);
        let back = run_as::<i32>(&BatchToSpace, &[&y, &block, &margins], &[1, 3, 5, 1]);
        assert_eq!(back, x.as_slice::<i32>().unwrap());
    }
}
