//! Attention and rotary embedding, written out.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, Gather, MatMul, Pad, PadMode, ReduceKind, Slice, Softmax, SoftmaxKind, UnaryKind,
};

use super::OpTable;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub fn register(table: &mut OpTable) {
    table.add("Attention", attention);
    table.add_in("ai.onnx.preview", "FlexAttention", flex_attention);
    table.add("RotaryEmbedding", rotary_embedding);
}

/// Number of heads from `[batch, heads, sequence, size]`.
fn heads(b: &mut NodeBuilder, x: ValueId) -> Result<usize> {
    let heads = b.fact(x).shape.and_then(|s| s.0.get(1)?.known());
    heads.ok_or_else(|| unsupported("a number of heads that is known only at run time"))
}

/// `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`.
fn split_heads(b: &mut NodeBuilder, x: ValueId, heads: usize) -> Result<ValueId> {
    let x = b.reshape(x, &[0, 0, heads as i64, -1])?;
    b.transpose(x, &[0, 2, 1, 3])
}

/// Query, key and value as `[batch, heads, sequence, size]`. Groups of query heads share a key head;
/// their products are computed with the group's queries as one longer sequence, which moves nothing.
struct Heads {
    key: ValueId,
    value: ValueId,
    query_heads: usize,
    key_heads: usize,
}

impl Heads {
    fn grouped(&self) -> bool {
        self.query_heads != self.key_heads
    }

    /// `[batch, query heads, ..]` as `[batch, key heads, group * ..]`; the last dimension is that of
    /// axis `axis` of `like`.
    fn group(&self, b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
        self.regroup(b, x, self.key_heads)
    }

    fn ungroup(&self, b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
        self.regroup(b, x, self.query_heads)
    }

    fn regroup(&self, b: &mut NodeBuilder, x: ValueId, heads: usize) -> Result<ValueId> {
        if !self.grouped() {
            return Ok(x);
        }
        let begin = b.i64s(&[0, heads as i64, -1])?;
        let last = b.dim(x, 3)?;
        let shape = b.vector(&[begin, last])?;
        b.reshape_to(x, shape)
    }

