//! Blocks of space that become channels or images, and back.

use kilim_core::ops::{BatchBlocks, DepthToSpace, SpaceToDepth};

use super::pad::{Padding, padded};
use super::{Walk, permuted};
use crate::device::storage;
use crate::lowering::walk::{signed, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::movement::pad::Mode;
use crate::shaders::{Operand, Target};

fn image(shape: &[usize]) -> Lowers<[usize; 4]> {
    match *shape {
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => refuse(format!("four dimensions are needed, not {shape:?}")),
    }
}

pub(super) fn depth_to_space(op: &DepthToSpace, l: &mut Lowering) -> Lowers {
    let s = image(&l.input(0)?.shape)?;
    let b = op.block.max(1);
    let (dims, perm): (Vec<usize>, &[usize]) = match (op.channels_last, op.crd) {
        (false, false) => (
            vec![s[0], b, b, s[1] / (b * b), s[2], s[3]],
            &[0, 3, 4, 1, 5, 2],
        ),
        (false, true) => (
            vec![s[0], s[1] / (b * b), b, b, s[2], s[3]],
            &[0, 1, 4, 2, 5, 3],
        ),
        (true, false) => (
            vec![s[0], s[1], s[2], b, b, s[3] / (b * b)],
            &[0, 1, 3, 2, 4, 5],
        ),
        (true, true) => (
            vec![s[0], s[1], s[2], s[3] / (b * b), b, b],
            &[0, 1, 4, 2, 5, 3],
        ),
    };
    permuted(&dims, perm).single(l)
}

pub(super) fn space_to_depth(op: &SpaceToDepth, l: &mut Lowering) -> Lowers {
    let s = image(&l.input(0)?.shape)?;
    let b = op.block.max(1);
    if op.channels_last {
        permuted(&[s[0], s[1] / b, b, s[2] / b, b, s[3]], &[0, 1, 3, 2, 4, 5]).single(l)
    } else {
        permuted(&[s[0], s[1], s[2] / b, b, s[3] / b, b], &[0, 3, 5, 1, 2, 4]).single(l)
    }
}

pub(super) fn space_to_batch(l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let g = ok(BatchBlocks::new(l.node, x.shape.len()))?;
    let m = g.block.len();
    let mut pads = vec![(0, 0); x.shape.len()];
    let mut shape = x.shape.clone();
    for (i, &(begin, end)) in g.pads.iter().enumerate() {
        pads[i + 1] = (begin as i64, end as i64);
        shape[i + 1] += begin + end;
    }
    let from = if g.pads.iter().all(|p| *p == (0, 0)) {
        Operand::Input(0)
    } else {
        let bytes = storage::device_bytes(x.dtype, shape.iter().product());
        let scratch = l.scratch(bytes);
        let padding = Padding {
            mode: Mode::Constant,
            pads: &pads,
            fill: [0, 0],
        };
        padded(l, 0, padding, scratch)?;
        scratch.into()
    };
    // [n, (s/b, b).., rest] becomes [b.., n, s/b.., rest].
    let mut dims = vec![shape[0]];
    for (i, &b) in g.block.iter().enumerate() {
        dims.extend([shape[i + 1] / b.max(1), b]);
    }
    dims.push(shape[m + 1..].iter().product());
    let mut perm: Vec<usize> = (0..m).map(|i| 2 * i + 2).collect();
    perm.push(0);
    perm.extend((0..m).map(|i| 2 * i + 1));
    perm.push(2 * m + 1);
    permuted(&dims, &perm).emit(l, x.dtype, from, Target::Output(0))
}

pub(super) fn batch_to_space(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let g = ok(BatchBlocks::new(l.node, x.shape.len()))?;
    let m = g.block.len();
    // [b.., n, s.., rest] becomes [n, (s, b).., rest], then is cropped.
    let mut dims = g.block.clone();
    dims.push(y.shape[0]);
    dims.extend(&x.shape[1..=m]);
    dims.push(x.shape[m + 1..].iter().product());
    let mut perm = vec![m];
    for i in 0..m {
        perm.extend([m + 1 + i, i]);
    }
    perm.push(2 * m + 1);
    let walk = permuted(&dims, &perm);
    if g.pads.iter().all(|p| *p == (0, 0)) {
        return walk.single(l);
    }
    let scratch = l.scratch(storage::device_bytes(x.dtype, x.elements()));
    walk.emit(l, x.dtype, Operand::Input(0), scratch)?;
    let mut full = y.shape.clone();
    for (i, &(begin, end)) in g.pads.iter().enumerate() {
        full[i + 1] += begin + end;
    }
    let own = strides(&full);
    let base = g.pads.iter().zip(&own[1..]).map(|(p, s)| p.0 * s).sum();
    Walk::dense(y.shape.clone(), signed(&own), base).emit(
        l,
        x.dtype,
        scratch.into(),
        Target::Output(0),
    )
}
