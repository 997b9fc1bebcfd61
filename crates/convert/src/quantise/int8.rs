//! Weights of 8 bits.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Cast, DequantizeLinear, DynamicQuantizeLinear, Gather, MatMulInteger, QuantizeLinear,
};
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::Work;
use super::ranges::{Quantisation, Range, Ranges};
use super::weights::{Use, Whole, weights, with_bias};
use crate::lower::turned;
use crate::rebuild::Given;

/// Data that was quantised and dequantised, and the scale of its steps.
pub struct Dequantised {
    pub data: ValueId,
    pub scale: f32,
}

impl Work<'_> {
    /// What stands for a value once it was quantised by its range.
    pub fn dequantised(
        &mut self,
        b: &mut GraphBuilder,
        x: ValueId,
        range: Range,
    ) -> Result<Dequantised> {
        let Quantisation { scale, zero } = range.quantisation();
        if let Some(&data) = self.dequantised.get(&x) {
            return Ok(Dequantised { data, scale });
        }
        let steps = b.float(scale)?;
        let zero = b.tensor_value(Tensor::scalar(zero)?);
        let (axis, block) = (0, 0);
        let quantise = QuantizeLinear {
            axis,
            block,
            output: None,
        };
        let whole = b.op(quantise, &[x, steps, zero])?;
        let data = b.op(DequantizeLinear { axis, block }, &[whole, steps, zero])?;
        self.dequantised.insert(x, data);
        Ok(Dequantised { data, scale })
    }

    /// Weights as `int8` with their scales, a constant each.
    fn whole(
        &mut self,
        b: &mut GraphBuilder,
        v: ValueId,
        tensor: &Tensor,
        axis: usize,
    ) -> Result<[ValueId; 2]> {
        if let Some(known) = self.made.get(&v) {
            return Ok([known[0], known[1]]);
        }
        let Whole { numbers, scales } = Whole::new(tensor, axis)?;
        let made = [
            b.node_constant("int8", Tensor::from_slice(tensor.shape(), &numbers)?),
            b.node_constant("scales", Tensor::from_slice(&[scales.len()], &scales)?),
        ];
        self.made.insert(v, made.to_vec());
        Ok(made)
    }

    /// The weights of a node as real numbers again.
    fn widened(
        &mut self,
        b: &mut GraphBuilder,
        v: ValueId,
        tensor: &Tensor,
        axis: usize,
    ) -> Result<ValueId> {
        let [numbers, scales] = self.whole(b, v, tensor, axis)?;
        let op = DequantizeLinear {
            axis: axis as i64,
            block: 0,
        };
        b.op(op, &[numbers, scales])
    }
}

/// Products of integers, and other nodes that read `int8`.
pub fn dynamic(
    work: &mut Work,
    b: &mut GraphBuilder,
    given: &Given,
) -> Result<Option<Vec<ValueId>>> {
    let Some((i, role, tensor)) = weights(b, given) else {
        return Ok(None);
    };
    let Some(v) = given.input(i) else {
        return Ok(None);
    };
    match role {
        Use::Product { transposed } => {
            let tensor = if transposed { turned(&tensor)? } else { tensor };
            let [numbers, scales] = work.whole(b, v, &tensor, 1)?;
            let parts = b.apply(DynamicQuantizeLinear, &[given.input(0)], 3)?;
            let product = MatMulInteger::default();
            let sums = b.step(product, &[Some(parts[0]), Some(numbers), Some(parts[2])])?;
            let sums = b.op(Cast::new(DType::F32), &[sums])?;
            let steps = b.mul(scales, parts[1])?;
            let y = b.mul(sums, steps)?;
            Ok(Some(vec![with_bias(b, given, y)?]))
        }
        Use::Convolution => {
            let mut inputs = given.inputs.to_vec();
            inputs[i] = Some(work.widened(b, v, &tensor, 0)?);
            b.apply_shared(given.node.op.clone(), &inputs, 1).map(Some)
        }
        Use::Table => {
            let [numbers, scales] = work.whole(b, v, &tensor, 0)?;
            let Some(rows) = given.input(1) else {
                return Ok(None);
            };
            let gather = Gather { axis: 0 };
            let numbers = b.op(gather.clone(), &[numbers, rows])?;
            let numbers = b.op(Cast::new(DType::F32), &[numbers])?;
            let scales = b.op(gather, &[scales, rows])?;
            let scales = b.unsqueeze(scales, &[-1])?;
            Ok(Some(vec![b.mul(numbers, scales)?]))
        }
    }
}

/// Products and convolutions of quantised data.
pub fn fixed(
    work: &mut Work,
    b: &mut GraphBuilder,
    given: &Given,
    ranges: &Ranges,
) -> Result<Option<Vec<ValueId>>> {
    let Some((i, role, tensor)) = weights(b, given) else {
        return Ok(None);
    };
    let axis = match role {
        Use::Product { transposed } => usize::from(!transposed),
        Use::Convolution => 0,
        // Rows that are gathered are no data that was measured.
        Use::Table => return dynamic(work, b, given),
    };
    let (Some(x), Some(v)) = (given.input(0), given.input(i)) else {
        return Ok(None);
    };
    let name = given.node.input(0).map(|old| &given.graph.value(old).name);
    let Some(range) = name.and_then(|name| ranges.of(name)) else {
        return Ok(None);
    };
    let data = work.dequantised(b, x, range)?;
    let mut inputs = given.inputs.to_vec();
    inputs[0] = Some(data.data);
    inputs[i] = Some(work.widened(b, v, &tensor, axis)?);
    if let Some(Some(bias)) = inputs.get_mut(2)
        && let Some(reals) = b
            .constant(*bias)
            .filter(|t| t.dtype() == DType::F32 && t.rank() == 1)
    {
        let Whole { scales, .. } = Whole::new(&tensor, axis)?;
        if let Some(whole) = whole_bias(b, &reals, &scales, data.scale)? {
            *bias = whole;
        }
    }
    b.apply_shared(given.node.op.clone(), &inputs, 1).map(Some)
}

/// A bias in steps of the products, which integer kernels add; `None` where it is too large for 32 bits.
fn whole_bias(
    b: &mut GraphBuilder,
    bias: &Tensor,
    scales: &[f32],
    data: f32,
) -> Result<Option<ValueId>> {
    let reals = bias.as_slice::<f32>()?;
    if reals.len() != scales.len() {
        return Ok(None);
    }
    let steps: Vec<f32> = scales.iter().map(|scale| scale * data).collect();
    let numbers = reals.iter().zip(&steps);
    let numbers = numbers.map(|(x, step)| (f64::from(*x) / f64::from(*step)).round_ties_even());
    let numbers: Vec<f64> = numbers.collect();
    let fits = |n: &f64| n.abs() <= f64::from(i32::MAX);
    if !numbers.iter().all(fits) {
        return Ok(None);
    }
    let numbers: Vec<i32> = numbers.into_iter().map(|n| n as i32).collect();
    let numbers = b.node_constant("bias", Tensor::from_slice(&[reals.len()], &numbers)?);
    let steps = b.node_constant("bias/scales", Tensor::from_slice(&[reals.len()], &steps)?);
    let op = DequantizeLinear { axis: 0, block: 0 };
    b.op(op, &[numbers, steps]).map(Some)
}
