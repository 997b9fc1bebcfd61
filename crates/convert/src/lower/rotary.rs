//! Rotary embedding, in the operators of every operator set.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Angles, RotaryEmbedding, Slice};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

pub fn rotary(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<RotaryEmbedding>() else {
        return Ok(None);
    };
    let y = turned(b, op, [node.input(0)?, node.input(1)?, node.input(2)?])?;
    Ok(Some(vec![y]))
}

/// `x` turned by angles with these cosines and sines, which broadcast to it but for the last dimension.
pub fn turned(
    b: &mut GraphBuilder,
    op: &RotaryEmbedding,
    [x, cosines, sines]: [ValueId; 3],
) -> Result<ValueId> {
    let width = |b: &GraphBuilder, v| b.known_shape(v).and_then(|s| s.0.last()?.known());
    let angles = width(b, cosines).or_else(|| width(b, sines));
    let turning = angles.map(|n| op.turned(n)).or_else(|| width(b, x));
    let turning = turning.filter(|_| angles.is_some() || !op.partial);
    let turning = turning.ok_or_else(|| unsupported("angles of an unknown number"))?;
    let pairs = (turning / 2) as i64;
    let rest = match op.partial && width(b, x) != Some(turning) {
        true => Some(b.slice(x, -1, turning as i64, i64::MAX)?),
        false => None,
    };
    let (a, z) = match op.interleaved {
        false => (b.slice(x, -1, 0, pairs)?, b.slice(x, -1, pairs, 2 * pairs)?),
        true => (
            every_other(b, x, 0, turning)?,
            every_other(b, x, 1, turning)?,
        ),
    };
    let angles = |b: &mut GraphBuilder, v| -> Result<[ValueId; 2]> {
        match (op.angles, op.interleaved) {
            (Angles::OfPairs, _) => Ok([v, v]),
            (Angles::OfNumbers, false) => {
                Ok([b.slice(v, -1, 0, pairs)?, b.slice(v, -1, pairs, 2 * pairs)?])
            }
            (Angles::OfNumbers, true) => Ok([
                every_other(b, v, 0, turning)?,
                every_other(b, v, 1, turning)?,
            ]),
        }
    };
    let ([c, cz], [s, sz]) = (angles(b, cosines)?, angles(b, sines)?);
    let (ac, zs) = (b.mul(a, c)?, b.mul(z, s)?);
    let first = b.sub(ac, zs)?;
    let (zc, a_s) = (b.mul(z, cz)?, b.mul(a, sz)?);
    let second = b.add(zc, a_s)?;
    let whole = match op.interleaved {
        false => b.concat(&[first, second], -1)?,
        true => {
            let rank = b.rank(x)?;
            let (first, second) = (b.unsqueeze(first, &[-1])?, b.unsqueeze(second, &[-1])?);
            let beside = b.concat(&[first, second], -1)?;
            let mut shape = vec![0; rank];
            if let Some(last) = shape.last_mut() {
                *last = turning as i64;
            }
            b.reshape(beside, &shape)?
        }
    };
    match rest {
        Some(rest) => b.concat(&[whole, rest], -1),
        None => Ok(whole),
    }
}

/// Every second number of the last dimension below `end`.
fn every_other(b: &mut GraphBuilder, x: ValueId, start: i64, end: usize) -> Result<ValueId> {
    let bounds = [start, end as i64, -1, 2];
    let mut inputs = vec![x];
    for bound in bounds {
        inputs.push(b.i64s(&[bound])?);
    }
    b.op(Slice, &inputs)
}
