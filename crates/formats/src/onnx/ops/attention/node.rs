//! Attention as one node.

use kilim_core::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Align, Attention, UnaryKind};

use super::heads::check_heads;
use super::rules::{Place, Rules};
use crate::onnx::builder::NodeBuilder;

/// What attention is computed of. Query, key and value are `[batch, heads, sequence, size]`.
pub struct Attending {
    pub query: ValueId,
    pub key: ValueId,
    pub value: ValueId,
    pub rules: Rules,
    /// What is added to the scores beside the mask of the rules; broadcasts to them.
    pub bias: Option<ValueId>,
    /// Scores `[query heads]` that take a share of the attention and give nothing.
    pub sinks: Option<ValueId>,
    /// A query that may attend to nothing gives zeros.
    pub zeros: bool,
}

/// The type that attention on elements of this type is summed in.
pub fn sums_of(dtype: Option<DType>) -> DType {
    match dtype {
        Some(DType::F64) => DType::F64,
        _ => DType::F32,
    }
}

/// The factor of the products where the attribute `scale` gives one.
pub fn scale(b: &NodeBuilder) -> Result<Option<f32>> {
    Ok(b.float("scale")?.filter(|s| *s != 0.0))
}

/// Where the attribute `softcap` gives one, the bound of the scores.
pub fn softcap(b: &NodeBuilder) -> Result<Option<f32>> {
    let cap = b.float_or("softcap", 0.0)?;
    Ok((cap > 0.0).then_some(cap))
}

/// The factor for queries `[.., size]` where nothing else is said, one over the root of their size; `None` where the size is not known.
pub fn usual_scale(b: &NodeBuilder, query: ValueId) -> Option<f32> {
    let size = b.fact(query).shape.and_then(|s| s.0.last()?.known());
    size.map(|n| 1.0 / (n as f32).sqrt())
}

/// Queries `[.., size]` divided by the root of their size.
pub fn divided(b: &mut NodeBuilder, query: ValueId) -> Result<ValueId> {
    let size = b.dim(query, -1)?;
    let size = b.cast(size, DType::F32)?;
    let root = b.unary(UnaryKind::Sqrt, size)?;
    let root = b.cast_like(root, query)?;
    b.div(query, root)
}

/// Whether queries and keys, `[batch, heads, sequence, size]`, are known to be as many.
pub fn as_many(b: &NodeBuilder, query: ValueId, key: ValueId) -> bool {
    let length = |x| b.fact(x).shape.and_then(|s| s.0.get(2).cloned());
    let queries = length(query).filter(|n| *n != Dim::Unknown);
    queries.is_some() && queries == length(key)
}

impl Attending {
    /// The output `[batch, query heads, queries, value size]` of a node.
    ///
    /// # Errors
    /// Where the heads of the query are no whole groups for those of the key.
    pub fn node(&self, b: &mut NodeBuilder) -> Result<ValueId> {
        check_heads(b, self.query, self.key)?;
        let rules = &self.rules;
        let given = scale(b)?.or_else(|| usual_scale(b, self.query));
        let query = match given {
            Some(_) => self.query,
            None => divided(b, self.query)?,
        };
        let mask = match rules.mask {
            Some(mask) => Some(rules.added(b, mask, query, self.key)?),
            None => None,
        };
        let bias = match (self.bias, mask) {
            (Some(bias), Some(mask)) => Some(b.add(bias, mask)?),
            (bias, mask) => bias.or(mask),
        };
        let (align, offset) = match &rules.place {
            _ if !rules.causal && !rules.windowed() => (Align::Start, None),
            Place::Start => (Align::Start, None),
            Place::Behind(offset) => (Align::Start, Some(*offset)),
            Place::End => (Align::End, None),
        };
        let lengths = match rules.lengths {
            Some(lengths) => Some(b.cast(lengths, DType::I64)?),
            None => None,
        };
        let op = Attention {
            scale: given.unwrap_or(1.0),
            softcap: softcap(b)?,
            causal: rules.causal,
            left: rules.left.max(-1),
            right: rules.right.max(-1),
            align,
            zeros: self.zeros,
        };
        let (key, value) = (Some(self.key), Some(self.value));
        let mut inputs = vec![Some(query), key, value, bias, offset, lengths, self.sinks];
        while inputs.last() == Some(&None) {
            inputs.pop();
        }
        b.step(op, &inputs)
    }
}

/// `[batch, heads, sequence, size]` as `[batch, sequence, heads * size]`.
pub fn merged(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let x = b.transpose(x, &[0, 2, 1, 3])?;
    b.reshape(x, &[0, 0, -1])
}
