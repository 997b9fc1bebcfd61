//! Attention and its caches, in the operators of every operator set.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Align, Attention, BinaryKind, MatMul, Pad, PadMode, ReduceKind, Softmax, SoftmaxKind, Split,
    TensorScatter, UnaryKind, UnpackQkv,
};
use kilim_formats::build::GraphBuilder;

use super::product::swapped;
use super::{Lowered, rotary};

/// `softmax(scale · query · keyᵀ + bias) · value` for each head. Groups of query heads that share a key head are a dimension of their own.
pub fn attention(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<Attention>() else {
        return Ok(None);
    };
    let [query, key, value] = [node.input(0)?, node.input(1)?, node.input(2)?];
    let output = b.dtype(query);
    // Sums are in float32 at least.
    let sums = match output {
        Some(DType::F64) => DType::F64,
        _ => DType::F32,
    };
    let [query, key, value] = [
        b.cast(query, sums)?,
        b.cast(key, sums)?,
        b.cast(value, sums)?,
    ];
    let heads = |b: &GraphBuilder, v| b.known_shape(v).and_then(|s| s.0.get(1)?.known());
    let (Some(queries), Some(keys)) = (heads(b, query), heads(b, key)) else {
        return Err(unsupported("attention with an unknown number of heads"));
    };
    let groups = queries.checked_div(keys).unwrap_or(1);
    let scale = b.number(op.scale.into(), query)?;
    let scaled = match op.scale {
        1.0 => query,
        _ => b.mul(query, scale)?,
    };
    let scaled = grouped(b, scaled, keys, groups)?;
    let [key_of, value_of] = match groups {
        1 => [key, value],
        _ => [b.unsqueeze(key, &[2])?, b.unsqueeze(value, &[2])?],
    };
    let turned = swapped(b, key_of)?;
    let scores = b.op(MatMul::default(), &[scaled, turned])?;
    let mut scores = ungrouped(b, scores, queries, groups)?;
    if let Some(cap) = op.softcap {
        let cap = b.number(cap.into(), scores)?;
        scores = b.div(scores, cap)?;
        scores = b.unary(UnaryKind::Tanh, scores)?;
        scores = b.mul(scores, cap)?;
    }
    if let Some(bias) = node.optional(3) {
        let bias = b.cast(bias, sums)?;
        scores = b.add(scores, bias)?;
    }
    if let Some(seen) = seen(b, op, node, query, key)? {
        let never = b.number(f64::NEG_INFINITY, scores)?;
        scores = b.choose(seen, scores, never)?;
    }
    let mut shares = shares(b, scores, node.optional(6))?;
    if op.zeros {
        let best = b.reduce(ReduceKind::Max, scores, &[-1], true)?;
        let lowest = b.number(f64::NEG_INFINITY, best)?;
        let blind = b.binary(BinaryKind::Equal, best, lowest)?;
        let zero = b.number(0.0, shares)?;
        shares = b.choose(blind, zero, shares)?;
    }
    let shares = grouped(b, shares, keys, groups)?;
    let y = b.op(MatMul::default(), &[shares, value_of])?;
    let y = ungrouped(b, y, queries, groups)?;
    let y = match output {
        Some(dtype) => b.cast(y, dtype)?,
        None => y,
    };
    Ok(Some(vec![y]))
}

/// `[batch, heads, a, b]` as `[batch, keys, groups, a, b]`.
fn grouped(b: &mut GraphBuilder, x: ValueId, keys: usize, groups: usize) -> Result<ValueId> {
    if groups == 1 {
        return Ok(x);
    }
    let heads = b.i64s(&[keys as i64, groups as i64])?;
    let dims = [b.dim(x, 0)?, heads, b.dim(x, 2)?, b.dim(x, 3)?];
    let shape = b.vector(&dims)?;
    b.reshape_to(x, shape)
}

/// `[batch, keys, groups, a, b]` as `[batch, heads, a, b]`.
fn ungrouped(b: &mut GraphBuilder, x: ValueId, heads: usize, groups: usize) -> Result<ValueId> {
    if groups == 1 {
        return Ok(x);
    }
    let heads = b.i64s(&[heads as i64])?;
    let dims = [b.dim(x, 0)?, heads, b.dim(x, 3)?, b.dim(x, 4)?];
    let shape = b.vector(&dims)?;
    b.reshape_to(x, shape)
}

