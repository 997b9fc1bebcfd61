//! Attention, written out.

use kilim_core::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, MatMul, Pad, PadMode, ReduceKind, Softmax, SoftmaxKind, UnaryKind,
};

use super::OpTable;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub fn register(table: &mut OpTable) {
    table.add("Attention", attention);
    table.add_in("ai.onnx.preview", "FlexAttention", flex_attention);
}

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
        let [queries, keys] = [query, key].map(|x| {
            let shape = b.fact(x).shape;
            shape
                .and_then(|s| s.0.get(1).cloned())
                .unwrap_or(Dim::Unknown)
        });
        if let (Some(queries), Some(keys)) = (queries.known(), keys.known()) {
            check_groups(queries, keys)?;
        }
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
        let size = b.fact(query).shape.and_then(|s| s.0[3].known());
        let scale = scale.or(size.map(|n| 1.0 / (n as f32).sqrt()));
        match (scale, b.dtype(query)) {
            (Some(scale), Some(DType::F32)) => alpha = Some(scale),
            // In narrow types half of the scale goes to each side, so that nothing overflows.
            (Some(scale), _) => {
                let half = b.number(f64::from(scale).sqrt(), query)?;
                query = b.mul(query, half)?;
                key = b.mul(key, half)?;
            }
            (None, _) => {
                let size = b.dim(query, 3)?;
                let size = b.cast(size, DType::F32)?;
                let root = b.unary(UnaryKind::Sqrt, size)?;
                let root = b.cast_like(root, query)?;
                query = b.div(query, root)?;
            }
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

pub fn softmax(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    b.op(op, &[x])
}

pub fn check_groups(query_heads: usize, key_heads: usize) -> Result<()> {
    if key_heads == 0 || !query_heads.is_multiple_of(key_heads) {
        return Err(invalid(format!(
            "{query_heads} query heads for {key_heads} key heads"
        )));
    }
    Ok(())
}

fn attention(b: &mut NodeBuilder) -> Result<()> {
    let (mut query, mut key, mut value) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let packed = b.rank(query)? == 3;
    if packed {
        let query_heads = b.count("q_num_heads", None)?;
        let key_heads = b.count("kv_num_heads", None)?;
        query = split_heads(b, query, query_heads)?;
        key = split_heads(b, key, key_heads)?;
        value = split_heads(b, value, key_heads)?;
    }
    let past = b.optional(4)?;
    if let Some(past) = past {
        key = b.concat(&[past, key], 2)?;
        let past_value = b.input(5)?;
        value = b.concat(&[past_value, value], 2)?;
    }
    b.bind(1, key)?;
    b.bind(2, value)?;
    let value = b.cast_like(value, query)?;
    let heads = Heads::new(b, query, key, value)?;
    let scale = b.float("scale")?.filter(|s| *s != 0.0);
    let mut scores = heads.scores(b, query, scale)?;
    let mode = b.int_or("qk_matmul_output_mode", 0)?;
    if mode == 0 {
        b.bind(3, scores)?;
    }
    let cap = b.float_or("softcap", 0.0)?;
    if cap > 0.0 {
        let cap = b.number(cap.into(), scores)?;
        let x = b.div(scores, cap)?;
        let x = b.unary(UnaryKind::Tanh, x)?;
        scores = b.mul(x, cap)?;
    }
    if mode == 1 {
        b.bind(3, scores)?;
    }
    let rules = Rules {
        mask: b.optional(3)?,
        offset: offset(b, query, past)?,
        lengths: b.optional(6)?,
        left: b.int_or("left_window_size", -1)?,
        right: b.int_or("right_window_size", -1)?,
        causal: b.flag("is_causal")?,
    };
    let bias = rules.bias(b, query, key)?;
    if let Some(bias) = &bias {
        scores = b.add(scores, bias.value)?;
    }
    if mode == 2 {
        b.bind(3, scores)?;
    }
    let precision = match b.int_or("softmax_precision", 0)? {
        0 => None,
        n => Some(dtype(n)?),
    };
    if let Some(precision) = precision {
        scores = b.cast(scores, precision)?;
    }
    let mut probabilities = softmax(b, scores)?;
    if precision.is_some() {
        probabilities = b.cast_like(probabilities, query)?;
    }
    if let Some(bias) = bias
        && bias.may_mask_rows
    {
        // A query that may attend to nothing gives zeros.
        let best = b.reduce(ReduceKind::Max, bias.value, &[-1], true)?;
        let masked = b.unary(
            UnaryKind::IsInf {
                negative: true,
                positive: false,
            },
            best,
        )?;
        let zero = b.number(0.0, probabilities)?;
        probabilities = b.choose(masked, zero, probabilities)?;
    }
    if mode == 3 {
        b.bind(3, probabilities)?;
    }
    let mut y = heads.weighted(b, probabilities)?;
    if packed {
        y = b.transpose(y, &[0, 2, 1, 3])?;
        y = b.reshape(y, &[0, 0, -1])?;
    }
    b.bind(0, y)
}

/// How many keys stand before the first query: those of the cache, or with a cache outside as many
/// as the lengths (input 6) leave.
fn offset(b: &mut NodeBuilder, query: ValueId, past: Option<ValueId>) -> Result<Option<ValueId>> {
    if let Some(past) = past {
        return b.dim(past, 2).map(Some);
    }
    let Some(lengths) = b.optional(6)? else {
        return Ok(None);
    };
    let lengths = b.cast(lengths, DType::I64)?;
    let queries = b.dim(query, 2)?;
    b.sub(lengths, queries).map(Some)
}

/// What is added to the scores.
pub struct Bias {
    pub value: ValueId,
    /// Whether a row may be minus infinity all along.
    may_mask_rows: bool,
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

fn flex_attention(b: &mut NodeBuilder) -> Result<()> {
    let (query, key, value) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let precision = match b.int_or("softmax_precision", 0)? {
        0 if b.dtype(query) == Some(DType::F64) => DType::F64,
        0 => DType::F32,
        n => dtype(n)?,
    };
    let (wide, key) = (b.cast(query, precision)?, b.cast(key, precision)?);
    let heads = Heads::new(b, wide, key, value)?;
    let scale = b.float("scale")?;
    let mut scores = heads.scores(b, wide, scale)?;
    if b.attribute("score_mod").is_some() {
        scores = single(b.inline("score_mod", &[scores])?)?;
    }
    let mut probabilities = softmax(b, scores)?;
    if b.attribute("prob_mod").is_some() {
        probabilities = single(b.inline("prob_mod", &[probabilities])?)?;
    }
    let probabilities = b.cast_like(probabilities, query)?;
    let y = heads.weighted(b, probabilities)?;
    b.bind(0, y)
}

fn single(values: Vec<ValueId>) -> Result<ValueId> {
    match values.as_slice() {
        [one] => Ok(*one),
        _ => Err(invalid("a body needs one output")),
    }
}
