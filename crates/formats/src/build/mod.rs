//! What the importers of all formats share: a graph that grows node by node ([`GraphBuilder`]), tables of operators
//! ([`OpTable`]), and the list of what is refused ([`Refusals`]).

mod blocks;
mod graph;
mod layers;
mod names;
mod pool;
mod refusals;
mod steps;
mod table;

pub use graph::{GraphBuilder, RANK_HINT, unify};
pub use names::shortened;
pub use pool::{PoolKind, covering};
pub use refusals::{Refusals, reason, unknown_operator};
pub use steps::number;
pub use table::OpTable;

/// An import stands for the [`GraphBuilder`] in its field `builder`.
macro_rules! stands_for_builder {
    ($import:ident) => {
        impl std::ops::Deref for $import<'_> {
            type Target = $crate::build::GraphBuilder;

            fn deref(&self) -> &Self::Target {
                &self.builder
            }
        }

        impl std::ops::DerefMut for $import<'_> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.builder
            }
        }
    };
}

pub(crate) use stands_for_builder;
