//! Rotary embedding.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Angles, Gather, RotaryEmbedding};

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
    let part = Part::of(b)?;
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

/// Which numbers of a head turn.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// All.
    Whole,
    /// The first ones, so many.
    First(usize),
    /// The first ones, two for each angle.
    Angles,
}

impl Part {
    /// What the attribute `rotary_embedding_dim` says.
    pub fn of(b: &mut NodeBuilder) -> Result<Part> {
        match b.count("rotary_embedding_dim", Some(0))? {
            0 => Ok(Part::Whole),
            n if n % 2 == 0 => Ok(Part::First(n)),
            _ => Err(invalid("the attribute `rotary_embedding_dim` is odd")),
        }
    }
}

/// Turns pairs of the last dimension of `x` by angles `[batch, sequence, pairs]`. `heads_axis` is
/// where `x` has its heads.
pub fn rotated(
    b: &mut NodeBuilder,
    x: ValueId,
    angles: [ValueId; 2],
    heads_axis: i64,
    part: Part,
    interleaved: bool,
) -> Result<ValueId> {
    let mut inputs = [x, x, x];
    for (input, mut angle) in inputs[1..].iter_mut().zip(angles) {
        if let Part::First(n) = part {
            // Another number of angles is an error.
            angle = b.reshape(angle, &[0, 0, n as i64 / 2])?;
        }
        *input = b.unsqueeze(angle, &[heads_axis])?;
    }
    let op = RotaryEmbedding {
        interleaved,
        angles: Angles::OfPairs,
        partial: !matches!(part, Part::Whole),
    };
    b.op(op, &inputs)
}
