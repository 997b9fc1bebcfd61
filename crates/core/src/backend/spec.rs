//! What a backend is told: concrete nodes, and planned stages.

use std::ops::Range;
use std::sync::Arc;

use crate::dtype::DType;
use crate::ops::{Cost, Operator};
use crate::tensor::Tensor;

/// A tensor with everything known about it when a kernel is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// The data, if it is a constant or was computed while planning.
    pub value: Option<Tensor>,
}

impl TensorSpec {
    /// Of a tensor whose elements are not known.
    pub fn new(dtype: DType, shape: &[usize]) -> TensorSpec {
        TensorSpec {
            dtype,
            shape: shape.to_vec(),
            value: None,
        }
    }

    /// The spec of a tensor whose value is known.
    pub fn of(value: &Tensor) -> TensorSpec {
        TensorSpec {
            dtype: value.dtype(),
            shape: value.shape().to_vec(),
            value: Some(value.clone()),
        }
    }

    /// The product of the dimensions.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// As stored on the host: types of less than 8 bits take a byte an element.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }
}

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

    /// What the operator says that it costs, whoever runs it.
    pub fn cost(&self) -> Cost {
        let inputs = self.inputs.iter();
        let inputs: Vec<_> = inputs
            .map(|i| i.as_ref().map(|s| s.shape.clone()))
            .collect();
        let outputs: Vec<_> = self.outputs.iter().map(|s| s.shape.clone()).collect();
        self.op.cost(&inputs, &outputs)
    }
}

/// Names a constant across the stages of a session, so that it is uploaded and packed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantKey(pub u64);

/// Where a tensor of a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
    Alias(usize),
}

/// One tensor of a stage.
#[derive(Clone, Debug)]
pub struct TensorSlot {
    pub name: String,
    pub spec: TensorSpec,
    pub place: Place,
}

/// One node of a stage; inputs and outputs are indices into [`StageSpec::tensors`].
#[derive(Clone, Debug)]
pub struct KernelSpec {
    pub name: String,
    pub op: Arc<dyn Operator>,
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
}

/// A backend's share of one stage of a graph, planned: concrete shapes, places, order.
#[derive(Clone, Debug, Default)]
pub struct StageSpec {
    pub tensors: Vec<TensorSlot>,
    /// In order of execution.
    pub nodes: Vec<KernelSpec>,
    /// Runs of `nodes` between which other backends work; together they are all nodes.
    pub parts: Vec<Range<usize>>,
    /// Bytes of arena that the tensors take; kernels' scratch comes on top.
    pub arena_bytes: usize,
    /// Tensors that the user, another stage or another backend writes.
    pub inputs: Vec<usize>,
    /// Tensors that the user, another stage or another backend reads.
    pub outputs: Vec<usize>,
}

impl StageSpec {
    /// Follows [`Place::Alias`] to the tensor that holds the bytes.
    pub fn root(&self, tensor: usize) -> usize {
        let mut t = tensor;
        while let Place::Alias(of) = self.tensors[t].place {
            t = of;
        }
        t
    }

    /// The specs of a node's inputs and outputs, in the form that kernels are chosen by. What is computed of a
    /// constant for the node's kernel goes with them ([`Tensor::unread`]).
    pub fn specs(&self, node: &KernelSpec) -> (Vec<Option<TensorSpec>>, Vec<TensorSpec>) {
        let spec = |&t: &usize| {
            let spec = &self.tensors[t].spec;
            TensorSpec {
                dtype: spec.dtype,
                shape: spec.shape.clone(),
                value: spec.value.as_ref().map(Tensor::unread),
            }
        };
        (
            node.inputs.iter().map(|t| t.as_ref().map(spec)).collect(),
            node.outputs.iter().map(spec).collect(),
        )
    }
}
