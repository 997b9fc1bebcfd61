//! Sums with a bias or what goes past a layer, and what stands behind them: fused for networks that make pictures.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{GroupNorm, MatMul, Softmax, SoftmaxKind, UnaryKind};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};

pub static OPERATORS: Family = OpTable(&[
    ("BiasAdd", |b| {
        let y = added(b, &[0, 1, 2])?;
        b.bind(0, y)
    }),
    ("BiasSoftmax", bias_softmax),
    ("BiasSplitGelu", |b| {
        let sum = added(b, &[0, 1])?;
        let [left, right] = b.halves(sum, -1)?;
        let gate = b.unary(UnaryKind::Gelu { tanh: false }, right)?;
        let y = b.mul(left, gate)?;
        b.bind(0, y)
    }),
    ("GatedAdd", |b| {
        let (x, y, gate) = (b.input(0)?, b.input(1)?, b.input(2)?);
        let gated = b.mul(y, gate)?;
        let y = b.add(x, gated)?;
        b.bind(0, y)
    }),
    ("GemmFastGelu", |b| {
        let (x, w) = (b.input(0)?, b.input(1)?);
        let mut y = b.op(MatMul::default(), &[x, w])?;
        if let Some(bias) = b.optional(2)? {
            y = b.add(y, bias)?;
        }
        let y = b.unary(UnaryKind::Gelu { tanh: true }, y)?;
        b.bind(0, y)
    }),
    ("GroupNorm", |b| {
        let x = b.input(0)?;
        let last = b.int_or("channels_last", 1)? != 0;
        group_norm(b, x, last)
    }),
    ("ScaledSiLU", |b| {
        let (x, alpha) = (b.input(0)?, b.float_or("alpha", 1.0)?);
        let scale = match b.optional(1)? {
            Some(scale) => b.cast_like(scale, x)?,
            None => b.number(alpha.into(), x)?,
        };
        let x = b.mul(x, scale)?;
        let y = b.unary(UnaryKind::Swish { alpha: 1.0 }, x)?;
        b.bind(0, y)
    }),
    ("SkipGroupNorm", skip_group_norm),
]);

/// The sum of inputs, those that are not there left out.
fn added(b: &mut NodeBuilder, inputs: &[usize]) -> Result<ValueId> {
    let mut sum = b.input(inputs[0])?;
    for &i in &inputs[1..] {
        if let Some(x) = b.optional(i)? {
            sum = b.add(sum, x)?;
        }
    }
    Ok(sum)
}

/// Inputs: scores, and a bias that broadcasts to them.
fn bias_softmax(b: &mut NodeBuilder) -> Result<()> {
    let sum = added(b, &[0, 1])?;
    let axis = b.int_or("axis", 1)?;
    let axis = b.axis_of(sum, axis)?;
    if axis + 1 != b.rank(sum)? {
        return Err(unsupported("a softmax over several dimensions together"));
    }
    // Whether the bias has dimensions of one, or fewer, is seen from its shape.
    b.int_or("is_inner_broadcast", 1)?;
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    let y = b.op(op, &[sum])?;
    b.bind(0, y)
}

/// Output 0: x normalised by scale and bias, inputs 1 and 2, which may be of a wider type.
fn group_norm(b: &mut NodeBuilder, x: ValueId, channels_last: bool) -> Result<()> {
    let active = match b.int_or("activation", 0)? {
        0 => false,
        1 => true,
        other => return Err(unknown("activation", &other.to_string())),
    };
    let op = GroupNorm {
        groups: b.count("groups", None)?,
        epsilon: b.float_or("epsilon", 1e-5)?,
    };
    let axes = b.rank(x)?;
    let mut first = x;
    if channels_last {
        let mut perm = vec![0, axes - 1];
        perm.extend(1..axes - 1);
        first = b.transpose(x, &perm)?;
    }
    let mut inputs = vec![first];
    for i in [1, 2] {
        let weights = b.input(i)?;
        inputs.push(b.cast_like(weights, x)?);
    }
    let mut y = b.op(op, &inputs)?;
    if active {
        y = b.unary(UnaryKind::Swish { alpha: 1.0 }, y)?;
    }
    if channels_last {
        let mut perm = vec![0];
        perm.extend(2..axes);
        perm.push(1);
        y = b.transpose(y, &perm)?;
    }
    b.bind(0, y)
}

/// Inputs: x, scale, bias of the norm; what is added to x, for each image or each of its elements; optional bias of the channels. Output 1 is the sum.
fn skip_group_norm(b: &mut NodeBuilder) -> Result<()> {
    let last = b.int_or("channels_last", 1)? != 0;
    let (x, mut skip) = (b.input(0)?, b.input(3)?);
    if b.rank(skip)? == 2 {
        let axes = if last { [1, 2] } else { [2, 3] };
        skip = b.unsqueeze(skip, &axes)?;
    }
    let mut sum = b.add(x, skip)?;
    if let Some(mut bias) = b.optional(4)? {
        if !last {
            bias = b.reshape(bias, &[-1, 1, 1])?;
        }
        sum = b.add(sum, bias)?;
    }
    b.bind(1, sum)?;
    group_norm(b, sum, last)
}
