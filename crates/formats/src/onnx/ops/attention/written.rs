//! Attention written out in smaller operators, for models that show what stands between them or compute it in another type.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{ReduceKind, Softmax, SoftmaxKind, UnaryKind};

use super::heads::Heads;
use super::node::{Attending, scale, softcap};
use crate::onnx::builder::NodeBuilder;

/// All steps of attention. All but the output are `[batch, query heads, queries, keys]`.
pub struct Written {
    /// Products of queries and keys.
    pub products: ValueId,
    /// Products below the attribute `softcap`.
    pub capped: ValueId,
    /// Scores with everything that is added to them.
    pub scores: ValueId,
    pub probabilities: ValueId,
    /// `[batch, query heads, queries, value size]`.
    pub y: ValueId,
}

/// The probabilities of the keys by scores `[batch, heads, queries, keys]`.
pub fn softmax(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    b.op(op, &[x])
}

impl Attending {
    /// Each step as nodes of its own; `precision` is the type of the softmax where it is another than that of the scores.
    ///
    /// # Errors
    /// Where the heads of the query are no whole groups for those of the key.
    pub fn written_out(&self, b: &mut NodeBuilder, precision: Option<DType>) -> Result<Written> {
        let heads = Heads::new(b, self.query, self.key, self.value)?;
        let scale = scale(b)?;
        let products = heads.scores(b, self.query, scale)?;
        let capped = capped(b, products)?;
        let mut scores = capped;
        if let Some(bias) = self.bias {
            scores = b.add(scores, bias)?;
        }
        let bias = self.rules.bias(b, self.query, self.key)?;
        if let Some(bias) = bias {
            scores = b.add(scores, bias)?;
        }
        let mut probabilities = match precision {
            None => self.probabilities(b, scores)?,
            Some(precision) => {
                let wide = b.cast(scores, precision)?;
                let probabilities = self.probabilities(b, wide)?;
                b.cast_like(probabilities, self.query)?
            }
        };
        if let Some(bias) = bias.filter(|_| self.zeros) {
            let best = b.reduce(ReduceKind::Max, bias, &[-1], true)?;
            let lowest = UnaryKind::IsInf {
                negative: true,
                positive: false,
            };
            let masked = b.unary(lowest, best)?;
            let zero = b.number(0.0, probabilities)?;
            probabilities = b.choose(masked, zero, probabilities)?;
        }
        Ok(Written {
            products,
            capped,
            scores,
            probabilities,
            y: heads.weighted(b, probabilities)?,
        })
    }

    /// The softmax of the scores and the sinks, without the latter.
    fn probabilities(&self, b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
        let Some(sinks) = self.sinks else {
            return softmax(b, scores);
        };
        let one = b.i64s(&[1])?;
        let rows = [b.dim(scores, 0)?, b.dim(scores, 1)?, b.dim(scores, 2)?, one];
        let rows = b.vector(&rows)?;
        let sinks = b.cast_like(sinks, scores)?;
        let sinks = b.reshape(sinks, &[1, -1, 1, 1])?;
        let column = b.expand(sinks, rows)?;
        let beside = b.concat(&[scores, column], 3)?;
        let probabilities = softmax(b, beside)?;
        b.slice(probabilities, 3, 0, -1)
    }
}

/// `cap · tanh(scores / cap)`, where the attribute `softcap` gives one.
fn capped(b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
    let Some(cap) = softcap(b)? else {
        return Ok(scores);
    };
    let cap = b.number(cap.into(), scores)?;
    let x = b.div(scores, cap)?;
    let x = b.unary(UnaryKind::Tanh, x)?;
    b.mul(x, cap)
}
