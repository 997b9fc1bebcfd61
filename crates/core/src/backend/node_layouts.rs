//! Which layout a backend is fastest with, node by node.

use super::{DataLayout, NodeSpec};

/// The part of a backend that is fastest with one layout for some nodes and with another for others.
pub trait NodeLayouts {
    /// The layout that `node` is to have, which is told as it is on channels-first data; `None` leaves it to the order of
    /// [`BackendConfig::layouts`](super::BackendConfig::layouts). A layout that is not among those of the session's
    /// config changes nothing. Only operators that there are in both layouts are asked about.
    fn fastest(&self, node: &NodeSpec) -> Option<DataLayout>;
}
