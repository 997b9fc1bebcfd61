//! Operators that move elements: most are one walk over two sets of strides.

mod blocks;
pub(crate) mod copy;
mod generate;
mod join;
mod pad;

use kilim_core::DType;
use kilim_core::ops::{
    BatchToSpace, CenterCropPad, Concat, ConstantOfShape, DepthToSpace, Expand, EyeLike, Pad,
    Slice, SpaceToBatch, SpaceToDepth, Split, Tile, Transpose, Trilu,
};

use crate::device::storage;
use crate::kernels::Kernels;
use crate::lowering::elements::{carrier, carrier4};
use crate::lowering::walk::{both, broadcast_steps, collapse, signed, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::movement::walk;
use crate::shaders::{Moved, Operand, Target};

pub(crate) use generate::filled;
pub(crate) use pad::{Padding, padded};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Transpose>(transpose);
    kernels.add::<Slice>(slice);
    kernels.add::<Expand>(|_, l| expand(l));
    kernels.add::<Tile>(tile);
    kernels.add::<Concat>(join::concat);
    kernels.add::<Split>(join::split);
    kernels.add::<Pad>(pad::pad);
    kernels.add::<CenterCropPad>(pad::center_crop_pad);
    kernels.add::<DepthToSpace>(blocks::depth_to_space);
    kernels.add::<SpaceToDepth>(blocks::space_to_depth);
    kernels.add::<SpaceToBatch>(|_, l| blocks::space_to_batch(l));
    kernels.add::<BatchToSpace>(|_, l| blocks::batch_to_space(l));
    kernels.add::<Trilu>(generate::trilu);
    kernels.add::<ConstantOfShape>(|op, l| generate::fill(&op.value, l));
    kernels.add::<EyeLike>(generate::eye);
}

/// A walk over `dims` with the strides and the start of source and destination.
pub(crate) struct Walk {
    pub dims: Vec<usize>,
    pub x: Vec<i64>,
    pub x_base: usize,
    pub y: Vec<i64>,
    pub y_base: usize,
}

impl Walk {
    /// A walk in the order of a dense destination.
    pub fn dense(dims: Vec<usize>, x: Vec<i64>, x_base: usize) -> Walk {
        let y = signed(&strides(&dims));
        Walk {
            dims,
            x,
            x_base,
            y,
            y_base: 0,
        }
    }

    /// Adds the dispatch that moves elements of `dtype`.
    pub fn emit(self, l: &mut Lowering, dtype: DType, from: Operand, to: Target) -> Lowers {
        let (mut dims, mut walks) = collapse(&self.dims, &[self.x, self.y])?;
        let (mut x_base, mut y_base) = (self.x_base, self.y_base);
        let last = dims.len() - 1;
        let quads = carrier(dtype)? == Moved::U32
            && dims[last].is_multiple_of(4)
            && walks
                .iter()
                .all(|w| w[last] == 1 && w[..last].iter().all(|s| s % 4 == 0))
            && x_base.is_multiple_of(4)
            && y_base.is_multiple_of(4);
        if quads {
            dims[last] /= 4;
            x_base /= 4;
            y_base /= 4;
            for w in &mut walks {
                w[..last].iter_mut().for_each(|s| *s /= 4);
            }
        }
        let count = dims.iter().product();
        let (t, _) = carrier4(dtype, quads)?;
        let launch = walk::Launch {
            t,
            a: from,
            b: to,
            params: walk::Params {
                walk: both(&dims, &walks[0], &walks[1]),
                count,
                a_base: x_base as i64,
                b_base: y_base as i64,
            },
        };
        l.linear(launch, count);
        Ok(())
    }

    fn single(self, l: &mut Lowering) -> Lowers {
        let dtype = l.output(0)?.dtype;
        self.emit(l, dtype, Operand::Input(0), Target::Output(0))
    }
}

/// `to[i] = dims[perm[i]]`, walked in the order of the result.
pub(crate) fn permuted(dims: &[usize], perm: &[usize]) -> Walk {
    let own = strides(dims);
    Walk::dense(
        perm.iter().map(|&p| dims[p]).collect(),
        perm.iter().map(|&p| own[p] as i64).collect(),
        0,
    )
}

fn transpose(op: &Transpose, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let perm = ok(op.resolve(x.shape.len()))?;
    permuted(&x.shape, &perm).single(l)
}

fn slice(op: &Slice, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axes = ok(op.resolve(&x.shape, l.node))?;
    let own = strides(&x.shape);
    let base = axes.iter().zip(&own).map(|(a, s)| a.start * s).sum();
    Walk::dense(
        axes.iter().map(|a| a.length).collect(),
        axes.iter()
            .zip(&own)
            .map(|(a, &s)| a.step.saturating_mul(s as i64))
            .collect(),
        base,
    )
    .single(l)
}

fn expand(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let walk = broadcast_steps(&x.shape, &y.shape)?;
    Walk::dense(y.shape.clone(), walk, 0).single(l)
}

fn tile(op: &Tile, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let repeats = ok(op.repeats(x.shape.len(), l.node))?;
    let own = strides(&x.shape);
    let (mut dims, mut walk) = (Vec::new(), Vec::new());
    for ((&d, &r), &s) in x.shape.iter().zip(&repeats).zip(&own) {
        dims.extend([r, d]);
        walk.extend([0, s as i64]);
    }
    Walk::dense(dims, walk, 0).single(l)
}

/// An element as the device holds it.
fn words_of(value: &kilim_core::Tensor) -> Lowers<[u32; 2]> {
    let bytes = ok(storage::to_device(value))?;
    let word = |i: usize| {
        let chunk = bytes.get(i * 4..i * 4 + 4)?;
        Some(u32::from_le_bytes(chunk.try_into().ok()?))
    };
    match word(0) {
        Some(first) => Ok([first, word(1).unwrap_or(0)]),
        None => refuse("a value has no element"),
    }
}
