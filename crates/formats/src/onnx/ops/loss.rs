//! Losses, written out.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, Gather, GatherElements, ReduceKind, Softmax, SoftmaxKind, UnaryKind,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};

pub static OPERATORS: Family = OpTable(&[
    ("NegativeLogLikelihoodLoss", |b| {
        let scores = b.input(0)?;
        let loss = negative_log_likelihood(b, scores)?;
        b.bind(0, loss)
    }),
    ("SoftmaxCrossEntropyLoss", |b| {
        let scores = b.input(0)?;
        let op = Softmax {
            kind: SoftmaxKind::LogSoftmax,
            axis: 1,
            beta: 1.0,
        };
        let log = b.op(op, &[scores])?;
        let loss = negative_log_likelihood(b, log)?;
        b.bind(0, loss)?;
        b.bind(1, log)
    }),
]);

/// The loss for logarithms of probabilities `[n, classes, ..]`. Input 1 is the target `[n, ..]`, input 2 the
/// optional weight of each class.
fn negative_log_likelihood(b: &mut NodeBuilder, log: ValueId) -> Result<ValueId> {
    let mut target = b.input(1)?;
    let class_weights = b.optional(2)?;
    let mut ignored = None;
    if let Some(index) = b.int("ignore_index")? {
        let index = b.number(index as f64, target)?;
        let zero = b.number(0.0, target)?;
        let is = b.binary(BinaryKind::Equal, target, index)?;
        target = b.choose(is, zero, target)?;
        ignored = Some(is);
    }
    let column = b.unsqueeze(target, &[1])?;
    let picked = b.op(GatherElements { axis: 1 }, &[log, column])?;
    let picked = b.squeeze(picked, &[1])?;
    let mut loss = b.unary(UnaryKind::Neg, picked)?;
    let mut weights = match class_weights {
        Some(w) => Some(b.op(Gather { axis: 0 }, &[w, target])?),
        None => None,
    };
    if let Some(is) = ignored {
        let zero = b.number(0.0, log)?;
        let other = match weights {
            Some(w) => w,
            None => b.number(1.0, log)?,
        };
        weights = Some(b.choose(is, zero, other)?);
    }
    if let Some(w) = weights {
        loss = b.mul(loss, w)?;
    }
    let axes: Vec<i64> = (0..b.rank(target)? as i64).collect();
    match (b.text_or("reduction", "mean")?, weights) {
        ("none", _) => Ok(loss),
        ("sum", _) => b.reduce(ReduceKind::Sum, loss, &axes, false),
        ("mean", None) => b.reduce(ReduceKind::Mean, loss, &axes, false),
        ("mean", Some(w)) => {
            let loss = b.reduce(ReduceKind::Sum, loss, &axes, false)?;
            let weight = b.reduce(ReduceKind::Sum, w, &axes, false)?;
            b.div(loss, weight)
        }
        (other, _) => Err(unknown("reduction", other)),
    }
}
