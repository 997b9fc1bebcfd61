//! The layers of encoders that onnxruntime's optimiser makes of many nodes, written out again:
//! Attention and its quantised twin, EmbedLayerNormalization.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Gather, LayerNorm, MatMul, ReduceKind, Slice, Split};

use super::attention::{attending, finish};
use super::cache;
use super::quantized::{Quantized, product};
use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::attention::{Place, Rules, split_heads};

pub static OPERATORS: Family = OpTable(&[
    ("Attention", attention),
    ("EmbedLayerNormalization", embed_layer_norm),
    ("QAttention", quantized_attention),
]);

/// Where the optional inputs of the two operators are.
struct Places {
    mask: usize,
    past: usize,
    bias: Option<usize>,
    /// How many keys a cache of fixed size has already.
    cached: Option<usize>,
}

/// Inputs: x, weights of query, key and value side by side, their bias, mask, cached keys and values
/// `[2, batch, heads, keys, size]`, bias of the scores.
fn attention(b: &mut NodeBuilder) -> Result<()> {
    let (x, weights) = (b.input(0)?, b.input(1)?);
    let mut all = b.op(MatMul::default(), &[x, weights])?;
    if let Some(bias) = b.optional(2)? {
        all = b.add(all, bias)?;
    }
    let places = Places {
        mask: 3,
        past: 4,
        bias: Some(5),
        cached: Some(6),
    };
    finished(b, all, &places)
}

/// Inputs: x, weights, bias, scales of x and weights, mask, zero points of x and weights, cache.
fn quantized_attention(b: &mut NodeBuilder) -> Result<()> {
    let x = Quantized::inputs(b, 0, 3, 6)?;
    let weights = Quantized::inputs(b, 1, 4, 7)?;
    let all = product(b, &x, &weights, None)?;
    let bias = b.input(2)?;
    let all = b.add(all, bias)?;
    let places = Places {
        mask: 5,
        past: 8,
        bias: None,
        cached: None,
    };
    finished(b, all, &places)
}

/// The attention, `all` being queries, keys and values side by side.
fn finished(b: &mut NodeBuilder, all: ValueId, places: &Places) -> Result<()> {
    let heads = b.count("num_heads", None)?;
    if b.flag("do_rotary")? {
        return Err(unsupported("rotary positions without their angles"));
    }
    let parts = match b.ints("qkv_hidden_sizes")? {
        Some(sizes) => {
            let sizes = b.i64s(&sizes)?;
            b.apply(Split { axis: -1 }, &[Some(all), Some(sizes)], 3)?
        }
        None => b.apply(Split { axis: -1 }, &[Some(all)], 3)?,
    };
    let mut split = Vec::with_capacity(3);
    for part in parts {
        split.push(split_heads(b, part, heads)?);
    }
    let past = b.optional(places.past)?;
    let fixed = b.flag("past_present_share_buffer")?;
    let offset = match (past, fixed, places.cached) {
        (None, ..) => None,
        (Some(past), false, _) => Some(b.dim(past, 3)?),
        (Some(_), true, Some(cached)) => {
            let cached = b.input(cached)?;
            let cached = b.cast(cached, DType::I64)?;
            Some(b.reshape(cached, &[1])?)
        }
        (Some(_), true, None) => return Err(unsupported("a cache of a fixed size")),
    };
    let mut present = [split[1], split[2]];
    if let (Some(past), Some(before)) = (past, offset) {
        for (i, x) in present.iter_mut().enumerate() {
            let (first, end) = (i as i64, i as i64 + 1);
            let own = b.slice(past, 0, first, end)?;
            let own = b.squeeze(own, &[0])?;
            if !fixed {
                *x = b.concat(&[own, *x], 2)?;
                split[1 + i] = *x;
                continue;
            }
            let new = b.dim(*x, 2)?;
            let batch = b.dim(own, 0)?;
            let places = b.expand(before, batch)?;
            *x = cache::filled(b, own, *x, places, None)?;
            // What is not filled yet is no key.
            let (start, end, axis) = (b.i64s(&[0])?, b.add(before, new)?, b.i64s(&[2])?);
            split[1 + i] = b.op(Slice, &[*x, start, end, axis])?;
        }
    }
    if b.has_output(1) {
        let key = b.unsqueeze(present[0], &[0])?;
        let value = b.unsqueeze(present[1], &[0])?;
        let present = b.concat(&[key, value], 0)?;
        b.bind(1, present)?;
    }
    let rules = Rules {
        place: match offset {
            None => Place::Start,
            Some(offset) if fixed => Place::Behind(offset),
            Some(_) => Place::End,
        },
        causal: b.flag("unidirectional")?,
        ..Rules::default()
    };
    let mut bias = match places.bias {
        Some(i) => b.optional(i)?,
        None => None,
    };
    if let Some(mask) = b.optional(places.mask)? {
        let mask = masked(b, mask, split[0], split[1])?;
        bias = Some(match bias {
            Some(bias) => b.add(bias, mask)?,
            None => mask,
        });
    }
    finish(b, &attending([split[0], split[1], split[2]], rules, bias))
}

