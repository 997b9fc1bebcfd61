//! What every attention of the domain ends in.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::attention::{Attending, Rules, merged};

/// Attention by these rules without sinks; query, key and value are `[batch, heads, sequence, size]`.
pub fn attending(
    [query, key, value]: [ValueId; 3],
    rules: Rules,
    bias: Option<ValueId>,
) -> Attending {
    Attending {
        query,
        key,
        value,
        rules,
        bias,
        sinks: None,
        zeros: false,
    }
}

/// The attention as output 0, `[batch, sequence, heads * size]`.
pub fn finish(b: &mut NodeBuilder, attending: &Attending) -> Result<()> {
    let y = attending.node(b)?;
    let y = merged(b, y)?;
    b.bind(0, y)
}
