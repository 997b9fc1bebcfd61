//! Reordering and repeating dimensions.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{DepthToSpace, Expand, SpaceToDepth, Tile, Transpose};
use kilim_host::elements::{broadcast_strides, contiguous_strides};
use kilim_host::rules;
use kilim_host::{Build, Kernel};

use super::data;
use super::strided::{Copies, StridedCopy};

/// The input seen as `shape`, permuted.
fn permuted(node: &NodeSpec, shape: &[usize], perm: &[usize]) -> Result<Box<dyn Kernel>> {
    let strides = contiguous_strides(shape);
    let out: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
    let read: Vec<isize> = perm.iter().map(|&p| strides[p]).collect();
    let copy = StridedCopy::new(&out, (0, &read), (0, &contiguous_strides(&out)));
    Ok(Box::new(Copies::one(data(node)?.dtype, copy)))
}

pub fn build_transpose(op: &Transpose, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &data(node)?.shape;
    permuted(node, shape, &op.resolve(shape.len())?)
}

pub fn build_expand(_: &Expand, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let out = &node.outputs[0].shape;
    let read = broadcast_strides(&x.shape, out);
    let copy = StridedCopy::new(out, (0, &read), (0, &contiguous_strides(out)));
    Ok(Box::new(Copies::one(x.dtype, copy)))
}

pub fn accepts_tile(_: &Tile, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)
}

pub fn build_tile(op: &Tile, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let strides = contiguous_strides(&x.shape);
    let (mut shape, mut read) = (Vec::new(), Vec::new());
    for ((&n, repeats), &stride) in x
        .shape
        .iter()
        .zip(op.repeats(x.shape.len(), node)?)
        .zip(&strides)
    {
        shape.extend([repeats, n]);
        read.extend([0, stride]);
    }
    let copy = StridedCopy::new(&shape, (0, &read), (0, &contiguous_strides(&shape)));
    Ok(Box::new(Copies::one(x.dtype, copy)))
}

/// Batch, channels, height and width of a four-dimensional input.
fn image(node: &NodeSpec, channels_last: bool) -> Result<[usize; 4]> {
    match (
        <[usize; 4]>::try_from(&data(node)?.shape[..]),
        channels_last,
    ) {
        (Ok([n, h, w, c]), true) => Ok([n, c, h, w]),
        (Ok(nchw), false) => Ok(nchw),
        _ => Err(shape_error("four dimensions are needed")),
    }
}

pub fn build_depth_to_space(
    op: &DepthToSpace,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let [n, c, h, w] = image(node, op.channels_last)?;
    let b = op.block;
    let c = c / (b * b).max(1);
    match (op.channels_last, op.crd) {
        (false, false) => permuted(node, &[n, b, b, c, h, w], &[0, 3, 4, 1, 5, 2]),
        (false, true) => permuted(node, &[n, c, b, b, h, w], &[0, 1, 4, 2, 5, 3]),
        (true, false) => permuted(node, &[n, h, w, b, b, c], &[0, 1, 3, 2, 4, 5]),
        (true, true) => permuted(node, &[n, h, w, c, b, b], &[0, 1, 4, 2, 5, 3]),
    }
}

pub fn build_space_to_depth(
    op: &SpaceToDepth,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let [n, c, h, w] = image(node, op.channels_last)?;
    let b = op.block.max(1);
    let (h, w) = (h / b, w / b);
    if op.channels_last {
        permuted(node, &[n, h, b, w, b, c], &[0, 1, 3, 2, 4, 5])
    } else {
        permuted(node, &[n, c, h, b, w, b], &[0, 3, 5, 1, 2, 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_host::elements::Walk;
    use kilim_host::testing::{noise, tensor};

    /// Transposes one element at a time.
    fn expected(x: &[f32], shape: &[usize], perm: &[usize]) -> Vec<f32> {
        let strides = contiguous_strides(shape);
        let out: Vec<_> = perm.iter().map(|&p| shape[p]).collect();
        let read: Vec<_> = perm.iter().map(|&p| strides[p]).collect();
        let mut want = Vec::new();
        let walk = Walk::new(&out, [&read]);
        want.extend(walk.offsets(0..x.len()).iter().map(|[i]| x[*i as usize]));
        want
    }

    #[test]
    fn transposes() {
        let cases: [(&[usize], &[usize]); 11] = [
            (&[37, 53], &[1, 0]),
            (&[2, 35], &[1, 0]),
            (&[2, 3, 5, 7], &[0, 2, 3, 1]),
            (&[4, 33], &[1, 0]),
            (&[2, 3, 5], &[2, 0, 1]),
            (&[2, 19, 5, 7], &[0, 2, 3, 1]),
            (&[2, 5, 7, 19], &[0, 3, 1, 2]),
            (&[3, 4, 5], &[2, 1, 0]),
            (&[3, 1, 5], &[1, 2, 0]),
            (&[2, 3, 4, 5, 6], &[4, 0, 2, 1, 3]),
            (&[0, 3], &[1, 0]),
        ];
        for (shape, perm) in cases {
            let x = noise(shape.iter().product(), 3);
            let out: Vec<_> = perm.iter().map(|&p| shape[p]).collect();
            let op = Transpose {
                perm: perm.to_vec(),
            };
            assert_eq!(
                run_f32(&op, &[&tensor(shape, &x)], &out),
                expected(&x, shape, perm),
                "{shape:?} {perm:?}"
            );
        }
    }

    #[test]
    fn other_sizes_of_elements() {
        let op = Transpose { perm: vec![1, 0] };
        let x: Vec<u8> = (0..6).collect();
        assert_eq!(
            run_as::<u8>(&op, &[&tensor(&[2, 3], &x)], &[3, 2]),
            [0, 3, 1, 4, 2, 5]
        );
        let x: Vec<i64> = (0..6).collect();
        assert_eq!(
            run_as::<i64>(&op, &[&tensor(&[2, 3], &x)], &[3, 2]),
            [0, 3, 1, 4, 2, 5]
        );
    }

    #[test]
    fn depth_to_space_and_back() {
        for channels_last in [false, true] {
            let (deep, wide): (&[usize], &[usize]) = if channels_last {
                (&[2, 3, 5, 8], &[2, 6, 10, 2])
            } else {
                (&[2, 8, 3, 5], &[2, 2, 6, 10])
            };
            let x = noise(2 * 8 * 15, 4);
            let op = DepthToSpace {
                block: 2,
                crd: false,
                channels_last,
            };
            let y = run_f32(&op, &[&tensor(deep, &x)], wide);
            assert_ne!(x, y);
            let back = SpaceToDepth {
                block: 2,
                channels_last,
            };
            assert_eq!(run_f32(&back, &[&tensor(wide, &y)], deep), x);
        }
    }

    #[test]
    fn tiles() {
        let x = tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let repeats = tensor::<i64>(&[2], &[1, 2]);
        assert_eq!(
            run_f32(&Tile, &[&x, &repeats], &[2, 4]),
            [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]
        );
    }
}
