//! Normalisation of the sum of a layer's input and its output.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{LayerNorm, RmsNorm};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub static OPERATORS: Family = OpTable(&[
    ("SkipLayerNormalization", skip_layer_norm),
    ("SkipSimplifiedLayerNormalization", skip_rms_norm),
]);

/// Two operators that stand in the standard's domain though the standard does not have them.
pub static AS_STANDARD: Family = OpTable(&[
    ("SimplifiedLayerNormalization", |b| {
        let axis = b.int_or("axis", -1)?;
        let epsilon = b.float_or("epsilon", 1e-5)?;
        b.only_outputs(1)?;
        b.emit_same(RmsNorm { axis, epsilon })
    }),
    ("SkipLayerNormalization", skip_layer_norm),
]);

/// `input + skip`, and input `bias` if it is there: the sum that is normalised, and output 3.
fn skipped(b: &mut NodeBuilder, bias: usize) -> Result<ValueId> {
    let (x, skip) = (b.input(0)?, b.input(1)?);
    let mut sum = b.add(x, skip)?;
    if let Some(bias) = b.optional(bias)? {
        sum = b.add(sum, bias)?;
    }
    b.bind(3, sum)?;
    Ok(sum)
}

fn skip_layer_norm(b: &mut NodeBuilder) -> Result<()> {
    let sum = skipped(b, 4)?;
    let epsilon = b.float_or("epsilon", 1e-12)?;
    let inputs = [Some(sum), Some(b.input(2)?), b.optional(3)?];
    let y = b.apply(LayerNorm { axis: -1, epsilon }, &inputs, 1)?;
    b.bind(0, y[0])
}

fn skip_rms_norm(b: &mut NodeBuilder) -> Result<()> {
    let sum = skipped(b, 3)?;
    let epsilon = b.float_or("epsilon", 1e-12)?;
    let scale = b.input(2)?;
    let y = b.op(RmsNorm { axis: -1, epsilon }, &[sum, scale])?;
    b.bind(0, y)
}
