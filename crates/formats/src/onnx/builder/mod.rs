//! What a mapping of one node reads and writes.

mod attributes;
mod bodies;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::Operator;
use kilim_core::tensor::Tensor;

use super::import::Import;
use super::proto::{AttributeProto, NodeProto, invalid};
use super::scope::Binding;
use crate::build::GraphBuilder;

pub use crate::build::number;
pub use attributes::unknown;

/// The newest operator set whose meaning is known. Models of later ones are read as of this.
pub const NEWEST: i64 = 28;

/// Brings one node into the graph of its frame, whose [`GraphBuilder`] it stands for.
pub struct NodeBuilder<'i, 'a> {
    importer: &'i mut Import<'a>,
    frame: usize,
    node: &'a NodeProto<'a>,
    attributes: Vec<(&'a str, &'a AttributeProto<'a>)>,
    /// Which attributes the mapping has asked for.
    read: Vec<Cell<bool>>,
    version: i64,
}

impl<'i, 'a> NodeBuilder<'i, 'a> {
    pub fn new(
        importer: &'i mut Import<'a>,
        frame: usize,
        node: &'a NodeProto<'a>,
        attributes: Vec<(&'a str, &'a AttributeProto<'a>)>,
        version: i64,
    ) -> Self {
        NodeBuilder {
            importer,
            frame,
            node,
            read: vec![Cell::new(false); attributes.len()],
            attributes,
            version: version.min(NEWEST),
        }
    }

    /// What a mapping has to have done: `Unsupported` where it has left an attribute unread, or an output without a value.
    pub fn finish(self) -> Result<()> {
        self.refuse_unread_attributes()?;
        for output in self.node.outputs.iter().filter(|o| !o.is_empty()) {
            let bound = self.importer.scope.binding(self.frame, output);
            if !matches!(bound, Some(Binding::Value(_) | Binding::Sequence(_))) {
                return Err(unsupported(format!("the output `{output}`")));
            }
        }
        Ok(())
    }

    /// The version of the node's operator set.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// How many inputs are named, with those left out between them.
    pub fn input_count(&self) -> usize {
        self.node.inputs.len()
    }

    /// Whether input `i` is named.
    pub fn has_input(&self, i: usize) -> bool {
        self.node.inputs.get(i).is_some_and(|n| !n.is_empty())
    }

    /// Input `i`; `None` where it is left out.
    pub fn optional(&mut self, i: usize) -> Result<Option<ValueId>> {
        let name = self.node.inputs.get(i).copied().unwrap_or("");
        self.importer.scope.optional(self.frame, name)
    }

    /// Input `i`; `InvalidModel` where it is left out.
    pub fn input(&mut self, i: usize) -> Result<ValueId> {
        self.optional(i)?
            .ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// All inputs from `first` on, as they stand.
    pub fn inputs_from(&mut self, first: usize) -> Result<Vec<Option<ValueId>>> {
        (first..self.input_count())
            .map(|i| self.optional(i))
            .collect()
    }

    /// The inputs from `first` on, none of them optional.
    pub fn required_from(&mut self, first: usize) -> Result<Vec<ValueId>> {
        (first..self.input_count()).map(|i| self.input(i)).collect()
    }

    /// The tensors of input `i` where it is a sequence that is followed while the graph is built.
    pub fn sequence(&mut self, i: usize) -> Option<Rc<Vec<ValueId>>> {
        let name = self.node.inputs.get(i).copied().unwrap_or("");
        self.importer.scope.sequence(self.frame, name)
    }

    /// How many outputs are named, with those left out between them.
    pub fn output_count(&self) -> usize {
        self.node.outputs.len()
    }

    /// Whether output `i` is named.
    pub fn has_output(&self, i: usize) -> bool {
        self.node.outputs.get(i).is_some_and(|n| !n.is_empty())
    }

    /// Refuses the node where it has more than the first `n` outputs.
    pub fn only_outputs(&self, n: usize) -> Result<()> {
        match (n..self.output_count()).find(|&i| self.has_output(i)) {
            Some(i) => Err(unsupported(format!("output {i}"))),
            None => Ok(()),
        }
    }

    /// Makes `value` output `i`.
    pub fn bind(&mut self, i: usize, value: ValueId) -> Result<()> {
        match self.node.outputs.get(i) {
            Some(&name) if !name.is_empty() => self.importer.scope.write(self.frame, name, value),
            _ => Ok(()),
        }
    }

    /// Makes the first output a constant.
    pub fn bind_constant(&mut self, tensor: Tensor) -> Result<()> {
        let Some(&name) = self.node.outputs.first() else {
            return Ok(());
        };
        let scope = &mut self.importer.scope;
        if scope.binding(self.frame, name).is_some() {
            let value = self.tensor_value(tensor);
            return self.bind(0, value);
        }
        let value = scope.graph(self.frame).add_constant(name, tensor);
        scope.bind(self.frame, name, Binding::Value(value));
        Ok(())
    }

    /// Makes a sequence that is followed while the graph is built output `i`.
    pub fn bind_sequence(&mut self, i: usize, values: impl Into<Rc<Vec<ValueId>>>) {
        if let Some(&name) = self.node.outputs.get(i) {
            let binding = Binding::Sequence(values.into());
            self.importer.scope.bind(self.frame, name, binding);
        }
    }

    /// A copy of a sequence that is followed, to be changed.
    pub fn copy_sequence(&mut self, values: &[ValueId]) -> Vec<ValueId> {
        self.importer.scope.copy_sequence(values)
    }

    /// A node that gives all outputs.
    pub fn emit(&mut self, op: impl Operator, inputs: &[Option<ValueId>]) -> Result<()> {
        self.emit_shared(Arc::new(op), inputs)
    }

    /// Emits a node with the operator `op` that has the inputs and outputs of the ONNX node.
    pub fn emit_same(&mut self, op: impl Operator) -> Result<()> {
        self.emit_own(Arc::new(op))
    }

    /// Not generic, so that it is compiled once and not for every operator type.
    fn emit_own(&mut self, op: Arc<dyn Operator>) -> Result<()> {
        let inputs = self.inputs_from(0)?;
        self.emit_shared(op, &inputs)
    }

    /// Emits a node that gives all outputs, with an operator that other nodes may share.
    pub fn emit_shared(&mut self, op: Arc<dyn Operator>, inputs: &[Option<ValueId>]) -> Result<()> {
        let count = self.output_count();
        for (i, value) in self.push(op, inputs, count)?.into_iter().enumerate() {
            self.bind(i, value)?;
        }
        Ok(())
    }
}

impl Deref for NodeBuilder<'_, '_> {
    type Target = GraphBuilder;

    fn deref(&self) -> &GraphBuilder {
        self.importer.scope.open_graph(self.frame)
    }
}

impl DerefMut for NodeBuilder<'_, '_> {
    fn deref_mut(&mut self) -> &mut GraphBuilder {
        self.importer.scope.graph(self.frame)
    }
}
