//! The numbers of a network that need not be in memory while it is read.

use kilim_core::error::Result;

use super::blob;
use super::schema::{BODY_OPS, net, op};
use super::weights::{CONVOLUTION, CONVOLUTION_3D, INNER_PRODUCT, Slots};
use crate::flatbuffer::{Found, Table};

/// Finds the numbers of constants and of weights, from the root table on.
///
/// # Errors
/// `InvalidModel` where the file is garbled.
pub fn find_data(root: &Table, found: &mut Found) -> Result<()> {
    root.each_table(net::OPS, |op| find_in(op, found))?;
    root.each_table(net::SUBGRAPHS, |body| {
        body.each_table(BODY_OPS, |op| find_in(op, found))
    })
}

fn find_in(op: &Table, found: &mut Found) -> Result<()> {
    let (number, Some(params)) = (op.u8(op::MAIN_TYPE)?, op.table(op::MAIN)?) else {
        return Ok(());
    };
    if number == blob::TABLE {
        return blob::VECTORS
            .into_iter()
            .try_for_each(|(slot, size)| vector(&params, slot, size, found));
    }
    let mut all = [CONVOLUTION, CONVOLUTION_3D, INNER_PRODUCT].into_iter();
    match all.find(|slots| slots.table == number) {
        Some(slots) => weights(&params, slots, found),
        None => Ok(()),
    }
}

fn weights(params: &Table, slots: Slots, found: &mut Found) -> Result<()> {
    vector(params, slots.weights, 4, found)?;
    vector(params, slots.bias, 4, found)?;
    let quantized = slots
        .quantized
        .map_or(Ok(None), |slot| params.table(slot))?;
    quantized.map_or(Ok(()), |table| {
        vector(&table, super::weights::BUFFER, 1, found)
    })
}

fn vector(table: &Table, slot: usize, size: usize, found: &mut Found) -> Result<()> {
    let vector = table.vector(slot, size)?;
    let len = (vector.len as u64).saturating_mul(size as u64);
    found.add(vector.position as u64, len);
    Ok(())
}
