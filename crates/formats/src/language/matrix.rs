//! Matrices of a file in the graph, plain or packed.

use kilim_core::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Gather, GatherBlockQuantized, MatMul, MatMulNBits};
use kilim_core::tensor::Tensor;

use super::blocks::{ElementType, Form, unpacked};
use crate::build::GraphBuilder;

/// A matrix `[rows, columns]` in the graph.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    values: Values,
}

#[derive(Clone, Copy)]
enum Values {
    Plain(ValueId),
    Packed {
        numbers: ValueId,
        scales: ValueId,
        zeros: Option<ValueId>,
        bits: usize,
        block: usize,
    },
}

impl Matrix {
    /// Brings a matrix into the graph whose elements of type `of` are the bytes `raw`.
    ///
    /// # Errors
    /// `Unsupported` for a type of elements that products do not take.
    pub fn new(
        b: &mut GraphBuilder,
        name: &str,
        of: &ElementType,
        raw: &Tensor,
        [rows, columns]: [usize; 2],
    ) -> Result<Matrix> {
        let values = match of.form {
            Form::Plain(dtype) if dtype.is_float() => {
                let tensor = of.plain(raw, &[rows, columns])?;
                Values::Plain(b.add_constant(name, tensor))
            }
            _ => {
                let packed = unpacked(of, raw, [rows, columns])?;
                let mut constant = |what: &str, tensor| {
                    let name = format!("{name}/{what}");
                    b.add_constant(&name, tensor)
                };
                Values::Packed {
                    numbers: constant("numbers", packed.numbers),
                    scales: constant("scales", packed.scales),
                    zeros: packed.zeros.map(|zeros| constant("zeros", zeros)),
                    bits: packed.bits,
                    block: packed.block,
                }
            }
        };
        Ok(Matrix {
            rows,
            columns,
            values,
        })
    }

    /// `x · wᵀ + bias`.
    ///
    /// # Errors
    /// What inference says of inputs that do not fit.
    pub fn product(
        &self,
        b: &mut GraphBuilder,
        x: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId> {
        match self.values {
            Values::Plain(w) => {
                let w = b.cast(w, DType::F32)?;
                let op = MatMul {
                    transpose_b: true,
                    ..MatMul::default()
                };
                b.step(op, &[Some(x), Some(w), bias])
            }
            Values::Packed {
                numbers,
                scales,
                zeros,
                bits,
                block,
            } => {
                let op = MatMulNBits {
                    k: self.columns,
                    n: self.rows,
                    bits,
                    block,
                    // As ggml does on a CPU: it rounds what it multiplies with packed numbers to blocks of `Q8_0` or `Q8_K`.
                    int8: true,
                    activation: Activation::None,
                };
                let inputs = [Some(x), Some(numbers), Some(scales), zeros, None, bias];
                b.step(op, &inputs)
            }
        }
    }

    /// The rows at `indices`, as `float32`.
    ///
    /// # Errors
    /// What inference says of inputs that do not fit.
    pub fn gather(&self, b: &mut GraphBuilder, indices: ValueId) -> Result<ValueId> {
        match self.values {
            Values::Plain(table) => {
                let rows = b.op(Gather { axis: 0 }, &[table, indices])?;
                b.cast(rows, DType::F32)
            }
            Values::Packed {
                numbers,
                scales,
                zeros,
                bits,
                block,
            } => {
                let op = GatherBlockQuantized {
                    gather_axis: 0,
                    quantize_axis: 1,
                    block,
                    bits,
                };
                b.step(op, &[Some(numbers), Some(indices), Some(scales), zeros])
            }
        }
    }
}
