//! What a page's backend makes of connected nodes: it gives some back and merges others.

use std::sync::Arc;

use js_sys::{Array, Uint32Array};
use kilim_core::backend::{KernelSpec, Optimizer, Refusal, Replacement, Rewrite, Subgraph};
use kilim_core::ids::{KernelIndex, TensorIndex};
use kilim_core::ops::Custom;
use kilim_core::{Error, ErrorCode, Result};
use wasm_bindgen::JsValue;

use super::{PageBackend, node};
use crate::convert::{self, field};
use crate::operators;

/// What stands for an input that is left out.
const ABSENT: u32 = u32::MAX;

/// The list of numbers in a field, a `Uint32Array`.
fn numbers(given: &JsValue, name: &str) -> Vec<u32> {
    let list = field(given, name).map(|list| Uint32Array::new(&list).to_vec());
    list.unwrap_or_default()
}

impl PageBackend {
    /// The node that takes the place of others.
    ///
    /// # Errors
    /// `State` for a node of an operator that is not the backend's own, and those of [`operators::attributes`].
    fn new_node(&self, told: &JsValue) -> Result<KernelSpec> {
        let text = |name| field(told, name).and_then(|v| v.as_string());
        let [name, domain, op] = ["name", "domain", "op"].map(|n| text(n).unwrap_or_default());
        let mut own = self.operators.iter();
        let operator = own.find(|o| o.domain() == domain && o.name() == op);
        let operator = operator.ok_or_else(|| {
            let id = &self.description.id;
            let what = format!("`{id}` puts a node into its part of the graph that cannot be");
            Error::new(ErrorCode::State, what)
                .with_expected("an operator of the backend's own")
                .with_got(format!("`{domain}::{op}`"))
        })?;
        let attributes = field(told, "attributes").unwrap_or_default();
        let attributes = operators::attributes(&attributes)?;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for input in numbers(told, "inputs") {
            inputs.push((input != ABSENT).then_some(TensorIndex(input as usize)));
        }
        for output in numbers(told, "outputs") {
            outputs.push(TensorIndex(output as usize));
        }
        Ok(KernelSpec {
            name,
            op: Arc::new(Custom::new(operator.clone(), attributes)),
            inputs,
            outputs,
        })
    }
}

impl Optimizer for PageBackend {
    fn optimise(&self, subgraph: &Subgraph) -> Result<Rewrite> {
        let (tensors, nodes) = (Array::new(), Array::new());
        for tensor in &subgraph.tensors {
            tensors.push(&node::connected(tensor)?);
        }
        for kernel in &subgraph.nodes {
            nodes.push(&node::kernel(kernel)?);
        }
        let told = convert::object([
            ("tensors", Some(tensors.into())),
            ("nodes", Some(nodes.into())),
        ]);
        let made = self.functions.call("optimise", &[told])?;
        let mut rewrite = Rewrite::default();
        for change in Array::from(&made).iter() {
            let mut nodes = Vec::new();
            for node in numbers(&change, "nodes") {
                nodes.push(KernelIndex(node as usize));
            }
            match field(&change, "with") {
                Some(with) => rewrite.replaced.push(Replacement {
                    nodes,
                    with: vec![self.new_node(&with)?],
                }),
                None => {
                    let reason = field(&change, "reason").and_then(|reason| reason.as_string());
                    let refusal = Refusal::new(reason.unwrap_or_default());
                    let refused = nodes.into_iter().map(|node| (node, refusal.clone()));
                    rewrite.refused.extend(refused);
                }
            }
        }
        Ok(rewrite)
    }
}
