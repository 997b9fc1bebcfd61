//! Products of bytes that become real numbers. Networks whose data are quantised while they run write
//! `Cast(MatMulInteger(a, b)) * (a_scale * b_scale) + bias`, each operation a node of its own.

use std::sync::Arc;

use super::super::patch::Patch;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::{Activation, Binary, BinaryKind, Cast, MatMulInteger, MatMulIntegerToFloat};

/// Takes scales and biases into the products of bytes before them. Needs inferred facts. True where something changed.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn dequantized_products(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(mut node) = patch.next_node() {
        let found = scaled(graph, &patch, &node).or_else(|| with_bias(graph, &patch, &node));
        if let Some(Found { between, inputs }) = found {
            for v in between {
                if let Some(taken) = patch.take(v) {
                    node.name = taken.name;
                }
            }
            node.op = Arc::new(MatMulIntegerToFloat);
            node.inputs = inputs;
        }
        patch.push(node);
    }
    patch.finish(graph)
}

/// A node that becomes a [`MatMulIntegerToFloat`].
struct Found {
    /// Values that nothing else reads, the product of bytes last.
    between: Vec<ValueId>,
    inputs: Vec<Option<ValueId>>,
}

/// Two values that `node` combines in both orders, if it is a `kind` without an activation.
fn operands(node: &Node, kind: BinaryKind) -> Option<[(ValueId, ValueId); 2]> {
    let op = node.op.downcast_ref::<Binary>()?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    let plain = op.kind == kind && op.activation == Activation::None && a != b;
    plain.then_some([(a, b), (b, a)])
}

/// The product of a sum of bytes, as real numbers, and two scales.
fn scaled(graph: &Graph, patch: &Patch, node: &Node) -> Option<Found> {
    let orders = operands(node, BinaryKind::Mul)?;
    orders.into_iter().find_map(|(real, scale)| {
        let (cast, reader) = patch.produced_by::<Cast>(Some(real))?;
        let sums = reader.input(0)?;
        let (op, product) = patch.produced_by::<MatMulInteger>(Some(sums))?;
        let plain = op.requantize.is_none() && product.input(4).is_none();
        let alone = patch.uses(real) == 0 && patch.uses(sums) == 1;
        (plain && alone && cast.to == DType::F32).then_some(())?;
        let (a, b) = (product.input(0)?, product.input(1)?);
        let columns = columns(graph, b)?;
        let fits = |&(x, w): &(ValueId, ValueId)| {
            let (x, w) = (length(graph, x), length(graph, w));
            x == Some(1) && (w == Some(1) || w == Some(columns))
        };
        let scales = operands(patch.producer(Some(scale))?, BinaryKind::Mul)?;
        let (a_scale, b_scale) = scales.into_iter().find(fits)?;
        let given = [a, b, a_scale, b_scale].map(Some);
        let zeros = [product.input(2), product.input(3)];
        Some(Found {
            between: vec![real, sums],
            inputs: given.into_iter().chain(zeros).collect(),
        })
    })
}

/// The sum of a product that is scaled already, and a vector.
fn with_bias(graph: &Graph, patch: &Patch, node: &Node) -> Option<Found> {
    let orders = operands(node, BinaryKind::Add)?;
    orders.into_iter().find_map(|(real, bias)| {
        let (_, product) = patch.produced_by::<MatMulIntegerToFloat>(Some(real))?;
        let columns = columns(graph, product.input(1)?)?;
        let vector = graph.fact(bias).rank() == Some(1) && length(graph, bias) == Some(columns);
        let free = product.input(6).is_none() && patch.uses(real) == 0;
        (vector && free).then_some(())?;
        let inputs = (0..6).map(|i| product.input(i)).chain([Some(bias)]);
        Some(Found {
            between: vec![real],
            inputs: inputs.collect(),
        })
    })
}

/// The columns of a right-hand factor that is no vector: the product has as many, and at least one dimension.
fn columns(graph: &Graph, b: ValueId) -> Option<usize> {
    match graph.fact(b).shape.as_ref()?.0.as_slice() {
        [.., _, n] => n.known(),
        _ => None,
    }
}

/// How many elements `v` has, a `float32` scalar or vector.
fn length(graph: &Graph, v: ValueId) -> Option<usize> {
    let shape = graph.fact(v).concrete().filter(|s| s.len() <= 1)?;
    graph.is_f32(v).then(|| shape.iter().product())
}
