//! How nodes and the values that they write come into the graph.

use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Node, ValueId};
use kilim_core::ops::{InferContext, Operator, Unary, UnaryKind, check_rank};

use super::import::Importer;
use super::scope::{Binding, unify};
use crate::build::names::shortened;

impl<'a> Importer<'a> {
    /// Gives `value` the name `name`. A value that is not written by the nodes from `mark` on, or
    /// has been given a name since, is passed through Identity: outputs are found by their names.
    pub fn bind(
        &mut self,
        frame: usize,
        name: &'a str,
        value: ValueId,
        mark: usize,
        label: &str,
    ) -> Result<()> {
        let target = match self.scope.binding(frame, name) {
            Some(Binding::Forward(target)) => Some(*target),
            None => None,
            Some(_) => {
                return Err(Error::new(
                    ErrorCode::InvalidGraph,
                    format!("the value `{name}` is written twice"),
                ));
            }
        };
        let open = self.scope.open_graph(frame);
        let own = target.is_none() && open.take_name(value, (frame, mark));
        let graph = &mut open.graph;
        let value = match target {
            Some(target) => {
                let fact = graph.value(value).fact.clone();
                graph.value_mut(target).fact = fact;
                graph.push(label, Unary(UnaryKind::Identity), &[Some(value)], &[target]);
                target
            }
            None if own => {
                graph.value_mut(value).name = shortened(name);
                value
            }
            None => {
                let fact = graph.value(value).fact.clone();
                let renamed = graph.add_value(shortened(name), fact);
                graph.push(
                    label,
                    Unary(UnaryKind::Identity),
                    &[Some(value)],
                    &[renamed],
                );
                renamed
            }
        };
        let declared = self.scope.declared(frame, name);
        let known = &mut self.scope.graph(frame).value_mut(value).fact;
        *known = unify(std::mem::take(known), declared);
        self.scope.bind(frame, name, Binding::Value(value));
        Ok(())
    }

    /// Adds a node with new outputs to the graph of `frame`, and infers what they are.
    pub fn push(
        &mut self,
        frame: usize,
        name: &str,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let conditional = self.scope.frames[frame].conditional;
        let interrupt = self.scope.tensors.source.interrupt.clone();
        let graph = self.scope.graph(frame);
        let present = inputs
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |i| i + 1);
        let inputs = &inputs[..present];
        let known = graph.input_facts(inputs);
        let inferred = op.infer(&InferContext {
            inputs: &known,
            outputs,
            interrupt: &interrupt,
        });
        let mut facts = match inferred {
            Err(_) if conditional => Vec::new(),
            inferred => inferred?,
        }
        .into_iter();
        for fact in facts.as_slice() {
            check_rank(fact.rank().unwrap_or(0))?;
        }
        let values: Vec<_> = (0..outputs)
            .map(|i| graph.add_value(format!("{name}:{i}"), facts.next().unwrap_or_default()))
            .collect();
        graph.nodes.push(Node {
            name: name.to_string(),
            op,
            inputs: inputs.to_vec(),
            outputs: values.clone(),
        });
        Ok(values)
    }
}
