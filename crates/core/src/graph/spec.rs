//! A node with everything known about it, as backends are asked about it.

use super::Operator;
use crate::fact::{Cost, TensorSpec};
use crate::short::Short;

/// Nodes with more inputs or outputs are rare.
const PORTS: usize = 8;

/// A node with concrete shapes, as backends are asked about it. The inputs that
/// [`Operator::value_inputs`] lists always carry values.
#[derive(Clone, Debug)]
pub struct NodeSpec<'a> {
    pub name: &'a str,
    pub op: &'a dyn Operator,
    pub inputs: &'a [Option<TensorSpec>],
    pub outputs: &'a [TensorSpec],
}

impl NodeSpec<'_> {
    /// `None` where the node has no such input or it is left out.
    pub fn input(&self, i: usize) -> Option<&TensorSpec> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Whether the first output has as many elements as the first input.
    pub fn keeps_count(&self) -> bool {
        let ends = self.input(0).zip(self.outputs.first());
        ends.is_some_and(|(x, y)| x.elements() == y.elements())
    }

    /// What the operator says that it costs, whoever runs it.
    pub fn cost(&self) -> Cost {
        fn shape(s: &TensorSpec) -> &[usize] {
            &s.shape
        }
        let inputs = self.inputs.iter().map(|s| s.as_ref().map(shape));
        let inputs: Short<_, PORTS> = inputs.collect();
        let outputs: Short<_, PORTS> = self.outputs.iter().map(shape).collect();
        self.op.cost(&inputs, &outputs)
    }
}

/// Why a backend refuses a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
}

impl Refusal {
    /// A refusal for a reason, which is shown to users.
    pub fn new(reason: impl Into<String>) -> Refusal {
        Refusal {
            reason: reason.into(),
        }
    }
}
