//! Quantisation.

use kilim_core::error::Result;
use kilim_core::ops::{
    ConvInteger, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, QLinearConv,
    QLinearMatMul, QuantizeLinear,
};

use super::OpTable;
use super::conv::attributes;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::tensor::dtype;

pub fn register(table: &mut OpTable) {
    table.add("QuantizeLinear", quantize);
    table.add("DequantizeLinear", dequantize);
    table.add("DynamicQuantizeLinear", |b| {
        b.emit_same(DynamicQuantizeLinear)
    });
    table.add("MatMulInteger", |b| b.emit_same(MatMulInteger));
    table.add("ConvInteger", |b| {
        let weights = b.input(1)?;
        let conv = attributes(b, weights)?;
        b.emit_same(ConvInteger { conv })
    });
    table.add("QLinearMatMul", |b| b.emit_same(QLinearMatMul));
    table.add("QLinearConv", |b| {
        let weights = b.input(3)?;
        let conv = attributes(b, weights)?;
        b.emit_same(QLinearConv { conv })
    });
}

pub fn quantize(b: &mut NodeBuilder) -> Result<()> {
    let output = match b.int_or("output_dtype", 0)? {
        0 => None,
        n => Some(dtype(n)?),
    };
    let op = QuantizeLinear {
        axis: b.int_or("axis", 1)?,
        block: b.count("block_size", Some(0))?,
        output,
    };
    b.emit_same(op)
}

pub fn dequantize(b: &mut NodeBuilder) -> Result<()> {
    let op = DequantizeLinear {
        axis: b.int_or("axis", 1)?,
        block: b.count("block_size", Some(0))?,
    };
    let inputs = [b.widened(0)?, b.optional(1)?, b.widened(2)?];
    let y = b.apply(op, &inputs, 1)?[0];
    let y = match b.int_or("output_dtype", 0)? {
        0 => y,
        n => b.cast(y, dtype(n)?)?,
    };
    b.bind(0, y)
}
