//! Matrix products.

use std::sync::Arc;

use super::rules::{
    FLOATS, NUMBERS, WIDE_NUMBERS, broadcast, broadcasts_to, fact, too_large, unify, wrong_count,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator};

/// Inputs: a, b, optional bias that broadcasts to the last dimension. numpy's `matmul` with
/// broadcasting of the leading dimensions, then the bias, then the activation.
#[derive(Clone, Debug, PartialEq, Default, Reflect)]
pub struct MatMul {
    /// `b` is `[.., n, k]`.
    pub transpose_b: bool,
    /// Multiplies the product before the bias.
    pub alpha: Option<f32>,
    pub activation: Activation,
}

/// `alpha * A' B' + beta * C`; inputs a, b (two dimensions), optional c that broadcasts to the output.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Gemm {
    pub alpha: f32,
    pub beta: f32,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub activation: Activation,
}

/// Einstein summation, the equation without spaces.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Einsum {
    pub equation: String,
}

/// The determinant of the last two dimensions.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Det;

/// A product of (stacks of) matrices with everything resolved. A vector counts as a matrix of one
/// row on the left and of one column on the right; the output lacks that dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatMulGeometry {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    /// Leading dimensions of a, of b, and what they broadcast to.
    pub a_batch: Vec<usize>,
    pub b_batch: Vec<usize>,
    pub batch: Vec<usize>,
    /// The shape of the output.
    pub output: Vec<usize>,
}

impl MatMulGeometry {
    /// The geometry, from the shapes of the factors.
    ///
    /// # Errors
    /// `Shape` where they do not fit each other.
    pub fn new(a: &[usize], b: &[usize], transpose_b: bool) -> Result<MatMulGeometry> {
        let (left, right) = (Shape::fixed(a), Shape::fixed(b));
        let product = Product::new(&left, &right, transpose_b)?;
        let number = |d: &Dim| d.known().ok_or_else(too_large);
        let numbers = |s: Shape| s.concrete().ok_or_else(too_large);
        Ok(MatMulGeometry {
            m: number(&product.m)?,
            k: number(&product.k)?,
            n: number(&product.n)?,
            a_batch: a[..a.len().saturating_sub(2)].to_vec(),
            b_batch: b[..b.len().saturating_sub(2)].to_vec(),
            batch: numbers(product.batch)?,
            output: numbers(product.output)?,
        })
    }
}

/// [`MatMulGeometry`] on symbolic shapes.
pub(crate) struct Product {
    m: Dim,
    k: Dim,
    n: Dim,
    batch: Shape,
    pub output: Shape,
}

impl Product {
    /// `Shape` where a factor is a scalar, or the factors do not fit each other.
    pub fn new(a: &Shape, b: &Shape, transpose_b: bool) -> Result<Product> {
        let one = Dim::Known(1);
        let (a_batch, m, ka) = match a.0.as_slice() {
            [] => return Err(shape_error("a factor of MatMul must not be a scalar")),
            [k] => (&[][..], &one, k),
            [batch @ .., m, k] => (batch, m, k),
        };
        let (b_batch, kb, n) = match b.0.as_slice() {
            [] => return Err(shape_error("a factor of MatMul must not be a scalar")),
            [k] => (&[][..], k, &one),
            [batch @ .., n, k] if transpose_b => (batch, k, n),
            [batch @ .., k, n] => (batch, k, n),
        };
        let k = unify(kb, ka, || "the inner dimension of a product".into())?;
        let batch = broadcast(&Shape(a_batch.to_vec()), &Shape(b_batch.to_vec()))?;
        let mut output = batch.0.clone();
        if a.rank() > 1 {
            output.push(m.clone());
        }
        if b.rank() > 1 {
            output.push(n.clone());
        }
        Ok(Product {
            m: m.clone(),
            k,
            n: n.clone(),
            batch,
            output: Shape(output),
        })
    }
}

/// Two operations for each of the `k` multiplications of an output element.
fn product_cost(inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>], k: usize) -> Cost {
    let base = Cost::elementwise(inputs, outputs);
    Cost {
        flops: 2.0 * base.flops * k as f64,
        ..base
    }
}

