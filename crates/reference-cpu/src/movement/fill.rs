//! Operators whose output is a part of the input among something else: Pad, CenterCropPad.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{CenterCropPad, Pad, PadAxis, PadMode};
use kilim_core::{DType, Result};
use kilim_host::by_size;
use kilim_host::elements::contiguous_strides;
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, by};

use super::data;
use super::strided::StridedCopy;

/// The copy of what stands `begin` elements further along each axis of the second tensor, as far as both have it.
fn placed(from: &[usize], to: &[usize], begin: &[i64]) -> StridedCopy {
    let (read, write) = (contiguous_strides(from), contiguous_strides(to));
    let (mut first_read, mut first_write) = (0, 0);
    let mut shape = Vec::with_capacity(from.len());
    for (d, &begin) in begin.iter().enumerate() {
        let first = begin.saturating_neg().max(0);
        let last = (from[d] as i64).min((to[d] as i64).saturating_sub(begin));
        if last <= first {
            return StridedCopy::new(&[0], (0, &[0]), (0, &[0]));
        }
        shape.push((last - first) as usize);
        first_read += first as isize * read[d];
        first_write += (first + begin) as isize * write[d];
    }
    StridedCopy::new(&shape, (first_read, &read), (first_write, &write))
}

/// Fills the output and then copies into it.
struct FillAndCopy {
    dtype: DType,
    /// The input that holds what is filled in, else zeros.
    value: Option<usize>,
    copy: StridedCopy,
}

impl Kernel for FillAndCopy {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x) = (io.cpu(), io.input_bytes(0));
        let y = io.output_bytes(0);
        match self.value.filter(|&v| io.has_input(v)) {
            None => cpu.fill(y, 0)?,
            Some(v) => {
                by_size!(self.dtype, T => if let Some(&value) = io.input::<T>(v).first() {
                    cpu.fill(bytemuck::cast_slice_mut::<u8, T>(y), value)?;
                });
            }
        }
        self.copy.run_as(cpu, self.dtype, x, y)
    }
}

pub fn accepts_pad(_: &Pad, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 3)
}

pub fn build_pad(op: &Pad, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, out) = (data(node)?, &node.outputs[0]);
    let pads = op.resolve(&x.shape, node)?;
    let begin: Vec<i64> = pads.iter().map(|&(begin, _)| begin).collect();
    if op.mode == PadMode::Constant {
        return Ok(Box::new(FillAndCopy {
            dtype: x.dtype,
            value: Some(2),
            copy: placed(&x.shape, &out.shape, &begin),
        }));
    }
    if out.elements() > 0 && x.elements() == 0 {
        return Err(shape_error("there is nothing to repeat in an empty tensor"));
    }
    let strides = contiguous_strides(&x.shape);
    let axes = (0..x.shape.len()).map(|d| {
        let kept = PadAxis::new(x.shape[d], pads[d]);
        Axis {
            mode: op.mode,
            before: kept.before as i64,
            first: kept.first,
            kept: kept.kept as i64,
            output: out.shape[d],
            stride: strides[d] as usize,
        }
    });
    Ok(Box::new(Mirror {
        dtype: x.dtype,
        axes: axes.collect(),
    }))
}

/// An axis whose padding repeats its elements.
struct Axis {
    mode: PadMode,
    /// What is repeated: as many elements from this one on, with so many before them.
    first: usize,
    kept: i64,
    before: i64,
    output: usize,
    /// The distance of two elements in the input, in elements.
    stride: usize,
}

impl Axis {
    /// The element that stands at position `o` of the output.
    fn source(&self, o: usize) -> usize {
        let (i, n) = (o as i64 - self.before, self.kept);
        let fold = |period: i64, edge: i64| {
            let i = i.rem_euclid(period);
            if i < n { i } else { period - edge - i }
        };
        let source = match self.mode {
            PadMode::Edge | PadMode::Constant => i.clamp(0, n - 1),
            PadMode::Wrap => i.rem_euclid(n),
            PadMode::Reflect if n == 1 => 0,
            PadMode::Reflect => fold(2 * (n - 1), 0),
            PadMode::Symmetric => fold(2 * n, 1),
        };
        self.first + source as usize
    }
}

/// Every output element is some input element.
struct Mirror {
    dtype: DType,
    axes: Vec<Axis>,
}

/// Operations of an element in the padding.
const COST: usize = 8;

impl Mirror {
    /// The first element of the row of the input that row `row` of the output is made of.
    fn row(&self, outer: &[Axis], mut row: usize) -> usize {
        let mut at = 0;
        for axis in outer.iter().rev() {
            at += axis.source(row % axis.output) * axis.stride;
            row /= axis.output;
        }
        at
    }
}

impl Kernel for Mirror {
    fn run(&self, io: &mut Io) -> Result<()> {
        let Some((axis, outer)) = self.axes.split_last() else {
            return io.cpu().copy(io.input_bytes(0), io.output_bytes(0));
        };
        by_size!(self.dtype, T => {
            let (x, y) = (io.input::<T>(0), io.output::<T>(0));
            io.cpu().rows(y.len(), by(y, 1), COST, |piece, mut y, _| {
                let mut at = piece.start;
                while !y.is_empty() {
                    let (row, first) = (at / axis.output, at % axis.output);
                    let len = (axis.output - first).min(y.len());
                    let (part, rest) = y.split_at_mut(len);
                    let x = &x[self.row(outer, row)..];
                    // What lies inside is copied in one piece.
                    let inside = |i: i64| i.clamp(first as i64, (first + len) as i64) as usize;
                    let (begin, end) = (inside(axis.before), inside(axis.before + axis.kept));
                    for o in (first..begin).chain(end..first + len) {
                        part[o - first] = x[axis.source(o)];
                    }
                    if begin < end {
                        let source = axis.source(begin);
                        part[begin - first..end - first].copy_from_slice(&x[source..][..end - begin]);
                    }
                    at += len;
                    y = rest;
                }
                Ok(())
            })
        })
    }
}

pub fn build_center(op: &CenterCropPad, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let axes = op.resolve(&x.shape, node)?;
    let begin = axes
        .iter()
        .map(|a| a.output_start as i64 - a.input_start as i64);
    let to: Vec<usize> = axes.iter().map(|a| a.output).collect();
    Ok(Box::new(FillAndCopy {
        dtype: x.dtype,
        value: None,
        copy: placed(&x.shape, &to, &begin.collect::<Vec<_>>()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

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
    fn crops_and_pads_around_the_centre() {
        let x = tensor::<i32>(&[2, 5], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let shape = tensor::<i64>(&[2], &[3, 2]);
        let y = run_as::<i32>(&CenterCropPad { axes: None }, &[&x, &shape], &[3, 2]);
        assert_eq!(y, [2, 3, 7, 8, 0, 0]);
    }
}
