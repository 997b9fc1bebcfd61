//! Rotary embedding whose angles are looked up by positions.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::rotary::{Part, looked_up, rotated};

pub static OPERATORS: Family = OpTable(&[("RotaryEmbedding", rotary_embedding)]);

/// Inputs: x `[batch, sequence, heads * size]` or `[batch, heads, sequence, size]`, positions
/// `[batch, sequence]` or a first position `[1]`, cosines, sines.
fn rotary_embedding(b: &mut NodeBuilder) -> Result<()> {
    let (x, mut positions) = (b.input(0)?, b.input(1)?);
    let tables = [b.input(2)?, b.input(3)?];
    let packed = b.rank(x)? == 3;
    let heads = b.count("num_heads", Some(0))?;
    b.fixed("is_packed_batching", 0)?;
    if b.float_or("scale", 1.0)? != 1.0 {
        return Err(unsupported("scaled positions"));
    }
    if b.rank(positions)? < 2 {
        let length = b.dim(x, if packed { 1 } else { 2 })?;
        let steps = b.iota(length)?;
        let steps = b.unsqueeze(steps, &[0])?;
        let positions_64 = b.cast(positions, DType::I64)?;
        positions = b.add(steps, positions_64)?;
    }
    let angles = looked_up(b, tables, positions)?;
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
