//! What a backend is told: planned stages.

use std::ops::Range;
use std::sync::Arc;

use crate::fact::TensorSpec;
use crate::graph::Operator;
use crate::ids::{KernelIndex, PerKernel, PerPart, PerTensor, TensorIndex};
use crate::tensor::Tensor;

/// Names a constant across the stages of a session, so that it is uploaded and packed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantKey(pub u64);

/// Where a tensor of a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A constant of the session; its data is the slot's value.
    Constant(ConstantKey),
    /// Known when the stage was planned, but not a constant of the session; its data is the value.
    Planned,
    /// In the stage's arena.
    Arena { offset: usize },
    /// Given by the user or another stage in host memory. Only for [`super::Memory::Host`].
    Input,
    /// Handed out in a buffer of its own in host memory. Only for [`super::Memory::Host`].
    Output,
    /// The bytes of another tensor of the stage, under another shape.
    Alias(TensorIndex),
}

impl Location {
    /// The session's name of a constant.
    pub fn constant(self) -> Option<ConstantKey> {
        match self {
            Location::Constant(key) => Some(key),
            _ => None,
        }
    }
}

/// One tensor of a stage.
#[derive(Clone, Debug)]
pub struct TensorSlot {
    pub name: String,
    pub spec: TensorSpec,
    pub location: Location,
}

/// One node of a stage.
#[derive(Clone, Debug)]
pub struct KernelSpec {
    pub name: String,
    pub op: Arc<dyn Operator>,
    pub inputs: Vec<Option<TensorIndex>>,
    pub outputs: Vec<TensorIndex>,
}

/// A backend's share of one stage of a graph, planned: concrete shapes, locations, order.
#[derive(Clone, Debug, Default)]
pub struct StageSpec {
    pub tensors: PerTensor<TensorSlot>,
    /// In order of execution.
    pub nodes: PerKernel<KernelSpec>,
    /// Runs of `nodes` between which other backends work; together they are all nodes.
    pub parts: PerPart<Range<KernelIndex>>,
    /// Bytes of arena that the tensors take; kernels' scratch comes on top.
    pub arena_bytes: usize,
    /// Tensors that the user, another stage or another backend writes.
    pub inputs: Vec<TensorIndex>,
    /// Tensors that the user, another stage or another backend reads.
    pub outputs: Vec<TensorIndex>,
}

impl StageSpec {
    /// Follows [`Location::Alias`] to the tensor that holds the bytes.
    pub fn root(&self, tensor: TensorIndex) -> TensorIndex {
        let mut t = tensor;
        while let Location::Alias(of) = self.tensors[t].location {
            t = of;
        }
        t
    }

    /// The specs of a node's inputs and outputs, in the form that kernels are chosen by. What is computed of a
    /// constant for the node's kernel goes with them ([`Tensor::unread`]).
    pub fn specs(&self, node: &KernelSpec) -> (Vec<Option<TensorSpec>>, Vec<TensorSpec>) {
        let spec = |&t: &TensorIndex| {
            let TensorSlot { name, spec, .. } = &self.tensors[t];
            TensorSpec {
                dtype: spec.dtype,
                shape: spec.shape.clone(),
                value: spec.value.as_ref().map(Tensor::unread),
                name: name.clone(),
            }
        };
        (
            node.inputs.iter().map(|t| t.as_ref().map(spec)).collect(),
            node.outputs.iter().map(spec).collect(),
        )
    }
}
