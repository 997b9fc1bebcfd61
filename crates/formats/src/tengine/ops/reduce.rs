//! Reductions, softmax, and places of the largest numbers.

use kilim_core::dtype::DType;
use kilim_core::error::unsupported;
use kilim_core::ops::{ArgReduce, ReduceKind, Softmax, SoftmaxKind};

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::node::Node;

/// Stands for an axis that is left out.
pub const NO_AXIS: i64 = -2;

fn softmax_of(imp: &mut Import, node: &Node, kind: SoftmaxKind) -> Outputs {
    let softmax = Softmax {
        kind,
        axis: node.params()?.int(0)?,
        beta: 1.0,
    };
    Ok(vec![imp.op(softmax, &[node.input(0)?])?])
}

pub fn softmax(imp: &mut Import, node: &Node) -> Outputs {
    softmax_of(imp, node, SoftmaxKind::Softmax)
}

pub fn log_softmax(imp: &mut Import, node: &Node) -> Outputs {
    softmax_of(imp, node, SoftmaxKind::LogSoftmax)
}

pub fn arg(imp: &mut Import, node: &Node, max: bool) -> Outputs {
    let params = node.params()?;
    let arg = ArgReduce {
        max,
        axis: params.int(0)?,
        keep_dims: params.int(1)? != 0,
        select_last: false,
        output: DType::I32,
    };
    Ok(vec![imp.op(arg, &[node.input(0)?])?])
}

/// The operator `Reduction`, of up to four axes (`device/cpu/op/reduction/reduction_kernel_ref.h`). One number is left where all go.
pub fn reduction(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let mut axes = Vec::new();
    for i in 0..4 {
        match params.int(i)? {
            NO_AXIS => {}
            axis => axes.push(axis),
        }
    }
    let kind = match params.int(4)? {
        0 => ReduceKind::Sum,
        1 => ReduceKind::Mean,
        2 | 7 => ReduceKind::L1,
        3 => ReduceKind::SumSquare,
        4 => ReduceKind::Max,
        5 => ReduceKind::Min,
        6 => ReduceKind::Prod,
        8 => ReduceKind::L2,
        9 => ReduceKind::LogSum,
        10 => ReduceKind::LogSumExp,
        other => return Err(unsupported(format!("reduction number {other}"))),
    };
    let keep = params.int(5)? != 0;
    let rank = imp.rank(x)?;
    if axes.is_empty() {
        axes = (0..rank as i64).collect();
    }
    let y = imp.reduce(kind, x, &axes, keep)?;
    Ok(vec![match imp.rank(y)? {
        0 => imp.reshape(y, &[1])?,
        _ => y,
    }])
}
