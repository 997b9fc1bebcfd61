//! Operators whose output is a part of the input among something else: Pad, CenterCropPad,
//! SpaceToBatch, BatchToSpace.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::shape_error;
use kilim_core::ops::{
    BatchBlocks, BatchToSpace, CenterCropPad, Pad, PadAxis, PadMode, SpaceToBatch,
};
use kilim_core::{DType, Result};

use super::data;
use super::strided::StridedCopy;
use crate::by_size;
use crate::common::{contiguous_strides, rules};
use crate::frame::{Build, Io, Kernel};

/// Where element `i` along an axis comes from and goes to: positions `i * step + offset`. Those
/// outside of either tensor are left out.
#[derive(Clone, Copy)]
struct Axis {
    from: Side,
    to: Side,
}

#[derive(Clone, Copy)]
struct Side {
    extent: usize,
    step: usize,
    offset: isize,
}

impl Side {
    fn shifted(extent: usize, offset: isize) -> Side {
        Side {
            extent,
            step: 1,
            offset,
        }
    }

    /// The positions that are inside.
    fn inside(&self) -> (isize, isize) {
        let step = self.step as isize;
        let up = |v: isize| v.div_euclid(step) + isize::from(v.rem_euclid(step) != 0);
        (up(-self.offset), up(self.extent as isize - self.offset))
    }
}

/// The copy of everything that is inside of both tensors.
fn region(axes: &[Axis]) -> StridedCopy {
    let extents =
        |side: fn(&Axis) -> Side| -> Vec<usize> { axes.iter().map(|a| side(a).extent).collect() };
    let (mut read, mut write) = (
        contiguous_strides(&extents(|a| a.from)),
        contiguous_strides(&extents(|a| a.to)),
    );
    let (mut from, mut to) = (0, 0);
    let mut shape = Vec::with_capacity(axes.len());
    for (d, axis) in axes.iter().enumerate() {
        let (a, b) = (axis.from.inside(), axis.to.inside());
        let (first, last) = (a.0.max(b.0).max(0), a.1.min(b.1));
        shape.push((last - first).max(0) as usize);
        from += (first * axis.from.step as isize + axis.from.offset) * read[d];
        to += (first * axis.to.step as isize + axis.to.offset) * write[d];
        read[d] *= axis.from.step as isize;
        write[d] *= axis.to.step as isize;
    }
    StridedCopy::new(&shape, (from, &read), (to, &write))
}

/// Fills the output and then copies into it.
struct FillAndCopy {
    dtype: DType,
    /// The input that holds what is filled in, else zeros.
    value: Option<usize>,
    copies: Vec<StridedCopy>,
}

impl Kernel for FillAndCopy {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input_bytes(0);
        let y = io.output_bytes(0);
        match self.value.filter(|&v| io.has_input(v)) {
            None => y.fill(0),
            Some(v) => {
                by_size!(self.dtype, T => if let Some(&value) = io.input::<T>(v).first() {
                    bytemuck::cast_slice_mut::<u8, T>(y).fill(value);
                });
            }
        }
        for copy in &self.copies {
            copy.run_as(self.dtype, x, y);
        }
        Ok(())
    }
}

pub fn accepts_pad(_: &Pad, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 3)
}

pub fn build_pad(op: &Pad, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let out = &node.outputs[0];
    let rank = x.shape.len();
    let pads = op.resolve(&x.shape, node)?;
    if op.mode == PadMode::Constant {
        let axes: Vec<_> = (0..rank)
            .map(|d| Axis {
                from: Side::shifted(x.shape[d], 0),
                to: Side::shifted(out.shape[d], pads[d].0 as isize),
            })
            .collect();
        return Ok(Box::new(FillAndCopy {
            dtype: x.dtype,
            value: Some(2),
            copies: vec![region(&axes)],
        }));
    }
    if out.elements() > 0 && x.elements() == 0 {
        return Err(shape_error("there is nothing to repeat in an empty tensor"));
    }
    let strides = contiguous_strides(&x.shape);
    let sources = (0..rank)
        .map(|d| {
            let axis = PadAxis::new(x.shape[d], pads[d]);
            let (first, before) = (axis.first as isize, axis.before as isize);
            (0..out.shape[d] as isize)
                .map(|o| (first + source(op.mode, o - before, axis.kept as isize)) * strides[d])
                .collect()
        })
        .collect();
    Ok(Box::new(Mirror {
        dtype: x.dtype,
        sources,
    }))
}

/// The element of `0..n` that stands at position `i`, which may be outside.
fn source(mode: PadMode, i: isize, n: isize) -> isize {
    let fold = |period: isize, edge: isize| {
        let i = i.rem_euclid(period);
        if i < n { i } else { period - edge - i }
    };
    match mode {
        PadMode::Edge | PadMode::Constant => i.clamp(0, n - 1),
        PadMode::Wrap => i.rem_euclid(n),
        PadMode::Reflect if n == 1 => 0,
        PadMode::Reflect => fold(2 * (n - 1), 0),
        PadMode::Symmetric => fold(2 * n, 1),
    }
}

/// Every output element is some input element.
struct Mirror {
    dtype: DType,
    /// For each axis, where in the input each position is, times the stride.
    sources: Vec<Vec<isize>>,
}

