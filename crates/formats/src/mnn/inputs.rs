//! The inputs of a network.

use kilim_core::error::Result;
use kilim_core::{Dim, Fact, Shape};

use super::layout::Layout;
use super::op::Op;
use super::{blob, op};

/// The table of parameters of Input.
const INPUT: u8 = 21;

/// What the file says of an input, with its layout. Dimensions that it leaves open have names, which begin with `prefix`.
///
/// # Errors
/// `Unsupported` for element types that MNN does not compute with.
pub fn fact(op: &Op, prefix: &str) -> Result<(Fact, Layout)> {
    let params: op::Params = op.params(INPUT)?;
    let layout = match params.0 {
        Some(table) => Layout::of(table.i8_or(2, 2)?)?,
        None => Layout::Nc4hw4,
    };
    let dims = params.ints(0)?;
    let names = names(layout, dims.len());
    let shape = dims
        .iter()
        .zip(names)
        .map(|(&n, name)| match usize::try_from(n) {
            Ok(n) if n > 0 => Dim::Known(n),
            _ => Dim::Symbol(format!("{prefix}{name}").into()),
        });
    let dtype = blob::dtype(params.int(1, 1)?)?;
    Ok((Fact::new(dtype, Shape(shape.collect())), layout))
}

/// The names of the dimensions of an input of this rank.
fn names(layout: Layout, rank: usize) -> Vec<String> {
    match (layout.channels_last(), rank) {
        (false, 4) => ["n", "c", "h", "w"].map(str::to_string).to_vec(),
        (true, 4) => ["n", "h", "w", "c"].map(str::to_string).to_vec(),
        _ => (0..rank).map(|axis| format!("d{axis}")).collect(),
    }
}
