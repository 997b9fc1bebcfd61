//! What is another than before in a stage that runs with inputs of other shapes.

use crate::fact::TensorSpec;
use crate::ids::{KernelIndex, TensorIndex};

/// What becomes of a backend's share of a planned stage. Names, element types, the order of kernels and what is
/// where stay.
#[derive(Clone, Debug, Default)]
pub struct StageChange {
    /// The tensors with another shape or another known value.
    pub tensors: Vec<TensorChange>,
    /// The kernels that read or write such tensors.
    pub kernels: Vec<KernelChange>,
    /// The offset of each tensor in the arena that has another one.
    pub offsets: Vec<(TensorIndex, usize)>,
    /// [`arena_bytes`](super::StageSpec::arena_bytes) of the changed stage.
    pub arena_bytes: usize,
}

impl StageChange {
    /// Whether the stage stays as it is.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty() && self.kernels.is_empty() && self.offsets.is_empty()
    }
}

/// A tensor of a stage with another shape or value.
#[derive(Clone, Debug)]
pub struct TensorChange {
    /// The tensor's index in [`super::StageSpec::tensors`].
    pub tensor: TensorIndex,
    /// What it is from now on. It has a value where it had one before.
    pub spec: TensorSpec,
}

/// A kernel whose node has other sizes.
#[derive(Clone, Debug)]
pub struct KernelChange {
    /// The kernel's index in [`super::StageSpec::nodes`].
    pub kernel: KernelIndex,
    /// The specs of its inputs and outputs, with values where they are known, as
    /// [`super::StageSpec::specs`] gives them.
    pub inputs: Vec<Option<TensorSpec>>,
    pub outputs: Vec<TensorSpec>,
}
