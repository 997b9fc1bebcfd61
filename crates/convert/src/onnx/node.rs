//! A node while it is brought into the form of a file.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, Node, Operator};
use kilim_core::ops::Attribute;
use kilim_core::{DType, Tensor};

use super::attributes::{Stored, said};
use super::form::Form;
use crate::proto::Message;

/// A node as a file has it.
pub struct NodeForm<'a> {
    pub graph: &'a Graph,
    pub node: &'a Node,
    /// The operator set of the file.
    pub opset: i64,
    /// The first operator set that has the node in this form.
    pub since: i64,
    pub operator: String,
    pub domain: &'static str,
    /// Empty where an optional input is left out.
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub attributes: Vec<(String, Stored)>,
}

impl<'a> NodeForm<'a> {
    /// The node in its form; attributes by the rules of the form.
    ///
    /// # Errors
    /// `Unsupported` for an attribute that has no form in ONNX.
    pub fn new(
        form: &Form,
        graph: &'a Graph,
        node: &'a Node,
        ports: [Vec<String>; 2],
        opset: i64,
    ) -> Result<NodeForm<'a>> {
        let [inputs, outputs] = ports;
        let mut built = NodeForm {
            graph,
            node,
            opset,
            since: form.since,
            operator: node.op.name().to_string(),
            domain: form.domain,
            inputs,
            outputs,
            attributes: Vec::new(),
        };
        if !form.by_hand {
            for (name, value) in node.op.attributes()?.0 {
                if let Some((name, value)) = said(form, &name, &value)? {
                    built.set(name, value);
                }
            }
        }
        if let Some(change) = form.also {
            change(&mut built)?;
        }
        Ok(built)
    }

    /// The operator as what it is.
    ///
    /// # Errors
    /// `Unsupported` where another operator has its name.
    pub fn op<T: Operator>(&self) -> Result<&'a T> {
        let op = self.node.op.downcast_ref();
        op.ok_or_else(|| unsupported("an operator that has the name of another one"))
    }

    /// Sets an attribute, in the place of one of this name.
    pub fn set(&mut self, name: &str, value: Attribute) {
        self.attributes.retain(|(known, _)| known != name);
        self.attributes
            .push((name.to_string(), Stored::Attribute(value)));
    }

    pub fn set_int(&mut self, name: &str, n: i64) {
        self.set(name, Attribute::Int(n));
    }

    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, Attribute::Text(text.to_string()));
    }

    /// Says that no operator set before this one has the node in its form.
    pub fn needs(&mut self, opset: i64) {
        self.since = self.since.max(opset);
    }

    /// The elements of input `i`, where they are constant.
    pub fn constant(&self, i: usize) -> Option<&'a Tensor> {
        self.graph.value(self.node.input(i)?).constant.as_ref()
    }

    /// The element type of input `i`, where it is known.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        self.graph.value(self.node.input(i)?).fact.dtype
    }

    /// Whether input `i` is there.
    pub fn has(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(|name| !name.is_empty())
    }

    /// The node without its inputs from `first` on, which an attribute says.
    pub fn without_inputs(&mut self, first: usize) {
        self.inputs.truncate(first);
        while self.inputs.last().is_some_and(String::is_empty) {
            self.inputs.pop();
        }
    }

    /// The `NodeProto`.
    ///
    /// # Errors
    /// `Unsupported` for tensors of types that ONNX does not have.
    pub fn message(self, name: &str) -> Result<Message> {
        let mut message = Message::default();
        for input in &self.inputs {
            message.bytes(1, input.as_bytes());
        }
        for output in &self.outputs {
            message.bytes(2, output.as_bytes());
        }
        message.text(3, name);
        message.text(4, &self.operator);
        for (name, value) in self.attributes {
            message.message(5, value.message(&name)?);
        }
        message.text(7, self.domain);
        Ok(message)
    }
}
