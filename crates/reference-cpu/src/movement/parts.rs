//! Concat, Split and Slice.

use std::any::Any;

use bytemuck::Pod;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::shape_error;
use kilim_core::ops::{Concat, Slice, Split, normalize_axis};
use kilim_core::short::Short;
use kilim_core::{DType, Result};
use kilim_host::elements::contiguous_strides;
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, by};

use super::data;
use super::strided::{Copies, StridedCopy, spread_rows};

/// Elements behind `axis` in each of the parts, and the extent along it.
fn behind(spec: &TensorSpec, axis: usize) -> (usize, usize) {
    (spec.shape[axis], spec.shape[axis + 1..].iter().product())
}

pub(super) fn build_concat(op: &Concat, node: &NodeSpec, _: &mut Build) -> Result<Join> {
    let out = &node.outputs[0];
    let axis = normalize_axis(op.axis, out.shape.len())?;
    let outer: usize = out.shape[..axis].iter().product();
    let (total, inner) = behind(out, axis);
    let mut given = node.inputs.iter().flatten();
    if given.any(|part| part.shape.len() != out.shape.len()) {
        return Err(shape_error("the parts have different ranks"));
    }
    let mut end = 0;
    let parts = node.inputs.iter().enumerate().filter_map(|(input, part)| {
        let n = part.as_ref()?.shape[axis] * inner;
        end += n;
        Some(Part {
            input,
            at: end - n,
            n,
        })
    });
    Ok(Join::new(out.dtype, outer, total * inner, parts))
}

/// A piece of each row of the output: all of an input's row.
#[derive(Clone, Copy, Default)]
struct Part {
    input: usize,
    /// The first element in the output's row.
    at: usize,
    n: usize,
}

/// Rows made of those of several inputs, in words or, where elements are smaller, in bytes.
pub(super) struct Join {
    words: bool,
    rows: usize,
    /// Units of a row of the output.
    row: usize,
    parts: Short<Part, 4>,
}

/// Inputs that are joined in one go, each piece of rows on one thread.
const AT_ONCE: usize = 16;
/// Operations of a unit that is copied.
const COST: usize = 2;

impl Join {
    /// Sizes are those of elements of `dtype`.
    fn new(dtype: DType, rows: usize, row: usize, parts: impl Iterator<Item = Part>) -> Join {
        let words = dtype.size().is_multiple_of(size_of::<u32>());
        let units = match words {
            true => dtype.size() / size_of::<u32>(),
            false => dtype.size(),
        };
        let in_units = |part: Part| Part {
            at: part.at * units,
            n: part.n * units,
            ..part
        };
        Join {
            words,
            rows,
            row: row * units,
            parts: parts.map(in_units).collect(),
        }
    }

