//! Products of matrices.

use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::MatMul;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// A transposed right factor, a factor of the product and a bias are nodes of their own.
pub fn matmul(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<MatMul>() else {
        return Ok(None);
    };
    let bias = node.optional(2);
    if !op.transpose_b && op.alpha.is_none() && bias.is_none() {
        return Ok(None);
    }
    let (left, mut right) = (node.input(0)?, node.input(1)?);
    if op.transpose_b && b.rank(right)? > 1 {
        right = swapped(b, right)?;
    }
    let mut y = b.op(MatMul::default(), &[left, right])?;
    if let Some(alpha) = op.alpha {
        let alpha = b.number(alpha.into(), y)?;
        y = b.mul(y, alpha)?;
    }
    if let Some(bias) = bias {
        y = b.add(y, bias)?;
    }
    Ok(Some(vec![y]))
}

/// The last two dimensions the other way round. Matrices that are constant are turned here, so that the file holds them as they are read.
pub fn swapped(b: &mut GraphBuilder, x: ValueId) -> Result<ValueId> {
    if let Some(tensor) = b.constant(x)
        && tensor.rank() == 2
        && tensor.dtype() != DType::String
    {
        let turned = turned(&tensor)?;
        return Ok(b.node_constant("transposed", turned));
    }
    let mut perm: Vec<usize> = (0..b.rank(x)?).collect();
    if let [.., a, z] = &mut perm[..] {
        std::mem::swap(a, z);
    }
    b.transpose(x, &perm)
}

/// The transpose of a matrix of numbers.
///
/// # Errors
/// `Unsupported` for what is no matrix; what reading the elements says.
pub fn turned(matrix: &Tensor) -> Result<Tensor> {
    let [rows, columns] = *matrix.shape() else {
        return Err(unsupported("the transpose of what is no matrix"));
    };
    let (dtype, size) = (matrix.dtype(), matrix.dtype().size());
    let matrix = matrix.unread();
    let from = matrix.read()?;
    let mut bytes = AlignedBytes::zeroed(from.len())?;
    let to = bytes.as_mut_slice();
    for row in 0..rows {
        for column in 0..columns {
            let (a, z) = (
                (row * columns + column) * size,
                (column * rows + row) * size,
            );
            to[z..z + size].copy_from_slice(&from[a..a + size]);
        }
    }
    Tensor::from_bytes(dtype, &[columns, rows], Arc::new(bytes))
}
