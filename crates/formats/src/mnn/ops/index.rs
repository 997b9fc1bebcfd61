//! Numbers that are found by their place.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    ArgReduce, ConstantOfShape, Gather, GatherElements, GatherNd, NonZero, ScatterElements,
    ScatterNd, ScatterReduction, TopK,
};
use kilim_core::tensor::Tensor;

use super::Outputs;
use super::arrange::{AXIS, one};
use crate::mnn::import::Import;
use crate::mnn::layout::Layout;
use crate::mnn::op::Op;

/// The tables of parameters.
const ARG_MAX: u8 = 2;
const BINARY: u8 = 6;
const TOP_K: u8 = 68;

/// The operators Gather and GatherV2.
pub fn gather(imp: &mut Import, op: &Op) -> Outputs {
    if op.inputs.len() < 2 {
        return Err(unsupported("rows of a table in another file"));
    }
    let (x, indices) = (op.input(0)?, op.input(1)?);
    let axis = match (op.has_params(AXIS), op.optional(2)) {
        (true, _) => op.params(AXIS)?.int(0, 0)?.into(),
        (false, Some(axis)) => one(imp, axis, "an axis")?,
        (false, None) => 0,
    };
    Ok(vec![imp.op(Gather { axis }, &[x, indices])?])
}

/// The operator GatherND.
pub fn gather_nd(imp: &mut Import, op: &Op) -> Outputs {
    let (x, indices) = (op.input(0)?, op.input(1)?);
    let batch_dims = match op.has_params(AXIS) {
        true => op.params(AXIS)?.size(0, 0)?,
        false => 0,
    };
    let indices = imp.cast(indices, DType::I64)?;
    Ok(vec![imp.op(GatherNd { batch_dims }, &[x, indices])?])
}

/// The operator GatherElements.
pub fn gather_elements(imp: &mut Import, op: &Op) -> Outputs {
    let (x, indices) = (op.input(0)?, op.input(1)?);
    let axis = match op.optional(2) {
        Some(axis) => one(imp, axis, "an axis")?,
        None => op.params(AXIS)?.int(0, 0)?.into(),
    };
    Ok(vec![imp.op(GatherElements { axis }, &[x, indices])?])
}

/// What a scatter does where it writes on something, by the numbers of `BinaryOpOperation`.
fn reduction(op: &Op) -> Result<ScatterReduction> {
    if !op.has_params(BINARY) {
        return Ok(ScatterReduction::None);
    }
    match op.params(BINARY)?.int(0, 0)? {
        ..0 => Ok(ScatterReduction::None),
        0 => Ok(ScatterReduction::Add),
        2 => Ok(ScatterReduction::Mul),
        4 | 9 => Ok(ScatterReduction::Max),
        5 | 8 => Ok(ScatterReduction::Min),
        other => Err(unsupported(format!(
            "function number {other} where numbers are written"
        ))),
    }
}

/// The operator ScatterNd: indices, what is written, the shape, and on what; zeros where that is left out.
pub fn scatter_nd(imp: &mut Import, op: &Op) -> Outputs {
    let (indices, updates, shape) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let data = match op.optional(3) {
        Some(data) => {
            let shape = imp.vector_of(shape)?;
            imp.expand(data, shape)?
        }
        None => {
            let shape = imp.vector_of(shape)?;
            let dtype = imp.dtype(updates).unwrap_or(DType::F32);
            let value = Tensor::zeros(dtype, &[1])?;
            imp.op(ConstantOfShape { value }, &[shape])?
        }
    };
    let indices = imp.cast(indices, DType::I64)?;
    let scatter = ScatterNd {
        reduction: reduction(op)?,
    };
    Ok(vec![imp.op(scatter, &[data, indices, updates])?])
}

/// The operator ScatterElements.
pub fn scatter_elements(imp: &mut Import, op: &Op) -> Outputs {
    let inputs = [op.input(0)?, op.input(1)?, op.input(2)?];
    let axis = match op.optional(3) {
        Some(axis) => one(imp, axis, "an axis")?,
        None => 0,
    };
    let reduction = reduction(op)?;
    Ok(vec![imp.op(ScatterElements { axis, reduction }, &inputs)?])
}

/// The operator TopKV2: numbers in order, and their places.
pub fn top_k(imp: &mut Import, op: &Op) -> Outputs {
    let (x, k) = (op.input(0)?, op.input(1)?);
    let axis = match op.optional(2) {
        Some(axis) => one(imp, axis, "an axis")?,
        None => -1,
    };
    let largest = match op.has_params(TOP_K) {
        true => op.params(TOP_K)?.flag(2, true)?,
        false => true,
    };
    let k = imp.vector_of(k)?;
    let top = TopK {
        axis,
        largest,
        sorted: true,
    };
    let made = imp.apply(top, &[Some(x), Some(k)], 2)?;
    Ok(vec![made[0], imp.cast(made[1], DType::I32)?])
}

/// The operators ArgMax and ArgMin.
pub fn arg(imp: &mut Import, op: &Op, max: bool) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(ARG_MAX)?);
    // MNN gives floats for pictures, along an axis of its own choice, as Caffe did.
    if op.layout() == Layout::Nc4hw4 && imp.rank(x)? > 2 {
        return Err(unsupported("the places of the largest numbers as floats"));
    }
    let arg = ArgReduce {
        max,
        axis: p.int(2, 0)?.into(),
        keep_dims: false,
        select_last: false,
        output: DType::I32,
    };
    Ok(vec![imp.op(arg, &[x])?])
}

/// The operator Where: the places of numbers above 0, one a row.
pub fn non_zero(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let hit: ValueId = match imp.dtype(x) {
        Some(DType::I32) => imp.truths(x)?,
        _ => x,
    };
    let places = imp.op(NonZero, &[hit])?;
    let rows = imp.transpose(places, &[1, 0])?;
    Ok(vec![imp.cast(rows, DType::I32)?])
}