/// The cost of a product whose left factor ends in the inner dimension.
pub(crate) fn matmul_cost(inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
    let last = inputs.first().and_then(|a| a.as_ref()?.last().copied());
    product_cost(inputs, outputs, last.unwrap_or(1))
}

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &WIDE_NUMBERS)?;
        let dtype = ctx.common_type(0..3)?;
        let (Some(a), Some(b)) = (ctx.shape(0)?, ctx.shape(1)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let shape = Product::new(a, b, self.transpose_b)?.output;
        if let Some(bias) = ctx.shape_optional(2) {
            broadcasts_to(bias, &shape, "the bias")?;
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        matmul_cost(inputs, outputs)
    }

    fn swapped(&self, i: usize) -> Option<Arc<dyn Operator>> {
        let transpose_b = !self.transpose_b;
        let swapped = || {
            Arc::new(MatMul {
                transpose_b,
                ..self.clone()
            }) as Arc<dyn Operator>
        };
        (i == 1).then(swapped)
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || MatMul {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }
}

impl Operator for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &WIDE_NUMBERS)?;
        let dtype = ctx.common_type(0..3)?;
        let (a, b) = (ctx.shape_of_rank(0, 2)?, ctx.shape_of_rank(1, 2)?);
        ctx.require(2)?;
        let pair = |s: Option<&Shape>, transposed: bool| match s.map(|s| s.0.as_slice()) {
            Some([r, c]) if transposed => (c.clone(), r.clone()),
            Some([r, c]) => (r.clone(), c.clone()),
            _ => (Dim::Unknown, Dim::Unknown),
        };
        let (m, ka) = pair(a, self.transpose_a);
        let (kb, n) = pair(b, self.transpose_b);
        unify(&kb, &ka, || "the inner dimension of a product".into())?;
        let shape = Shape(vec![m, n]);
        if let Some(c) = ctx.shape_optional(2) {
            broadcasts_to(c, &shape, "the addend")?;
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        let inner = usize::from(!self.transpose_a);
        let k = inputs.first().and_then(|a| a.as_ref()?.get(inner).copied());
        product_cost(inputs, outputs, k.unwrap_or(1))
    }

    fn swapped(&self, i: usize) -> Option<Arc<dyn Operator>> {
        let swapped = || Gemm {
            transpose_a: self.transpose_a ^ (i == 0),
            transpose_b: self.transpose_b ^ (i == 1),
            ..self.clone()
        };
        (i < 2).then(|| Arc::new(swapped()) as Arc<dyn Operator>)
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || Gemm {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }
}

/// An equation with the dimensions of its operands numbered: equal numbers are one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumPlan {
    /// For each operand, the index of each dimension.
    pub inputs: Vec<Vec<usize>>,
    /// The index of each dimension of the output; the others are summed over.
    pub output: Vec<usize>,
    /// How many indices there are.
    pub labels: usize,
}

/// A letter, or one of the dimensions that an ellipsis stands for, counted from the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

fn einsum_term(term: &str, rank: Option<usize>, widest: usize) -> Result<Vec<Label>> {
    let bad = |why: &str| value_error(format!("the term `{term}` of an equation {why}"));
    let letters = |part: &str| -> Result<Vec<Label>> {
        part.chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' => Ok(Label::Letter(c)),
                _ => Err(bad("has a character that is no letter")),
            })
            .collect()
    };
    let Some((before, after)) = term.split_once("...") else {
        return letters(term);
    };
    let (mut labels, after) = (letters(before)?, letters(after)?);
    let hidden = match rank {
        Some(rank) => rank
            .checked_sub(labels.len() + after.len())
            .ok_or_else(|| bad("has more letters than its operand dimensions"))?,
        None => widest,
    };
    labels.extend((0..hidden).rev().map(Label::Ellipsis));
    labels.extend(after);
    Ok(labels)
}

