//! Nodes and tensors as a page's backend is told of them.

use js_sys::Array;
use kilim_core::backend::{KernelSpec, NodeSpec, SubgraphTensor, TensorSpec};
use kilim_core::ids::TensorIndex;
use kilim_core::ops::Custom;
use kilim_core::{Operator, Result, Tensor};
use wasm_bindgen::JsValue;

use crate::convert;
use crate::operators::attributes_object;

/// Bytes up to which a known input's elements go with a question: sizes and places do, weights come when the node is prepared.
const SMALL: usize = 4096;

/// `{name, domain, op, attributes, inputs, outputs}`.
///
/// # Errors
/// `Unsupported` where an attribute has no form in JavaScript, as a graph.
fn told(name: &str, op: &dyn Operator, inputs: Array, outputs: Array) -> Result<JsValue> {
    let custom = op.downcast_ref::<Custom>();
    let domain = custom.map_or("", |custom| custom.operator().domain());
    Ok(convert::object([
        ("name", Some(name.into())),
        ("domain", Some(domain.into())),
        ("op", Some(op.name().into())),
        ("attributes", Some(attributes_object(&op.attributes()?)?)),
        ("inputs", Some(inputs.into())),
        ("outputs", Some(outputs.into())),
    ]))
}

/// The number of a tensor in its stage or subgraph.
pub fn number(tensor: TensorIndex) -> JsValue {
    JsValue::from_f64(tensor.0 as f64)
}

/// The numbers of tensors.
pub fn numbers(tensors: &[TensorIndex]) -> Array {
    tensors.iter().copied().map(number).collect()
}

/// A node of a stage or a subgraph, whose inputs and outputs are numbers of tensors; an input that is left out is `null`.
///
/// # Errors
/// Those of [`told`], with the node.
pub fn kernel(kernel: &KernelSpec) -> Result<JsValue> {
    let inputs = kernel.inputs.iter();
    let inputs: Array = inputs.map(|t| t.map_or(JsValue::NULL, number)).collect();
    let outputs = numbers(&kernel.outputs);
    told(&kernel.name, &*kernel.op, inputs, outputs)
        .map_err(|e| e.at(&kernel.name, kernel.op.name()))
}

/// `{name, type, dims, known, value?, escapes}` of a tensor between connected nodes.
///
/// # Errors
/// `Limit` where memory is short.
pub fn connected(of: &SubgraphTensor) -> Result<JsValue> {
    let [name, dtype, dims, known, value] = fields(&of.name, &of.spec)?;
    let escapes = ("escapes", Some(of.escapes.into()));
    Ok(convert::object([name, dtype, dims, known, value, escapes]))
}

/// The node of a question, whose inputs and outputs are `{name, type, dims, known, value?}`; an input that is left out is `null`.
///
/// # Errors
/// Those of [`told`], and `Limit` where memory is short.
pub fn asked(node: &NodeSpec) -> Result<JsValue> {
    let (inputs, outputs) = (Array::new(), Array::new());
    for input in node.inputs {
        inputs.push(&match input {
            Some(spec) => convert::object(fields(&spec.name, spec)?),
            None => JsValue::NULL,
        });
    }
    for output in node.outputs {
        outputs.push(&convert::object(fields(&output.name, output)?));
    }
    told(node.name, node.op, inputs, outputs)
}

/// `{name, type, dims, known, value?}` of a tensor.
fn fields(name: &str, spec: &TensorSpec) -> Result<[(&'static str, Option<JsValue>); 5]> {
    let small = spec.value.as_ref().filter(|v| v.byte_len() <= SMALL);
    let value = small.map(wire).transpose()?;
    Ok([
        ("name", Some(name.into())),
        ("type", Some(spec.dtype.name().into())),
        ("dims", Some(convert::sizes(&spec.shape))),
        ("known", Some(spec.value.is_some().into())),
        ("value", value),
    ])
}

/// The elements of a tensor, as [`convert::tensor_object`] gives them.
///
/// # Errors
/// `Limit` where memory is short.
pub fn wire(tensor: &Tensor) -> Result<JsValue> {
    convert::tensor_object("", tensor)
}
