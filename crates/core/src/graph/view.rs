//! A node as an operator sees it that is asked about it.

use super::{Axes, Elements, Graph, Node, Value};
use crate::dim::Dim;
use crate::tensor::Tensor;

/// A node of a graph whose facts are inferred.
#[derive(Clone, Copy)]
pub struct NodeView<'a> {
    graph: &'a Graph,
    node: &'a Node,
}

impl<'a> NodeView<'a> {
    /// `node`, whose values are those of `graph`.
    pub fn new(graph: &'a Graph, node: &'a Node) -> NodeView<'a> {
        NodeView { graph, node }
    }

    /// Whether the only output is the first input as it is.
    pub fn passes_on(&self) -> bool {
        let regroups = self.node.op.flow().axes == Axes::Regrouped;
        regroups && self.keeps_shape() || self.node.op.passes_on(self)
    }

    /// Whether each element of the first output is one of the elements of the data, whichever element type they have.
    pub fn selects(&self) -> bool {
        self.node.op.flow().moves() || self.node.op.selects(self)
    }

    /// The inputs that are needed at one place alone for that place along dimension `axis` of the only output:
    /// [`super::Operator::apart`].
    pub fn apart(&self, axis: usize) -> Option<Vec<usize>> {
        match self.node.op.flow().elements {
            Elements::Mapped => Some(vec![0]),
            Elements::Joined { .. } => Some((0..self.inputs()).collect()),
            _ => self.node.op.apart(self, axis),
        }
    }

    /// How many dimensions input `i` has, where that is known.
    pub fn rank(&self, i: usize) -> Option<usize> {
        self.input(i)?.fact.rank()
    }

    /// How many inputs there are, with those before the last one that are left out.
    pub fn inputs(&self) -> usize {
        self.node.inputs.len()
    }

    /// Input `i`, if it is there.
    pub fn input(&self, i: usize) -> Option<&'a Value> {
        self.node.input(i).map(|v| self.graph.value(v))
    }

    /// The data of input `i`, if that is a constant.
    pub fn constant(&self, i: usize) -> Option<&'a Tensor> {
        self.input(i)?.constant.as_ref()
    }

    /// The integers of input `i`, if that is a constant.
    pub fn ints(&self, i: usize) -> Option<Vec<i64>> {
        self.constant(i)?.to_i64s().ok()
    }

    /// The number that input `i` is, if that is a constant of one element.
    pub fn scalar(&self, i: usize) -> Option<f64> {
        let tensor = self.constant(i).filter(|t| t.len() == 1)?;
        tensor.to_f64s().ok()?.first().copied()
    }

    /// Whether a dimension of the first input is known to be 0.
    pub fn is_empty(&self) -> bool {
        let shape = self.input(0).and_then(|x| x.fact.shape.as_ref());
        shape.is_some_and(|s| s.0.contains(&Dim::Known(0)))
    }

    /// The first output.
    pub fn output(&self) -> Option<&'a Value> {
        self.node.outputs.first().map(|&v| self.graph.value(v))
    }

    /// Whether the first output has the shape of the first input, whatever the dimensions turn out to be.
    pub fn keeps_shape(&self) -> bool {
        let shape = |value: Option<&'a Value>| value.and_then(|v| v.fact.shape.as_ref());
        match (shape(self.input(0)), shape(self.output())) {
            (Some(a), Some(b)) => a == b && !a.0.contains(&Dim::Unknown),
            _ => false,
        }
    }
}