/// Which query sees which key, broadcasting to the scores; `None` where all see all.
fn seen(
    b: &mut GraphBuilder,
    op: &Attention,
    node: &Lowered,
    query: ValueId,
    key: ValueId,
) -> Result<Option<ValueId>> {
    let count = b.dim(key, 2)?;
    let mut conditions = Vec::new();
    if op.causal || op.left >= 0 || op.right >= 0 {
        let queries = b.dim(query, 2)?;
        let places = b.iota(queries)?;
        let mut places = b.unsqueeze(places, &[1])?;
        let offset = match op.align {
            Align::End => Some(b.sub(count, queries)?),
            Align::Start => node.optional(4),
        };
        if let Some(offset) = offset {
            let offset = b.cast(offset, DType::I64)?;
            let offset = b.reshape(offset, &[-1, 1, 1, 1])?;
            places = b.add(places, offset)?;
        }
        let keys = b.iota(count)?;
        if op.causal {
            conditions.push(b.binary(BinaryKind::LessOrEqual, keys, places)?);
        }
        if op.left >= 0 {
            let left = b.i64(op.left)?;
            let first = b.sub(places, left)?;
            conditions.push(b.binary(BinaryKind::GreaterOrEqual, keys, first)?);
        }
        if op.right >= 0 {
            let right = b.i64(op.right)?;
            let last = b.add(places, right)?;
            conditions.push(b.binary(BinaryKind::LessOrEqual, keys, last)?);
        }
    }
    if let Some(lengths) = node.optional(5) {
        let keys = b.iota(count)?;
        let lengths = b.cast(lengths, DType::I64)?;
        let lengths = b.reshape(lengths, &[-1, 1, 1, 1])?;
        conditions.push(b.binary(BinaryKind::Less, keys, lengths)?);
    }
    let mut conditions = conditions.into_iter();
    let Some(mut all) = conditions.next() else {
        return Ok(None);
    };
    for condition in conditions {
        all = b.binary(BinaryKind::And, all, condition)?;
    }
    Ok(Some(all))
}

/// The softmax of the scores; sinks take a share that is cut off.
fn shares(b: &mut GraphBuilder, scores: ValueId, sinks: Option<ValueId>) -> Result<ValueId> {
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    let Some(sinks) = sinks else {
        return b.op(softmax, &[scores]);
    };
    let one = b.i64s(&[1])?;
    let dims = [b.dim(scores, 0)?, b.dim(scores, 1)?, b.dim(scores, 2)?, one];
    let column = b.vector(&dims)?;
    let sinks = b.cast_like(sinks, scores)?;
    let sinks = b.reshape(sinks, &[1, -1, 1, 1])?;
    let sinks = b.expand(sinks, column)?;
    let beside = b.concat(&[scores, sinks], 3)?;
    let shares = b.op(softmax, &[beside])?;
    b.slice(shares, 3, 0, -1)
}

/// ONNX's operator writes on a cache that has the room already: zeros are put behind it first.
pub fn scatter(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let (Some(op), Some(room)) = (node.op::<TensorScatter>(), node.optional(3)) else {
        return Ok(None);
    };
    let parts = [node.input(0)?, node.input(1)?, node.input(2)?];
    Ok(Some(vec![written(b, op, parts, Some(room))?]))
}

/// A cache with steps written on it from `start` on, as many places long as `room` says.
fn written(
    b: &mut GraphBuilder,
    op: &TensorScatter,
    [cache, steps, start]: [ValueId; 3],
    room: Option<ValueId>,
) -> Result<ValueId> {
    let mut cache = cache;
    if let Some(room) = room {
        let axis = b.axis_of(cache, op.axis)?;
        let rank = b.rank(cache)?;
        let room = b.cast(room, DType::I64)?;
        let room = b.reshape(room, &[1])?;
        let held = b.dim(cache, axis as i64)?;
        let more = b.sub(room, held)?;
        let before = b.i64s(&vec![0; rank + axis])?;
        let after = b.i64s(&vec![0; rank - axis - 1])?;
        let pads = b.vector(&[before, more, after])?;
        let zero = b.number(0.0, cache)?;
        let mode = PadMode::Constant;
        cache = b.op(Pad { mode }, &[cache, pads, zero])?;
    }
    let start = b.cast(start, DType::I64)?;
    b.op(op.clone(), &[cache, steps, start])
}

pub fn unpack(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<UnpackQkv>() else {
        return Ok(None);
    };
    let heads = op.heads()? as i64;
    let packed = node.input(0)?;
    let packed = b.reshape(packed, &[0, 0, heads, -1])?;
    let packed = b.transpose(packed, &[0, 2, 1, 3])?;
    let counts = [op.query_heads, op.key_heads, op.key_heads];
    let counts = b.i64s(&counts.map(|n| n as i64))?;
    let parts = b.apply(Split { axis: 1 }, &[Some(packed), Some(counts)], 3)?;
    let (cosines, sines) = (node.input(1)?, node.input(2)?);
    let (cosines, sines) = (b.unsqueeze(cosines, &[1])?, b.unsqueeze(sines, &[1])?);
    let rotary = op.rotary();
    let query = rotary::turned(b, &rotary, [parts[0], cosines, sines])?;
    let key = rotary::turned(b, &rotary, [parts[1], cosines, sines])?;
    let scatter = TensorScatter {
        axis: 2,
        circular: false,
    };
    let (start, room) = (node.input(5)?, node.optional(6));
    let keys = written(b, &scatter, [node.input(3)?, key, start], room)?;
    let values = written(b, &scatter, [node.input(4)?, parts[2], start], room)?;
    Ok(Some(vec![query, keys, values]))
}
