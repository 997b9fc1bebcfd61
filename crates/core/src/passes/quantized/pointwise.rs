//! Arithmetic on two quantised tensors.

use std::sync::Arc;

use super::super::patch::Patch;
use super::{Found, Operand, Target};
use crate::graph::Graph;
use crate::ops::{Activation, Binary, BinaryKind, QLinearBinary, clamped_range};

/// The sum, difference, product, larger or smaller of two tensors that `target` quantises.
pub fn find(graph: &Graph, patch: &Patch, target: &Target) -> Option<Found> {
    let (node, clamp) = target.before_clamp(graph, patch)?;
    let op = node.op.downcast_ref::<Binary>()?;
    use BinaryKind::{Add, Max, Min, Mul, Sub};
    let plain = matches!(op.kind, Add | Sub | Mul | Max | Min);
    (plain && op.activation == Activation::None).then_some(())?;
    let (a, left) = Operand::of_bytes(graph, patch, node.input(0)?)?;
    let (b, right) = Operand::of_bytes(graph, patch, node.input(1)?)?;
    let combined = QLinearBinary {
        kind: op.kind,
        operands: [left, right],
        offset: 0.0,
        result: target.affine,
        range: clamped_range(target.dtype, clamp, target.affine)?,
        output: target.dtype,
    };
    Some((Arc::new(combined), vec![Some(a.numbers), Some(b.numbers)]))
}
