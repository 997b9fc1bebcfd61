//! Transforms of signals, and complex numbers.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{MatMul, Unary, UnaryKind};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};
use crate::fourier;

/// Half of the spectrum of real rows. Inputs: data, lengths of the transform along the last two dimensions.
pub fn rfft_2d(imp: &mut Import, op: &Op) -> Result<()> {
    let shape = &imp.info(op, 0)?.shape;
    let lengths = imp.constant_ints(op, 1)?;
    let (&[1, n], &[.., 1, width]) = (lengths.as_slice(), shape.as_slice()) else {
        return Err(unsupported("a transform along two dimensions"));
    };
    if usize::try_from(n) != Ok(width) {
        return Err(unsupported("a transform of another length than the data"));
    }
    let x = imp.input(op, 0)?;
    let mut part = |matrix: Tensor| -> Result<ValueId> {
        let numbers: Vec<f32> = matrix.to_f64s()?.into_iter().map(|v| v as f32).collect();
        let matrix = Tensor::from_slice(matrix.shape(), &numbers)?;
        let matrix = imp.node_constant("matrix", matrix);
        imp.step(MatMul::default(), &[Some(x), Some(matrix)])
    };
    let [cos, sin] = fourier::matrices(width, false, true)?;
    let parts = [part(cos)?, part(sin)?];
    imp.set_complex(op, parts);
    Ok(())
}

/// Maps REAL: the importer hands over the real parts of complex numbers.
pub fn real_part(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    imp.emit(op, Unary(UnaryKind::Identity), &[Some(x)])
}

pub fn imaginary_part(imp: &mut Import, op: &Op) -> Result<()> {
    let [_, imaginary] = imp.complex(op, 0)?;
    imp.emit(op, Unary(UnaryKind::Identity), &[Some(imaginary)])
}

pub fn magnitude(imp: &mut Import, op: &Op) -> Result<()> {
    let [real, imaginary] = imp.complex(op, 0)?;
    let squares = [imp.mul(real, real)?, imp.mul(imaginary, imaginary)?];
    let sum = imp.add(squares[0], squares[1])?;
    imp.emit(op, Unary(UnaryKind::Sqrt), &[Some(sum)])
}
