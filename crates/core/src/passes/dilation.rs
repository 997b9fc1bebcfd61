//! TensorFlow spells a dilated convolution as SpaceToBatch, an ordinary one, BatchToSpace.

use std::sync::Arc;

use super::patch::Patch;
use crate::error::Result;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::{BatchToSpace, Conv, Padding, SpaceToBatch};

/// Puts one dilated convolution in the place of the three. True where it found them.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(node) = patch.next_node() {
        match dilated(graph, &patch, &node) {
            Some((out, source, conv)) => {
                if let Some(mut producer) = patch.take(out) {
                    producer.op = Arc::new(conv);
                    producer.inputs[0] = Some(source);
                    producer.outputs = node.outputs;
                    patch.push(producer);
                }
            }
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

/// The convolution's output, what SpaceToBatch reads, and the dilated convolution.
fn dilated(graph: &Graph, patch: &Patch, node: &Node) -> Option<(ValueId, ValueId, Conv)> {
    if !node.op.is::<BatchToSpace>() {
        return None;
    }
    let out = node.input(0).filter(|&v| patch.uses(v) == 0)?;
    let (conv, producer) = patch.produced_by::<Conv>(Some(out))?;
    let x = producer.input(0)?;
    let (_, split) = patch.produced_by::<SpaceToBatch>(Some(x))?;
    let block = graph.ints(node.input(1))?;
    let pads = graph.ints(split.input(2))?;
    let crops = graph.ints(node.input(2))?;
    let n = block.len();
    let unpadded = match &conv.padding {
        Padding::Valid => true,
        Padding::Explicit(pads) => pads.iter().all(|&p| p == 0),
        _ => false,
    };
    let fits = graph.ints(split.input(1))? == block
        && (pads.len(), crops.len()) == (2 * n, 2 * n)
        && conv.channels_last
        && unpadded
        && producer.input(3).is_none()
        && conv.strides.iter().all(|&s| s == 1)
        && conv.dilations.iter().all(|&d| d == 1)
        && graph.fact(x).rank()? == n + 2;
    if !fits {
        return None;
    }
    let dilations = block.iter().map(|&b| usize::try_from(b).ok());
    // What BatchToSpace crops was padded before, or the output is cut and this is something else.
    let pad = |axis: usize, side: usize| {
        let at = 2 * axis + side;
        usize::try_from(pads[at].checked_sub(crops[at])?).ok()
    };
    let begins = (0..n).map(|axis| pad(axis, 0));
    let ends = (0..n).map(|axis| pad(axis, 1));
    let conv = Conv {
        dilations: dilations.collect::<Option<_>>()?,
        padding: Padding::Explicit(begins.chain(ends).collect::<Option<_>>()?),
        ..conv.clone()
    };
    Some((out, split.input(0)?, conv))
}