/// What a mask adds to the scores: nothing, or `mask_filter_value` where it hides a key. A mask has a
/// number for each key, for each query and key, or counts the keys of each sequence, `[batch]`; twice
/// as many are their ends, then their beginnings.
fn masked(b: &mut NodeBuilder, mask: ValueId, query: ValueId, key: ValueId) -> Result<ValueId> {
    let seen = match b.rank(mask)? {
        1 => counted(b, mask, query, key)?,
        rank => {
            let seen = b.cast(mask, DType::Bool)?;
            match rank {
                2 => b.unsqueeze(seen, &[1, 2])?,
                3 => b.unsqueeze(seen, &[1])?,
                _ => return Err(unsupported("a square mask of the longest sequence")),
            }
        }
    };
    let zero = b.number(0.0, query)?;
    let filter = b.float_or("mask_filter_value", -10000.0)?;
    let filter = b.number(filter.into(), query)?;
    b.choose(seen, zero, filter)
}

/// Which keys are below the count of their sequence.
fn counted(b: &mut NodeBuilder, mask: ValueId, query: ValueId, key: ValueId) -> Result<ValueId> {
    let count =
        |b: &mut NodeBuilder, v: ValueId| b.fact(v).shape.and_then(|s| s.0.first()?.known());
    let keys = b.dim(key, 2)?;
    let keys = b.iota(keys)?;
    let compare = |b: &mut NodeBuilder, bound: ValueId, kind: BinaryKind| -> Result<ValueId> {
        let bound = b.cast(bound, DType::I64)?;
        let bound = b.unsqueeze(bound, &[1, 2, 3])?;
        b.binary(kind, keys, bound)
    };
    let (Some(batch), Some(numbers)) = (count(b, query), count(b, mask)) else {
        let first =
            |b: &mut NodeBuilder, v: ValueId| b.fact(v).shape.and_then(|s| s.0.first().cloned());
        return match (first(b, query), first(b, mask)) {
            (Some(batch), Some(numbers)) if batch.same(&numbers) => {
                compare(b, mask, BinaryKind::Less)
            }
            _ => Err(unsupported(
                "a mask of counts for a batch known only at run time",
            )),
        };
    };
    let bound = |b: &mut NodeBuilder, first: usize, kind: BinaryKind| -> Result<ValueId> {
        let bound = b.slice(mask, 0, first as i64, (first + batch) as i64)?;
        compare(b, bound, kind)
    };
    let below = bound(b, 0, BinaryKind::Less)?;
    match numbers {
        n if n == batch => Ok(below),
        n if Some(n) == batch.checked_mul(2) => {
            let behind = bound(b, batch, BinaryKind::GreaterOrEqual)?;
            b.binary(BinaryKind::And, below, behind)
        }
        _ => Err(unsupported("a mask of counts and positions")),
    }
}

/// Inputs: words, optional segments, tables of words, positions and optionally segments, scale and
/// bias of the normalisation, optional mask and positions.
fn embed_layer_norm(b: &mut NodeBuilder) -> Result<()> {
    let gather = Gather { axis: 0 };
    let (ids, words, positions) = (b.input(0)?, b.input(2)?, b.input(3)?);
    let words = b.op(gather.clone(), &[words, ids])?;
    let positions = match b.optional(8)? {
        Some(which) => b.op(gather.clone(), &[positions, which])?,
        None => {
            let length = b.dim(ids, 1)?;
            let first = b.iota(length)?;
            b.op(gather.clone(), &[positions, first])?
        }
    };
    let mut sum = b.add(words, positions)?;
    if let (Some(segments), Some(table)) = (b.optional(1)?, b.optional(4)?) {
        let segments = b.op(gather, &[table, segments])?;
        sum = b.add(sum, segments)?;
    }
    b.bind(2, sum)?;
    let epsilon = b.float_or("epsilon", 1e-12)?;
    let inputs = [Some(sum), Some(b.input(5)?), b.optional(6)?];
    let y = b.apply(LayerNorm { axis: -1, epsilon }, &inputs, 1)?;
    b.bind(0, y[0])?;
    if b.has_output(1) {
        let counted = match b.optional(7)? {
            Some(mask) => mask,
            None => {
                let zero = b.number(0.0, ids)?;
                b.mul(ids, zero)?
            }
        };
        let counts = b.reduce(ReduceKind::Sum, counted, &[1], false)?;
        b.bind(1, counts)?;
    }
    Ok(())
}
