//! Functions of an element, and softmax.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Softmax, SoftmaxKind, UnaryKind};

use crate::pnnx::import::Import;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// A function without arguments.
pub fn of(imp: &mut Import, layer: &Layer, kind: UnaryKind) -> Result<ValueId> {
    imp.unary(kind, layer.x()?)
}

/// What only does something in training.
pub fn passed(_: &mut Import, layer: &Layer) -> Result<ValueId> {
    layer.x()
}

pub fn gelu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let tanh = match &*layer.word("approximate")? {
        "" | "none" => false,
        "tanh" => true,
        other => return Err(unsupported(format!("the approximation `{other}`"))),
    };
    of(imp, layer, UnaryKind::Gelu { tanh })
}

pub fn elu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let alpha = layer.float("alpha", 1.0)? as f32;
    of(imp, layer, UnaryKind::Elu { alpha })
}

pub fn celu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let alpha = layer.float("alpha", 1.0)? as f32;
    of(imp, layer, UnaryKind::Celu { alpha })
}

pub fn selu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (alpha, gamma) = (1.673_263_2, 1.050_701);
    of(imp, layer, UnaryKind::Selu { alpha, gamma })
}

pub fn hard_sigmoid(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (alpha, beta) = (1.0 / 6.0, 0.5);
    of(imp, layer, UnaryKind::HardSigmoid { alpha, beta })
}

pub fn relu6(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    imp.clipped(layer.x()?, 0.0, 6.0)
}

pub fn hard_tanh(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let min = layer.float("min_val", -1.0)? as f32;
    let max = layer.float("max_val", 1.0)? as f32;
    imp.clipped(layer.x()?, min, max)
}

pub fn leaky_relu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let alpha = layer.float("negative_slope", 0.01)? as f32;
    of(imp, layer, UnaryKind::LeakyRelu { alpha })
}

/// The slope is drawn in training alone.
pub fn rrelu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (lower, upper) = (
        layer.float("lower", 1.0 / 8.0)?,
        layer.float("upper", 1.0 / 3.0)?,
    );
    let alpha = ((lower + upper) / 2.0) as f32;
    of(imp, layer, UnaryKind::LeakyRelu { alpha })
}

pub fn prelu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let mut slope = imp.weights(layer, "weight", 1)?;
    if imp.shape(slope).is_none_or(|shape| shape != [1]) {
        slope = imp.per_channel(slope, x)?;
    }
    imp.binary(BinaryKind::PRelu, x, slope)
}

/// `log(1 + exp(beta * x)) / beta`. PyTorch gives `x` itself above the threshold, which is the same in 32 bits from 20 on.
pub fn softplus(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    if layer.float("threshold", 20.0)? < 20.0 {
        return Err(unsupported("a threshold below 20"));
    }
    let beta = layer.float("beta", 1.0)? as f32;
    let y = imp.scaled(layer.x()?, beta)?;
    let y = imp.unary(UnaryKind::Softplus, y)?;
    imp.scaled(y, beta.recip())
}

pub fn log_sigmoid(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let y = imp.unary(UnaryKind::Neg, layer.x()?)?;
    let y = imp.unary(UnaryKind::Softplus, y)?;
    imp.unary(UnaryKind::Neg, y)
}

pub fn tanh_shrink(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let tanh = imp.unary(UnaryKind::Tanh, x)?;
    imp.sub(x, tanh)
}

pub fn hard_shrink(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let lambda = layer.float("lambd", 0.5)? as f32;
    of(imp, layer, UnaryKind::Shrink { bias: 0.0, lambda })
}

pub fn soft_shrink(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let lambda = layer.float("lambd", 0.5)? as f32;
    let bias = lambda;
    of(imp, layer, UnaryKind::Shrink { bias, lambda })
}

pub fn threshold(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let least = imp.number(layer.need("threshold")?.float()?, x)?;
    let value = imp.number(layer.need("value")?.float()?, x)?;
    let above = imp.binary(BinaryKind::Greater, x, least)?;
    imp.choose(above, x, value)
}

pub fn glu(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    imp.gated(layer.x()?, layer.int("dim", -1)?)
}

/// Numbers between `min` and `max`, which may be tensors.
pub fn clamp(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let bounds = [("min", BinaryKind::Max), ("max", BinaryKind::Min)];
    let literal = |key, open: f64| match layer.arg(key) {
        None => Some(open),
        Some(value) => value.float().ok(),
    };
    let limits = (
        literal("min", f64::NEG_INFINITY),
        literal("max", f64::INFINITY),
    );
    if let (Some(min), Some(max)) = limits
        && imp.dtype(x).is_some_and(|dtype| dtype.is_float())
    {
        return imp.unary(UnaryKind::Clip { min, max }, x);
    }
    let mut y = Value::Tensor(x);
    for (key, kind) in bounds {
        if let Some(bound) = layer.arg(key) {
            let both = imp.alike(&[&y, &bound])?;
            y = imp.binary(kind, both[0], both[1])?.into();
        }
    }
    imp.number_or_tensor(&y)
}

/// A softmax along `dim`. PyTorch's two-dimensional one is along the channels.
pub fn softmax(imp: &mut Import, layer: &Layer, kind: SoftmaxKind) -> Result<ValueId> {
    let x = match layer.dtype("dtype")? {
        Some(dtype) => imp.cast(layer.x()?, dtype)?,
        None => layer.x()?,
    };
    let axis = match layer.arg("dim") {
        Some(axis) => axis.int()?,
        None if layer.info.kind == "nn.Softmax2d" => -3,
        // Without an axis, PyTorch takes the first of data with few dimensions, else the second.
        None => i64::from(!matches!(imp.rank(x)?, 0 | 1 | 3)),
    };
    let softmax = Softmax {
        kind,
        axis,
        beta: 1.0,
    };
    imp.op(softmax, &[x])
}

pub fn softmin(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = imp.unary(UnaryKind::Neg, layer.x()?)?;
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: layer.need("dim")?.int()?,
        beta: 1.0,
    };
    imp.op(softmax, &[x])
}
