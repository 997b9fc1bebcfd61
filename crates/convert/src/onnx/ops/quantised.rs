//! Quantisation.

use kilim_core::error::Result;
use kilim_core::ops::{Attribute, DequantizeLinear, QuantizeLinear};

use super::Family;
use crate::onnx::form::{Form, MICROSOFT, Rule};
use crate::onnx::node::NodeForm;
use crate::onnx::tensor;
use Rule::{As, Told};
use kilim_formats::build::OpTable;

pub static OPERATORS: Family = OpTable(&[
    (
        "DequantizeLinear",
        Form::of(&[("axis", As("axis")), ("block", Told)])
            .also(|n| blocks(n, n.op::<DequantizeLinear>()?.block)),
    ),
    ("DynamicQuantizeLinear", Form::of(&[])),
    (
        "GatherBlockQuantized",
        Form::of(&[
            ("bits", As("bits")),
            ("block", As("block_size")),
            ("gather_axis", As("gather_axis")),
            ("quantize_axis", As("quantize_axis")),
        ])
        .in_domain(MICROSOFT),
    ),
    (
        "QuantizeLinear",
        Form::of(&[("axis", As("axis")), ("block", Told), ("output", Told)]).also(quantize),
    ),
]);

/// Blocks came with operator set 21.
fn blocks(n: &mut NodeForm, block: usize) -> Result<()> {
    if block > 0 {
        n.needs(21);
        n.set_int("block_size", block as i64);
    }
    Ok(())
}

/// The type of the output is that of the zero point; where there is none, it is said from operator set 21 on.
fn quantize(n: &mut NodeForm) -> Result<()> {
    let op = n.op::<QuantizeLinear>()?;
    if let Some(dtype) = op.output.filter(|_| !n.has(2)) {
        n.needs(21);
        n.set("output_dtype", Attribute::Int(tensor::number(dtype)?));
    }
    blocks(n, op.block)
}
