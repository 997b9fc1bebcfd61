//! Matrix products.

use kilim_core::error::Result;
use kilim_core::ops::{Activation, Det, Einsum, Gemm, MatMul};

use super::OpTable;
use crate::onnx::builder::NodeBuilder;

pub fn register(table: &mut OpTable) {
    table.add("MatMul", |b| b.emit_same(MatMul::default()));
    table.add("Gemm", gemm);
    table.add("Einsum", |b| {
        let mut equation = b.text_or("equation", "")?.to_string();
        equation.retain(|c| !c.is_whitespace());
        b.emit_same(Einsum { equation })
    });
    table.add("Det", |b| b.emit_same(Det));
}

fn gemm(b: &mut NodeBuilder) -> Result<()> {
    let op = Gemm {
        alpha: b.float_or("alpha", 1.0)?,
        beta: b.float_or("beta", 1.0)?,
        transpose_a: b.flag("transA")?,
        transpose_b: b.flag("transB")?,
        activation: Activation::None,
    };
    b.emit_same(op)
}
