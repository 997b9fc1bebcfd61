//! What a page's backend makes of connected nodes: it gives some back and merges others.

use std::sync::Arc;

use js_sys::Array;
use kilim_core::backend::{KernelSpec, Optimizer, Refusal, Replacement, Rewrite, Subgraph};
use kilim_core::ids::{KernelIndex, TensorIndex};
use kilim_core::ops::Custom;
use kilim_core::{Error, ErrorCode, Result};
use wasm_bindgen::JsValue;

use super::{PageBackend, describe, node};
use crate::convert::{self, field, malformed};
use crate::operators;

/// The numbers of a list.
fn places<T>(given: &JsValue, name: &str, place: impl Fn(&JsValue) -> Result<T>) -> Result<Vec<T>> {
    let list = describe::list(given, name)?;
    list.iter().map(|item| place(&item)).collect()
}

fn index(given: &JsValue) -> Result<usize> {
    convert::size(given, "a number that `optimise` of a backend gives")
}

impl PageBackend {
    /// Adds a change, `{giveBack, reason}` or `{replace, with}`.
    ///
    /// # Errors
    /// `InvalidValue` where it is neither, `State` for a node of an operator that is not the backend's own.
    fn change(&self, change: &JsValue, rewrite: &mut Rewrite) -> Result<()> {
        if let Some(node) = field(change, "giveBack") {
            let reason = field(change, "reason").and_then(|reason| reason.as_string());
            let reason = reason.unwrap_or_else(|| "given back without a reason".to_string());
            let node = KernelIndex(index(&node)?);
            rewrite.refused.push((node, Refusal::new(reason)));
            return Ok(());
        }
        let with = field(change, "with");
        let with =
            with.ok_or_else(|| malformed("what `optimise` of a backend gives", "changes"))?;
        rewrite.replaced.push(Replacement {
            nodes: places(change, "replace", |node| index(node).map(KernelIndex))?,
            with: vec![self.new_node(&with)?],
        });
        Ok(())
    }

    fn new_node(&self, told: &JsValue) -> Result<KernelSpec> {
        let text = |name| field(told, name).and_then(|v| v.as_string());
        let [name, domain, op] = ["name", "domain", "op"].map(|n| text(n).unwrap_or_default());
        let mut own = self.operators.iter();
        let operator = own.find(|o| o.domain() == domain && o.name() == op);
        let operator = operator.ok_or_else(|| {
            let id = &self.description.id;
            let what = format!("`{id}` puts a node into its part of the graph that cannot be");
            let got = format!("`{domain}::{op}`");
            Error::new(ErrorCode::State, what)
                .with_expected("an operator of the backend's own")
                .with_got(got)
        })?;
        let attributes = field(told, "attributes").unwrap_or_default();
        let input = |t: &JsValue| match t.is_null() {
            true => Ok(None),
            false => index(t).map(|t| Some(TensorIndex(t))),
        };
        Ok(KernelSpec {
            name,
            op: Arc::new(Custom::new(
                operator.clone(),
                operators::attributes(&attributes)?,
            )),
            inputs: places(told, "inputs", input)?,
            outputs: places(told, "outputs", |t| index(t).map(TensorIndex))?,
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
            self.change(&change, &mut rewrite)?;
        }
        Ok(rewrite)
    }
}
