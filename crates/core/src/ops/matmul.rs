//! Matrix products.

use std::sync::Arc;

use super::rules::{FLOATS, WIDE_NUMBERS, broadcast, broadcasts_to, fact, too_large, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, NodeView, Operator};

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
fn product_cost(inputs: &[Option<&[usize]>], outputs: &[&[usize]], k: usize) -> Cost {
    let base = Cost::elementwise(inputs, outputs);
    Cost {
        flops: 2.0 * base.flops * k as f64,
        ..base
    }
}

/// The cost of a product whose left factor ends in the inner dimension.
pub(crate) fn matmul_cost(inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
    let last = inputs.first().and_then(|a| a.as_ref()?.last().copied());
    product_cost(inputs, outputs, last.unwrap_or(1))
}

impl Operator for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    signature! { (a, b, optional bias) -> (output) }

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

    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        let (a, b) = (node.rank(0)?, node.rank(1)?);
        let rank = a.max(b);
        if a < 2 || b < 2 || axis + 1 >= rank {
            return None;
        }
        // A row, or a product of several.
        Some(if axis + 2 == rank {
            vec![0, 2]
        } else {
            vec![0, 1, 2]
        })
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
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

    signature! { (a, b, optional c) -> (output) }

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

    fn apart(&self, _: &NodeView, axis: usize) -> Option<Vec<usize>> {
        (axis == 0 && !self.transpose_a).then(|| vec![0, 2])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
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

impl Operator for Det {
    fn name(&self) -> &'static str {
        "Det"
    }

    signature! { (data) -> (output) }

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
