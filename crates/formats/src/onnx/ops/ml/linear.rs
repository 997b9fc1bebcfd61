//! Linear models.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, MatMul};
use kilim_core::tensor::Tensor;

use super::scores::{Labels, PostTransform, both_sides};
use super::{Family, OpTable, rows};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("LinearClassifier", classifier),
    ("LinearRegressor", regressor),
]);

/// `x * coefficients + intercepts`, `[rows, targets]`.
fn linear(b: &mut NodeBuilder, targets: Option<usize>) -> Result<(ValueId, usize)> {
    let x = rows(b, DType::F32)?;
    let coefficients = b.floats("coefficients")?.unwrap_or_default();
    let intercepts = b.floats("intercepts")?.unwrap_or_default();
    let features = b.fact(x).shape.and_then(|s| s.0.last()?.known());
    let targets = match (targets, features) {
        (Some(targets), _) => targets,
        (None, Some(features)) if features > 0 => coefficients.len() / features,
        _ => intercepts.len(),
    };
    if targets == 0 || coefficients.len() % targets != 0 {
        return Err(invalid("the coefficients do not fit the features"));
    }
    let features = coefficients.len() / targets;
    // One row of the file for each target.
    let mut turned = vec![0f32; coefficients.len()];
    for (i, &c) in coefficients.iter().enumerate() {
        turned[i % features * targets + i / features] = c;
    }
    let weights = Tensor::from_slice(&[features, targets], &turned)?;
    let weights = b.tensor_value(weights);
    let mut y = b.op(MatMul::default(), &[x, weights])?;
    if !intercepts.is_empty() {
        let bias = Tensor::from_slice(&[intercepts.len()], &intercepts)?;
        let bias = b.tensor_value(bias);
        y = b.add(y, bias)?;
    }
    Ok((y, targets))
}

fn regressor(b: &mut NodeBuilder) -> Result<()> {
    let targets = b.count("targets", Some(1))?;
    let (y, _) = linear(b, Some(targets))?;
    let y = PostTransform::named(b)?.apply(b, y)?;
    b.bind(0, y)
}

fn classifier(b: &mut NodeBuilder) -> Result<()> {
    let labels = Labels::read(b, "classlabels_ints", "classlabels_strings")?;
    let post = PostTransform::named(b)?;
    let (scores, targets) = linear(b, None)?;
    if targets > 1 {
        let label = labels.of_largest(b, scores)?;
        let scores = post.apply(b, scores)?;
        b.bind(0, label)?;
        return b.bind(1, scores);
    }
    let zero = b.number(0.0, scores)?;
    let positive = b.binary(BinaryKind::Greater, scores, zero)?;
    let positive = b.squeeze(positive, &[1])?;
    let label = if labels.len() == 1 {
        labels.or_nothing(b, positive)?
    } else {
        labels.of_two(b, positive)?
    };
    let scores = match labels.len() {
        2 => both_sides(b, scores, false)?,
        _ => scores,
    };
    let scores = post.apply(b, scores)?;
    b.bind(0, label)?;
    b.bind(1, scores)
}
