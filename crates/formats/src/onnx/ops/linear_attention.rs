//! Recurrent forms of attention, written out.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{
    Activation, Binary, BinaryKind, Conv, Fact, Gather, MatMul, Pad, PadMode, Padding, ReduceKind,
    Scan, Slice, Transpose, UnaryKind,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("CausalConvWithState", causal_conv),
    ("LinearAttention", linear_attention),
    ("SwiGLU", swiglu),
]);

fn swiglu(b: &mut NodeBuilder) -> Result<()> {
    let alpha = b.float_or("alpha", 1.0)?;
    let (gate, x) = (b.input(0)?, b.input(1)?);
    let gate = b.unary(UnaryKind::Swish { alpha }, gate)?;
    let y = b.mul(gate, x)?;
    b.bind(0, y)
}

fn causal_conv(b: &mut NodeBuilder) -> Result<()> {
    let (x, past) = (b.input(0)?, b.optional(3)?);
    let [y, state] = convolved(b, x, past, 1)?;
    b.bind(0, y)?;
    b.bind(1, state)
}

/// A causal convolution of every channel of `x`, `[batch, channels, length]`, with the weights `[channels, 1, kernel]` of input 1, as far as
/// `dilation` apart, and the bias of input 2: the result, and what of `past` and `x` the next call reads in front of its own.
pub fn convolved(
    b: &mut NodeBuilder,
    x: ValueId,
    past: Option<ValueId>,
    dilation: usize,
) -> Result<[ValueId; 2]> {
    let (weights, bias) = (b.input(1)?, b.optional(2)?);
    let (kernel, one) = (b.dim(weights, 2)?, b.i64s(&[1])?);
    let apart = b.i64s(&[dilation as i64])?;
    let before = b.sub(kernel, one)?;
    let before = b.mul(before, apart)?;
    let padded = match past {
        Some(past) => b.concat(&[past, x], 2)?,
        None => {
            let (front, behind) = (b.i64s(&[0, 0])?, b.i64s(&[0, 0, 0])?);
            let pads = b.vector(&[front, before, behind])?;
            let mode = PadMode::Constant;
            b.op(Pad { mode }, &[x, pads])?
        }
    };
    let y = match b.shape(weights).as_deref() {
        Some(&[channels, ..]) => {
            let conv = Conv {
                strides: vec![1],
                dilations: vec![dilation],
                padding: Padding::Valid,
                groups: channels,
                channels_last: false,
                activation: Activation::None,
            };
            b.apply(conv, &[Some(padded), Some(weights), bias], 1)?[0]
        }
        _ => weighed_windows(b, x, padded, weights, bias, apart)?,
    };
    let y = match b.text_or("activation", "none")? {
        "none" => y,
        "silu" | "swish" => b.unary(UnaryKind::Swish { alpha: 1.0 }, y)?,
        other => return Err(unknown("activation", other)),
    };
    let length = b.dim(padded, 2)?;
    let first = b.sub(length, before)?;
    let axis = b.i64s(&[2])?;
    let state = b.op(Slice, &[padded, first, length, axis])?;
    Ok([y, state])
}

/// The convolution of every channel with weights `[channels, 1, kernel]` of a shape known only at run
/// time, which read places that are `apart`, `[1]`: windows `[batch, channels, length, kernel]` of the padded input times weights, summed.
fn weighed_windows(
    b: &mut NodeBuilder,
    x: ValueId,
    padded: ValueId,
    weights: ValueId,
    bias: Option<ValueId>,
    apart: ValueId,
) -> Result<ValueId> {
    let (length, kernel) = (b.dim(x, 2)?, b.dim(weights, 2)?);
    let (first, tap) = (b.iota(length)?, b.iota(kernel)?);
    let tap = b.mul(tap, apart)?;
    let first = b.unsqueeze(first, &[1])?;
    let places = b.add(first, tap)?;
    let windows = b.op(Gather { axis: 2 }, &[padded, places])?;
    let products = b.mul(windows, weights)?;
    let mut y = b.reduce(ReduceKind::Sum, products, &[3], false)?;
    if let Some(bias) = bias {
        let bias = b.unsqueeze(bias, &[1])?;
        y = b.add(y, bias)?;
    }
    Ok(y)
}

/// Which parts a step of the recurrence has.
struct Rule {
    decay: bool,
    delta: bool,
}

