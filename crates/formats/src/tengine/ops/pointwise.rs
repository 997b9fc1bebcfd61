//! Functions of one tensor.

use kilim_core::error::unsupported;
use kilim_core::ops::{Binary, BinaryKind, UnaryKind};
use kilim_core::tensor::element_count;

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::node::Node;

/// The node `y = kind(x)`.
pub fn of(imp: &mut Import, node: &Node, kind: UnaryKind) -> Outputs {
    Ok(vec![imp.unary(kind, node.input(0)?)?])
}

pub fn relu(imp: &mut Import, node: &Node) -> Outputs {
    match node.params()?.float(0)? {
        0.0 => of(imp, node, UnaryKind::Relu),
        alpha => of(imp, node, UnaryKind::LeakyRelu { alpha }),
    }
}

pub fn relu6(imp: &mut Import, node: &Node) -> Outputs {
    Ok(vec![imp.clipped(node.input(0)?, 0.0, 6.0)?])
}

/// The largest number stands in front of the smallest. Both may be tensors.
pub fn clip(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let (mut max, mut min) = (params.float(0)?, params.float(1)?);
    if let [_, low, high] = node.inputs[..] {
        for (bound, to) in [(low, &mut min), (high, &mut max)] {
            let tensor = imp.constant(bound);
            let tensor = tensor.ok_or_else(|| unsupported("bounds that are computed"))?;
            if let Some(&first) = tensor.as_slice::<f32>()?.first() {
                *to = first;
            }
        }
    }
    Ok(vec![imp.clipped(x, min, max)?])
}

pub fn elu(imp: &mut Import, node: &Node) -> Outputs {
    let alpha = node.params()?.float(0)?;
    of(imp, node, UnaryKind::Elu { alpha })
}

pub fn selu(imp: &mut Import, node: &Node) -> Outputs {
    let params = node.params()?;
    let (alpha, gamma) = (params.float(0)?, params.float(1)?);
    of(imp, node, UnaryKind::Selu { alpha, gamma })
}

pub fn hard_sigmoid(imp: &mut Import, node: &Node) -> Outputs {
    let params = node.params()?;
    let (alpha, beta) = (params.float(0)?, params.float(1)?);
    of(imp, node, UnaryKind::HardSigmoid { alpha, beta })
}

/// One slope for all, or one for each channel.
pub fn prelu(imp: &mut Import, node: &Node) -> Outputs {
    let (x, slopes) = (node.input(0)?, node.input(1)?);
    let count = element_count(&imp.dims(slopes)?)? as i64;
    let mut slopes = imp.reshape(slopes, &[count])?;
    if count > 1 {
        slopes = imp.per_channel(slopes, x)?;
    }
    Ok(vec![imp.op(Binary::new(BinaryKind::PRelu), &[x, slopes])?])
}

/// The operator `Unary`, a function by its number (`device/cpu/op/unary/unary_kernel_ref_fp32.c`).
pub fn unary(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let number = node.params()?.int(0)?;
    if let Some(y) = imp.numbered(x, number)? {
        return Ok(vec![y]);
    }
    let kind = match number {
        16 => UnaryKind::Tanh,
        other => return Err(unsupported(format!("function number {other}"))),
    };
    of(imp, node, kind)
}
