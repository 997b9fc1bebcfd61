//! Which query attends to which keys, as what is added to the scores.

use kilim_core::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Pad, PadMode};

use super::node::as_many;
use crate::onnx::builder::NodeBuilder;

/// Where the first query stands among the keys.
pub enum Place {
    /// At the first key.
    Start,
    /// Behind as many keys, `[1]` or `[batch]`.
    Behind(ValueId),
    /// The last query is the last key.
    End,
}

impl Place {
    /// Behind the keys of a cache to which new ones are appended; all are `[batch, heads, sequence, size]`.
    pub fn behind(
        b: &mut NodeBuilder,
        past: ValueId,
        query: ValueId,
        new: ValueId,
    ) -> Result<Place> {
        match as_many(b, query, new) {
            true => Ok(Place::End),
            false => b.dim(past, 2).map(Place::Behind),
        }
    }
}

/// Which query attends to which keys.
pub struct Rules {
    /// Boolean, or what is added to the scores; broadcasts to them.
    pub mask: Option<ValueId>,
    pub place: Place,
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
            place: Place::Start,
            lengths: None,
            left: -1,
            right: -1,
            causal: false,
        }
    }
}

impl Rules {
    /// Whether a query sees some keys around it only.
    pub fn windowed(&self) -> bool {
        self.left >= 0 || self.right >= 0
    }

    /// Whether a query may attend to nothing.
    pub fn may_hide_all(&self) -> bool {
        self.mask.is_some() || self.lengths.is_some() || self.windowed()
    }

    /// What a mask adds to the scores, in its own shape, continued to all keys. Query and key are
    /// `[batch, heads, sequence, size]`.
    pub fn added(
        &self,
        b: &mut NodeBuilder,
        mask: ValueId,
        query: ValueId,
        key: ValueId,
    ) -> Result<ValueId> {
        let mask = padded_mask(b, mask, key)?;
        match b.dtype(mask) {
            Some(DType::Bool) => hidden_but(b, mask, query),
            Some(_) => b.cast_like(mask, query),
            None => Err(unsupported("a mask of unknown element type")),
        }
    }

    /// All that is added to the scores. Query and key are `[batch, heads, sequence, size]`.
    pub fn bias(
        &self,
        b: &mut NodeBuilder,
        query: ValueId,
        key: ValueId,
    ) -> Result<Option<ValueId>> {
        let mask = match self.mask {
            Some(mask) => Some(self.added(b, mask, query, key)?),
            None => None,
        };
        let mut allowed = Vec::new();
        if self.causal || self.windowed() || self.lengths.is_some() {
            let count = b.dim(key, 2)?;
            let keys = b.iota(count)?;
            if self.causal || self.windowed() {
                self.near(b, query, count, keys, &mut allowed)?;
            }
            if let Some(lengths) = self.lengths {
                let lengths = b.cast(lengths, DType::I64)?;
                let lengths = b.unsqueeze(lengths, &[1, 2, 3])?;
                allowed.push(b.binary(BinaryKind::Less, keys, lengths)?);
            }
        }
        let Some((&first, rest)) = allowed.split_first() else {
            return Ok(mask);
        };
        let mut all = first;
        for &condition in rest {
            all = b.binary(BinaryKind::And, all, condition)?;
        }
        let chosen = hidden_but(b, all, query)?;
        match mask {
            Some(mask) => b.add(mask, chosen).map(Some),
            None => Ok(Some(chosen)),
        }
    }

    /// Conditions on the distance between queries and keys, `count` of them with the numbers `keys`.
    fn near(
        &self,
        b: &mut NodeBuilder,
        query: ValueId,
        count: ValueId,
        keys: ValueId,
        allowed: &mut Vec<ValueId>,
    ) -> Result<()> {
        let queries = b.dim(query, 2)?;
        let mut position = b.iota(queries)?;
        position = b.unsqueeze(position, &[1])?;
        let offset = match self.place {
            Place::Start => None,
            Place::Behind(offset) => Some(offset),
            Place::End => Some(b.sub(count, queries)?),
        };
        if let Some(offset) = offset {
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

/// Zero where a condition holds, minus infinity where not, in the type of the query.
fn hidden_but(b: &mut NodeBuilder, condition: ValueId, query: ValueId) -> Result<ValueId> {
    let zero = b.number(0.0, query)?;
    let never = b.number(f64::NEG_INFINITY, query)?;
    b.choose(condition, zero, never)
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
