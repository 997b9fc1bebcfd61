//! The graphs inside a node.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::Fact;

use super::NodeBuilder;
use crate::onnx::import::Body;

impl NodeBuilder<'_, '_> {
    /// The subgraph in attribute `name`; `inputs` is what is known of its inputs.
    pub fn body(&mut self, name: &str, inputs: &[Fact]) -> Result<Body> {
        let proto = self.graph_attribute(name)?;
        (self.importer).body(self.frame, proto, inputs, false)
    }

    /// A subgraph without inputs that may never run.
    pub fn branch(&mut self, name: &str) -> Result<Body> {
        let proto = self.graph_attribute(name)?;
        self.importer.body(self.frame, proto, &[], true)
    }

    /// A body that takes `inputs`, made by `build` of what stands for them inside.
    pub fn new_body(
        &mut self,
        inputs: &[ValueId],
        build: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Body> {
        let facts: Vec<Fact> = inputs.iter().map(|&v| self.fact(v)).collect();
        self.new_body_of(&facts, build)
    }

    /// Builds a body whose inputs have these facts; `build` gets the inner values that stand for them.
    pub fn new_body_of(
        &mut self,
        inputs: &[Fact],
        build: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Body> {
        let around = self.frame;
        self.frame = self.importer.scope.open(around);
        let name = self.node_name().to_string();
        let mut inner = Vec::with_capacity(inputs.len());
        for (i, fact) in inputs.iter().enumerate() {
            inner.push(self.add_input(&format!("{name}/input_{i}"), fact.clone())?);
        }
        let outputs = build(self, &inner);
        self.frame = around;
        let (mut graph, captures) = self.importer.scope.close()?;
        graph.outputs = outputs?;
        Ok(Body { graph, captures })
    }

    /// Writes the subgraph in attribute `name` out into the graph, and gives its outputs.
    pub fn inline(&mut self, name: &str, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        let proto = self.graph_attribute(name)?;
        self.importer.inline_body(self.frame, proto, inputs)
    }
}
