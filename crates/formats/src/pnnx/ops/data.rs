//! Tensors of given numbers, element types, and lists.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Range, Trilu};

use crate::pnnx::import::Import;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;
use crate::pnnx::{invalid, numbers};

/// The operator `pnnx.Attribute`: numbers of the archive, whatever they are called.
pub fn attribute(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let mut names = layer.info.weights.keys();
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err(invalid("an attribute has other weights than one"));
    };
    let value = imp.stored(layer, name)?;
    value.ok_or_else(|| invalid("an attribute has no weights"))
}

/// The operands in a list.
pub fn list(_: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    Ok(vec![Value::list(layer.inputs.clone())?])
}

/// The elements of a list.
pub fn unpacked(_: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    match layer.inputs.first() {
        Some(Value::List(list)) => Ok(list.clone()),
        Some(_) => Err(unsupported("the parts of what is no list")),
        None => Err(invalid("the list is missing")),
    }
}

/// What is passed on, whatever it is.
pub fn same(_: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    let value = layer.inputs.first().cloned();
    Ok(vec![value.ok_or_else(|| invalid("the input is missing"))?])
}

pub fn size(imp: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    let mut arguments = vec![Value::Tensor(layer.x()?)];
    arguments.extend(layer.operand("dim", 1));
    Ok(vec![numbers::size(imp, &arguments)?])
}

/// Another element type.
pub fn to(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    match layer.dtype("dtype")? {
        Some(dtype) => imp.cast(layer.x()?, dtype),
        None => layer.x(),
    }
}

pub fn type_as(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let like = layer.tensor("other", 1)?;
    imp.cast_like(layer.x()?, like)
}

/// A number in a shape.
fn filled(imp: &mut Import, value: ValueId, shape: ValueId) -> Result<ValueId> {
    imp.expand(value, shape)
}

/// A tensor of `size` with `number` everywhere, or what `fill_value` says. A method takes its element type from the input.
pub fn full(imp: &mut Import, layer: &Layer, number: Option<i64>) -> Result<ValueId> {
    let value = match number {
        Some(n) => Value::Int(n),
        None => layer.need("fill_value")?,
    };
    let own = match layer.info.kind.starts_with("Tensor.") {
        true => imp.dtype(layer.x()?),
        false => None,
    };
    // Ones and zeros are floats, other numbers what they are.
    let default = match value {
        Value::Int(_) if number.is_none() => DType::I64,
        Value::Bool(_) => DType::Bool,
        _ => DType::F32,
    };
    let dtype = layer.dtype("dtype")?.or(own).unwrap_or(default);
    let shape = imp.sizes(&layer.need("size")?)?;
    let value = imp.in_type(&value, dtype)?;
    filled(imp, value, shape)
}

/// A tensor of the input's shape with `number` everywhere, or what `fill_value` says.
pub fn full_like(imp: &mut Import, layer: &Layer, number: Option<i64>) -> Result<ValueId> {
    let x = layer.x()?;
    let value = match number {
        Some(n) => Value::Int(n),
        None => layer
            .arg("fill_value")
            .map_or_else(|| layer.need("value"), Ok)?,
    };
    let value = match layer.dtype("dtype")?.or(imp.dtype(x)) {
        Some(dtype) => imp.in_type(&value, dtype)?,
        None => imp.number(value.float()?, x)?,
    };
    let shape = imp.shape_of(x)?;
    filled(imp, value, shape)
}

/// Numbers from `start` on, up to `end`.
pub fn arange(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let or = |key, default| layer.arg(key).unwrap_or(Value::Int(default));
    let bounds = [or("start", 0), layer.need("end")?, or("step", 1)];
    let whole = |value: &Value| match value {
        Value::Tensor(v) => imp.counts(*v),
        Value::Int(_) => true,
        _ => false,
    };
    let own = match bounds.iter().all(whole) {
        true => DType::I64,
        false => DType::F32,
    };
    let dtype = layer.dtype("dtype")?.unwrap_or(own);
    if bounds[2] == Value::Int(0) {
        return Err(invalid("`step` must not be 0"));
    }
    let mut inputs = Vec::new();
    for bound in &bounds {
        inputs.push(imp.in_type(bound, own)?);
    }
    let list = imp.op(Range, &inputs)?;
    imp.cast(list, dtype)
}

/// A matrix with zeros on one side of a diagonal.
pub fn triangle(imp: &mut Import, layer: &Layer, upper: bool) -> Result<ValueId> {
    let k = imp.i64(layer.int("diagonal", 0)?)?;
    imp.op(Trilu { upper }, &[layer.x()?, k])
}