impl Kernel for Mirror {
    fn run(&self, io: &mut Io) -> Result<()> {
        by_size!(self.dtype, T => {
            let x = io.input::<T>(0);
            let mut y = io.output::<T>(0).iter_mut();
            visit(&self.sources, 0, &mut |i| {
                if let Some(y) = y.next() {
                    *y = x[i as usize];
                }
            });
        });
        Ok(())
    }
}

fn visit(axes: &[Vec<isize>], at: isize, f: &mut impl FnMut(isize)) {
    match axes.split_first() {
        None => f(at),
        Some((axis, inner)) => axis.iter().for_each(|&i| visit(inner, at + i, f)),
    }
}

pub fn build_center(op: &CenterCropPad, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let axes: Vec<_> = x
        .shape
        .iter()
        .zip(op.resolve(&x.shape, node)?)
        .map(|(&input, axis)| Axis {
            from: Side::shifted(input, axis.input_start as isize),
            to: Side::shifted(axis.output, axis.output_start as isize),
        })
        .collect();
    Ok(Box::new(FillAndCopy {
        dtype: x.dtype,
        value: None,
        copies: vec![region(&axes)],
    }))
}

pub fn accepts_blocks<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 2)
}

/// One copy for each position within a block. `wide` is the tensor whose space is large.
fn blocks(
    node: &NodeSpec,
    wide: &TensorSpec,
    batched: &TensorSpec,
    to_batch: bool,
) -> Result<Box<dyn Kernel>> {
    let rank = wide.shape.len();
    let blocks = BatchBlocks::new(node, rank)?;
    let (count, spatial) = (blocks.area()?, blocks.block.len());
    let batch = wide.shape[0];
    let mut copies = Vec::new();
    for k in 0..count {
        let mut axes = Vec::with_capacity(rank);
        let mut push = |wide: Side, batched: Side| {
            axes.push(if to_batch {
                Axis {
                    from: wide,
                    to: batched,
                }
            } else {
                Axis {
                    from: batched,
                    to: wide,
                }
            });
        };
        push(
            Side::shifted(batch, 0),
            Side::shifted(batched.shape[0], (k * batch) as isize),
        );
        let mut inner = count;
        for d in 1..rank {
            let mut side = Side::shifted(wide.shape[d], 0);
            if d <= spatial {
                side.step = blocks.block[d - 1];
                inner /= side.step;
                side.offset = (k / inner % side.step) as isize - blocks.pads[d - 1].0 as isize;
            }
            push(side, Side::shifted(batched.shape[d], 0));
        }
        copies.push(region(&axes));
    }
    Ok(Box::new(FillAndCopy {
        dtype: wide.dtype,
        value: None,
        copies,
    }))
}

pub fn build_space_to_batch(
    _: &SpaceToBatch,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    blocks(node, data(node)?, &node.outputs[0], true)
}

pub fn build_batch_to_space(
    _: &BatchToSpace,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    blocks(node, &node.outputs[0], data(node)?, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run_as, tensor};

    fn pad(mode: PadMode, pads: &[i64], shape: &[usize]) -> Vec<i32> {
        let x = tensor::<i32>(&[1, 3], &[1, 2, 3]);
        let pads = tensor(&[4], pads);
        run_as(&Pad { mode }, &[&x, &pads], shape)
    }

    #[test]
    fn pads_in_every_mode() {
        assert_eq!(
            pad(PadMode::Constant, &[0, 1, 0, 2], &[1, 6]),
            [0, 1, 2, 3, 0, 0]
        );
        assert_eq!(
            pad(PadMode::Constant, &[1, -1, 0, 1], &[2, 3]),
            [0, 0, 0, 2, 3, 0]
        );
        assert_eq!(
            pad(PadMode::Reflect, &[0, 2, 0, 1], &[1, 6]),
            [3, 2, 1, 2, 3, 2]
        );
        assert_eq!(
            pad(PadMode::Symmetric, &[0, 2, 0, 1], &[1, 6]),
            [2, 1, 1, 2, 3, 3]
        );
        assert_eq!(
            pad(PadMode::Edge, &[1, 1, 0, 1], &[2, 5]),
            [1, 1, 2, 3, 3, 1, 1, 2, 3, 3]
        );
        assert_eq!(
            pad(PadMode::Wrap, &[0, 2, 0, 4], &[1, 9]),
            [2, 3, 1, 2, 3, 1, 2, 3, 1]
        );
    }

    #[test]
    fn pads_with_a_value() {
        let x = tensor::<i64>(&[1], &[5]);
        let y = run_as::<i64>(
            &Pad {
                mode: PadMode::Constant,
            },
            &[
                &x,
                &tensor::<i64>(&[2], &[1, 1]),
                &tensor::<i64>(&[], &[-3]),
            ],
            &[3],
        );
        assert_eq!(y, [-3, 5, -3]);
    }

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

    #[test]
    fn crops_and_pads_around_the_centre() {
        let x = tensor::<i32>(&[2, 5], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let shape = tensor::<i64>(&[2], &[3, 2]);
        let y = run_as::<i32>(&CenterCropPad { axes: None }, &[&x, &shape], &[3, 2]);
        assert_eq!(y, [2, 3, 7, 8, 0, 0]);
    }
}
