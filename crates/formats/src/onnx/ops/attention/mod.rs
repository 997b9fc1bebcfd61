//! Attention, written out.

mod flex;
mod heads;
mod rules;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{ReduceKind, Softmax, SoftmaxKind, UnaryKind};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::tensor::dtype;

pub use heads::{Heads, check_groups, split_heads};
pub use rules::{Bias, Rules};

pub static OPERATORS: Family = OpTable(&[("Attention", attention)]);

pub const PREVIEW_DOMAIN: &str = "ai.onnx.preview";

pub static PREVIEW: Family = OpTable(&[("FlexAttention", flex::flex_attention)]);

/// The probabilities of the keys by scores `[batch, heads, queries, keys]`.
pub fn softmax(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    b.op(op, &[x])
}

/// `cap · tanh(scores / cap)`, where the attribute `softcap` gives one.
pub fn capped(b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
    let cap = b.float_or("softcap", 0.0)?;
    if cap <= 0.0 {
        return Ok(scores);
    }
    let cap = b.number(cap.into(), scores)?;
    let x = b.div(scores, cap)?;
    let x = b.unary(UnaryKind::Tanh, x)?;
    b.mul(x, cap)
}

/// Inputs: query, key, value, mask, cached key and value, lengths of what is no padding.
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
    scores = capped(b, scores)?;
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
    let probabilities = probabilities(b, scores, bias, query)?;
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

/// The probabilities of the keys, in the element type of the query. `bias` is in the scores already.
fn probabilities(
    b: &mut NodeBuilder,
    mut scores: ValueId,
    bias: Option<Bias>,
    query: ValueId,
) -> Result<ValueId> {
    let probabilities = match b.int_or("softmax_precision", 0)? {
        0 => softmax(b, scores)?,
        precision => {
            scores = b.cast(scores, dtype(precision)?)?;
            let probabilities = softmax(b, scores)?;
            b.cast_like(probabilities, query)?
        }
    };
    let Some(bias) = bias.filter(|bias| bias.may_mask_rows) else {
        return Ok(probabilities);
    };
    // A query that may attend to nothing gives zeros.
    let best = b.reduce(ReduceKind::Max, bias.value, &[-1], true)?;
    let lowest = UnaryKind::IsInf {
        negative: true,
        positive: false,
    };
    let masked = b.unary(lowest, best)?;
    let zero = b.number(0.0, probabilities)?;
    b.choose(masked, zero, probabilities)
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
