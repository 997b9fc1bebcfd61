//! Operators that move elements, make tensors from shapes, or sample at other positions.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AspectPolicy, BatchToSpace, Cast, Concat, ConstantOfShape, CoordinateMode, DepthToSpace,
    Expand, NearestMode, Pad, PadMode, Range, Reshape, Resize, ResizeMode, ShapeOf, SpaceToBatch,
    SpaceToDepth, Split, Squeeze, Tile, Transpose, Unary, UnaryKind, Unsqueeze,
};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

/// A vector of integers in input `i`: an `int64` constant where it is known.
fn vector(imp: &mut Import, op: &Op, i: usize) -> Result<ValueId> {
    imp.as_vector(op, i)
}

pub fn reshape(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let shape = if op.tensor(1).is_some() {
        vector(imp, op, 1)?
    } else {
        let shape: Vec<i64> = op.ints(0)?.into_iter().map(i64::from).collect();
        // Early converters wrote a scalar's shape as [0].
        let shape = if shape == [0] { Vec::new() } else { shape };
        imp.i64s(&shape)?
    };
    imp.emit(op, Reshape { allow_zero: true }, &[Some(x), Some(shape)])
}

pub fn squeeze(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axes: Vec<i64> = op.ints(0)?.into_iter().map(i64::from).collect();
    if axes.is_empty() {
        return imp.emit(op, Squeeze, &[Some(x)]);
    }
    let axes = imp.i64s(&axes)?;
    imp.emit(op, Squeeze, &[Some(x), Some(axes)])
}

pub fn expand_dims(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axes = vector(imp, op, 1)?;
    imp.emit(op, Unsqueeze, &[Some(x), Some(axes)])
}

pub fn transpose(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let perm = imp.constant_ints(op, 1)?;
    let rank = perm.len();
    let perm: Vec<usize> = perm
        .iter()
        .map(|&p| usize::try_from(p).unwrap_or(usize::MAX))
        .collect();
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<_>>() || rank != imp.input_rank(op, 0)? {
        return Err(invalid(format!("the permutation {perm:?} is none")));
    }
    if rank == 0 {
        return imp.emit(op, Unary(UnaryKind::Identity), &[Some(x)]);
    }
    imp.emit(op, Transpose { perm }, &[Some(x)])
}

pub fn concatenation(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = (0..op.input_count())
        .map(|i| imp.input(op, i).map(Some))
        .collect::<Result<Vec<_>>>()?;
    let axis = op.int(0)?.into();
    imp.emit_activated(op, Concat { axis }, &inputs, op.activation(1)?)
}

/// Concatenation along a new dimension.
pub fn pack(imp: &mut Import, op: &Op) -> Result<()> {
    let axis = i64::from(op.int(1)?);
    let axes = imp.i64s(&[axis])?;
    if op.input_count() == 1 {
        let x = imp.input(op, 0)?;
        return imp.emit(op, Unsqueeze, &[Some(x), Some(axes)]);
    }
    let mut parts = Vec::with_capacity(op.input_count());
    for i in 0..op.input_count() {
        let x = imp.input(op, i)?;
        parts.push(Some(imp.step(Unsqueeze, &[Some(x), Some(axes)])?));
    }
    imp.emit(op, Concat { axis }, &parts)
}

pub fn unpack(imp: &mut Import, op: &Op) -> Result<()> {
    let axis = i64::from(op.int(1)?);
    let x = imp.input(op, 0)?;
    let axes = imp.i64s(&[axis])?;
    let count = op.output_count();
    let sizes = imp.i64s(&vec![1; count])?;
    let parts = imp.apply(Split { axis }, &[Some(x), Some(sizes)], count)?;
    for (i, &part) in parts.iter().enumerate() {
        imp.emit_output(op, i, Squeeze, &[Some(part), Some(axes)])?;
    }
    Ok(())
}

fn split_into(
    imp: &mut Import,
    op: &Op,
    data: usize,
    axis: i64,
    sizes: Option<ValueId>,
) -> Result<()> {
    let mut inputs = vec![Some(imp.input(op, data)?)];
    if sizes.is_some() {
        inputs.push(sizes);
    }
    imp.emit_all(op, Split { axis }, &inputs)
}

fn one(ints: &[i64]) -> Result<i64> {
    ints.first()
        .copied()
        .ok_or_else(|| invalid("the axis is empty"))
}

/// Inputs: axis, data.
pub fn split(imp: &mut Import, op: &Op) -> Result<()> {
    let axis = one(&imp.constant_ints(op, 0)?)?;
    split_into(imp, op, 1, axis, None)
}

/// Inputs: data, sizes (one may be -1), axis.
pub fn split_v(imp: &mut Import, op: &Op) -> Result<()> {
    let axis = one(&imp.constant_ints(op, 2)?)?;
    let mut sizes = imp.constant_ints(op, 1)?;
    if let Some(open) = sizes.iter().position(|&s| s == -1) {
        let info = imp.info(op, 0)?;
        let at = kilim_core::ops::normalize_axis(axis, info.shape.len())?;
        if info.dynamic[at] {
            return Err(unsupported("a computed size of a dynamic dimension"));
        }
        let others = sizes.iter().fold(1i64, |n, &s| n.saturating_add(s));
        sizes[open] = (info.shape[at] as i64).saturating_sub(others);
    }
    let sizes = imp.i64s(&sizes)?;
    split_into(imp, op, 0, axis, Some(sizes))
}

