//! Reductions along axes, and what is found along them.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{ArgReduce, BinaryKind, Cumulative, ReduceKind, TopK, UnaryKind};

use super::norm::vector_norm;
use crate::pnnx::import::Import;
use crate::pnnx::layer::Layer;
use crate::pnnx::numbers;
use crate::pnnx::value::Value;

/// The axes that go, all where none are named, and whether they stay with a size of 1.
fn axes(imp: &Import, layer: &Layer, x: ValueId) -> Result<(Vec<i64>, bool)> {
    let axes = match layer.ints("dim")?.filter(|axes| !axes.is_empty()) {
        Some(axes) => axes,
        None => (0..imp.rank(x)? as i64).collect(),
    };
    Ok((axes, layer.flag("keepdim", false)?))
}

/// Sums and products of integers are of 64 bits.
fn summed(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    match layer.dtype("dtype")? {
        Some(dtype) => imp.cast(x, dtype),
        None if imp.counts(x) => imp.cast(x, DType::I64),
        None => Ok(x),
    }
}

pub fn of(imp: &mut Import, layer: &Layer, kind: ReduceKind) -> Result<ValueId> {
    let x = match kind {
        ReduceKind::Sum | ReduceKind::Prod => summed(imp, layer)?,
        ReduceKind::Mean => match layer.dtype("dtype")? {
            Some(dtype) => imp.cast(layer.x()?, dtype)?,
            None => layer.x()?,
        },
        _ => layer.x()?,
    };
    let (axes, keeps) = axes(imp, layer, x)?;
    imp.reduce(kind, x, &axes, keeps)
}

/// The functions `torch.max` and `torch.min`: of all elements, of two tensors, or along an axis with places.
pub fn extreme(imp: &mut Import, layer: &Layer, max: bool) -> Result<Vec<ValueId>> {
    let x = layer.x()?;
    if let Some(other) = layer.operand("other", 1) {
        let name = if max { "maximum" } else { "minimum" };
        return Ok(vec![numbers::binary(imp, name, &x.into(), &other)?]);
    }
    let kind = if max {
        ReduceKind::Max
    } else {
        ReduceKind::Min
    };
    let (axes, keeps) = axes(imp, layer, x)?;
    let mut made = vec![imp.reduce(kind, x, &axes, keeps)?];
    if layer.info.outputs.len() > 1 {
        made.push(place(imp, x, layer.need("dim")?.int()?, max, keeps)?);
    }
    Ok(made)
}

fn place(imp: &mut Import, x: ValueId, axis: i64, max: bool, keeps: bool) -> Result<ValueId> {
    let op = ArgReduce {
        max,
        axis,
        keep_dims: keeps,
        select_last: false,
        output: DType::I64,
    };
    imp.op(op, &[x])
}

/// The place of the largest or smallest element; of all elements where no axis is named.
pub fn arg(imp: &mut Import, layer: &Layer, max: bool) -> Result<ValueId> {
    let x = layer.x()?;
    let keeps = layer.flag("keepdim", false)?;
    if let Some(axis) = layer.arg("dim") {
        return place(imp, x, axis.int()?, max, keeps);
    }
    let rank = imp.rank(x)?;
    let x = imp.reshape(x, &[-1])?;
    let y = place(imp, x, 0, max, false)?;
    match keeps {
        true => imp.reshape(y, &vec![1; rank]),
        false => Ok(y),
    }
}

pub fn top_k(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let op = TopK {
        axis: layer.int("dim", -1)?,
        largest: layer.flag("largest", true)?,
        sorted: layer.flag("sorted", true)?,
    };
    let k = imp.sizes(&layer.need("k")?)?;
    imp.apply(op, &[Some(layer.x()?), Some(k)], 2)
}

pub fn cumulative(imp: &mut Import, layer: &Layer, product: bool) -> Result<ValueId> {
    let x = summed(imp, layer)?;
    let op = Cumulative {
        product,
        exclusive: false,
        reverse: false,
    };
    let axis = imp.i64(layer.need("dim")?.int()?)?;
    imp.op(op, &[x, axis])
}

pub fn norm(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let p = match layer.arg("p").or_else(|| layer.arg("ord")) {
        None => 2.0,
        Some(Value::Text(word)) if word == "fro" => 2.0,
        Some(p) => p.float()?,
    };
    let (axes, keeps) = axes(imp, layer, x)?;
    vector_norm(imp, x, p, &axes, keeps)
}

/// The variance, with one element less in the divisor where the file does not say otherwise.
pub fn variance(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let (axes, keeps) = axes(imp, layer, x)?;
    let correction = match layer.arg("correction") {
        Some(n) => n.float()?,
        None => f64::from(u8::from(layer.flag("unbiased", true)?)),
    };
    let mut count = 1.0;
    for &axis in &axes {
        let axis = imp.axis_of(x, axis)?;
        let known = imp.known_shape(x).and_then(|shape| shape.0[axis].known());
        let n = known.ok_or_else(|| unsupported("a variance along an axis of an open size"))?;
        count *= n as f64;
    }
    let mean = imp.reduce(ReduceKind::Mean, x, &axes, true)?;
    let apart = imp.sub(x, mean)?;
    let squares = imp.reduce(ReduceKind::SumSquare, apart, &axes, keeps)?;
    let divisor = imp.number((count - correction).max(0.0), x)?;
    imp.div(squares, divisor)
}

pub fn deviation(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let variance = variance(imp, layer)?;
    imp.unary(UnaryKind::Sqrt, variance)
}

/// Whether any element is not zero, or all are not.
pub fn truth(imp: &mut Import, layer: &Layer, any: bool) -> Result<ValueId> {
    let x = layer.x()?;
    let (axes, keeps) = axes(imp, layer, x)?;
    let x = imp.cast(x, DType::Bool)?;
    let x = imp.cast(x, DType::I32)?;
    let kind = if any {
        ReduceKind::Max
    } else {
        ReduceKind::Min
    };
    let y = imp.reduce(kind, x, &axes, keeps)?;
    imp.cast(y, DType::Bool)
}

/// The distance of two tensors along the innermost axis.
pub fn pairwise_distance(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (a, b) = (layer.tensor("x1", 0)?, layer.tensor("x2", 1)?);
    let apart = imp.sub(a, b)?;
    let epsilon = imp.number(layer.float("eps", 1e-6)?, apart)?;
    let apart = imp.add(apart, epsilon)?;
    let keeps = layer.flag("keepdim", false)?;
    vector_norm(imp, apart, layer.float("p", 2.0)?, &[-1], keeps)
}

/// The cosine of the angle between two tensors along an axis.
pub fn cosine_similarity(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (a, b) = (layer.tensor("x1", 0)?, layer.tensor("x2", 1)?);
    let axis = layer.int("dim", 1)?;
    let least = imp.number(layer.float("eps", 1e-8)?, a)?;
    let mut scaled = Vec::new();
    for x in [a, b] {
        let norm = vector_norm(imp, x, 2.0, &[axis], true)?;
        let norm = imp.binary(BinaryKind::Max, norm, least)?;
        scaled.push(imp.div(x, norm)?);
    }
    let product = imp.mul(scaled[0], scaled[1])?;
    imp.reduce(ReduceKind::Sum, product, &[axis], false)
}