    fn run<T: Pod + Send + Sync>(&self, io: &mut Io) -> Result<()> {
        let (cpu, row) = (io.cpu(), self.row);
        let out: &mut [T] = bytemuck::cast_slice_mut(io.output_bytes(0));
        for parts in self.parts.chunks(AT_ONCE) {
            let mut inputs: [&[T]; AT_ONCE] = [&[]; AT_ONCE];
            for (input, part) in inputs.iter_mut().zip(parts) {
                *input = bytemuck::cast_slice(io.input_bytes(part.input));
            }
            let units: usize = parts.iter().map(|part| part.n).sum();
            let cost = COST.saturating_mul(units);
            if self.rows == 1 || cost >= cpu.piece() {
                for (i, out) in out.chunks_exact_mut(row.max(1)).enumerate() {
                    for (input, part) in inputs.iter().zip(parts) {
                        let input = &input[i * part.n..][..part.n];
                        cpu.copy(input, &mut out[part.at..][..part.n])?;
                    }
                }
                continue;
            }
            cpu.rows(self.rows, by(out, row), cost, |piece, out, _| {
                for (input, part) in inputs.iter().zip(parts) {
                    let input = &input[piece.start * part.n..piece.end * part.n];
                    spread_rows(part.n, input, (part.at, row), out);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl Kernel for Join {
    fn in_place(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn run(&self, io: &mut Io) -> Result<()> {
        match self.words {
            true => self.run::<u32>(io),
            false => self.run::<u8>(io),
        }
    }
}

pub fn build_split(op: &Split, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let axis = normalize_axis(op.axis, x.shape.len())?;
    let outer: usize = x.shape[..axis].iter().product();
    let (total, inner) = behind(x, axis);
    let row = (total * inner) as isize;
    let mut copies = Vec::new();
    let mut at = 0;
    for (o, part) in node.outputs.iter().enumerate() {
        let n = part.shape[axis] * inner;
        let copy = StridedCopy::new(&[outer, n], (at, &[row, 1]), (0, &[n as isize, 1]));
        copies.push((0, o, copy));
        at += n as isize;
    }
    Ok(Box::new(Copies {
        dtype: x.dtype,
        copies,
    }))
}

pub fn accepts_slice(_: &Slice, node: &NodeSpec) -> Result<(), Refusal> {
    (1..5).try_for_each(|i| rules::known(node, i))
}

pub fn build_slice(op: &Slice, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let mut strides = contiguous_strides(&x.shape);
    let mut from = 0;
    for (axis, stride) in op.resolve(&x.shape, node)?.iter().zip(&mut strides) {
        from += axis.start as isize * *stride;
        if axis.length > 1 {
            *stride *= axis.step as isize;
        }
    }
    let shape = &node.outputs[0].shape;
    let copy = StridedCopy::new(shape, (from, &strides), (0, &contiguous_strides(shape)));
    Ok(Box::new(Copies::one(x.dtype, copy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_as};
    use kilim_core::DType;
    use kilim_host::testing::tensor;

    #[test]
    fn concat_and_split() {
        let a = tensor::<i32>(&[2, 1, 2], &[1, 2, 3, 4]);
        let b = tensor::<i32>(&[2, 2, 2], &[5, 6, 7, 8, 9, 10, 11, 12]);
        let none = tensor::<i32>(&[2, 0, 2], &[]);
        let y = run_as::<i32>(&Concat { axis: -2 }, &[&a, &none, &b], &[2, 3, 2]);
        assert_eq!(y, [1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12]);
        let parts = run(
            &Split { axis: 1 },
            &[Some(&tensor(&[2, 3, 2], &y))],
            &[(DType::I32, &[2, 1, 2]), (DType::I32, &[2, 2, 2])],
        );
        assert_eq!(parts.unwrap(), [a, b]);
    }

    #[test]
    fn many_parts_of_many_rows() {
        let parts: Vec<_> = (0..20i32)
            .map(|p| {
                let n = p as usize % 5 * 3;
                let data: Vec<i32> = (0..70 * n as i32).map(|i| p * 10_000 + i).collect();
                tensor::<i32>(&[70, n], &data)
            })
            .collect();
        let row = 4 * (3 + 6 + 9 + 12);
        let y = run_as::<i32>(
            &Concat { axis: 1 },
            &parts.iter().collect::<Vec<_>>(),
            &[70, row],
        );
        let want = (0..70i32).flat_map(|r| {
            (0..20i32).flat_map(move |p| {
                let n = p % 5 * 3;
                (0..n).map(move |c| p * 10_000 + r * n + c)
            })
        });
        assert_eq!(y, want.collect::<Vec<_>>());
    }

    #[test]
    fn slices_forwards_and_backwards() {
        let x: Vec<i64> = (0..20).collect();
        let x = tensor(&[4, 5], &x);
        let of = |starts: &[i64], ends: &[i64], steps: &[i64], shape: &[usize]| {
            let t = |v: &[i64]| tensor(&[v.len()], v);
            run_as::<i64>(
                &Slice,
                &[&x, &t(starts), &t(ends), &t(&[0, 1]), &t(steps)],
                shape,
            )
        };
        assert_eq!(
            of(&[1, 0], &[3, 1000], &[1, 2], &[2, 3]),
            [5, 7, 9, 10, 12, 14]
        );
        assert_eq!(
            of(&[-1, 1000], &[-100, -1000], &[-2, -3], &[2, 2]),
            [19, 16, 9, 6]
        );
        assert!(of(&[2, 0], &[2, 5], &[1, 1], &[0, 5]).is_empty());
        assert_eq!(of(&[3, 4], &[4, i64::MAX], &[i64::MAX, 1], &[1, 1]), [19]);
    }
}
