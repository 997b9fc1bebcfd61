//! Which query attends to which keys, as what is added to the scores.

use kilim_core::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Pad, PadMode};

use crate::onnx::builder::NodeBuilder;

/// What is added to the scores.
pub struct Bias {
    pub value: ValueId,
    /// Whether a row may be minus infinity all along.
    pub may_mask_rows: bool,
}

/// Which query attends to which keys.
pub struct Rules {
    /// Boolean, or what is added to the scores; broadcasts to them.
    pub mask: Option<ValueId>,
    /// Keys before the first query, `[1]` or `[batch]`.
    pub offset: Option<ValueId>,
    /// Keys of each batch, `[batch]`; those behind are padding.
    pub lengths: Option<ValueId>,
    /// How far back a query sees; -1 is without bound.
    pub left: i64,
    /// How far ahead.
    pub right: i64,
    /// No query sees what comes after it.
    pub causal: bool,
}

impl Default for Rules {
    /// Every query attends to every key.
    fn default() -> Rules {
        Rules {
            mask: None,
            offset: None,
            lengths: None,
            left: -1,
            right: -1,
            causal: false,
        }
    }
}

impl Rules {
    /// Query and key are `[batch, heads, sequence, size]`.
    pub fn bias(&self, b: &mut NodeBuilder, query: ValueId, key: ValueId) -> Result<Option<Bias>> {
        let mut allowed = Vec::new();
        let mut float_mask = None;
        if let Some(mask) = self.mask {
            let mask = padded_mask(b, mask, key)?;
            match b.dtype(mask) {
                Some(DType::Bool) => allowed.push(mask),
                Some(_) => float_mask = Some(b.cast_like(mask, query)?),
                None => return Err(unsupported("a mask of unknown element type")),
            }
        }
        let windowed = self.left >= 0 || self.right >= 0;
        if self.causal || windowed || self.lengths.is_some() {
            let keys = b.dim(key, 2)?;
            let keys = b.iota(keys)?;
            if self.causal || windowed {
                self.near(b, query, keys, &mut allowed)?;
            }
            if let Some(lengths) = self.lengths {
                let lengths = b.cast(lengths, DType::I64)?;
                let lengths = b.unsqueeze(lengths, &[1, 2, 3])?;
                allowed.push(b.binary(BinaryKind::Less, keys, lengths)?);
            }
        }
        let chosen = match allowed.split_first() {
            Some((&first, rest)) => {
                let mut all = first;
                for &condition in rest {
                    all = b.binary(BinaryKind::And, all, condition)?;
                }
                let zero = b.number(0.0, query)?;
                let never = b.number(f64::NEG_INFINITY, query)?;
                Some(b.choose(all, zero, never)?)
            }
            None => None,
        };
        let value = match (float_mask, chosen) {
            (Some(mask), Some(chosen)) => Some(b.add(mask, chosen)?),
            (mask, chosen) => mask.or(chosen),
        };
        Ok(value.map(|value| Bias {
            value,
            may_mask_rows: self.mask.is_some() || self.lengths.is_some() || windowed,
        }))
    }

    /// Conditions on the distance between query and key.
    fn near(
        &self,
        b: &mut NodeBuilder,
        query: ValueId,
        keys: ValueId,
        allowed: &mut Vec<ValueId>,
    ) -> Result<()> {
        let queries = b.dim(query, 2)?;
        let mut position = b.iota(queries)?;
        position = b.unsqueeze(position, &[1])?;
        if let Some(offset) = self.offset {
            let offset = b.unsqueeze(offset, &[1, 2, 3])?;
            position = b.add(position, offset)?;
        }
        if self.causal {
            allowed.push(b.binary(BinaryKind::LessOrEqual, keys, position)?);
        }
        if self.left >= 0 {
            let size = b.i64(self.left)?;
            let first = b.sub(position, size)?;
            allowed.push(b.binary(BinaryKind::GreaterOrEqual, keys, first)?);
        }
        if self.right >= 0 {
            let size = b.i64(self.right)?;
            let last = b.add(position, size)?;
            allowed.push(b.binary(BinaryKind::LessOrEqual, keys, last)?);
        }
        Ok(())
    }
}

/// The mask, continued with positions that take no part up to the number of keys.
fn padded_mask(b: &mut NodeBuilder, mask: ValueId, key: ValueId) -> Result<ValueId> {
    let rank = b.rank(mask)?;
    let width = b.fact(mask).shape.and_then(|s| s.0.last().cloned());
    let keys = b.fact(key).shape.and_then(|s| s.0.get(2).cloned());
    // A dimension of 1 is not broadcast but continued.
    let same = width == keys && width.is_some_and(|w| w != Dim::Unknown);
    if same || rank == 0 {
        return Ok(mask);
    }
    let total = b.dim(key, 2)?;
    let width = b.dim(mask, -1)?;
    let missing = match (b.constant(total), b.constant(width)) {
        (Some(total), Some(width)) => {
            let pair = (total.to_i64s()?, width.to_i64s()?);
            let missing = pair.0.first().zip(pair.1.first()).map(|(t, w)| t - w);
            b.i64s(&[missing.unwrap_or(0).max(0)])?
        }
        _ => {
            let missing = b.sub(total, width)?;
            let zero = b.i64s(&[0])?;
            b.binary(BinaryKind::Max, missing, zero)?
        }
    };
    let none = b.i64s(&vec![0; 2 * rank - 1])?;
    let pads = b.vector(&[none, missing])?;
    let fill = match b.dtype(mask) {
        Some(DType::Bool) => b.number(0.0, mask)?,
        _ => b.number(f64::NEG_INFINITY, mask)?,
    };
    let mode = PadMode::Constant;
    b.op(Pad { mode }, &[mask, pads, fill])
}