impl EinsumPlan {
    /// Parses `equation` for operands of these ranks.
    ///
    /// # Errors
    /// `InvalidValue` where the equation is garbled, `Shape` where it does not fit the operands.
    pub fn new(equation: &str, ranks: &[usize]) -> Result<EinsumPlan> {
        let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((l, r)) => (l, Some(r)),
            None => (text.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return Err(wrong_count("the equation", ranks.len(), terms.len()));
        }
        let mut operands = Vec::with_capacity(terms.len());
        for (term, &rank) in terms.iter().zip(ranks) {
            let labels = einsum_term(term, Some(rank), 0)?;
            if labels.len() != rank {
                return Err(
                    shape_error(format!("the term `{term}` does not fit its operand"))
                        .with_expected(format!("rank {}", labels.len()))
                        .with_got(format!("rank {rank}")),
                );
            }
            operands.push(labels);
        }
        let hidden = |l: &Label| matches!(l, Label::Ellipsis(_));
        let widest = operands
            .iter()
            .map(|o| o.iter().filter(|l| hidden(l)).count());
        let widest = widest.max().unwrap_or(0);
        let all: Vec<Label> = operands.iter().flatten().copied().collect();
        let output = match right {
            Some(term) => einsum_term(term, None, widest)?,
            None => {
                // Every letter that stands once, in alphabetical order, behind the ellipsis.
                let once = |l: &Label| all.iter().filter(|o| *o == l).count() == 1;
                let alphabet = ('A'..='Z').chain('a'..='z').map(Label::Letter);
                let letters = alphabet.filter(once);
                let ellipsis = (0..widest).rev().map(Label::Ellipsis);
                ellipsis.chain(letters).collect()
            }
        };
        let mut known: Vec<Label> = Vec::new();
        for label in &all {
            if !known.contains(label) {
                known.push(*label);
            }
        }
        let number = |labels: &[Label]| -> Result<Vec<usize>> {
            labels
                .iter()
                .map(|l| {
                    known.iter().position(|k| k == l).ok_or_else(|| {
                        value_error("the output of an equation has an index that no operand has")
                    })
                })
                .collect()
        };
        let plan = EinsumPlan {
            inputs: operands.iter().map(|o| number(o)).collect::<Result<_>>()?,
            output: number(&output)?,
            labels: known.len(),
        };
        let repeated = |i: &usize| plan.output.iter().filter(|o| *o == i).count() > 1;
        if plan.output.iter().any(repeated) {
            return Err(value_error("the output of an equation has an index twice"));
        }
        Ok(plan)
    }

    /// The size of each index. Dimensions of 1 broadcast.
    ///
    /// # Errors
    /// `Shape` where two dimensions of one index differ.
    pub fn extents(&self, shapes: &[&Shape]) -> Result<Vec<Dim>> {
        let mut extents = vec![Dim::Known(1); self.labels];
        for (labels, shape) in self.inputs.iter().zip(shapes) {
            for (&label, dim) in labels.iter().zip(&shape.0) {
                extents[label] = extents[label].broadcast(dim).ok_or_else(|| {
                    shape_error("two dimensions of one index differ")
                        .with_expected(&extents[label])
                        .with_got(dim)
                })?;
            }
        }
        Ok(extents)
    }
}

impl Operator for Einsum {
    fn name(&self) -> &'static str {
        "Einsum"
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        let dtype = ctx.common_type(0..ctx.inputs.len())?;
        let shapes = (0..ctx.inputs.len()).map(|i| ctx.shape(i));
        let shapes: Option<Vec<&Shape>> = shapes.collect::<Result<_>>()?;
        let Some(shapes) = shapes else {
            return Ok(vec![fact(dtype, None)]);
        };
        let ranks: Vec<usize> = shapes.iter().map(|s| s.rank()).collect();
        let plan = EinsumPlan::new(&self.equation, &ranks)?;
        let extents = plan.extents(&shapes)?;
        let dims = plan.output.iter().map(|&l| extents[l].clone()).collect();
        Ok(vec![fact(dtype, Some(Shape(dims)))])
    }

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let shapes: Vec<Shape> = inputs.iter().flatten().map(|s| Shape::fixed(s)).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let ranks: Vec<usize> = shapes.iter().map(|s| s.rank()).collect();
        let extents = EinsumPlan::new(&self.equation, &ranks).and_then(|p| p.extents(&shapes));
        let points = extents.map_or(base.flops, |extents| {
            extents
                .iter()
                .map(|d| d.known().unwrap_or(1) as f64)
                .product()
        });
        Cost {
            flops: 2.0 * points,
            ..base
        }
    }
}

impl Operator for Det {
    fn name(&self) -> &'static str {
        "Det"
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &FLOATS)?;
        let Some(x) = ctx.shape_of_min_rank(0, 2)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let (batch, square) = x.0.split_at(x.rank() - 2);
        unify(&square[1], &square[0], || {
            "a matrix that must be square".into()
        })?;
        Ok(vec![fact(dtype, Some(Shape(batch.to_vec())))])
    }
}
