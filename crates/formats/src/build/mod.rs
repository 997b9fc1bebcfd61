//! What importers of all formats share: their tables of operators, the list of what they refuse.

pub mod names;
mod refusals;
mod table;

pub use refusals::{Refusals, reason};
pub use table::OpTable;
