//! The heads of queries, keys and values, and the products between them.

use kilim_core::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::MatMul;

use super::node::{divided, usual_scale};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

/// `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`.
pub fn split_heads(b: &mut NodeBuilder, x: ValueId, heads: usize) -> Result<ValueId> {
    let x = b.reshape(x, &[0, 0, heads as i64, -1])?;
    b.transpose(x, &[0, 2, 1, 3])
}

/// Key and value as `[batch, heads, sequence, size]`. Groups of query heads share a key head; their
/// products are computed with the group's queries as one longer sequence, which moves nothing.
pub struct Heads {
    key: ValueId,
    value: ValueId,
    /// The heads of queries and keys as vectors of one element, where they are not as many.
    grouped: Option<[ValueId; 2]>,
}

impl Heads {
    /// The heads of query, key and value, all `[batch, heads, sequence, size]`.
    ///
    /// # Errors
    /// Where the heads of the query are no whole groups for those of the key.
    pub fn new(b: &mut NodeBuilder, query: ValueId, key: ValueId, value: ValueId) -> Result<Heads> {
        let [queries, keys] = check_heads(b, query, key)?;
        let same = queries == keys && queries != Dim::Unknown;
        let grouped = match same {
            true => None,
            false => Some([b.dim(query, 1)?, b.dim(key, 1)?]),
        };
        Ok(Heads {
            key,
            value,
            grouped,
        })
    }

    /// `[batch, query heads, n, size]` as `[batch, key heads, group * n, size]`.
    fn group(&self, b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
        let Some([_, keys]) = self.grouped else {
            return Ok(x);
        };
        let (same, rest) = (b.i64s(&[0])?, b.i64s(&[-1])?);
        let (n, size) = (b.dim(x, 2)?, b.dim(x, 3)?);
        // A whole number of heads in each group first: `n` must not make up for a part of one.
        let apart = b.vector(&[same, keys, rest, n, size])?;
        let apart = b.reshape_to(x, apart)?;
        let joined = b.vector(&[same, same, rest, size])?;
        b.reshape_to(apart, joined)
    }

    /// `[batch, key heads, group * n, size]` as `[batch, query heads, n, size]`.
    fn ungroup(&self, b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
        let Some([queries, _]) = self.grouped else {
            return Ok(x);
        };
        let (same, rest) = (b.i64s(&[0])?, b.i64s(&[-1])?);
        let size = b.dim(x, 3)?;
        let shape = b.vector(&[same, queries, rest, size])?;
        b.reshape_to(x, shape)
    }

    /// `query · keyᵀ · scale`, `[batch, query heads, queries, keys]`.
    pub fn scores(
        &self,
        b: &mut NodeBuilder,
        query: ValueId,
        scale: Option<f32>,
    ) -> Result<ValueId> {
        let mut query = self.group(b, query)?;
        let mut key = self.key;
        let mut alpha = None;
        let scale = scale.or_else(|| usual_scale(b, query));
        match (scale, b.dtype(query)) {
            (Some(scale), Some(DType::F32)) => alpha = Some(scale),
            // In narrow types half of the scale goes to each side, so that nothing overflows.
            (Some(scale), _) => {
                let half = b.number(f64::from(scale).sqrt(), query)?;
                query = b.mul(query, half)?;
                key = b.mul(key, half)?;
            }
            (None, _) => query = divided(b, query)?,
        }
        let product = MatMul {
            transpose_b: true,
            alpha,
            ..MatMul::default()
        };
        let scores = b.op(product, &[query, key])?;
        self.ungroup(b, scores)
    }

    /// `probabilities · value`, `[batch, query heads, queries, size]`.
    pub fn weighted(&self, b: &mut NodeBuilder, probabilities: ValueId) -> Result<ValueId> {
        let probabilities = self.group(b, probabilities)?;
        let y = b.op(MatMul::default(), &[probabilities, self.value])?;
        self.ungroup(b, y)
    }
}

/// `InvalidModel` where several heads of queries cannot share one of keys and values.
pub fn check_groups(query_heads: usize, key_heads: usize) -> Result<()> {
    if key_heads == 0 || !query_heads.is_multiple_of(key_heads) {
        return Err(invalid(format!(
            "{query_heads} query heads for {key_heads} key heads"
        )));
    }
    Ok(())
}

/// How many heads query and key have, `[batch, heads, sequence, size]` both.
///
/// # Errors
/// As of [`check_groups`], where both are known.
pub fn check_heads(b: &NodeBuilder, query: ValueId, key: ValueId) -> Result<[Dim; 2]> {
    let heads = [query, key].map(|x| {
        let shape = b.fact(x).shape;
        shape
            .and_then(|s| s.0.get(1).cloned())
            .unwrap_or(Dim::Unknown)
    });
    if let [Some(queries), Some(keys)] = [heads[0].known(), heads[1].known()] {
        check_groups(queries, keys)?;
    }
    Ok(heads)
}
