//! Concat, Split and Slice.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::shape_error;
use kilim_core::ops::{Concat, Slice, Split, normalize_axis};
use kilim_host::elements::contiguous_strides;
use kilim_host::rules;
use kilim_host::{Build, Kernel};

use super::data;
use super::strided::{Copies, StridedCopy};

/// Elements behind `axis` in each of the parts, and the extent along it.
fn behind(spec: &TensorSpec, axis: usize) -> (usize, usize) {
    (spec.shape[axis], spec.shape[axis + 1..].iter().product())
}

pub fn build_concat(op: &Concat, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let out = &node.outputs[0];
    let axis = normalize_axis(op.axis, out.shape.len())?;
    let outer: usize = out.shape[..axis].iter().product();
    let (total, inner) = behind(out, axis);
    let row = (total * inner) as isize;
    let mut copies = Vec::new();
    let mut at = 0;
    for (i, part) in node.inputs.iter().enumerate() {
        let Some(part) = part else { continue };
        if part.shape.len() != out.shape.len() {
            return Err(shape_error("the parts have different ranks"));
        }
        let n = part.shape[axis] * inner;
        let copy = StridedCopy::new(&[outer, n], (0, &[n as isize, 1]), (at, &[row, 1]));
        copies.push((i, 0, copy));
        at += n as isize;
    }
    Ok(Box::new(Copies {
        dtype: out.dtype,
        copies,
    }))
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
