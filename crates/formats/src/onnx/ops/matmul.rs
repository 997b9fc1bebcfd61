//! Matrix products.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Det, Einsum, Gemm, MatMul};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub static OPERATORS: Family = OpTable(&[
    ("Det", |b| b.emit_same(Det)),
    ("Einsum", |b| {
        let mut equation = b.text_or("equation", "")?.to_string();
        equation.retain(|c| !c.is_whitespace());
        b.emit_same(Einsum { equation })
    }),
    ("Gemm", gemm),
    ("MatMul", |b| b.emit_same(MatMul::default())),
]);

/// `a · b` of integers, times `alpha`, and `c` times `beta`. Factors that are no integers are multiplied with in `float64`, and
/// what is behind the point is cut off the sum, as onnx's reference implementation does.
fn integer_gemm(b: &mut NodeBuilder, op: &Gemm, dtype: DType) -> Result<()> {
    let (mut left, mut right) = (b.input(0)?, b.input(1)?);
    if op.transpose_a {
        left = b.transpose(left, &[1, 0])?;
    }
    if op.transpose_b {
        right = b.transpose(right, &[1, 0])?;
    }
    let added = b.optional(2)?.filter(|_| op.beta != 0.0);
    let whole = op.alpha.fract() == 0.0 && (added.is_none() || op.beta.fract() == 0.0);
    let scaled = |b: &mut NodeBuilder, x: ValueId, factor: f32| {
        let x = if whole { x } else { b.cast(x, DType::F64)? };
        if factor == 1.0 {
            return Ok(x);
        }
        let factor = b.number(factor.into(), x)?;
        b.mul(x, factor)
    };
    let y = b.op(MatMul::default(), &[left, right])?;
    let mut y = scaled(b, y, op.alpha)?;
    if let Some(c) = added {
        let c = scaled(b, c, op.beta)?;
        y = b.add(y, c)?;
    }
    let y = b.cast(y, dtype)?;
    b.bind(0, y)
}

/// A Gemm by the node's attributes.
pub fn gemm_attributes(b: &NodeBuilder) -> Result<Gemm> {
    Ok(Gemm {
        alpha: b.float_or("alpha", 1.0)?,
        beta: b.float_or("beta", 1.0)?,
        transpose_a: b.flag("transA")?,
        transpose_b: b.flag("transB")?,
        activation: Activation::None,
    })
}

fn gemm(b: &mut NodeBuilder) -> Result<()> {
    let op = gemm_attributes(b)?;
    let a = b.input(0)?;
    match b.dtype(a) {
        Some(dtype) if !dtype.is_float() => integer_gemm(b, &op, dtype),
        _ => b.emit_same(op),
    }
}
