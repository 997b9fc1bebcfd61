//! Products of rows that each choose the matrix of an expert.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Gather, MatMul};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// The weights of each route are gathered, and each is a product of its own.
pub fn product(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let (rows, experts, weights) = (node.input(0)?, node.input(1)?, node.input(2)?);
    // `[rows, routes, n, k]` and `[rows, routes, k, 1]`.
    let chosen = b.op(Gather { axis: 0 }, &[weights, experts])?;
    let columns = b.unsqueeze(rows, &[3])?;
    let y = b.op(MatMul::default(), &[chosen, columns])?;
    let mut y = b.squeeze(y, &[3])?;
    if let Some(bias) = node.optional(3) {
        let bias = b.op(Gather { axis: 0 }, &[bias, experts])?;
        y = b.add(y, bias)?;
    }
    Ok(Some(vec![y]))
}
