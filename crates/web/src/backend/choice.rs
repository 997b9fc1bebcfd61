//! What a page's backend says of single nodes beside whether it runs them: algorithms to choose from, and the fastest layout.

use kilim_core::backend::{DataLayout, NodeLayouts, NodeSpec};
use kilim_core::tuning::Choice;
use wasm_bindgen::JsValue;

use super::{Functions, PageBackend, node};
use crate::convert::{field, strings};

/// What the function `name` says of a node. `None` where there is no such function, or it throws.
fn asked(functions: &Functions, name: &str, node: &NodeSpec) -> Option<JsValue> {
    if !functions.has(name) {
        return None;
    }
    let asked = node::asked(node).ok()?;
    functions.call(name, &[asked]).ok()
}

/// The algorithms that a backend has for a node, of `{class, algorithms}`. `None` where it has no choice, or says it in words that cannot
/// be kept.
pub fn of(functions: &Functions, node: &NodeSpec) -> Option<Choice> {
    let said = asked(functions, "choice", node)?;
    let algorithms = strings(&field(&said, "algorithms")?, "algorithms").ok()?;
    let choice = Choice {
        class: field(&said, "class")?.as_string()?,
        algorithms: algorithms.into_iter().map(Into::into).collect(),
    };
    choice.is_possible().then_some(choice)
}

impl NodeLayouts for PageBackend {
    fn fastest(&self, node: &NodeSpec) -> Option<DataLayout> {
        let said = asked(&self.functions, "nodeLayout", node)?.as_string()?;
        DataLayout::parse(&said)
    }
}
