//! Pooling, padding and resizing: bytes in, bytes of the same scale out.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{Pad, PadMode, QuantizedResize, SpaceToBatch};

use super::super::{conv, movement};
use super::table::emit_activated;
use super::{Import, Op, Quanta, invalid, same};

fn one_scale(imp: &Import, op: &Op) -> Result<Quanta> {
    let y = Quanta::output(imp, op)?;
    same(&Quanta::input(imp, op, 0)?, &y)?;
    Ok(y)
}

pub fn average_pool(imp: &mut Import, op: &Op) -> Result<()> {
    one_scale(imp, op)?;
    let (pool, activation) = conv::average(op)?;
    let x = imp.input(op, 0)?;
    emit_activated(imp, op, pool, &[Some(x)], activation)
}

pub fn max_pool(imp: &mut Import, op: &Op) -> Result<()> {
    one_scale(imp, op)?;
    let (pool, activation) = conv::maximum(op)?;
    let x = imp.input(op, 0)?;
    emit_activated(imp, op, pool, &[Some(x)], activation)
}

/// Filled up with zeros, that is, zero points.
pub fn pad(imp: &mut Import, op: &Op) -> Result<()> {
    let zero = one_scale(imp, op)?.zero()?;
    let (x, pads) = (imp.input(op, 0)?, movement::pads(imp, op)?);
    let zero = imp.node_constant("zero_point", zero);
    let mode = PadMode::Constant;
    imp.emit(op, Pad { mode }, &[Some(x), Some(pads), Some(zero)])
}

pub fn space_to_batch(imp: &mut Import, op: &Op) -> Result<()> {
    let zero = one_scale(imp, op)?.zero()?;
    let pairs = imp.constant_ints(op, 2)?;
    if imp.input_rank(op, 0)? < pairs.len() / 2 + 1 {
        return Err(invalid("more paddings than dimensions"));
    }
    let channels = imp.input_rank(op, 0)? - 1 - pairs.len() / 2;
    // The batch and the channels behind the blocks are not padded.
    let mut pads = vec![0];
    pads.extend(pairs.iter().step_by(2));
    pads.resize(pads.len() + channels + 1, 0);
    pads.extend(pairs.iter().skip(1).step_by(2));
    pads.resize(pads.len() + channels, 0);
    let (x, pads) = (imp.input(op, 0)?, imp.i64s(&pads)?);
    let zero = imp.node_constant("zero_point", zero);
    let mode = PadMode::Constant;
    let padded = imp.step(Pad { mode }, &[Some(x), Some(pads), Some(zero)])?;
    let none = kilim_core::tensor::Tensor::from_slice(
        &[pairs.len() / 2, 2],
        &vec![0i64; pairs.len() / 2 * 2],
    )?;
    let none = imp.node_constant("paddings", none);
    let blocks = imp.optional(op, 1)?;
    imp.emit(op, SpaceToBatch, &[Some(padded), blocks, Some(none)])
}

pub fn resize_bilinear(imp: &mut Import, op: &Op) -> Result<()> {
    one_scale(imp, op)?;
    let operator = QuantizedResize {
        align_corners: op.flag(2)?,
        half_pixel: op.flag(3)?,
    };
    if operator.align_corners && operator.half_pixel {
        return Err(unsupported("aligned corners and half pixels together"));
    }
    let (x, sizes) = (imp.input(op, 0)?, imp.as_vector(op, 1)?);
    imp.emit(op, operator, &[Some(x), Some(sizes)])
}
