//! From the scores of a model to what it gives out.

use std::f64::consts::PI;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{ArgReduce, BinaryKind, Gather, ReduceKind, Softmax, SoftmaxKind, UnaryKind};
use kilim_core::tensor::Tensor;

use crate::onnx::builder::{NodeBuilder, unknown};

/// What is done with scores last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostTransform {
    None,
    Softmax,
    Logistic,
    /// Softmax where zeros stay zeros.
    SoftmaxZero,
    Probit,
}

impl PostTransform {
    /// The transform that the attribute `post_transform` names.
    pub fn named(b: &NodeBuilder) -> Result<PostTransform> {
        Ok(match b.text_or("post_transform", "NONE")? {
            "NONE" => PostTransform::None,
            "SOFTMAX" => PostTransform::Softmax,
            "LOGISTIC" => PostTransform::Logistic,
            "SOFTMAX_ZERO" => PostTransform::SoftmaxZero,
            "PROBIT" => PostTransform::Probit,
            other => return Err(unknown("post_transform", other)),
        })
    }

    /// Applies the transform to scores `[rows, n]`.
    pub fn apply(self, b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
        match self {
            PostTransform::None => Ok(scores),
            PostTransform::Softmax => {
                let op = Softmax {
                    kind: SoftmaxKind::Softmax,
                    axis: 1,
                    beta: 1.0,
                };
                b.op(op, &[scores])
            }
            PostTransform::Logistic => b.unary(UnaryKind::Sigmoid, scores),
            PostTransform::SoftmaxZero => softmax_zero(b, scores),
            PostTransform::Probit => probit(b, scores),
        }
    }
}

fn softmax_zero(b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
    let most = b.reduce(ReduceKind::Max, scores, &[1], true)?;
    let shifted = b.sub(scores, most)?;
    let exponential = b.unary(UnaryKind::Exp, shifted)?;
    let turned = b.unary(UnaryKind::Neg, most)?;
    let scale = b.unary(UnaryKind::Exp, turned)?;
    let small = b.mul(scores, scale)?;
    let size = b.unary(UnaryKind::Abs, scores)?;
    let least = b.number(1e-7, scores)?;
    let counts = b.binary(BinaryKind::Greater, size, least)?;
    let parts = b.choose(counts, exponential, small)?;
    let sum = b.reduce(ReduceKind::Sum, parts, &[1], true)?;
    b.div(parts, sum)
}

/// The approximation that the standard's reference uses (Winitzki 2008), of `2 x - 1`.
fn probit(b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
    let number = |b: &mut NodeBuilder, n: f64| b.number(n, scores);
    let (one, two, half) = (number(b, 1.0)?, number(b, 2.0)?, number(b, 0.5)?);
    let x = b.mul(scores, two)?;
    let x = b.sub(x, one)?;
    let square = b.mul(x, x)?;
    let rest = b.sub(one, square)?;
    let log = b.unary(UnaryKind::Log, rest)?;
    let first = number(b, 2.0 / (PI * 0.147))?;
    let log_half = b.mul(log, half)?;
    let v = b.add(log_half, first)?;
    let scale = number(b, 1.0 / 0.147)?;
    let v2 = b.mul(log, scale)?;
    let square = b.mul(v, v)?;
    let under = b.sub(square, v2)?;
    let root = b.unary(UnaryKind::Sqrt, under)?;
    let inner = b.sub(root, v)?;
    let inverse = b.unary(UnaryKind::Sqrt, inner)?;
    let sign = b.unary(UnaryKind::Sign, x)?;
    let y = b.mul(sign, inverse)?;
    let scale = number(b, std::f64::consts::SQRT_2)?;
    b.mul(y, scale)
}

/// `[-scores, scores]`, or `[1 - scores, scores]`, of one column.
pub fn both_sides(b: &mut NodeBuilder, scores: ValueId, from_one: bool) -> Result<ValueId> {
    let other = if from_one {
        let one = b.number(1.0, scores)?;
        b.sub(one, scores)?
    } else {
        b.unary(UnaryKind::Neg, scores)?
    };
    b.concat(&[other, scores], 1)
}

/// The labels of the classes of a model.
pub struct Labels {
    /// A vector; `None` where the number of a class is its label.
    all: Option<Tensor>,
}

impl Labels {
    /// The labels of the attribute `strings`, or else of `integers`; none where both are empty.
    pub fn read(b: &NodeBuilder, integers: &str, strings: &str) -> Result<Labels> {
        if b.texts(strings)?.is_some_and(|list| !list.is_empty()) {
            let all = Some(b.text_list(strings)?);
            return Ok(Labels { all });
        }
        let list = b.ints(integers)?.filter(|list| !list.is_empty());
        let all = list.map(|list| Tensor::from_slice(&[list.len()], &list));
        Ok(Labels {
            all: all.transpose()?,
        })
    }

    pub fn len(&self) -> usize {
        self.all.as_ref().map_or(0, Tensor::len)
    }

    /// Where there is one label alone: that label or, where the condition does not hold, 0 or the
    /// empty text.
    pub fn or_nothing(&self, b: &mut NodeBuilder, condition: ValueId) -> Result<ValueId> {
        let label = b.i64s(&[0])?;
        let label = self.of(b, label)?;
        let nothing = match b.dtype(label) {
            Some(DType::String) => Tensor::from_texts(&[1], vec!["".into()])?,
            _ => Tensor::from_slice(&[1], &[0i64])?,
        };
        let nothing = b.tensor_value(nothing);
        b.choose(condition, label, nothing)
    }

    /// The labels of classes by number, `int64` or strings.
    pub fn of(&self, b: &mut NodeBuilder, classes: ValueId) -> Result<ValueId> {
        match &self.all {
            Some(all) => {
                let all = b.tensor_value(all.clone());
                b.op(Gather { axis: 0 }, &[all, classes])
            }
            None => Ok(classes),
        }
    }

    /// The label of the largest of each row of scores.
    pub fn of_largest(&self, b: &mut NodeBuilder, scores: ValueId) -> Result<ValueId> {
        let op = ArgReduce {
            max: true,
            axis: 1,
            keep_dims: false,
            select_last: false,
            output: DType::I64,
        };
        let classes = b.op(op, &[scores])?;
        self.of(b, classes)
    }

    /// The second label where a condition `[rows]` holds, else the first.
    pub fn of_two(&self, b: &mut NodeBuilder, second: ValueId) -> Result<ValueId> {
        let classes = b.cast(second, DType::I64)?;
        self.of(b, classes)
    }
}
