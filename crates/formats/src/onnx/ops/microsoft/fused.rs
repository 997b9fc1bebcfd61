//! Products with what follows them.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Conv, MatMul, UnaryKind};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::ops::conv::attributes;
use crate::onnx::ops::matmul::gemm_attributes;

pub static OPERATORS: Family = OpTable(&[
    ("FusedConv", fused_conv),
    ("FusedGemm", fused_gemm),
    ("FusedMatMul", |b| {
        let y = product(b)?;
        b.bind(0, y)
    }),
    ("FusedMatMulActivation", |b| {
        let y = product(b)?;
        let y = activated(b, y)?;
        b.bind(0, y)
    }),
    ("NhwcConv", nhwc_conv),
    ("NhwcFusedConv", nhwc_conv),
    ("TransposeMatMul", |b| {
        let y = product(b)?;
        b.bind(0, y)
    }),
]);

/// The activation of a fused operator, applied to `x`.
fn activated(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let params = b.floats("activation_params")?.unwrap_or_default();
    let alpha = |b: &NodeBuilder, i: usize, default: f32| -> Result<f32> {
        let name = ["activation_alpha", "activation_beta"][i];
        Ok(params.get(i).copied().or(b.float(name)?).unwrap_or(default))
    };
    let kind = match b.text_or("activation", "")? {
        "" => return Ok(x),
        "Relu" => UnaryKind::Relu,
        "Tanh" => UnaryKind::Tanh,
        "Sigmoid" => UnaryKind::Sigmoid,
        "LeakyRelu" => UnaryKind::LeakyRelu {
            alpha: alpha(b, 0, 0.01)?,
        },
        "HardSigmoid" => UnaryKind::HardSigmoid {
            alpha: alpha(b, 0, 0.2)?,
            beta: alpha(b, 1, 0.5)?,
        },
        "Clip" => UnaryKind::Clip {
            min: alpha(b, 0, f32::MIN)?.into(),
            max: alpha(b, 1, f32::MAX)?.into(),
        },
        other => return Err(unknown("activation", other)),
    };
    b.unary(kind, x)
}

fn fused_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let conv = attributes(b, weights)?;
    convolved(b, conv, weights)
}

/// Data is `[n, h, w, c]`, weights `[m, h, w, c / groups]`.
fn nhwc_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let conv = Conv {
        channels_last: true,
        ..attributes(b, weights)?
    };
    let axes = b.rank(weights)?;
    let mut perm = vec![0, axes - 1];
    perm.extend(1..axes - 1);
    let weights = b.transpose(weights, &perm)?;
    convolved(b, conv, weights)
}

/// Inputs besides the weights: x, optional bias, optional tensor that is added before the activation.
fn convolved(b: &mut NodeBuilder, conv: Conv, weights: ValueId) -> Result<()> {
    let x = b.input(0)?;
    let inputs = [Some(x), Some(weights), b.optional(2)?, b.optional(3)?];
    let y = b.apply(conv, &inputs, 1)?[0];
    let y = activated(b, y)?;
    b.bind(0, y)
}

fn fused_gemm(b: &mut NodeBuilder) -> Result<()> {
    let op = gemm_attributes(b)?;
    let inputs = b.inputs_from(0)?;
    let y = b.apply(op, &inputs, 1)?[0];
    let y = activated(b, y)?;
    b.bind(0, y)
}

/// The product of matrices that may be transposed.
fn product(b: &mut NodeBuilder) -> Result<ValueId> {
    if b.flag("transBatchA")? || b.flag("transBatchB")? {
        return Err(unsupported("transposed batch dimensions"));
    }
    let mut left = b.input(0)?;
    let right = b.input(1)?;
    if b.flag("transA")? {
        let rank = b.rank(left)?;
        let mut perm: Vec<usize> = (0..rank).collect();
        if rank >= 2 {
            perm.swap(rank - 1, rank - 2);
            left = b.transpose(left, &perm)?;
        }
    }
    let op = MatMul {
        transpose_b: b.flag("transB")?,
        alpha: b.float("alpha")?.filter(|a| *a != 1.0),
        ..MatMul::default()
    };
    b.op(op, &[left, right])
}
