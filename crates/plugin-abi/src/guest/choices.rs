//! What a backend says of single nodes beside their kernels: the fastest layout, and algorithms to choose from.

use std::ffi::CStr;

use super::{DataLayout, Node};

/// The layout of each node, of a backend that describes both.
pub trait NodeLayouts {
    /// The layout that is the fastest for a node, which is told as it is on channels-first data; `None` leaves it to the order of
    /// [`super::Description::layouts`]. Asked of nodes that there are in both layouts, by any thread.
    fn fastest(&self, node: &Node) -> Option<DataLayout>;
}

/// Algorithms among which only a measurement finds the fastest.
pub trait Choices {
    /// What there is to choose for a node; `None` where that is nothing. Any thread may ask.
    fn choice(&self, node: &Node) -> Option<Choice>;
}

/// Algorithms for a node, see [`super::Build::algorithm`].
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What the answer depends on: nodes of one class get the same algorithm. A line of 1 to 1000 bytes without tabs.
    pub class: String,
    /// At least two names, the first of the one that is taken where nothing was measured.
    pub algorithms: &'static [&'static CStr],
}
