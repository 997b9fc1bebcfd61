//! Mixtures of experts: a router chooses a few experts for each token, which are gated layers with weights of their own.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    ExpertMatMul, ExpertMatMulNBits, GatherElements, MatMul, ReduceKind, Slice, Softmax,
    SoftmaxKind, TopK, UnaryKind,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("MoE", moe), ("QMoE", qmoe)]);

/// The experts of each token.
struct Routes {
    /// `int32` `[tokens, experts of a token]`.
    experts: ValueId,
    /// What their results are multiplied by, of the same shape and of x's type.
    shares: ValueId,
}

/// Routes by the scores `[tokens, experts]` of input 1.
///
/// `among` says of what the shares of the chosen ones are a part: of all experts, or of the chosen ones alone. With `given`
/// the scores only choose, and the shares are taken from there.
fn routes(b: &mut NodeBuilder, among: Among, given: Option<ValueId>) -> Result<Routes> {
    b.fixed("use_sparse_mixer", 0)?;
    let count = b.int_or("k", 1)?;
    let count = b.i64s(&[count])?;
    let (x, scores) = (b.input(0)?, b.input(1)?);
    let scores = b.cast(scores, DType::F32)?;
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    let scores = match among {
        Among::All => b.op(softmax.clone(), &[scores])?,
        Among::Chosen => scores,
    };
    let top = TopK {
        axis: -1,
        largest: true,
        sorted: true,
    };
    let chosen = b.apply(top, &[Some(scores), Some(count)], 2)?;
    let (best, indices) = (chosen[0], chosen[1]);
    let normalised = b.flag("normalize_routing_weights")?;
    let shares = match (given, among) {
        (Some(given), _) => {
            let shares = b.op(GatherElements { axis: -1 }, &[given, indices])?;
            let shares = b.cast(shares, DType::F32)?;
            match normalised {
                true => {
                    let sum = b.reduce(ReduceKind::Sum, shares, &[-1], true)?;
                    b.div(shares, sum)?
                }
                false => shares,
            }
        }
        (None, Among::All) => best,
        (None, Among::Chosen) => b.op(softmax, &[best])?,
    };
    Ok(Routes {
        experts: b.cast(indices, DType::I32)?,
        shares: b.cast_like(shares, x)?,
    })
}

#[derive(Clone, Copy)]
enum Among {
    All,
    Chosen,
}

/// The activation between an expert's products. `first` is the first product; `gate` is what that is multiplied by where it has a product of
/// its own.
fn activated(b: &mut NodeBuilder, first: ValueId, gate: Option<ValueId>) -> Result<ValueId> {
    let swiglu = Swiglu::of(b)?;
    let kind = match b.text_or("activation_type", "relu")? {
        "swiglu" => return swiglu.apply(b, first, gate),
        "relu" => Some(UnaryKind::Relu),
        "gelu" => Some(UnaryKind::Gelu { tanh: true }),
        "silu" => Some(UnaryKind::Swish { alpha: 1.0 }),
        "identity" => None,
        other => return Err(unknown("activation_type", other)),
    };
    let active = match kind {
        Some(kind) => b.unary(kind, first)?,
        None => first,
    };
    match gate {
        Some(gate) => b.mul(active, gate),
        None => Ok(active),
    }
}

/// `g * sigmoid(alpha * g) * (l + beta)` with g and l clamped: of two products, or of the halves of one.
///
/// Exporters write these attributes of every mixture, whatever its activation is.
struct Swiglu {
    fusion: i64,
    alpha: f32,
    beta: f32,
    limit: Option<f32>,
}

impl Swiglu {
    fn of(b: &NodeBuilder) -> Result<Swiglu> {
        Ok(Swiglu {
            fusion: b.int_or("swiglu_fusion", 0)?,
            alpha: b.float_or("activation_alpha", 1.0)?,
            beta: b.float_or("activation_beta", 0.0)?,
            limit: b.float("swiglu_limit")?.filter(|limit| limit.is_finite()),
        })
    }

    fn apply(
        &self,
        b: &mut NodeBuilder,
        first: ValueId,
        second: Option<ValueId>,
    ) -> Result<ValueId> {
        let [mut gate, mut linear] = match (self.fusion, second) {
            (0, Some(second)) => [first, second],
            (0, None) => return Err(invalid("swiglu without a third matrix, or two in one")),
            (1 | 2, Some(_)) => return Err(invalid("swiglu with two matrices in one and a third")),
            (1, None) => [every_second(b, first, 0)?, every_second(b, first, 1)?],
            (2, None) => b.halves(first, -1)?,
            (n, _) => return Err(unknown("swiglu_fusion", &n.to_string())),
        };
        if let Some(limit) = self.limit {
            let clip = |min: f32| UnaryKind::Clip {
                min: min.into(),
                max: limit.into(),
            };
            gate = b.unary(clip(f32::NEG_INFINITY), gate)?;
            linear = b.unary(clip(-limit), linear)?;
        }
        let swish = b.unary(UnaryKind::Swish { alpha: self.alpha }, gate)?;
        if self.beta != 0.0 {
            let beta = b.number(self.beta.into(), linear)?;
            linear = b.add(linear, beta)?;
        }
        b.mul(swish, linear)
    }
}

