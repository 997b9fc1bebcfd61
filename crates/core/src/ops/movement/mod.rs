//! Operators that move elements without changing them.

mod arrange;
mod blocks;
mod expand;
mod pad;
mod slice;
mod view;

pub use arrange::*;
pub use blocks::*;
pub use expand::*;
pub use pad::*;
pub use slice::*;
pub use view::*;
