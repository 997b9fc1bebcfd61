//! Convolutions and matrix products with constant weights.

use std::sync::Arc;

use super::super::patch::Patch;
use super::{Found, Operand, Parameters, Target};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{Activation, Conv, Gemm, MatMul, QLinearConv, QLinearMatMul, normalize_axis};
use crate::tensor::Tensor;

/// The product that `target` quantises, as one of integers.
pub fn find(graph: &mut Graph, patch: &Patch, target: &Target) -> Result<Option<Found>> {
    let Some((node, activation)) = target.before_clamp(graph, patch) else {
        return Ok(None);
    };
    let Some(plan) = Plan::of(graph, patch, node, activation) else {
        return Ok(None);
    };
    plan.build(graph, target).map(Some)
}

/// A product of quantised numbers.
struct Plan {
    op: Arc<dyn Operator>,
    data: Operand,
    weights: Operand,
    /// The weights have to be transposed.
    transpose: bool,
    bias: Option<Tensor>,
}

impl Plan {
    fn of(graph: &Graph, patch: &Patch, node: &Node, activation: Activation) -> Option<Plan> {
        if let Some(op) = node.op.downcast_ref::<Conv>() {
            let free = op.activation == Activation::None && node.input(3).is_none();
            let conv = Conv {
                activation,
                ..op.clone()
            };
            let op = Arc::new(QLinearConv { conv });
            return free.then(|| Plan::with(graph, patch, node, op, 0))?;
        }
        let product = Arc::new(QLinearMatMul { activation });
        if let Some(op) = node.op.downcast_ref::<MatMul>() {
            let plain = *op == MatMul::default() && node.input(2).is_none();
            return plain.then(|| Plan::with(graph, patch, node, product, 1))?;
        }
        let op = node.op.downcast_ref::<Gemm>()?;
        let plain = op.alpha == 1.0 && op.beta == 1.0 && !op.transpose_a;
        (plain && op.activation == Activation::None).then_some(())?;
        let channels = if op.transpose_b { 0 } else { 1 };
        let plan = Plan::with(graph, patch, node, product, channels)?;
        Some(Plan {
            transpose: op.transpose_b,
            ..plan
        })
    }

    /// `channels` is the axis of the weights that the output's channels come from.
    fn with(
        graph: &Graph,
        patch: &Patch,
        node: &Node,
        op: Arc<dyn Operator>,
        channels: usize,
    ) -> Option<Plan> {
        let (data, affine) = Operand::of_bytes(graph, patch, node.input(0)?)?;
        let weights = Operand::of(graph, patch, node.input(1)?).filter(Operand::is_bytes)?;
        let shape = graph.constant(Some(weights.numbers))?.shape();
        let count = *shape.get(channels)?;
        let scales = &weights.parameters;
        if scales.one().is_none() {
            let axis = normalize_axis(scales.axis, shape.len()).ok()?;
            (axis == channels && scales.scales.len() == count).then_some(())?;
        }
        (channels == 0 || shape.len() == 2).then_some(())?;
        let bias = match node.input(2) {
            None => None,
            Some(v) => Some(bias(graph, patch, v, count, affine.scale, &scales.scales)?),
        };
        Some(Plan {
            op,
            data,
            weights,
            transpose: false,
            bias,
        })
    }

    fn build(self, graph: &mut Graph, target: &Target) -> Result<Found> {
        let zeros = [
            self.data.zero_value(graph)?,
            self.weights.zero_value(graph)?,
            target.zero_value(graph)?,
        ];
        let mut weights = self.weights.numbers;
        if self.transpose
            && let Some(tensor) = graph.constant(Some(weights))
        {
            let turned = tensor.permuted(&[1, 0])?;
            let name = format!("{}/turned", graph.value(weights).name);
            weights = graph.add_constant(name, turned);
        }
        let bias = self.bias.map(|tensor| {
            let name = format!("{}/bias", graph.value(weights).name);
            graph.add_constant(name, tensor)
        });
        let inputs = [
            self.data.numbers,
            self.data.scale,
            zeros[0],
            weights,
            self.weights.scale,
            zeros[1],
            target.scale,
            zeros[2],
        ];
        let inputs = inputs.into_iter().map(Some).chain(bias.map(Some));
        Ok((self.op, inputs.collect()))
    }
}

/// Scales of a bias may be computed in another precision than the product of two scales.
const CLOSE: f32 = 1e-6;

/// The `int32` numbers of a bias in steps of the product's.
fn bias(
    graph: &Graph,
    patch: &Patch,
    v: ValueId,
    channels: usize,
    data: f32,
    weights: &[f32],
) -> Option<Tensor> {
    let bias = Operand::of(graph, patch, v).filter(|b| b.dtype == DType::I32)?;
    let tensor = graph.constant(Some(bias.numbers))?;
    let Parameters { scales, zeros, .. } = &bias.parameters;
    let matches = |i: usize| {
        let (step, own) = (data * weights[i % weights.len()], scales[i % scales.len()]);
        (step - own).abs() <= CLOSE * step
    };
    let fits = tensor.len() == channels
        && (scales.len() == 1 || scales.len() == channels)
        && zeros.iter().all(|&z| z == 0.0)
        && (0..channels).all(matches);
    fits.then(|| tensor.reshaped(&[channels]).ok())?
}
