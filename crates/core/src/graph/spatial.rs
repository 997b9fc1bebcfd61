//! Operators on data with channels and axes of space.

use std::sync::Arc;

use super::Operator;

/// What an operator on `[n, c, spatial..]` is in the layout `[n, spatial.., c]`.
pub struct Spatial {
    /// The operator for channels-last data; `None` where it is that one already.
    pub channels_last: Option<Arc<dyn Operator>>,
    /// Inputs that are laid out like the output, if the node has them; others keep their layout.
    pub data: &'static [usize],
    /// The operator convolves: a graph gains by another layout only if one of its operators does.
    pub convolves: bool,
}

impl Spatial {
    /// One that convolves or does not, whose first input alone has channels and space.
    pub fn new(channels_last: Option<impl Operator>, convolves: bool) -> Spatial {
        Spatial {
            channels_last: channels_last.map(|op| Arc::new(op) as Arc<dyn Operator>),
            data: &[0],
            convolves,
        }
    }
}