/// TFLite's paddings are pairs, one for each axis.
pub fn pads(imp: &mut Import, op: &Op) -> Result<ValueId> {
    if imp.constant_input(op, 1)?.is_some() {
        let pairs = imp.constant_ints(op, 1)?;
        let begins = pairs.iter().step_by(2);
        let ends = pairs.iter().skip(1).step_by(2);
        let pads: Vec<i64> = begins.chain(ends).copied().collect();
        return imp.i64s(&pads);
    }
    let pairs = imp.permuted(op, 1, &[1, 0])?;
    let flat = imp.i64s(&[-1])?;
    let reshape = Reshape { allow_zero: false };
    let pads = imp.step(reshape, &[Some(pairs), Some(flat)])?;
    imp.step(Cast::new(DType::I64), &[Some(pads)])
}

pub fn pad(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let pads = pads(imp, op)?;
    let mut inputs = vec![Some(x), Some(pads)];
    if let Some(value) = imp.optional(op, 2)? {
        inputs.push(Some(value));
    }
    let mode = PadMode::Constant;
    imp.emit(op, Pad { mode }, &inputs)
}

pub fn mirror_pad(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let pads = pads(imp, op)?;
    let mode = match op.enumeration(0)? {
        0 => PadMode::Reflect,
        _ => PadMode::Symmetric,
    };
    imp.emit(op, Pad { mode }, &[Some(x), Some(pads)])
}

pub fn tile(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let repeats = vector(imp, op, 1)?;
    imp.emit(op, Tile, &[Some(x), Some(repeats)])
}

pub fn broadcast_to(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let shape = vector(imp, op, 1)?;
    imp.emit(op, Expand, &[Some(x), Some(shape)])
}

/// Inputs: shape, value.
pub fn fill(imp: &mut Import, op: &Op) -> Result<()> {
    let shape = vector(imp, op, 0)?;
    let value = imp.input(op, 1)?;
    imp.emit(op, Expand, &[Some(value), Some(shape)])
}

pub fn range(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [
        imp.optional(op, 0)?,
        imp.optional(op, 1)?,
        imp.optional(op, 2)?,
    ];
    imp.emit(op, Range, &inputs)
}

/// The shape, in `int32` unless the file says otherwise.
pub fn shape(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let operator = ShapeOf {
        start: 0,
        end: None,
    };
    let to = imp.output_info(op, 0)?.dtype()?;
    if to == DType::I64 {
        return imp.emit(op, operator, &[Some(x)]);
    }
    let wide = imp.step(operator, &[Some(x)])?;
    imp.emit(op, Cast::new(to), &[Some(wide)])
}

pub fn rank(imp: &mut Import, op: &Op) -> Result<()> {
    let rank =
        i32::try_from(imp.input_rank(op, 0)?).map_err(|_| invalid("the rank is too high"))?;
    imp.set_constant(op, Tensor::scalar(rank)?);
    Ok(())
}

pub fn zeros_like(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let shape = ShapeOf {
        start: 0,
        end: None,
    };
    let shape = imp.step(shape, &[Some(x)])?;
    let value = Tensor::zeros(imp.output_info(op, 0)?.dtype()?, &[1])?;
    imp.emit(op, ConstantOfShape { value }, &[Some(shape)])
}

pub fn depth_to_space(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let operator = DepthToSpace {
        block: op.positive(0, 1)?,
        crd: false,
        channels_last: true,
    };
    imp.emit(op, operator, &[Some(x)])
}

pub fn space_to_depth(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let operator = SpaceToDepth {
        block: op.positive(0, 1)?,
        channels_last: true,
    };
    imp.emit(op, operator, &[Some(x)])
}

pub fn space_to_batch(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [
        imp.optional(op, 0)?,
        imp.optional(op, 1)?,
        imp.optional(op, 2)?,
    ];
    imp.emit(op, SpaceToBatch, &inputs)
}

pub fn batch_to_space(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [
        imp.optional(op, 0)?,
        imp.optional(op, 1)?,
        imp.optional(op, 2)?,
    ];
    imp.emit(op, BatchToSpace, &inputs)
}

fn resize(imp: &mut Import, op: &Op, mode: ResizeMode, coordinates: CoordinateMode) -> Result<()> {
    let x = imp.input(op, 0)?;
    let sizes = vector(imp, op, 1)?;
    let operator = Resize {
        mode,
        coordinates,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some(vec![1, 2]),
        policy: AspectPolicy::Stretch,
    };
    imp.emit(op, operator, &[Some(x), None, None, Some(sizes)])
}

pub fn resize_bilinear(imp: &mut Import, op: &Op) -> Result<()> {
    let coordinates = match (op.flag(2)?, op.flag(3)?) {
        (true, _) => CoordinateMode::AlignCorners,
        (_, true) => CoordinateMode::HalfPixel,
        _ => CoordinateMode::Asymmetric,
    };
    resize(imp, op, ResizeMode::Linear, coordinates)
}

/// Maps RESIZE_NEAREST_NEIGHBOR: with corners aligned the position is rounded, half up; otherwise it is cut
/// off.
pub fn resize_nearest(imp: &mut Import, op: &Op) -> Result<()> {
    let (coordinates, nearest) = match (op.flag(0)?, op.flag(1)?) {
        (true, _) => (CoordinateMode::AlignCorners, NearestMode::RoundPreferCeil),
        (_, true) => (CoordinateMode::TfHalfPixelForNearest, NearestMode::Floor),
        _ => (CoordinateMode::Asymmetric, NearestMode::Floor),
    };
    resize(imp, op, ResizeMode::Nearest(nearest), coordinates)
}