/// Inputs: query, key and value `[batch, length, heads * size]`, past state, decay, update rate. There may be fewer heads of queries and of
/// keys than of values in com.microsoft's form, not in the standard's.
pub fn linear_attention(b: &mut NodeBuilder) -> Result<()> {
    let rule = match b.text_or("update_rule", "gated_delta")? {
        "linear" => Rule {
            decay: false,
            delta: false,
        },
        "gated" => Rule {
            decay: true,
            delta: false,
        },
        "delta" => Rule {
            decay: false,
            delta: true,
        },
        "gated_delta" => Rule {
            decay: true,
            delta: true,
        },
        other => return Err(unknown("update_rule", other)),
    };
    let query_heads = b.count("q_num_heads", None)?;
    let heads = b.count("kv_num_heads", None)?;
    let whole = |a: usize, n: usize| n > 0 && a.is_multiple_of(n);
    if !whole(query_heads, heads) && !whole(heads, query_heads) {
        return Err(invalid("the numbers of heads do not fit"));
    }
    let (h, group) = (heads as i64, (query_heads / heads).max(1) as i64);
    let query = b.input(0)?;
    // The state of narrow types is kept in float32 from step to step.
    let wide = match b.dtype(query) {
        Some(DType::F16 | DType::BF16) => DType::F32,
        Some(other) => other,
        None => return Err(unsupported("queries of unknown element type")),
    };
    let load = |b: &mut NodeBuilder, i: usize, shape: &[i64]| -> Result<ValueId> {
        let x = b.input(i)?;
        let x = b.cast(x, wide)?;
        b.reshape(x, shape)
    };
    // Time is axis 1, which the scan takes away.
    let (q, k) = if query_heads < heads {
        let of_queries = (query_heads as i64, (heads / query_heads) as i64);
        let q = load(b, 0, &[0, 0, of_queries.0, 1, -1])?;
        let size = b.fact(q).shape.and_then(|s| s.0.last()?.known());
        let key = b.input(1)?;
        let width = b.fact(key).shape.and_then(|s| s.0.last()?.known());
        let (Some(size), Some(width)) = (size.filter(|n| *n > 0), width) else {
            return Err(unsupported("heads of keys whose size is not known"));
        };
        let of_keys = match width / size {
            n if whole(heads, n) => (n as i64, (heads / n) as i64),
            _ => {
                return Err(invalid(
                    "the heads of the keys do not fit those of the values",
                ));
            }
        };
        let k = load(b, 1, &[0, 0, of_keys.0, 1, -1])?;
        (shared(b, q, of_queries)?, shared(b, k, of_keys)?)
    } else {
        let q = load(b, 0, &[0, 0, h, group, -1])?;
        (q, load(b, 1, &[0, 0, h, 1, -1])?)
    };
    let v = load(b, 2, &[0, 0, h, 1, -1])?;
    let mut scanned = vec![q, k, v];
    if rule.decay {
        let g = load(b, 4, &[0, 0, h, -1, 1])?;
        scanned.push(b.unary(UnaryKind::Exp, g)?);
    }
    if rule.delta {
        let beta = b.input(5)?;
        let beta = b.cast(beta, wide)?;
        scanned.push(b.unsqueeze(beta, &[3, 4])?);
    }
    let state = match b.optional(3)? {
        Some(past) => b.cast(past, wide)?,
        None => {
            let parts = [b.dim(q, 0)?, b.i64s(&[h])?, b.dim(k, 4)?, b.dim(v, 4)?];
            let shape = b.vector(&parts)?;
            let zero = b.number(0.0, q)?;
            b.expand(zero, shape)?
        }
    };
    let scale = match b.float("scale")?.filter(|s| *s != 0.0) {
        Some(scale) => b.number(scale.into(), q)?,
        None => {
            let size = b.dim(q, 4)?;
            let size = b.cast_like(size, q)?;
            let root = b.unary(UnaryKind::Sqrt, size)?;
            b.unary(UnaryKind::Reciprocal, root)?
        }
    };
    let scan = Scan {
        body: Arc::new(step(b, &rule, state, &scanned)?),
        states: 1,
        scan_inputs: scanned.len(),
        input_axes: vec![1; scanned.len()],
        input_reverse: vec![false; scanned.len()],
        output_axes: vec![1],
        output_reverse: vec![false],
    };
    let inputs: Vec<_> = std::iter::once(state).chain(scanned).map(Some).collect();
    let outputs = b.apply(scan, &inputs, 2)?;
    let y = b.reshape(outputs[1], &[0, 0, -1])?;
    let y = b.mul(y, scale)?;
    let y = b.cast_like(y, query)?;
    b.bind(0, y)?;
    let like = b.optional(3)?.unwrap_or(query);
    let state = b.cast_like(outputs[0], like)?;
    b.bind(1, state)
}

/// `x`, `[batch, length, heads, 1, size]`, with each head as often as several heads of values share it.
fn shared(b: &mut NodeBuilder, x: ValueId, (heads, times): (i64, i64)) -> Result<ValueId> {
    if times == 1 {
        return Ok(x);
    }
    let shape = b.i64s(&[1, 1, 1, times, 1])?;
    let repeated = b.expand(x, shape)?;
    b.reshape(repeated, &[0, 0, heads * times, 1, -1])
}

/// One step: the state `[batch, heads, dk, dv]`, then slices of query `[.., group, dk]`, key
/// `[.., 1, dk]`, value `[.., 1, dv]`, and where the rule has them decay `[.., dk or 1, 1]` and
/// rate `[.., 1, 1]`. Gives the new state and the output `[.., group, dv]`.
fn step(b: &mut NodeBuilder, rule: &Rule, state: ValueId, scanned: &[ValueId]) -> Result<Graph> {
    let mut body = Graph::new("step");
    let fact = b.fact(state);
    let mut state = body.add_input("state", fact);
    let mut slices = Vec::new();
    for &v in scanned {
        let mut fact: Fact = b.fact(v);
        if let Some(shape) = &mut fact.shape {
            shape.0.remove(1);
        }
        slices.push(body.add_input("slice", fact));
    }
    let mut slices = slices.into_iter();
    let mut next = || slices.next().ok_or_else(|| invalid("a slice is missing"));
    let (q, k, mut v) = (next()?, next()?, next()?);
    let binary = |body: &mut Graph, kind, x, y| body.apply("step", Binary::new(kind), &[x, y]);
    if rule.decay {
        let decay = next()?;
        state = binary(&mut body, BinaryKind::Mul, state, decay);
    }
    if rule.delta {
        let rate = next()?;
        let known = body.apply("known", MatMul::default(), &[k, state]);
        let surprise = binary(&mut body, BinaryKind::Sub, v, known);
        v = binary(&mut body, BinaryKind::Mul, surprise, rate);
    }
    let perm = vec![0, 1, 3, 2];
    let column = body.apply("column", Transpose { perm }, &[k]);
    let update = binary(&mut body, BinaryKind::Mul, column, v);
    let state = binary(&mut body, BinaryKind::Add, state, update);
    let y = body.apply("read", MatMul::default(), &[q, state]);
    body.outputs = vec![state, y];
    Ok(body)
}
