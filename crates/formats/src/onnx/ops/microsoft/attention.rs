//! What every attention of the domain ends in.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::attention::{Heads, Rules, capped, softmax};

/// What attention gives, and the probabilities of the keys, `[batch, heads, queries, keys]`.
pub struct Attended {
    pub y: ValueId,
    pub probabilities: ValueId,
}

/// `softmax(query · keyᵀ · scale + biases) · value` as `[batch, sequence, heads * size]`; the three are
/// `[batch, heads, sequence, size]`. A sink is a score that takes a share of the attention and gives nothing; it
/// broadcasts to `[batch, heads, queries, 1]`.
pub fn attend(
    b: &mut NodeBuilder,
    [query, key, value]: [ValueId; 3],
    rules: &Rules,
    bias: Option<ValueId>,
    sink: Option<ValueId>,
) -> Result<Attended> {
    let heads = Heads::new(b, query, key, value)?;
    let scale = b.float("scale")?.filter(|s| *s != 0.0);
    let mut scores = heads.scores(b, query, scale)?;
    scores = capped(b, scores)?;
    if let Some(bias) = bias {
        scores = b.add(scores, bias)?;
    }
    if let Some(bias) = rules.bias(b, query, key)? {
        scores = b.add(scores, bias.value)?;
    }
    let probabilities = match sink {
        None => softmax(b, scores)?,
        Some(sink) => {
            let one = b.i64s(&[1])?;
            let rows = [b.dim(scores, 0)?, b.dim(scores, 1)?, b.dim(scores, 2)?, one];
            let rows = b.vector(&rows)?;
            let sink = b.cast_like(sink, scores)?;
            let column = b.expand(sink, rows)?;
            let beside = b.concat(&[scores, column], 3)?;
            let probabilities = softmax(b, beside)?;
            b.slice(probabilities, 3, 0, -1)?
        }
    };
    let y = heads.weighted(b, probabilities)?;
    let y = b.transpose(y, &[0, 2, 1, 3])?;
    Ok(Attended {
        y: b.reshape(y, &[0, 0, -1])?,
        probabilities,
    })
}
