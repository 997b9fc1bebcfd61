//! Attention.

mod flex;
mod heads;
mod node;
mod rules;
mod written;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::tensor::dtype;

pub use heads::{check_groups, split_heads};
pub use node::{Attending, merged};
pub use rules::{Place, Rules};

pub static OPERATORS: Family = OpTable(&[("Attention", attention)]);

pub const PREVIEW_DOMAIN: &str = "ai.onnx.preview";

pub static PREVIEW: Family = OpTable(&[("FlexAttention", flex::flex_attention)]);

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
    let place = place(b, query, key)?;
    if let Some(past) = b.optional(4)? {
        key = b.concat(&[past, key], 2)?;
        let past_value = b.input(5)?;
        value = b.concat(&[past_value, value], 2)?;
    }
    b.bind(1, key)?;
    b.bind(2, value)?;
    let rules = Rules {
        mask: b.optional(3)?,
        place,
        lengths: b.optional(6)?,
        left: b.int_or("left_window_size", -1)?,
        right: b.int_or("right_window_size", -1)?,
        causal: b.flag("is_causal")?,
    };
    let attending = Attending {
        query,
        key,
        value: b.cast_like(value, query)?,
        zeros: rules.may_hide_all(),
        rules,
        bias: None,
        sinks: None,
    };
    let mut y = output(b, &attending)?;
    if packed {
        y = merged(b, y)?;
    }
    b.bind(0, y)
}

/// The output `[batch, query heads, queries, value size]`; output 3, what `qk_matmul_output_mode` names, is bound where it is read.
fn output(b: &mut NodeBuilder, attending: &Attending) -> Result<ValueId> {
    let precision = match b.int_or("softmax_precision", 0)? {
        0 => None,
        precision => Some(dtype(precision)?),
    };
    let mode = b.int_or("qk_matmul_output_mode", 0)?;
    let sums = node::sums_of(b.dtype(attending.query));
    if !b.has_output(3) && precision.is_none_or(|p| p == sums) {
        return attending.node(b);
    }
    let written = attending.written_out(b, precision)?;
    let shown = match mode {
        0 => Some(written.products),
        1 => Some(written.capped),
        2 => Some(written.scores),
        3 => Some(written.probabilities),
        _ => None,
    };
    if let Some(shown) = shown {
        b.bind(3, shown)?;
    }
    Ok(written.y)
}

/// Where the queries stand: behind the keys of the cache, or with a cache outside behind as many keys as the lengths
/// (input 6) leave. `key` has the new keys alone.
fn place(b: &mut NodeBuilder, query: ValueId, key: ValueId) -> Result<Place> {
    if let Some(past) = b.optional(4)? {
        return Place::behind(b, past, query, key);
    }
    let Some(lengths) = b.optional(6)? else {
        return Ok(Place::Start);
    };
    let lengths = b.cast(lengths, DType::I64)?;
    let queries = b.dim(query, 2)?;
    b.sub(lengths, queries).map(Place::Behind)
}
