//! Pointwise operators and those that choose.

use std::sync::Arc;

use kilim_core::error::Result;
use kilim_core::graph::{Operator, ValueId};
use kilim_core::ops::{
    ArgReduce, Binary, BinaryKind, Cast, Clip, Gather, GatherCast, GatherNd, OneHot, ScatterNd,
    Softmax, Unary, UnaryKind,
};
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// `min(max(x, min), max)`; bounds without end are left out.
pub fn clipped(b: &mut GraphBuilder, x: ValueId, min: f64, max: f64) -> Result<ValueId> {
    let low = match min > f64::NEG_INFINITY {
        true => Some(b.number(min, x)?),
        false => None,
    };
    let high = match max < f64::INFINITY {
        true => Some(b.number(max, x)?),
        false => None,
    };
    b.step(Clip, &[Some(x), low, high])
}

pub fn clip(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(Unary(UnaryKind::Clip { min, max })) = node.op() else {
        return Ok(None);
    };
    let (min, max) = (*min, *max);
    Ok(Some(vec![clipped(b, node.input(0)?, min, max)?]))
}

/// `x * sigmoid(alpha * x)`.
pub fn swish(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(Unary(UnaryKind::Swish { alpha })) = node.op() else {
        return Ok(None);
    };
    let x = node.input(0)?;
    let inner = match *alpha {
        1.0 => x,
        alpha => {
            let alpha = b.number(alpha.into(), x)?;
            b.mul(x, alpha)?
        }
    };
    let gate = b.unary(UnaryKind::Sigmoid, inner)?;
    Ok(Some(vec![b.mul(x, gate)?]))
}

/// The remainder of real numbers, with the sign of the divisor: that of the dividend, and the divisor more where the signs differ.
pub fn remainder(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<Binary>() else {
        return Ok(None);
    };
    let (x, by) = (node.input(0)?, node.input(1)?);
    let real = b.dtype(x).is_some_and(DType::is_float);
    if op.kind != BinaryKind::Mod || !real {
        return Ok(None);
    }
    let rest = b.binary(BinaryKind::Fmod, x, by)?;
    let zero = b.number(0.0, rest)?;
    let is_zero = b.binary(BinaryKind::Equal, rest, zero)?;
    let left = b.unary(UnaryKind::Not, is_zero)?;
    let [below, by_below] = [b.binary(BinaryKind::Less, rest, zero)?, {
        let zero = b.number(0.0, by)?;
        b.binary(BinaryKind::Less, by, zero)?
    }];
    let differ = b.binary(BinaryKind::Xor, below, by_below)?;
    let other = b.binary(BinaryKind::And, left, differ)?;
    let more = b.add(rest, by)?;
    Ok(Some(vec![b.choose(other, more, rest)?]))
}

/// ONNX has no factor in front of a softmax.
pub fn softmax(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<Softmax>().filter(|op| op.beta != 1.0) else {
        return Ok(None);
    };
    let x = node.input(0)?;
    let beta = b.number(op.beta.into(), x)?;
    let x = b.mul(x, beta)?;
    let op = Softmax {
        beta: 1.0,
        ..op.clone()
    };
    Ok(Some(vec![b.op(op, &[x])?]))
}

/// ONNX has places as `int64`.
pub fn places(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<ArgReduce>().filter(|op| op.output != DType::I64) else {
        return Ok(None);
    };
    let output = op.output;
    let op = ArgReduce {
        output: DType::I64,
        ..op.clone()
    };
    let y = b.op(op, &[node.input(0)?])?;
    Ok(Some(vec![b.cast(y, output)?]))
}

pub fn gather_cast(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(GatherCast(Gather { axis })) = node.op() else {
        return Ok(None);
    };
    let rows = b.op(Gather { axis: *axis }, &[node.input(0)?, node.input(1)?])?;
    Ok(Some(vec![b.op(Cast::new(DType::F32), &[rows])?]))
}

/// ONNX has indices of several dimensions as `int64`.
pub fn long_indices(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let indices = node.input(1)?;
    if b.dtype(indices).is_none_or(|dtype| dtype == DType::I64) {
        return Ok(None);
    }
    let mut inputs = node.inputs.to_vec();
    inputs[1] = Some(b.cast(indices, DType::I64)?);
    let op: Arc<dyn Operator> = match (node.op::<GatherNd>(), node.op::<ScatterNd>()) {
        (Some(op), _) => Arc::new(op.clone()),
        (_, Some(op)) => Arc::new(op.clone()),
        _ => return Ok(None),
    };
    b.apply_shared(op, &inputs, 1).map(Some)
}

/// onnxruntime has places and depth as `int64` alone.
pub fn one_hot(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<OneHot>() else {
        return Ok(None);
    };
    let (places, depth, values) = (node.input(0)?, node.input(1)?, node.input(2)?);
    if b.dtype(places) == Some(DType::I64) && b.dtype(depth) == Some(DType::I64) {
        return Ok(None);
    }
    let (places, depth) = (b.cast(places, DType::I64)?, b.cast(depth, DType::I64)?);
    Ok(Some(vec![b.op(op.clone(), &[places, depth, values])?]))
}

/// A constant of `int64` numbers in a shape.
pub fn whole(b: &mut GraphBuilder, shape: &[usize], numbers: &[i64]) -> Result<ValueId> {
    let tensor = Tensor::from_slice(shape, numbers)?;
    Ok(b.tensor_value(tensor))
}
