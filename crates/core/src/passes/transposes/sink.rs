//! Lets operators work on data as it lies, their axes renumbered.

use std::sync::Arc;

use super::super::edit::{inverse, is_identity};
use super::super::layout::permuted_fact;
use super::{Held, Pass, is_free};
use crate::error::Result;
use crate::graph::{Axes, Elements, Graph, Node, Operator, ValueId};
use crate::ops::{ArgReduce, Concat, Gemm, MatMul, Reduce, normalize_axes};

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
        if op.is::<MatMul>() || op.is::<Gemm>() {
            return self.sink_product(node);
        }
        if op.is::<Concat>() || op.flow().joins() {
            return self.sink_joined(node);
        }
        if op.is::<Reduce>() || op.is::<ArgReduce>() {
            return self.sink_reduction(node);
        }
        let Some(held) = node.input(0).and_then(|x| self.held(x)).cloned() else {
            return Ok(false);
        };
        let rank = held.perm.len();
        let Some(x) = node.input(0) else {
            return Ok(false);
        };
        if node
            .outputs
            .iter()
            .any(|&v| self.graph.fact(v).rank() != Some(rank))
            || !self.worth(0, self.price_of_order(x), &node.outputs, &held.perm)
        {
            return Ok(false);
        }
        let Some(renumbered) = self.renumbered(node, &held.perm)? else {
            return Ok(false);
        };
        let mut inputs = renumbered.inputs;
        inputs[0] = Some(held.source);
        for &v in inputs.iter().skip(1).flatten() {
            self.carry_out(v)?;
        }
        self.emit(node, renumbered.op, inputs, &held.perm);
        Ok(true)
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
        self.nodes.push(Node {
            name: node.name.clone(),
            op,
            inputs,
            outputs,
        });
    }

    fn sink_reduction(&mut self, node: &Node) -> Result<bool> {
        let (Some(x), [out]) = (node.input(0), &node.outputs[..]) else {
            return Ok(false);
        };
        let out = *out;
        let Some(held) = self.held(x).cloned() else {
            return Ok(false);
        };
        let rank = held.perm.len();
        let op = &*node.op;
        let (axes, keep) = if let Some(op) = op.downcast_ref::<Reduce>() {
            let axes = match node.input(1) {
                Some(v) => match self.graph.ints(Some(v)) {
                    Some(axes) if !axes.is_empty() => normalize_axes(&axes, rank),
                    _ => return Ok(false),
                },
                None if op.noop_with_empty_axes => return Ok(false),
                None => Ok((0..rank).collect()),
            };
            (axes, op.keep_dims)
        } else if let Some(op) = op.downcast_ref::<ArgReduce>() {
            (normalize_axes(&[op.axis], rank), op.keep_dims)
        } else {
            return Ok(false);
        };
        let Ok(axes) = axes else { return Ok(false) };
        let mut lying: Vec<usize> = axes.iter().map(|&a| held.perm[a]).collect();
        lying.sort_unstable();
        let perm: Vec<usize> = if keep {
            held.perm.clone()
        } else {
            let kept = (0..rank).filter(|d| !axes.contains(d));
            let gone = |p: usize| lying.iter().filter(|&&l| l < p).count();
            kept.map(|d| held.perm[d] - gone(held.perm[d])).collect()
        };
        if !self.worth(0, self.price_of_order(x), &[out], &perm) {
            return Ok(false);
        }
        let mut inputs = vec![Some(held.source)];
        let op: Arc<dyn Operator> = match op.downcast_ref::<ArgReduce>() {
            Some(op) => Arc::new(ArgReduce {
                axis: lying.first().map_or(0, |&a| a as i64),
                ..op.clone()
            }),
            None => {
                let axes: Vec<i64> = lying.iter().map(|&a| a as i64).collect();
                let name = format!("{}/axes", node.name);
                inputs.push(Some(self.graph.add_ints(name, &axes)?));
                node.op.clone()
            }
        };
        self.emit(node, op, inputs, &perm);
        Ok(true)
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
        let mut inputs = node.inputs.clone();
        let op: Arc<dyn Operator> = if let Some(op) = node.op.downcast_ref::<MatMul>() {
            let Some(b) = swaps(self, 1) else {
                return Ok(false);
            };
            inputs[1] = Some(b);
            Arc::new(MatMul {
                transpose_b: !op.transpose_b,
                ..op.clone()
            })
        } else if let Some(op) = node.op.downcast_ref::<Gemm>() {
            let (a, b) = (swaps(self, 0), swaps(self, 1));
            if a.is_none() && b.is_none() {
                return Ok(false);
            }
            inputs[0] = a.or(inputs[0]);
            inputs[1] = b.or(inputs[1]);
            Arc::new(Gemm {
                transpose_a: op.transpose_a ^ a.is_some(),
                transpose_b: op.transpose_b ^ b.is_some(),
                ..op.clone()
            })
        } else {
            return Ok(false);
        };
        for &v in inputs.iter().flatten() {
            self.carry_out(v)?;
        }
        self.nodes.push(Node {
            op,
            inputs,
            ..node.clone()
        });
        Ok(true)
    }
}
