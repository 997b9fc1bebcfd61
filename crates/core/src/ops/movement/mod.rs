//! Operators that move elements without changing them.

mod arrange;
mod region;
mod view;

pub use arrange::*;
pub use region::*;
pub use view::*;
