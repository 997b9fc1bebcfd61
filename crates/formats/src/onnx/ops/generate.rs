//! Constants, and tensors made from shapes and scalars.

use kilim_core::error::Result;
use kilim_core::ops::{ConstantOfShape, EyeLike, Range, ShapeOf, Size};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("Constant", |b| {
        let tensor = constant(b)?;
        b.bind_constant(tensor)
    }),
    ("ConstantOfShape", |b| {
        let value = match b.tensor("value")? {
            Some(value) => value,
            None => Tensor::from_slice(&[1], &[0f32])?,
        };
        b.emit_same(ConstantOfShape { value })
    }),
    ("EyeLike", |b| {
        let dtype = b.int("dtype")?.map(dtype).transpose()?;
        let k = b.int_or("k", 0)?;
        b.emit_same(EyeLike { dtype, k })
    }),
    ("Range", |b| b.emit_same(Range)),
    ("Shape", |b| {
        let start = b.int_or("start", 0)?;
        let end = b.int("end")?;
        b.emit_same(ShapeOf { start, end })
    }),
    ("Size", |b| b.emit_same(Size)),
]);

fn constant(b: &NodeBuilder) -> Result<Tensor> {
    if let Some(tensor) = b.tensor("value")? {
        return Ok(tensor);
    }
    if let Some(tensor) = b.sparse_tensor("sparse_value")? {
        return Ok(tensor);
    }
    if let Some(n) = b.float("value_float")? {
        return Tensor::scalar(n);
    }
    if let Some(n) = b.int("value_int")? {
        return Tensor::scalar(n);
    }
    if let Some(list) = b.floats("value_floats")? {
        return Tensor::from_slice(&[list.len()], &list);
    }
    if let Some(list) = b.ints("value_ints")? {
        return Tensor::from_slice(&[list.len()], &list);
    }
    if let Some(text) = b.text("value_string")? {
        return Tensor::from_texts(&[], vec![text.into()]);
    }
    if b.attribute("value_strings").is_some() {
        return b.text_list("value_strings");
    }
    Err(invalid("a constant without a value"))
}