/// Elements `first`, `first + 2`, .. along the last axis.
fn every_second(b: &mut NodeBuilder, x: ValueId, first: i64) -> Result<ValueId> {
    let (start, end) = (b.i64s(&[first])?, b.i64s(&[i64::MAX])?);
    let (axis, step) = (b.i64s(&[-1])?, b.i64s(&[2])?);
    b.op(Slice, &[x, start, end, axis, step])
}

/// The layer: `product` multiplies routes with the first, second or third matrix of their experts.
fn layer(
    b: &mut NodeBuilder,
    routes: &Routes,
    gated: bool,
    product: impl Fn(&mut NodeBuilder, usize, ValueId) -> Result<ValueId>,
) -> Result<()> {
    let x = b.input(0)?;
    let width = b.fact(x).shape.and_then(|s| s.0.last()?.known());
    let width = width.ok_or_else(|| unsupported("tokens of unknown width"))? as i64;
    let tokens = b.reshape(x, &[-1, 1, width])?;
    let first = product(b, 0, tokens)?;
    let gate = match gated {
        true => Some(product(b, 2, tokens)?),
        false => None,
    };
    let active = activated(b, first, gate)?;
    let results = product(b, 1, active)?;
    let shares = b.unsqueeze(routes.shares, &[1])?;
    let y = b.op(MatMul::default(), &[shares, results])?;
    let shape = b.shape_of(x)?;
    let y = b.reshape_to(y, shape)?;
    b.bind(0, y)
}

/// Inputs: x, scores; weights and optional bias of the first, of the second and, where the activation is gated, of a third matrix of the experts.
fn moe(b: &mut NodeBuilder) -> Result<()> {
    let among = match b.flag("normalize_routing_weights")? {
        true => Among::Chosen,
        false => Among::All,
    };
    let routes = routes(b, among, None)?;
    let gated = b.has_input(6);
    layer(b, &routes, gated, |b, which, x| {
        let at = 2 + 2 * which;
        let weights = b.input(at)?;
        let bias = b.optional(at + 1)?;
        let inputs = [Some(x), Some(routes.experts), Some(weights), bias];
        b.step(ExpertMatMul, &inputs)
    })
}

/// Inputs: x, scores; weights, scales and optional bias of the three matrices; optional zero points of the three; optional shares, which
/// the scores then only choose from.
///
/// Without them shares are parts of the chosen experts' sum, whatever `normalize_routing_weights` says: so does
/// onnxruntime 1.31.
fn qmoe(b: &mut NodeBuilder) -> Result<()> {
    match b.text_or("quant_type", "int")? {
        "int" => {}
        other => return Err(unknown("quant_type", other)),
    }
    if let prepacked @ 1.. = b.int_or("weights_prepacked", -1)? {
        return Err(unknown("weights_prepacked", &prepacked.to_string()));
    }
    // Each is the least that is wanted, as for MatMulNBits.
    b.int_or("accuracy_level", 0)?;
    let given = b.optional(14)?;
    let routes = routes(b, Among::Chosen, given)?;
    let bits = b.count("expert_weight_bits", Some(4))?;
    let block = b.int("block_size")?.filter(|&block| block > 0);
    let bits = [
        b.count("fc1_expert_weight_bits", Some(bits))?,
        b.count("fc2_expert_weight_bits", Some(bits))?,
        b.count("fc3_expert_weight_bits", Some(bits))?,
    ];
    let gated = b.has_input(8);
    layer(b, &routes, gated, |b, which, x| {
        let (at, bits) = (2 + 3 * which, bits[which]);
        let (weights, scales) = (b.input(at)?, b.input(at + 1)?);
        let (bias, zeros) = (b.optional(at + 2)?, b.optional(11 + which)?);
        let Some(&[_, n, bytes]) = b.shape(weights).as_deref() else {
            return Err(unsupported("packed experts of unknown shape"));
        };
        let k = bytes.saturating_mul(8) / bits.max(1);
        if zeros.is_some() && block.is_none() && bits < 8 {
            return Err(unsupported(
                "zero points of whole rows, of fewer than 8 bits",
            ));
        }
        let op = ExpertMatMulNBits {
            k,
            n,
            bits,
            block: block.map_or(k, |block| block as usize),
        };
        let scales = b.cast_like(scales, x)?;
        let inputs = [
            Some(x),
            Some(routes.experts),
            Some(weights),
            Some(scales),
            zeros,
            bias,
        ];
        b.step(op, &inputs)
    })
}