    /// `query · keyᵀ · scale`, `[batch, query heads, queries, keys]`.
    fn scores(&self, b: &mut NodeBuilder, query: ValueId, scale: Option<f32>) -> Result<ValueId> {
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
    fn weighted(&self, b: &mut NodeBuilder, probabilities: ValueId) -> Result<ValueId> {
        let probabilities = self.group(b, probabilities)?;
        let y = b.op(MatMul::default(), &[probabilities, self.value])?;
        self.ungroup(b, y)
    }
}

fn softmax(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    b.op(op, &[x])
}

fn check_groups(query_heads: usize, key_heads: usize) -> Result<()> {
    if key_heads == 0 || query_heads % key_heads != 0 {
        return Err(invalid(format!(
            "{query_heads} query heads for {key_heads} key heads"
        )));
    }
    Ok(())
}

fn attention(b: &mut NodeBuilder) -> Result<()> {
    let (mut query, mut key, mut value) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let packed = b.rank(query)? == 3;
    let (query_heads, key_heads);
    if packed {
        query_heads = b.count("q_num_heads", None)?;
        key_heads = b.count("kv_num_heads", None)?;
        check_groups(query_heads, key_heads)?;
        query = split_heads(b, query, query_heads)?;
        key = split_heads(b, key, key_heads)?;
        value = split_heads(b, value, key_heads)?;
    } else {
        query_heads = heads(b, query)?;
        key_heads = heads(b, key)?;
        check_groups(query_heads, key_heads)?;
    }
    let past = b.optional(4)?;
    if let Some(past) = past {
        key = b.concat(&[past, key], 2)?;
        let past_value = b.input(5)?;
        value = b.concat(&[past_value, value], 2)?;
    }
    b.bind(1, key)?;
    b.bind(2, value)?;
    let heads = Heads {
        key,
        value,
        query_heads,
        key_heads,
    };
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
    let bias = bias(b, query, key, past)?;
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

/// What is added to the scores.
struct Bias {
    value: ValueId,
    /// Whether a row may be minus infinity all along.
    may_mask_rows: bool,
}

/// From the mask (input 3), the cache (4), lengths without padding (6) and the attributes
/// `is_causal`, `left_window_size`, `right_window_size`.
fn bias(
    b: &mut NodeBuilder,
    query: ValueId,
    key: ValueId,
    past: Option<ValueId>,
) -> Result<Option<Bias>> {
    let lengths = b.optional(6)?;
    let left = b.int_or("left_window_size", -1)?;
    let right = b.int_or("right_window_size", -1)?;
    let causal = b.flag("is_causal")?;
    let mask = match b.optional(3)? {
        Some(mask) => Some(padded_mask(b, mask, key)?),
        None => None,
    };
    let mut allowed: Option<ValueId> = None;
    let mut float_mask = None;
    if let Some(mask) = mask {
        match b.dtype(mask) {
            Some(DType::Bool) => allowed = Some(mask),
            Some(_) => float_mask = Some(mask),
            None => return Err(unsupported("a mask of unknown element type")),
        }
    }
    let mut conditions = Vec::new();
    let keys = b.dim(key, 2)?;
    let keys = b.iota(keys)?;
    if causal || left >= 0 || right >= 0 {
        let queries = b.dim(query, 2)?;
        let mut position = b.iota(queries)?;
        position = b.unsqueeze(position, &[1])?;
        if let Some(past) = past {
            let offset = b.dim(past, 2)?;
            position = b.add(position, offset)?;
        } else if let Some(lengths) = lengths {
            let lengths = b.cast(lengths, DType::I64)?;
            let offset = b.sub(lengths, queries)?;
            let offset = b.unsqueeze(offset, &[1, 2, 3])?;
            position = b.add(position, offset)?;
        }
        if causal {
            conditions.push(b.binary(BinaryKind::LessOrEqual, keys, position)?);
        }
        if left >= 0 {
            let size = b.i64(left)?;
            let first = b.sub(position, size)?;
            conditions.push(b.binary(BinaryKind::GreaterOrEqual, keys, first)?);
        }
        if right >= 0 {
            let size = b.i64(right)?;
            let last = b.add(position, size)?;
            conditions.push(b.binary(BinaryKind::LessOrEqual, keys, last)?);
        }
    }
    if let Some(lengths) = lengths {
        let lengths = b.cast(lengths, DType::I64)?;
        let lengths = b.unsqueeze(lengths, &[1, 2, 3])?;
        conditions.push(b.binary(BinaryKind::Less, keys, lengths)?);
    }
    let may_mask_rows = mask.is_some() || lengths.is_some() || left >= 0 || right >= 0;
    for condition in conditions {
        allowed = Some(match allowed {
            Some(before) => b.binary(BinaryKind::And, before, condition)?,
            None => condition,
        });
    }
    let chosen = match allowed {
        Some(allowed) => {
            let zero = b.number(0.0, query)?;
            let never = b.number(f64::NEG_INFINITY, query)?;
            Some(b.choose(allowed, zero, never)?)
        }
        None => None,
    };
    let value = match (float_mask, chosen) {
        (Some(mask), Some(chosen)) => Some(b.add(mask, chosen)?),
        (mask, chosen) => mask.or(chosen),
    };
    Ok(value.map(|value| Bias {
        value,
        may_mask_rows,
    }))
}

/// The mask, continued with positions that take no part up to the number of keys.
fn padded_mask(b: &mut NodeBuilder, mask: ValueId, key: ValueId) -> Result<ValueId> {
    let rank = b.rank(mask)?;
    let width = b.fact(mask).shape.and_then(|s| s.0.last().cloned());
    let keys = b.fact(key).shape.and_then(|s| s.0.get(2).cloned());
    // A dimension of 1 is not broadcast but continued.
    let same = width == keys && width.is_some_and(|w| w != kilim_core::Dim::Unknown);
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
    let (query_heads, key_heads) = (heads(b, query)?, heads(b, key)?);
    check_groups(query_heads, key_heads)?;
    let precision = match b.int_or("softmax_precision", 0)? {
        0 if b.dtype(query) == Some(DType::F64) => DType::F64,
        0 => DType::F32,
        n => dtype(n)?,
    };
    let heads = Heads {
        key: b.cast(key, precision)?,
        value,
        query_heads,
        key_heads,
    };
    let wide = b.cast(query, precision)?;
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

fn rotary_embedding(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let (mut cos, mut sin) = (b.input(1)?, b.input(2)?);
    if let Some(positions) = b.optional(3)? {
        cos = b.op(Gather { axis: 0 }, &[cos, positions])?;
        sin = b.op(Gather { axis: 0 }, &[sin, positions])?;
    }
    let interleaved = b.flag("interleaved")?;
    let part = b.count("rotary_embedding_dim", Some(0))?;
    let packed = b.rank(x)? == 3;
    let y = if packed {
        let heads = b.count("num_heads", None)?;
        let split = b.reshape(x, &[0, 0, heads as i64, -1])?;
        let y = rotated(b, split, [cos, sin], 2, part, interleaved)?;
        b.reshape(y, &[0, 0, -1])?
    } else {
        rotated(b, x, [cos, sin], 1, part, interleaved)?
    };
    b.bind(0, y)
}

/// Turns pairs of the last dimension of `x` by angles `[batch, sequence, pairs]`. `heads_axis` is
/// where `x` has its heads; of the last dimension the first `part` turn, all where that is 0.
pub fn rotated(
    b: &mut NodeBuilder,
    x: ValueId,
    angles: [ValueId; 2],
    heads_axis: i64,
    part: usize,
    interleaved: bool,
) -> Result<ValueId> {
    let [cos, sin] = angles;
    let cos = b.unsqueeze(cos, &[heads_axis])?;
    let sin = b.unsqueeze(sin, &[heads_axis])?;
    let (turned, kept) = if part == 0 {
        (x, None)
    } else {
        let turned = b.slice(x, -1, 0, part as i64)?;
        (turned, Some(b.slice(x, -1, part as i64, i64::MAX)?))
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
