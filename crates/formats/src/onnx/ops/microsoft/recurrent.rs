//! Attention with a state in place of a cache, and what stands in front of it and behind it: LFM 2, Qwen 3.5, Mamba.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, shape_error, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{RmsNorm, UnaryKind};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::ops::linear_attention::{self, convolved};

pub static OPERATORS: Family = OpTable(&[
    ("CausalConvWithState", causal_conv),
    ("GatedRMSNorm", gated_rms_norm),
    ("LinearAttention", |b| {
        b.fixed("state_window", 0)?;
        linear_attention::linear_attention(b)
    }),
    ("LinearAttentionGate", linear_attention_gate),
]);

/// Inputs: x `[batch, channels, length]`, or channels last in any number of dimensions; weights; bias; past state, in the same order as x.
fn causal_conv(b: &mut NodeBuilder) -> Result<()> {
    b.fixed("ndim", 1)?;
    b.fixed("state_window", 0)?;
    b.fixed("state_update_capacity", 0)?;
    for name in ["input_channels", "input_channel_offset", "state_length"] {
        b.fixed(name, 0)?;
    }
    let dilation = match b.count("dilation", Some(1))? {
        0 => return Err(unsupported("a dilation of 0")),
        dilation => dilation,
    };
    let (x, past) = (b.input(0)?, b.optional(3)?);
    let last = b.flag("channels_last")?;
    let state_last = match b.int_or("state_channels_last", -1)? {
        -1 => last,
        given => given != 0,
    };
    let first = |b: &mut NodeBuilder, x: ValueId, last: bool| match last {
        true => {
            let x = b.reshape(x, &[0, 0, -1])?;
            b.transpose(x, &[0, 2, 1])
        }
        false => Ok(x),
    };
    let given = first(b, x, last)?;
    let state = past.map(|past| first(b, past, state_last)).transpose()?;
    let mut made = convolved(b, given, state, dilation)?;
    for (made, last) in made.iter_mut().zip([last, state_last]) {
        if last {
            *made = b.transpose(*made, &[0, 2, 1])?;
        }
    }
    let [mut y, mut present] = made;
    let rank = b.rank(x)?;
    if last && rank != 3 {
        // The channels as x has them.
        let mut shape = vec![0; 2];
        for axis in 2..rank {
            let dim = b.fact(x).shape.and_then(|s| s.0[axis].known());
            let dim = dim.ok_or_else(|| unsupported("channels of unknown number"))?;
            shape.push(dim as i64);
        }
        y = b.reshape(y, &shape)?;
        present = b.reshape(present, &shape)?;
    }
    b.bind(0, y)?;
    b.bind(1, present)
}

/// Inputs: decay before its gate `[batch, length, heads]`, bias and scale of each head, update rate before its gate.
fn linear_attention_gate(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let (bias, scale) = (b.input(1)?, b.input(2)?);
    let wide = b.cast(x, DType::F32)?;
    let sum = b.add(wide, bias)?;
    let decay = b.unary(UnaryKind::Softplus, sum)?;
    let decay = b.mul(decay, scale)?;
    let decay = b.cast_like(decay, x)?;
    b.bind(0, decay)?;
    if let Some(rate) = b.optional(3)? {
        let rate = b.unary(UnaryKind::Sigmoid, rate)?;
        b.bind(1, rate)?;
    }
    Ok(())
}

/// Inputs: x `[.., heads * size]`, weights `[size]`, gate of x's shape.
fn gated_rms_norm(b: &mut NodeBuilder) -> Result<()> {
    let (x, weights, gate) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let epsilon = b.float_or("epsilon", 1e-5)?;
    let Some(&[size]) = b.shape(weights).as_deref() else {
        return Err(unsupported("weights of unknown number"));
    };
    let Some(leading) = b.rank(x)?.checked_sub(1) else {
        return Err(shape_error("a norm needs a dimension"));
    };
    let mut apart = vec![0; leading];
    apart.extend([-1, size as i64]);
    let rows = b.cast(x, DType::F32)?;
    let rows = b.reshape(rows, &apart)?;
    let weights = b.cast(weights, DType::F32)?;
    let y = b.op(RmsNorm { axis: -1, epsilon }, &[rows, weights])?;
    let mut packed = vec![0; leading];
    packed.push(-1);
    let y = b.reshape(y, &packed)?;
    let gate = b.cast(gate, DType::F32)?;
    let gate = match b.text_or("activation", "silu")? {
        "silu" | "swish" => b.unary(UnaryKind::Swish { alpha: 1.0 }, gate)?,
        "sigmoid" => b.unary(UnaryKind::Sigmoid, gate)?,
        other => return Err(unknown("activation", other)),
    };
    let y = b.mul(y, gate)?;
    let y = b.cast_like(y, x)?;
    b.bind(0, y)
}
