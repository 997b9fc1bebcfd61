//! Products of rows that each choose the matrix of an expert.

use super::matmul::matmul_cost;
use super::packed::{MatMulNBits, PACKED, ZEROS};
use super::rules::{FLOATS, Types, fact, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator};

/// `a · wᵀ + bias` of each row with the weights of its expert: a layer of a mixture of experts.
///
/// Inputs: `a` `[rows, routes, k]`, or `[rows, 1, k]` where all routes of a row begin with the same numbers; the expert of
/// each route, `int32` `[rows, routes]`; weights `[experts, n, k]`; optional bias `[experts, n]`. The output is
/// `[rows, routes, n]`. A number that is no expert's is an error of the run.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ExpertMatMul;

/// An [`ExpertMatMul`] whose weights are packed as those of [`MatMulNBits`].
///
/// Inputs: `a` `[rows, routes, k]` or `[rows, 1, k]`; the expert of each route, `int32` `[rows, routes]`; packed weights, `uint8`, those of
/// an expert behind those of the expert before; a scale for each block; optional zero points, packed `uint8` or as the scales; optional
/// bias `[experts, n]`. The output is `[rows, routes, n]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ExpertMatMulNBits {
    /// Columns of the weights of an expert.
    pub k: usize,
    /// Rows of the weights of an expert.
    pub n: usize,
    pub bits: usize,
    pub block: usize,
}

impl ExpertMatMulNBits {
    /// The product with the weights of one expert.
    pub fn of_one(&self) -> MatMulNBits {
        MatMulNBits {
            k: self.k,
            n: self.n,
            bits: self.bits,
            block: self.block,
            int8: false,
            activation: Activation::None,
        }
    }
}

const EXPERTS: Types = Types::new("int32", |d| d == DType::I32);

/// The shape of the output: `n` numbers for each route.
fn output(ctx: &InferContext, k: &Dim, n: &Dim) -> Result<Shape> {
    ctx.typed(1, &EXPERTS)?;
    let mut out = Shape(vec![Dim::Unknown, Dim::Unknown, n.clone()]);
    if let Some(routes) = ctx.shape_of_rank(1, 2)? {
        out.0[..2].clone_from_slice(&routes.0);
    }
    if let Some(a) = ctx.shape_of_rank(0, 3)? {
        unify(&a.0[2], k, || "the inner dimension of a product".into())?;
        out.0[0] = unify(&a.0[0], &out.0[0], || "the rows of the experts".into())?;
        if a.0[1] != Dim::Known(1) {
            out.0[1] = unify(&a.0[1], &out.0[1], || "the routes of a row".into())?;
        }
    }
    Ok(out)
}

/// `Shape` where the bias is not of `experts` rows of `n` numbers.
fn check_bias(ctx: &InferContext, i: usize, experts: &Dim, n: &Dim) -> Result<()> {
    if let Some(bias) = ctx.shape_of_rank(i, 2)? {
        unify(&bias.0[0], experts, || "the experts of the bias".into())?;
        unify(&bias.0[1], n, || "the columns of the bias".into())?;
    }
    Ok(())
}

impl Operator for ExpertMatMul {
    fn name(&self) -> &'static str {
        "ExpertMatMul"
    }

    signature! { (a, experts, weights, optional bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.require(3)?;
        let dtype = ctx.common_type([0, 2, 3])?;
        let mut sizes = [Dim::Unknown, Dim::Unknown, Dim::Unknown];
        if let Some(weights) = ctx.shape_of_rank(2, 3)? {
            sizes.clone_from_slice(&weights.0);
        }
        let [experts, n, k] = sizes;
        check_bias(ctx, 3, &experts, &n)?;
        Ok(vec![fact(dtype, Some(output(ctx, &k, &n)?))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }
}

impl Operator for ExpertMatMulNBits {
    fn name(&self) -> &'static str {
        "ExpertMatMulNBits"
    }

    signature! { (a, experts, weights, scales, optional zero_points, optional bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let [blocks, bytes, zero_bytes] = self.of_one().row()?;
        ctx.typed(0, &FLOATS)?;
        ctx.typed(2, &PACKED)?;
        ctx.input(3)?;
        let dtype = ctx.common_type([0, 3, 5])?;
        let zeros = match ctx.typed_optional(4, &ZEROS)? {
            Some(DType::U8) => zero_bytes,
            Some(_) => {
                ctx.common_type([0, 4])?;
                blocks
            }
            None => 0,
        };
        let mut experts = Dim::Unknown;
        for (i, of_row) in [(2, bytes * blocks), (3, blocks), (4, zeros)] {
            let Some(got) = ctx.shape_optional(i).and_then(Shape::elements) else {
                continue;
            };
            let of_one = self.n * of_row;
            if of_one == 0 || !got.is_multiple_of(of_one) {
                let e = shape_error("an input that does not fit the packed weights of experts");
                let want = format!("a multiple of {of_one}");
                return Err(e.with_input(i).with_expected(want).with_got(got));
            }
            experts = unify(&Dim::Known(got / of_one), &experts, || {
                "the experts of packed weights".into()
            })
            .map_err(|e| e.with_input(i))?;
        }
        let n = Dim::Known(self.n);
        check_bias(ctx, 5, &experts, &n)?;
        let shape = output(ctx, &Dim::Known(self.k), &n)?;
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }
}
