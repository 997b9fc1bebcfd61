//! Products with weights, and tables with rows, that are packed in a few bits.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{Activation, GatherBlockQuantized, MatMulNBits};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub static OPERATORS: Family = OpTable(&[
    ("GatherBlockQuantized", gather_block_quantized),
    ("MatMulNBits", matmul_n_bits),
]);

/// Inputs: table, indices, scales of blocks, optional zero points.
fn gather_block_quantized(b: &mut NodeBuilder) -> Result<()> {
    let op = GatherBlockQuantized {
        gather_axis: b.int_or("gather_axis", 0)?,
        quantize_axis: b.int_or("quantize_axis", 1)?,
        block: b.count("block_size", Some(128))?,
        bits: b.count("bits", Some(4))?,
    };
    let inputs = [b.input(0)?, b.input(1)?, b.input(2)?].map(Some);
    let [data, indices, scales] = inputs;
    let zeros = b.optional(3)?;
    let y = b.apply(op, &[data, indices, scales, zeros], 1)?;
    b.bind(0, y[0])
}

/// The accuracies that an export may ask for: none, or that of `float32`, `float16`, `bfloat16` or `int8`. Each is the
/// least that is wanted.
const ACCURACIES: std::ops::RangeInclusive<i64> = 0..=INT8;
const INT8: i64 = 4;

/// Inputs: left matrix, packed weights, scales of blocks, optional zero points, block of each column, bias.
fn matmul_n_bits(b: &mut NodeBuilder) -> Result<()> {
    let accuracy = b.int_or("accuracy_level", 0)?;
    if !ACCURACIES.contains(&accuracy) {
        return Err(unsupported(format!("accuracy_level {accuracy}")).with_expected("0 to 4"));
    }
    let op = MatMulNBits {
        k: b.count("K", None)?,
        n: b.count("N", None)?,
        bits: b.count("bits", Some(4))?,
        block: b.count("block_size", None)?,
        int8: accuracy == INT8,
        activation: Activation::None,
    };
    b.fixed("weight_prepacked", 0)?;
    let (a, weights, scales) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let scales = b.cast_like(scales, a)?;
    let zeros = match b.optional(3)? {
        Some(zeros) if b.dtype(zeros).is_some_and(DType::is_float) => Some(b.cast_like(zeros, a)?),
        zeros => zeros,
    };
    let groups = match b.optional(4)? {
        Some(groups) => Some(b.cast(groups, DType::I32)?),
        None => None,
    };
    let bias = b.optional(5)?;
    let inputs = [Some(a), Some(weights), Some(scales), zeros, groups, bias];
    let y = b.apply(op, &inputs, 1)?;
    b.bind(0, y[0])
}
