//! Integer arithmetic in the place of what exporters of quantised networks write in `float32`, between
//! DequantizeLinear and QuantizeLinear.
//!
//! What the rewritten graph gives:
//!
//! - Movement (`movement`), clamps, Add, Sub, Mul, Max and Min of two tensors (`pointwise`): the same
//!   bytes as before. Each element is computed from as many numbers in one order.
//! - Functions of one tensor (`table`): what the function is in `float64`, rounded to `float32` and
//!   quantised. Where the `float32` function is exact, these are the same bytes as before.
//! - Convolutions and matrix products (`products`): the exact sum, scaled once, as ONNX defines
//!   QLinearConv and QLinearMatMul. ONNX leaves open in which order the sums of Conv and MatMul are
//!   rounded, and what they are before quantisation differs between instruction sets; only the exact
//!   sum is the same everywhere. The two differ by one step where the exact result is closer to the
//!   middle of two steps than `float32` sums are to it, and nowhere else.
//!
//! Where DynamicQuantizeLinear chooses scales while a model runs, products of bytes become real numbers in one node (`real`):
//! the same bytes as before.
//!
//! Everything else stays as it is: averages, softmax, normalisation, products with float biases or two
//! changing factors, scales that are computed, types of other than 8 bits.

mod movement;
mod pointwise;
mod products;
mod real;
mod table;

pub use movement::moves;
pub use real::dequantized_products;

use std::sync::Arc;

use super::Evaluator;
use super::patch::Patch;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{Activation, Affine, Clip, DequantizeLinear, QuantizeLinear};
use crate::tensor::Tensor;

/// True where there is something that [`movement()`] and [`arithmetic`] could work on.
pub fn is_quantised(graph: &Graph) -> bool {
    graph
        .nodes
        .iter()
        .any(|n| n.op.is::<QuantizeLinear>() || n.op.is::<DequantizeLinear>())
}

/// Has movement move quantised numbers. Needs inferred facts. True where something changed.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn movement(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(mut node) = patch.next_node() {
        movement::sink(graph, &mut patch, &mut node);
        movement::lift(graph, &mut patch, &mut node);
        patch.push(node);
    }
    patch.finish(graph)
}

/// Puts integer arithmetic in the place of each QuantizeLinear that ends some. Needs inferred facts. True where
/// something changed.
///
/// # Errors
/// `Limit` where memory is short, and those of [`Patch::finish`].
pub fn arithmetic(graph: &mut Graph, evaluate: &Evaluator) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(mut node) = patch.next_node() {
        if let Some((op, inputs)) = find(graph, &patch, &node, evaluate)? {
            node.op = op;
            node.inputs = inputs;
            patch.changed = true;
        }
        patch.push(node);
    }
    patch.finish(graph)
}

/// What a QuantizeLinear becomes: an operator and its inputs.
type Found = (Arc<dyn Operator>, Vec<Option<ValueId>>);

fn find(
    graph: &mut Graph,
    patch: &Patch,
    node: &Node,
    evaluate: &Evaluator,
) -> Result<Option<Found>> {
    let Some(target) = Target::of(graph, node) else {
        return Ok(None);
    };
    if let Some(found) = products::find(graph, patch, &target)? {
        return Ok(Some(found));
    }
    if let Some(found) = pointwise::find(graph, patch, &target) {
        return Ok(Some(found));
    }
    table::find(graph, patch, node, &target, evaluate)
}

/// Scales and zero points, all known.
#[derive(Clone, Debug, PartialEq)]
struct Parameters {
    /// One, or one for each element along `axis`.
    scales: Vec<f32>,
    zeros: Vec<f32>,
    axis: i64,
}

impl Parameters {
    /// The scale at input 1 of `node`, and the zero point at input 2.
    fn of(graph: &Graph, node: &Node, axis: i64) -> Option<Parameters> {
        let scales = graph.constant(node.input(1))?.as_slice::<f32>().ok()?;
        let zeros = match node.input(2) {
            None => vec![0.0; scales.len()],
            Some(v) => {
                let zeros = graph.constant(Some(v))?.to_f64s().ok()?;
                zeros.into_iter().map(|z| z as f32).collect()
            }
        };
        // With others, products and sums could be infinite or no numbers.
        let sound = |s: &f32| (1e-30..1e30).contains(s);
        let fits = !scales.is_empty() && scales.len() == zeros.len() && scales.iter().all(sound);
        fits.then(|| Parameters {
            scales: scales.to_vec(),
            zeros,
            axis,
        })
    }

