//! DFT.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, If, Pad, PadMode, Slice, normalize_axis};

use super::transform::{Length, Transform};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

/// The attributes of DFT, and its length where it is given.
#[derive(Clone, Copy)]
struct Dft {
    length: Option<Length>,
    inverse: bool,
    onesided: bool,
}

pub fn dft(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let rank = b.rank(x)?;
    let length = match b.optional(1)? {
        Some(length) => Some(given_length(b, length)?),
        None => None,
    };
    let dft = Dft {
        length,
        inverse: b.flag("inverse")?,
        onesided: b.flag("onesided")?,
    };
    let given = match b.version() {
        ..20 => None,
        _ => b.optional(2)?,
    };
    let known = match given {
        None if b.version() < 20 => Some(b.int_or("axis", 1)?),
        None => Some(-2),
        Some(v) => match b.constant(v) {
            Some(axis) => axis.to_i64s()?.first().copied(),
            None => None,
        },
    };
    let y = match (known, given) {
        (Some(axis), _) => {
            let axis = normalize_axis(axis, rank)?;
            dft.along(b, x, axis)?
        }
        (None, Some(axis)) if rank >= 2 => {
            let axis = b.cast(axis, DType::I64)?;
            let axis = b.reshape(axis, &[])?;
            // Nothing can be transformed along an axis that is too short.
            let mut axes = Vec::new();
            for a in 0..rank - 1 {
                if !matches!(dft.length_along(b, x, a)?, Length::Known(0)) {
                    axes.push(a);
                }
            }
            dft.along_any(b, x, axis, &axes)?
        }
        _ => return Err(invalid("the axis has no elements")),
    };
    b.bind(0, y)
}

impl Dft {
    /// Along the axis that the scalar `axis` names, one of `axes`: a branch for each, since the shape
    /// of the result depends on it.
    fn along_any(
        self,
        b: &mut NodeBuilder,
        x: ValueId,
        axis: ValueId,
        axes: &[usize],
    ) -> Result<ValueId> {
        let (&first, rest) = match axes {
            [] => return Err(unsupported("a transform of no values")),
            [only] => return self.along(b, x, *only),
            [first, rest @ ..] => (first, rest),
        };
        let rank = b.rank(x)? as i64;
        let (front, back) = (b.i64(first as i64)?, b.i64(first as i64 - rank)?);
        let front = b.binary(BinaryKind::Equal, axis, front)?;
        let back = b.binary(BinaryKind::Equal, axis, back)?;
        let here = b.binary(BinaryKind::Or, front, back)?;
        let mut inputs = vec![x, axis];
        if let Some(Length::Computed(length)) = self.length {
            inputs.push(length);
        }
        let here_body = b.new_body(&inputs, |b, v| {
            Ok(vec![self.inside(v).along(b, v[0], first)?])
        })?;
        let other_body = b.new_body(&inputs, |b, v| {
            Ok(vec![self.inside(v).along_any(b, v[0], v[1], rest)?])
        })?;
        let op = If {
            then_body: Arc::new(here_body.graph),
            else_body: Arc::new(other_body.graph),
        };
        inputs.insert(0, here);
        b.op(op, &inputs)
    }

    /// The transform inside a body, whose inputs `given` are the signal, the axis and, where it is computed,
    /// the length.
    fn inside(self, given: &[ValueId]) -> Dft {
        let length = match (self.length, given.get(2)) {
            (Some(Length::Computed(_)), Some(&inner)) => Some(Length::Computed(inner)),
            (length, _) => length,
        };
        Dft { length, ..self }
    }

    /// How long a transform along `axis` is.
    fn length_along(self, b: &mut NodeBuilder, x: ValueId, axis: usize) -> Result<Length> {
        if let Some(length) = self.length {
            return Ok(length);
        }
        let halved = self.inverse && self.onesided;
        let known = b.fact(x).shape.and_then(|s| s.0.get(axis)?.known());
        Ok(match known {
            Some(n) if halved => Length::Known(n.saturating_sub(1).saturating_mul(2)),
            Some(n) => Length::Known(n),
            None => {
                let mut n = b.dim(x, axis as i64)?;
                if halved {
                    let (one, two) = (b.i64s(&[1])?, b.i64s(&[2])?);
                    n = b.sub(n, one)?;
                    n = b.mul(n, two)?;
                }
                Length::Computed(n)
            }
        })
    }

    fn along(self, b: &mut NodeBuilder, x: ValueId, axis: usize) -> Result<ValueId> {
        let rank = b.rank(x)?;
        if axis + 1 >= rank {
            return Err(invalid("a transform of the real and imaginary parts"));
        }
        let transform = Transform {
            length: self.length_along(b, x, axis)?,
            inverse: self.inverse,
            onesided: self.onesided,
        };
        let taken = transform.taken(b)?;
        let mut x = resized(b, x, axis, taken)?;
        // The transformed axis goes next to the last one.
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 2);
        if axis == rank - 2 {
            return transform.apply(b, x);
        }
        x = b.transpose(x, &perm)?;
        let y = transform.apply(b, x)?;
        b.transpose(y, &perm)
    }
}

/// The length that input 1 gives.
pub fn given_length(b: &mut NodeBuilder, length: ValueId) -> Result<Length> {
    match b.constant(length) {
        Some(known) => match known.to_i64s()?[..] {
            [n] => usize::try_from(n)
                .map(Length::Known)
                .map_err(|_| invalid("a negative length")),
            _ => Err(invalid("a length that is not one element")),
        },
        None => {
            let length = b.cast(length, DType::I64)?;
            b.reshape(length, &[1]).map(Length::Computed)
        }
    }
}

/// `x` with `wanted` elements along `axis`: cut off, or filled up with zeros.
fn resized(b: &mut NodeBuilder, x: ValueId, axis: usize, wanted: Length) -> Result<ValueId> {
    let rank = b.rank(x)?;
    let known = b.fact(x).shape.and_then(|s| s.0[axis].known());
    let mode = PadMode::Constant;
    if let (Some(given), Length::Known(wanted)) = (known, wanted) {
        if given > wanted {
            return b.slice(x, axis as i64, 0, wanted as i64);
        }
        if given == wanted {
            return Ok(x);
        }
        let mut pads = vec![0; 2 * rank];
        pads[rank + axis] = (wanted - given) as i64;
        let pads = b.i64s(&pads)?;
        return b.op(Pad { mode }, &[x, pads]);
    }
    let wanted = wanted.value(b)?;
    let (start, along) = (b.i64s(&[0])?, b.i64s(&[axis as i64])?);
    let x = b.op(Slice, &[x, start, wanted, along])?;
    let there = b.dim(x, axis as i64)?;
    let missing = b.sub(wanted, there)?;
    let before = b.i64s(&vec![0; rank + axis])?;
    let after = b.i64s(&vec![0; rank - axis - 1])?;
    let pads = b.vector(&[before, missing, after])?;
    b.op(Pad { mode }, &[x, pads])
}
