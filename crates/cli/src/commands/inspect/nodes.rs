//! The nodes of a model as backends see them: `--nodes`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kilim::core::Node;
use kilim::core::fact::TensorSpec;
use kilim::core::graph::NodeSpec;
use kilim::core::ops::{Attribute, Custom};
use kilim::core::passes::{ChangeLog, Observer, Rule};
use kilim::{BackendId, Graph, Tensor};
use serde::Serialize;
use serde_json::{Value, json};

/// How the nodes are written.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Format {
    Json,
}

/// What is printed.
#[derive(Serialize)]
pub struct Document {
    /// In the order in which they run.
    pub nodes: Vec<NodeView>,
    /// Stages whose nodes are not listed, because their shapes depend on data.
    pub unplanned_stages: usize,
}

/// A node with a kernel.
#[derive(Clone, Serialize)]
pub struct NodeView {
    name: String,
    /// Empty for Kilim's own operators.
    domain: String,
    op: String,
    backend: String,
    /// Attributes by the names that `docs/attributes.md` lists, of other operators by those of the file; `null` where they have no form.
    attributes: Option<BTreeMap<String, AttributeView>>,
    /// Why there are no attributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_attributes: Option<String>,
    /// `null` for an input that is left out.
    inputs: Vec<Option<SlotView>>,
    outputs: Vec<SlotView>,
}

#[derive(Clone, Serialize)]
struct AttributeView {
    /// The kind of a `KilimAttribute`.
    kind: &'static str,
    values: Vec<Value>,
}

/// An input or an output.
#[derive(Clone, Serialize)]
struct SlotView {
    /// What the operator calls it, by `docs/attributes.md`; `null` behind those that it has.
    slot: Option<String>,
    #[serde(flatten)]
    tensor: TensorView,
}

#[derive(Clone, Serialize)]
struct TensorView {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    /// Whether the elements are known when the node is planned.
    constant: bool,
}

impl NodeView {
    fn of(backend: &BackendId, node: &NodeSpec) -> NodeView {
        let custom = node.op.downcast_ref::<Custom>();
        let (attributes, without_attributes) = match node.op.attributes() {
            Ok(found) => {
                let views = found.0.iter();
                let views = views.map(|(name, value)| (name.clone(), AttributeView::of(value)));
                (Some(views.collect()), None)
            }
            Err(error) => (None, Some(error.message().to_string())),
        };
        let signature = node.op.signature();
        let inputs = node.inputs.iter().enumerate().map(|(i, spec)| {
            let tensor = tensor(spec.as_ref()?);
            let slot = signature.input(i);
            Some(SlotView { slot, tensor })
        });
        let outputs = node.outputs.iter().enumerate().map(|(i, spec)| SlotView {
            slot: signature.output(i),
            tensor: tensor(spec),
        });
        NodeView {
            name: node.name.to_string(),
            domain: custom.map_or_else(String::new, |c| c.operator().domain().to_string()),
            op: node.op.name().to_string(),
            backend: backend.to_string(),
            attributes,
            without_attributes,
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }
}

fn tensor(spec: &TensorSpec) -> TensorView {
    TensorView {
        name: spec.name.clone(),
        dtype: spec.dtype.name(),
        shape: spec.shape.clone(),
        constant: spec.value.is_some(),
    }
}

impl AttributeView {
    fn of(value: &Attribute) -> AttributeView {
        let (kind, values) = match value {
            Attribute::Int(n) => ("ints", vec![json!(n)]),
            Attribute::Ints(list) => ("ints", list.iter().map(|n| json!(n)).collect()),
            Attribute::Float(x) => ("floats", vec![float(*x)]),
            Attribute::Floats(list) => ("floats", list.iter().map(|x| float(*x)).collect()),
            Attribute::Text(text) => ("texts", vec![json!(text)]),
            Attribute::Texts(list) => ("texts", list.iter().map(|t| json!(t)).collect()),
            Attribute::Bytes(list) => ("bytes", list.iter().map(|b| json!(b)).collect()),
            Attribute::Tensor(value) => ("tensors", vec![elements(value)]),
        };
        AttributeView { kind, values }
    }
}

/// A number; JSON has no others than finite ones, which become texts.
fn float(x: f64) -> Value {
    match x {
        _ if x.is_finite() => json!(x),
        _ if x.is_nan() => json!("nan"),
        _ if x > 0.0 => json!("inf"),
        _ => json!("-inf"),
    }
}

/// A tensor with its bytes; `null` in their place where they cannot be read.
fn elements(value: &Tensor) -> Value {
    let bytes = value.read().ok();
    json!({ "dtype": value.dtype().name(), "shape": value.shape(), "bytes": bytes })
}

/// What `inspect` sees of a session while it is made.
#[derive(Default)]
pub struct Watch {
    pub changes: ChangeLog,
    /// The nodes, where they are asked for.
    pub nodes: Option<Mutex<Vec<NodeView>>>,
}

impl Watch {
    /// The nodes that backends were given, in the order in which they run.
    pub fn nodes(&self) -> Vec<NodeView> {
        let nodes = self.nodes.as_ref();
        nodes.map_or_else(Vec::new, |nodes| {
            nodes.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }
}

impl Observer for Watch {
    fn changed(&self, rule: Rule, before: &[Node], graph: &Graph) {
        self.changes.changed(rule, before, graph);
    }

    fn given(&self, backend: &BackendId, node: &NodeSpec) {
        if let Some(nodes) = &self.nodes {
            let view = NodeView::of(backend, node);
            let mut nodes = nodes.lock().unwrap_or_else(PoisonError::into_inner);
            nodes.push(view);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kilim::core::ops::If;

    use super::*;

    #[test]
    fn what_has_no_attributes_says_why() {
        let body = Arc::new(Graph::new("body"));
        let choice = If {
            then_body: body.clone(),
            else_body: body,
        };
        let node = NodeSpec {
            name: "choice",
            op: &choice,
            inputs: &[None],
            outputs: &[],
        };
        let view = json!(NodeView::of(&BackendId::from("builtin"), &node));
        assert_eq!(view["attributes"], Value::Null);
        let why = view["without_attributes"].as_str().unwrap();
        assert!(why.contains("then_body"), "{why}");
        assert_eq!(view["inputs"], json!([null]));
    }

    #[test]
    fn every_number_is_written() {
        let floats = Attribute::Floats(vec![0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        let view = AttributeView::of(&floats);
        assert_eq!(view.kind, "floats");
        assert_eq!(
            view.values,
            [json!(0.5), json!("nan"), json!("inf"), json!("-inf")]
        );
        let tensor = Tensor::from_slice(&[1, 2], &[1i16, -1]).unwrap();
        let view = AttributeView::of(&Attribute::Tensor(tensor));
        assert_eq!(
            view.values,
            [json!({ "dtype": "int16", "shape": [1, 2], "bytes": [1, 0, 255, 255] })]
        );
    }
}
