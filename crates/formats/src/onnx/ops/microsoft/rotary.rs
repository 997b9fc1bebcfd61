//! Rotary embedding whose angles are looked up by positions.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::ReduceKind;
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::ops::rotary::{Part, looked_up, rotated};
use crate::onnx::proto::invalid;

/// Angles that a head may have: a file that names more is wrong.
const MOST_ANGLES: usize = 1 << 20;

pub static OPERATORS: Family = OpTable(&[
    ("MRotaryEmbedding", of_three_positions),
    ("RotaryEmbedding", rotary_embedding),
]);

/// Inputs: x `[batch, sequence, heads * size]` or `[batch, heads, sequence, size]`, positions
/// `[batch, sequence]` or a first position `[1]`, cosines, sines.
fn rotary_embedding(b: &mut NodeBuilder) -> Result<()> {
    let (x, mut positions) = (b.input(0)?, b.input(1)?);
    let tables = [b.input(2)?, b.input(3)?];
    if b.rank(positions)? < 2 {
        let axis = if b.rank(x)? == 3 { 1 } else { 2 };
        let length = b.dim(x, axis)?;
        let steps = b.iota(length)?;
        let steps = b.unsqueeze(steps, &[0])?;
        let positions_64 = b.cast(positions, DType::I64)?;
        positions = b.add(steps, positions_64)?;
    }
    let angles = looked_up(b, tables, positions)?;
    turned(b, x, angles)
}

/// Inputs: x as RotaryEmbedding has it, positions `[3, batch, sequence]` in time, height and width, cosines, sines. Of the angles of a
/// head, each is that of one of the three positions.
fn of_three_positions(b: &mut NodeBuilder) -> Result<()> {
    let (x, positions) = (b.input(0)?, b.input(1)?);
    let sections = b.ints("mrope_section")?.unwrap_or_default();
    let counts: Option<Vec<usize>> = sections.iter().map(|&n| usize::try_from(n).ok()).collect();
    let Some(&[time, height, width]) = counts.as_deref() else {
        return Err(invalid("`mrope_section` must be three numbers of angles"));
    };
    let all = time.checked_add(height).and_then(|n| n.checked_add(width));
    let all = all.filter(|n| *n <= MOST_ANGLES);
    let all = all.ok_or_else(|| invalid("`mrope_section` has too many angles"))?;
    // The position of each angle.
    let of_angle = |i: usize| match b.int_or("mrope_layout", 0) {
        Ok(0) => Ok(usize::from(i >= time) + usize::from(i >= time + height)),
        Ok(1) if i % 3 == 1 && i < 3 * height => Ok(1),
        Ok(1) if i % 3 == 2 && i < 3 * width => Ok(2),
        Ok(1) => Ok(0),
        Ok(other) => Err(unknown("mrope_layout", &other.to_string())),
        Err(error) => Err(error),
    };
    let of_angle = (0..all).map(of_angle).collect::<Result<Vec<_>>>()?;
    let tables = [b.input(2)?, b.input(3)?];
    let mut angles = looked_up(b, tables, positions)?;
    let mut mask = vec![0.0f32; 3 * all];
    for (i, of) in of_angle.into_iter().enumerate() {
        mask[of * all + i] = 1.0;
    }
    let mask = b.tensor_value(Tensor::from_slice(&[3, 1, 1, all], &mask)?);
    for angle in &mut angles {
        let mask = b.cast_like(mask, *angle)?;
        let own = b.mul(*angle, mask)?;
        *angle = b.reduce(ReduceKind::Sum, own, &[0], false)?;
    }
    turned(b, x, angles)
}

/// Turns the heads of x, `[batch, sequence, heads * size]` or `[batch, heads, sequence, size]`, by angles
/// `[batch, sequence, pairs]`.
fn turned(b: &mut NodeBuilder, x: ValueId, angles: [ValueId; 2]) -> Result<()> {
    let packed = b.rank(x)? == 3;
    let heads = b.count("num_heads", Some(0))?;
    b.fixed("is_packed_batching", 0)?;
    if b.float_or("scale", 1.0)? != 1.0 {
        return Err(unsupported("scaled positions"));
    }
    let interleaved = b.flag("interleaved")?;
    let part = Part::of(b)?;
    if !packed {
        let y = rotated(b, x, angles, 1, part, interleaved)?;
        return b.bind(0, y);
    }
    let split = match heads {
        0 => {
            // The tables tell how long a head is.
            let half = b.dim(angles[0], -1)?;
            let (rest, two) = (b.i64s(&[0, 0, -1])?, b.i64s(&[2])?);
            let size = b.mul(half, two)?;
            let shape = b.vector(&[rest, size])?;
            b.reshape_to(x, shape)?
        }
        heads => b.reshape(x, &[0, 0, heads as i64, -1])?,
    };
    let y = rotated(b, split, angles, 2, part, interleaved)?;
    let y = b.reshape(y, &[0, 0, -1])?;
    b.bind(0, y)
}
