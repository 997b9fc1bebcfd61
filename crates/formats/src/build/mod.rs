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
