//! Functions of the model, written out where they are called.

use std::collections::HashMap;
use std::rc::Rc;

use kilim_core::error::Result;

use super::import::{Import, distinct, opsets, written};
use super::proto::{AttributeProto, FunctionProto, NodeProto, invalid};
use super::scope::{Binding, Captures, Frame};

impl<'a> Import<'a> {
    /// Writes a function of the model out into the graph of `frame`.
    pub fn inline(
        &mut self,
        frame: usize,
        node: &'a NodeProto<'a>,
        function: &'a FunctionProto<'a>,
        attributes: Vec<(&'a str, &'a AttributeProto<'a>)>,
    ) -> Result<()> {
        self.check_depth()?;
        self.spend(
            function.inputs.len()
                + function.outputs.len()
                + function.attribute_protos.len()
                + function.opset_import.len()
                + function.value_info.len(),
        )?;
        let defaults = function.attribute_protos.iter().map(|a| (a.name, a));
        let attributes: HashMap<_, _> = defaults.chain(attributes).collect();
        if node.inputs.len() > function.inputs.len() || node.outputs.len() > function.outputs.len()
        {
            return Err(invalid(format!(
                "the function `{}` has {} inputs and {} outputs",
                function.name,
                function.inputs.len(),
                function.outputs.len()
            )));
        }
        distinct("input", function.inputs.iter().copied())?;
        distinct("output", function.outputs.iter().copied())?;
        let mut bindings = HashMap::new();
        for (i, &formal) in function.inputs.iter().enumerate() {
            let actual = node.inputs.get(i).copied().unwrap_or("");
            let binding = match self.scope.sequence(frame, actual) {
                Some(values) => Binding::Sequence(values),
                None => match self.scope.optional(frame, actual)? {
                    Some(value) => Binding::Value(value),
                    None => Binding::Absent,
                },
            };
            bindings.insert(formal, binding);
        }
        let infos = function.value_info.iter();
        let inner = self.scope.frames.len();
        let graph = self.scope.frames[frame].graph;
        self.scope.frames.push(Frame {
            graph,
            parent: None,
            bindings,
            declared: infos
                .filter_map(|i| Some((i.name, i.kind.as_ref()?)))
                .collect(),
            written: written(&function.nodes),
            opsets: opsets(&function.opset_import),
            attributes: Rc::new(attributes),
            prefix: format!("{}/", self.scope.open_graph(frame).node_name()),
            captures: Captures::default(),
        });
        self.nodes(inner, &function.nodes)?;
        let mut results = Vec::new();
        for (&formal, &actual) in function.outputs.iter().zip(&node.outputs) {
            if actual.is_empty() {
                continue;
            }
            if let Some(values) = self.scope.sequence(inner, formal) {
                results.push((actual, Binding::Sequence(values)));
            } else if let Some(value) = self.scope.optional(inner, formal)? {
                results.push((actual, Binding::Value(value)));
            }
        }
        self.scope.frames.pop();
        for (actual, binding) in results {
            match binding {
                Binding::Value(value) => self.scope.write(frame, actual, value)?,
                other => self.scope.bind(frame, actual, other),
            }
        }
        Ok(())
    }
}
