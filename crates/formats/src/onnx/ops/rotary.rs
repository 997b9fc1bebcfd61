//! Rotary embedding, written out.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Gather, Slice};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("RotaryEmbedding", rotary_embedding)]);

fn rotary_embedding(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let mut angles = [b.input(1)?, b.input(2)?];
    if let Some(positions) = b.optional(3)? {
        angles = looked_up(b, angles, positions)?;
    }
    let interleaved = b.flag("interleaved")?;
    let part = part(b)?;
    // Exporters write it of data that has its heads apart, too.
    let heads = b.count("num_heads", Some(0))?;
    let y = if b.rank(x)? == 3 {
        if heads == 0 {
            return Err(invalid("the attribute `num_heads` is missing"));
        }
        let split = b.reshape(x, &[0, 0, heads as i64, -1])?;
        let y = rotated(b, split, angles, 2, part, interleaved)?;
        b.reshape(y, &[0, 0, -1])?
    } else {
        rotated(b, x, angles, 1, part, interleaved)?
    };
    b.bind(0, y)
}

/// Cosines and sines `[batch, sequence, pairs]` of positions `[batch, sequence]`, of tables `[positions, pairs]`.
pub fn looked_up(
    b: &mut NodeBuilder,
    tables: [ValueId; 2],
    positions: ValueId,
) -> Result<[ValueId; 2]> {
    let gather = Gather { axis: 0 };
    Ok([
        b.op(gather.clone(), &[tables[0], positions])?,
        b.op(gather, &[tables[1], positions])?,
    ])
}

/// How many numbers of a head turn, `[1]`; `None` where all do.
pub fn part(b: &mut NodeBuilder) -> Result<Option<ValueId>> {
    match b.count("rotary_embedding_dim", Some(0))? {
        0 => Ok(None),
        part => b.i64s(&[part as i64]).map(Some),
    }
}

/// Turns pairs of the last dimension of `x` by angles `[batch, sequence, pairs]`. `heads_axis` is
/// where `x` has its heads; of the last dimension the first `part` (`[1]`) turn, or all.
pub fn rotated(
    b: &mut NodeBuilder,
    x: ValueId,
    angles: [ValueId; 2],
    heads_axis: i64,
    part: Option<ValueId>,
    interleaved: bool,
) -> Result<ValueId> {
    let [cos, sin] = angles;
    let cos = b.unsqueeze(cos, &[heads_axis])?;
    let sin = b.unsqueeze(sin, &[heads_axis])?;
    let (turned, kept) = match part {
        None => (x, None),
        Some(part) => {
            let (first, last, axis) = (b.i64s(&[0])?, b.i64s(&[i64::MAX])?, b.i64s(&[-1])?);
            let turned = b.op(Slice, &[x, first, part, axis])?;
            (turned, Some(b.op(Slice, &[x, part, last, axis])?))
        }
    };
    let [first, second] = if interleaved {
        let every_second = |b: &mut NodeBuilder, start: i64| {
            let inputs = [
                turned,
                b.i64s(&[start])?,
                b.i64s(&[i64::MAX])?,
                b.i64s(&[-1])?,
                b.i64s(&[2])?,
            ];
            b.op(Slice, &inputs)
        };
        [every_second(b, 0)?, every_second(b, 1)?]
    } else {
        b.halves(turned, -1)?
    };
    let (a, c) = (b.mul(cos, first)?, b.mul(sin, second)?);
    let real = b.sub(a, c)?;
    let (a, c) = (b.mul(sin, first)?, b.mul(cos, second)?);
    let imaginary = b.add(a, c)?;
    let joined = if interleaved {
        let real = b.unsqueeze(real, &[-1])?;
        let imaginary = b.unsqueeze(imaginary, &[-1])?;
        let pairs = b.concat(&[real, imaginary], -1)?;
        b.reshape(pairs, &[0, 0, 0, -1])?
    } else {
        b.concat(&[real, imaginary], -1)?
    };
    match kept {
        Some(kept) => b.concat(&[joined, kept], -1),
        None => Ok(joined),
    }
}
