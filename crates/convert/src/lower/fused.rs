//! What operators do besides: activations, a layout with the channels last, what is added and multiplied.

use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Activation, Operator, ValueId};
use kilim_core::ops::{
    AveragePool, BatchNorm, Binary, Conv, ConvInteger, ConvTranspose, DepthToSpace, Gemm, LpPool,
    Lrn, MatMul, MatMulNBits, MaxPool, QLinearConv, QLinearMatMul, SpaceToDepth, UnaryKind,
};
use kilim_formats::build::GraphBuilder;

use super::{Lowered, outputs_of};

/// An operator without what it does besides.
struct Plain {
    op: Arc<dyn Operator>,
    activation: Activation,
    channels_last: bool,
}

macro_rules! plain {
    ($given:expr; $($kind:ident: $activation:tt $layout:tt;)*) => {$(
        if let Some(op) = $given.downcast_ref::<$kind>() {
            return plain!(@ op, $activation, $layout);
        }
    )*};
    (@ $op:ident, activation, channels_last) => {
        Some(Plain {
            activation: $op.activation,
            channels_last: $op.channels_last,
            op: Arc::new(changed($op.clone(), |o| {
                o.activation = Activation::None;
                o.channels_last = false;
            })),
        })
    };
    (@ $op:ident, activation, -) => {
        Some(Plain {
            activation: $op.activation,
            channels_last: false,
            op: Arc::new(changed($op.clone(), |o| o.activation = Activation::None)),
        })
    };
    (@ $op:ident, -, channels_last) => {
        Some(Plain {
            activation: Activation::None,
            channels_last: $op.channels_last,
            op: Arc::new(changed($op.clone(), |o| o.channels_last = false)),
        })
    };
    (@ $op:ident, -, conv) => {
        Some(Plain {
            activation: Activation::None,
            channels_last: $op.conv.channels_last,
            op: Arc::new(changed($op.clone(), |o| o.conv.channels_last = false)),
        })
    };
}

fn changed<T>(mut op: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut op);
    op
}

fn plain(op: &dyn Operator) -> Option<Plain> {
    plain!(op;
        AveragePool: activation channels_last;
        BatchNorm: - channels_last;
        Binary: activation -;
        Conv: activation channels_last;
        ConvInteger: - conv;
        ConvTranspose: activation channels_last;
        DepthToSpace: - channels_last;
        Gemm: activation -;
        LpPool: - channels_last;
        Lrn: - channels_last;
        MatMul: activation -;
        MatMulNBits: activation -;
        MaxPool: - channels_last;
        QLinearConv: - conv;
        QLinearMatMul: activation -;
        SpaceToDepth: - channels_last;
    );
    None
}

/// The node as one of the operator alone and others around it; `None` where it does nothing besides.
pub fn apart(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(plain) = plain(node.op) else {
        return Ok(None);
    };
    let besides = [node.op.addend(), node.op.factor()];
    let [addend, factor] = besides.map(|i| node.optional(i?));
    let dressed = plain.activation != Activation::None || plain.channels_last;
    if !dressed && addend.is_none() && factor.is_none() {
        return Ok(None);
    }
    let quantised = node.op.is::<QLinearConv>() || node.op.is::<QLinearMatMul>();
    if quantised && plain.activation != Activation::None {
        return Err(unsupported("an activation of quantised numbers"));
    }
    let mut inputs = node.inputs.to_vec();
    for i in besides.into_iter().flatten() {
        if let Some(input) = inputs.get_mut(i) {
            *input = None;
        }
    }
    if plain.channels_last {
        let spatial = node.op.spatial();
        let data = spatial.map_or(&[0][..], |spatial| spatial.data);
        for &i in data {
            if let Some(Some(x)) = inputs.get_mut(i) {
                *x = channels_first(b, *x)?;
            }
        }
    }
    let mut made = outputs_of(b, plain.op, &inputs, node.outputs)?;
    if plain.channels_last {
        if made.len() > 1 {
            return Err(unsupported("places of the largest with the channels last"));
        }
        made[0] = channels_last(b, made[0])?;
    }
    if let Some(addend) = addend {
        made[0] = b.add(made[0], addend)?;
    }
    made[0] = activated(b, plain.activation, made[0])?;
    if let Some(factor) = factor {
        made[0] = b.mul(made[0], factor)?;
    }
    Ok(Some(made))
}

/// `[n, spatial.., c]` as `[n, c, spatial..]`.
fn channels_first(b: &mut GraphBuilder, x: ValueId) -> Result<ValueId> {
    let rank = b.rank(x)?;
    let perm: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    b.transpose(x, &perm)
}

/// `[n, c, spatial..]` as `[n, spatial.., c]`.
fn channels_last(b: &mut GraphBuilder, x: ValueId) -> Result<ValueId> {
    let rank = b.rank(x)?;
    let perm: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    b.transpose(x, &perm)
}

/// `x` after an activation.
pub fn activated(b: &mut GraphBuilder, activation: Activation, x: ValueId) -> Result<ValueId> {
    let kind = match activation {
        Activation::None => return Ok(x),
        Activation::Clip { min, max } => {
            return super::pointwise::clipped(b, x, min.into(), max.into());
        }
        Activation::Silu => {
            let gate = b.unary(UnaryKind::Sigmoid, x)?;
            return b.mul(x, gate);
        }
        Activation::Relu => UnaryKind::Relu,
        Activation::LeakyRelu { alpha } => UnaryKind::LeakyRelu { alpha },
        Activation::Sigmoid => UnaryKind::Sigmoid,
        Activation::Tanh => UnaryKind::Tanh,
        Activation::HardSwish => UnaryKind::HardSwish,
        Activation::HardSigmoid { alpha, beta } => UnaryKind::HardSigmoid { alpha, beta },
    };
    b.unary(kind, x)
}
