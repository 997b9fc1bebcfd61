//! Stages and subgraphs in the form of the C interface.

use std::ffi::{CString, c_char};

use kilim_core::backend::{KernelSpec, Location, Refusal, StageSpec, Subgraph, SubgraphTensor};
use kilim_core::ids::TensorIndex;
use kilim_plugin_abi as abi;

use crate::encode::{Arena, TensorView, c_text};

/// Steps, with what their pointers point to.
#[derive(Default)]
struct Steps {
    list: Vec<abi::Step>,
    #[expect(clippy::vec_box, reason = "they are pointed to")]
    _nodes: Vec<Box<abi::Node>>,
    _indices: Vec<Box<[usize]>>,
    _arena: Arena,
}

impl Steps {
    /// Adds a node of tensors that `view` gives. Elements that are known stay where these views have them.
    ///
    /// # Errors
    /// An element type that the interface does not have.
    fn add<'s>(
        &mut self,
        arena: &mut Arena,
        node: &KernelSpec,
        view: impl Fn(TensorIndex) -> TensorView<'s>,
    ) -> Result<(), Refusal> {
        let view = |&t: &TensorIndex| view(t);
        let inputs: Vec<_> = node.inputs.iter().map(|t| t.as_ref().map(view)).collect();
        let outputs: Vec<_> = node.outputs.iter().map(|t| Some(view(t))).collect();
        let encoded = Box::new(arena.node(&node.name, &*node.op, &inputs, &outputs)?);
        let inputs = node.inputs.iter().map(|i| i.map_or(abi::ABSENT, |i| i.0));
        let inputs: Box<[usize]> = inputs.collect();
        let outputs: Box<[usize]> = node.outputs.iter().map(|o| o.0).collect();
        self.list.push(abi::Step {
            node: &raw const *encoded,
            inputs: inputs.as_ptr(),
            outputs: outputs.as_ptr(),
        });
        self._nodes.push(encoded);
        self._indices.extend([inputs, outputs]);
        Ok(())
    }
}

/// A stage in the interface's form; known elements are those of the stage, which must live as long.
pub struct StageView {
    slots: Vec<abi::Slot>,
    steps: Steps,
    parts: Vec<usize>,
    arena_bytes: usize,
    /// One for each step, or none.
    algorithms: Vec<*const c_char>,
    _texts: Vec<Option<CString>>,
}

impl StageView {
    /// The view of a stage whose kernels are to have `algorithms`: one for each node, or none.
    ///
    /// # Errors
    /// An element type that the interface does not have.
    pub fn new(stage: &StageSpec, algorithms: Vec<Option<String>>) -> Result<StageView, Refusal> {
        let mut arena = Arena::default();
        let mut slots = Vec::with_capacity(stage.tensors.len());
        for slot in &stage.tensors {
            let (mut offset, mut of, mut key) = (0, 0, 0);
            let location = match slot.location {
                Location::Constant(constant) => {
                    key = constant.0;
                    abi::CONSTANT
                }
                Location::Planned => abi::PLANNED,
                Location::Alias(tensor) => {
                    of = tensor.0;
                    abi::ALIAS
                }
                Location::Arena { offset: at } => {
                    offset = at;
                    abi::ARENA
                }
                Location::Input => abi::INPUT,
                Location::Output => abi::OUTPUT,
            };
            slots.push(abi::Slot {
                tensor: arena.tensor(&TensorView::of(&slot.spec).named(&slot.name))?,
                place: location,
                offset,
                of,
                key,
            });
        }
        let mut steps = Steps::default();
        for node in &stage.nodes {
            let slot = |t| &stage.tensors[t];
            steps.add(&mut arena, node, |t| {
                TensorView::of(&slot(t).spec).named(&slot(t).name)
            })?;
        }
        steps._arena = arena;
        let texts = algorithms.into_iter().map(|a| a.map(|a| c_text(&a)));
        let texts: Vec<Option<CString>> = texts.collect();
        let ends = stage.parts.iter().map(|p| p.end.0);
        Ok(StageView {
            slots,
            steps,
            parts: std::iter::once(0).chain(ends).collect(),
            arena_bytes: stage.arena_bytes,
            algorithms: texts
                .iter()
                .map(|t| t.as_ref().map_or(std::ptr::null(), |t| t.as_ptr()))
                .collect(),
            _texts: texts,
        })
    }

    /// Points into `self`.
    pub fn raw(&self) -> abi::Stage {
        abi::Stage {
            tensor_count: self.slots.len(),
            tensors: self.slots.as_ptr(),
            step_count: self.steps.list.len(),
            steps: self.steps.list.as_ptr(),
            part_count: self.parts.len() - 1,
            parts: self.parts.as_ptr(),
            arena_bytes: self.arena_bytes,
            algorithms: match self.algorithms.is_empty() {
                true => std::ptr::null(),
                false => self.algorithms.as_ptr(),
            },
        }
    }
}

fn view(tensor: &SubgraphTensor) -> TensorView<'_> {
    TensorView::of(&tensor.spec).named(&tensor.name)
}

/// A subgraph in the interface's form; known elements are those of the subgraph, which must live as long.
pub struct SubgraphView {
    tensors: Vec<abi::Tensor>,
    escapes: Vec<u8>,
    steps: Steps,
}

impl SubgraphView {
    /// # Errors
    /// An element type that the interface does not have.
    pub fn new(subgraph: &Subgraph) -> Result<SubgraphView, Refusal> {
        let mut arena = Arena::default();
        let tensors = subgraph.tensors.iter();
        let tensors = tensors.map(|t| arena.tensor(&view(t)));
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let mut steps = Steps::default();
        for node in &subgraph.nodes {
            steps.add(&mut arena, node, |t| view(&subgraph.tensors[t]))?;
        }
        steps._arena = arena;
        Ok(SubgraphView {
            tensors,
            escapes: subgraph
                .tensors
                .iter()
                .map(|t| u8::from(t.escapes))
                .collect(),
            steps,
        })
    }

    /// Points into `self`.
    pub fn raw(&self) -> abi::Subgraph {
        abi::Subgraph {
            tensor_count: self.tensors.len(),
            tensors: self.tensors.as_ptr(),
            escapes: self.escapes.as_ptr(),
            step_count: self.steps.list.len(),
            steps: self.steps.list.as_ptr(),
        }
    }
}
