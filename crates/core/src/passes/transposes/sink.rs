//! Lets operators work on data as it lies, their axes renumbered.

use std::sync::Arc;

use super::super::edit::{inverse, is_identity};
use super::super::layout::permuted_fact;
use super::{Held, Pass, is_free};
use crate::error::Result;
use crate::graph::{Axes, Elements, Graph, InferContext, Node, Operator, Renumbered, ValueId};

/// True where each element of the first input becomes one of the output, whichever axis it is on.
pub(super) fn maps(graph: &Graph, node: &Node) -> bool {
    let one = |v: ValueId| {
        let shape = graph.fact(v).shape.as_ref();
        shape.is_some_and(|s| s.elements() == Some(1))
    };
    match node.op.flow().elements {
        Elements::Mapped => true,
        Elements::MappedAlongAxis => node.present_inputs().skip(1).all(one),
        _ => false,
    }
}

impl Pass<'_> {
    /// Puts a node that works on held data into the list, its outputs held in turn; false where it
    /// has to see its inputs in order.
    pub(super) fn sink(&mut self, node: &Node) -> Result<bool> {
        let op = &*node.op;
        if op.flow().axes == Axes::Regrouped {
            return self.sink_reshape(node);
        }
        if self.sink_product(node)? {
            return Ok(true);
        }
        if op.flow().takes_several() {
            return self.sink_joined(node);
        }
        let Some(x) = node.input(0) else {
            return Ok(false);
        };
        let Some(held) = self.held(x).cloned() else {
            return Ok(false);
        };
        let Some(renumbered) = self.renumbered(node, &held.perm) else {
            return Ok(false);
        };
        let rank = Some(renumbered.perm.len());
        if node
            .outputs
            .iter()
            .any(|&v| self.graph.fact(v).rank() != rank)
            || !self.worth(0, self.price_of_order(x), &node.outputs, &renumbered.perm)
        {
            return Ok(false);
        }
        let mut inputs = node.inputs.clone();
        inputs[0] = Some(held.source);
        for (i, constant) in renumbered.inputs {
            inputs.resize(inputs.len().max(i + 1), None);
            let name = || format!("{}/{i}", node.name);
            inputs[i] = constant.map(|tensor| self.graph.add_constant(name(), tensor));
        }
        while let Some(None) = inputs.last() {
            inputs.pop();
        }
        for &v in inputs.iter().skip(1).flatten() {
            self.carry_out(v)?;
        }
        self.emit(node, renumbered.op, inputs, &renumbered.perm);
        Ok(true)
    }

    /// `node` for data whose transpose by `perm` is its first input.
    fn renumbered(&self, node: &Node, perm: &[usize]) -> Option<Renumbered> {
        if maps(self.graph, node) {
            return Some(Renumbered {
                op: node.op.clone(),
                inputs: Vec::new(),
                perm: perm.to_vec(),
            });
        }
        let inputs = self.graph.input_facts(&node.inputs);
        let ctx = InferContext::new(&inputs, node.outputs.len());
        node.op.renumbered(&ctx, perm)
    }

    /// Appends a node whose outputs lie in the order `perm` undoes.
    pub(super) fn emit(
        &mut self,
        node: &Node,
        op: Arc<dyn Operator>,
        inputs: Vec<Option<ValueId>>,
        perm: &[usize],
    ) {
        let back = inverse(perm);
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            if is_identity(perm) {
                outputs.push(v);
                continue;
            }
            let fact = permuted_fact(self.graph.fact(v), &back);
            let name = format!("{}/lying", self.graph.value(v).name);
            let lying = self.graph.add_value(name, fact);
            outputs.push(lying);
            let name = format!("{}/order", node.name);
            let held = Held {
                source: lying,
                perm: perm.to_vec(),
                name,
            };
            self.hold(v, held);
        }
        self.patch.push(Node {
            name: node.name.clone(),
            op,
            inputs,
            outputs,
        });
    }

    /// A transpose of the last two dimensions of an operand is an attribute of the product.
    fn sink_product(&mut self, node: &Node) -> Result<bool> {
        let swaps = |pass: &Self, i: usize| {
            let held = pass.held(node.input(i)?)?;
            let n = held.perm.len();
            let mut swap: Vec<usize> = (0..n).collect();
            if n < 2 {
                return None;
            }
            swap.swap(n - 1, n - 2);
            let moves = !is_free(pass.graph, held.source, &held.perm);
            (held.perm == swap && moves).then_some(held.source)
        };
        let (mut op, mut inputs) = (node.op.clone(), node.inputs.clone());
        let mut changed = false;
        for (i, input) in inputs.iter_mut().enumerate() {
            if let Some(swapped) = op.swapped(i)
                && let Some(source) = swaps(self, i)
            {
                (op, *input, changed) = (swapped, Some(source), true);
            }
        }
        if !changed {
            return Ok(false);
        }
        for &v in inputs.iter().flatten() {
            self.carry_out(v)?;
        }
        self.patch.push(Node {
            op,
            inputs,
            ..node.clone()
        });
        Ok(true)
    }
}
