//! Tables whose rows are packed in a few bits.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DequantizeLinear, Gather};
use kilim_core::tensor::Tensor;

use super::OpTable;
use super::microsoft::DOMAIN;
use super::microsoft_attention::numbers_of;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

pub fn register(table: &mut OpTable) {
    table.add_in(DOMAIN, "GatherBlockQuantized", gather_block_quantized);
}

/// Input `i` with its last dimension unpacked to numbers of `bits` bits; its length is `length` where
/// that is known, without what fills up the last byte.
fn unpacked(b: &mut NodeBuilder, i: usize, bits: u32, length: Option<usize>) -> Result<ValueId> {
    let packed = b.input(i)?;
    if bits == 8 {
        return Ok(packed);
    }
    let Some(tensor) = b.constant(packed) else {
        return Err(unsupported("packed numbers that are computed at run time"));
    };
    let [outer @ .., bytes] = tensor.shape() else {
        return Err(invalid("packed numbers without a dimension"));
    };
    let in_row = bytes.checked_mul(8 / bits as usize);
    let all = in_row.and_then(|n| outer.iter().try_fold(n, |n, &d| n.checked_mul(d)));
    let (Some(in_row), Some(all)) = (in_row, all) else {
        return Err(invalid("the packed numbers are too many"));
    };
    let length = length.unwrap_or(in_row);
    if length > in_row {
        return Err(invalid("the packed numbers do not fit their scales"));
    }
    let numbers = numbers_of(&tensor, bits, all)?;
    let rows = numbers.chunks(in_row.max(1));
    let numbers: Vec<u8> = rows.flat_map(|row| &row[..length]).copied().collect();
    let shape: Vec<usize> = outer.iter().copied().chain([length]).collect();
    Ok(b.tensor_value(Tensor::from_slice(&shape, &numbers)?))
}

/// Inputs: packed rows, indices, scales of blocks, optional packed zero points.
fn gather_block_quantized(b: &mut NodeBuilder) -> Result<()> {
    let bits = b.count("bits", Some(4))?;
    let block = b.count("block_size", Some(128))?;
    let data = b.input(0)?;
    if b.dtype(data) != Some(DType::U8) || !matches!(bits, 2 | 4 | 8) || block == 0 {
        return Err(unsupported(format!("{bits} bits in blocks of {block}")));
    }
    let rank = b.rank(data)?;
    let gathered = b.int_or("gather_axis", 0)?;
    let quantized = b.int_or("quantize_axis", 1)?;
    let gathered = kilim_core::ops::normalize_axis(gathered, rank)?;
    let quantized = kilim_core::ops::normalize_axis(quantized, rank)?;
    if quantized + 1 != rank || gathered == quantized {
        return Err(unsupported("blocks along another dimension than the last"));
    }
    let (indices, scales) = (b.input(1)?, b.input(2)?);
    let blocks = b.fact(scales).shape.and_then(|s| s.0.last()?.known());
    let bits = bits as u32;
    let data = unpacked(b, 0, bits, None)?;
    let zeros = if b.has_input(3) {
        unpacked(b, 3, bits, blocks)?
    } else {
        let Some(shape) = b.shape(scales) else {
            return Err(unsupported("scales of a shape known only at run time"));
        };
        let count = kilim_core::tensor::element_count(&shape)?;
        let middle = vec![1u8 << (bits - 1); count];
        b.tensor_value(Tensor::from_slice(&shape, &middle)?)
    };
    let mut rows = Vec::with_capacity(3);
    for x in [data, scales, zeros] {
        let axis = gathered as i64;
        rows.push(b.op(Gather { axis }, &[x, indices])?);
    }
    let op = DequantizeLinear { axis: -1, block };
    let y = b.op(op, &rows)?;
    b.bind(0, y)
}
