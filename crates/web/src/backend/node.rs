//! Nodes and tensors as a page's backend is told of them.

use js_sys::Array;
use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::{Operator, Result, Tensor};
use wasm_bindgen::JsValue;

use crate::convert;
use crate::operators::attributes_object;

/// Bytes up to which a known input's elements go with a question: sizes and places do, weights come when the node is prepared.
const SMALL: usize = 4096;

/// `{name, op, attributes, inputs, outputs}`.
///
/// # Errors
/// `Unsupported` where an attribute has no form in JavaScript, as a graph.
pub fn told(name: &str, op: &dyn Operator, inputs: Array, outputs: Array) -> Result<JsValue> {
    Ok(convert::object([
        ("name", Some(name.into())),
        ("op", Some(op.name().into())),
        ("attributes", Some(attributes_object(&op.attributes()?)?)),
        ("inputs", Some(inputs.into())),
        ("outputs", Some(outputs.into())),
    ]))
}

/// The node of a question, whose inputs and outputs are `{type, dims, known, value?}`; an input that is left out is `null`.
///
/// # Errors
/// Those of [`told`], and `Limit` where memory is short.
pub fn asked(node: &NodeSpec) -> Result<JsValue> {
    let (inputs, outputs) = (Array::new(), Array::new());
    for input in node.inputs {
        inputs.push(&match input {
            Some(spec) => tensor(spec)?,
            None => JsValue::NULL,
        });
    }
    for output in node.outputs {
        outputs.push(&tensor(output)?);
    }
    told(node.name, node.op, inputs, outputs)
}

fn tensor(spec: &TensorSpec) -> Result<JsValue> {
    let small = spec.value.as_ref().filter(|v| v.byte_len() <= SMALL);
    let value = small.map(wire).transpose()?;
    Ok(convert::object([
        ("type", Some(spec.dtype.name().into())),
        ("dims", Some(convert::sizes(&spec.shape))),
        ("known", Some(spec.value.is_some().into())),
        ("value", value),
    ]))
}

/// The elements of a tensor, as [`convert::tensor_object`] gives them.
///
/// # Errors
/// `Limit` where memory is short.
pub fn wire(tensor: &Tensor) -> Result<JsValue> {
    convert::tensor_object("", tensor)
}
