//! What a backend may do to the nodes that it is given.

use super::{KernelSpec, Refusal, TensorSpec};
use crate::error::Result;
use crate::ids::{KernelIndex, PerKernel, PerTensor};

/// A tensor of a [`Subgraph`].
#[derive(Clone, Debug)]
pub struct SubgraphTensor {
    pub name: String,
    pub spec: TensorSpec,
    /// Something outside of the subgraph reads it: it must still be written.
    pub escapes: bool,
}

/// Nodes of one stage that are connected and were placed on one backend.
#[derive(Clone, Debug, Default)]
pub struct Subgraph {
    pub tensors: PerTensor<SubgraphTensor>,
    /// In an order in which every tensor is written before it is read.
    pub nodes: PerKernel<KernelSpec>,
}

/// Nodes that take the place of others.
#[derive(Clone, Debug, Default)]
pub struct Replacement {
    /// Indices into [`Subgraph::nodes`].
    pub nodes: Vec<KernelIndex>,
    /// The nodes that take the place of [`Replacement::nodes`]. They use the subgraph's tensors; indices
    /// behind those are new intermediates, of this replacement alone. The backend is asked about the new
    /// nodes as about any node.
    pub with: Vec<KernelSpec>,
}

/// What a backend makes of a subgraph; nothing, by default.
#[derive(Clone, Debug, Default)]
pub struct Rewrite {
    /// Nodes that it gives back, seen among their neighbours, of [`Subgraph::nodes`].
    pub refused: Vec<(KernelIndex, Refusal)>,
    pub replaced: Vec<Replacement>,
}

/// The part of a backend that looks at subgraphs instead of single nodes: it may give nodes back to
/// the partitioner, merge them into operators of its own, or write them otherwise.
pub trait Optimizer {
    /// # Errors
    /// Whatever ends the planning; to leave the subgraph as it is is none.
    fn optimise(&self, subgraph: &Subgraph) -> Result<Rewrite>;
}