    /// Scale and zero point where one is for all.
    fn one(&self) -> Option<Affine> {
        match (&self.scales[..], &self.zeros[..]) {
            (&[scale], &[zero]) => Some(Affine { scale, zero }),
            _ => None,
        }
    }
}

/// What a DequantizeLinear to `float32` reads.
#[derive(Clone, Debug)]
struct Operand {
    numbers: ValueId,
    dtype: DType,
    parameters: Parameters,
    scale: ValueId,
    zero: Option<ValueId>,
}

impl Operand {
    /// What the DequantizeLinear that makes `v` reads; `None` where it scales blocks.
    fn of(graph: &Graph, patch: &Patch, v: ValueId) -> Option<Operand> {
        let (op, node) = patch.produced_by::<DequantizeLinear>(Some(v))?;
        let numbers = node.input(0)?;
        (op.block == 0).then_some(())?;
        Some(Operand {
            numbers,
            dtype: graph.fact(numbers).dtype?,
            parameters: Parameters::of(graph, node, op.axis)?,
            scale: node.input(1)?,
            zero: node.input(2),
        })
    }

    /// [`Operand::of`] for numbers of 8 bits with one scale, which comes with the operand.
    fn of_bytes(graph: &Graph, patch: &Patch, v: ValueId) -> Option<(Operand, Affine)> {
        let operand = Operand::of(graph, patch, v).filter(Operand::is_bytes)?;
        let affine = operand.parameters.one()?;
        Some((operand, affine))
    }

    fn is_bytes(&self) -> bool {
        matches!(self.dtype, DType::I8 | DType::U8)
    }

    /// The zero points as a value, where they were left out, too.
    fn zero_value(&self, graph: &mut Graph) -> Result<ValueId> {
        match self.zero {
            Some(v) => Ok(v),
            None => {
                let zero = Tensor::zeros(
                    self.dtype,
                    graph.fact(self.scale).concrete().as_deref().unwrap_or(&[]),
                )?;
                let name = format!("{}/zero", graph.value(self.scale).name);
                Ok(graph.add_constant(name, zero))
            }
        }
    }
}

/// What a QuantizeLinear to 8 bits with one scale makes.
struct Target {
    /// The real numbers.
    real: ValueId,
    affine: Affine,
    dtype: DType,
    scale: ValueId,
    zero: Option<ValueId>,
}

impl Target {
    fn of(graph: &Graph, node: &Node) -> Option<Target> {
        let op = node.op.downcast_ref::<QuantizeLinear>()?;
        let real = node.input(0)?;
        let dtype = graph.fact(*node.outputs.first()?).dtype?;
        let bytes = matches!(dtype, DType::I8 | DType::U8);
        (bytes && op.block == 0 && graph.is_f32(real)).then_some(())?;
        Some(Target {
            real,
            affine: Parameters::of(graph, node, op.axis)?.one()?,
            dtype,
            scale: node.input(1)?,
            zero: node.input(2),
        })
    }

    fn zero_value(&self, graph: &mut Graph) -> Result<ValueId> {
        match self.zero {
            Some(v) => Ok(v),
            None => {
                let name = format!("{}/zero", graph.value(self.scale).name);
                Ok(graph.add_constant(name, Tensor::zeros(self.dtype, &[])?))
            }
        }
    }

    /// What is quantised, before an activation that clamps it: only the activation reads it, and
    /// only the QuantizeLinear that.
    fn before_clamp<'a>(&self, graph: &Graph, patch: &'a Patch) -> Option<(&'a Node, Activation)> {
        let last = patch.producer(Some(self.real))?;
        (patch.uses(self.real) == 0).then_some(())?;
        let Some(activation) = clamp(graph, last) else {
            return Some((last, Activation::None));
        };
        let source = last.input(0)?;
        let before = patch.producer(Some(source))?;
        (patch.uses(source) == 1).then_some((before, activation))
    }
}

/// The activation that `node` is, if it clamps to bounds that are known.
fn clamp(graph: &Graph, node: &Node) -> Option<Activation> {
    if let Some(activation) = super::fuse::as_activation(node) {
        return activation.bounds().map(|_| activation);
    }
    node.op.is::<Clip>().then_some(())?;
    let bound = |i: usize, none: f32| match node.input(i) {
        None => Some(none),
        Some(v) => graph.scalar(Some(v)).map(|b| b as f32),
    };
    Some(Activation::Clip {
        min: bound(1, f32::NEG_INFINITY)?,
        max: bound(2, f32::INFINITY)?,
    })
}
