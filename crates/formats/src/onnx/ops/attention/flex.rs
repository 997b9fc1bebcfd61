//! FlexAttention: scores and probabilities are changed by bodies of the node.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::heads::Heads;
use super::node::{Attending, sums_of};
use super::rules::Rules;
use super::written::softmax;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

/// Inputs: query, key, value.
pub fn flex_attention(b: &mut NodeBuilder) -> Result<()> {
    let (query, key, value) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let sums = sums_of(b.dtype(query));
    let precision = match b.int_or("softmax_precision", 0)? {
        0 => sums,
        n => dtype(n)?,
    };
    let changed = b.attribute("score_mod").is_some() || b.attribute("prob_mod").is_some();
    if !changed && precision == sums {
        let attending = Attending {
            query,
            key,
            value,
            rules: Rules::default(),
            bias: None,
            sinks: None,
            zeros: false,
        };
        let y = attending.node(b)?;
        return b.bind(0, y);
    }
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
