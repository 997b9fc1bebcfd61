//! Products with weights, and tables with rows, that are packed in a few bits.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::narrow::unpack;
use kilim_core::ops::{DequantizeLinear, Gather, MatMul};
use kilim_core::tensor::Tensor;

use super::Add;
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

pub fn register(add: Add) {
    add("MatMulNBits", matmul_n_bits);
    add("GatherBlockQuantized", gather_block_quantized);
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
        let middle = Tensor::scalar(1u8 << (bits - 1))?;
        let (middle, shape) = (b.tensor_value(middle), b.shape_of(scales)?);
        b.expand(middle, shape)?
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

/// The longest block of weights with one scale.
const MAX_BLOCK: usize = 1 << 16;

/// `a · bᵀ` where the weights `[n, blocks, block * bits / 8]` are packed, with a scale for each block
/// of a row and an optional zero point, which may be a real number. Input 4 may say which block each
/// column belongs to.
fn matmul_n_bits(b: &mut NodeBuilder) -> Result<()> {
    let (k, n) = (b.count("K", None)?, b.count("N", None)?);
    let block = b.count("block_size", None)?;
    let bits = b.count("bits", Some(4))?;
    let whole = (1..=MAX_BLOCK).contains(&block) && block * bits % 8 == 0;
    if !matches!(bits, 2 | 4 | 8) || k == 0 || !whole {
        return Err(unsupported(format!("{bits} bits in blocks of {block}")));
    }
    b.fixed("weight_prepacked", 0)?;
    let bits = bits as u32;
    let blocks = k.div_ceil(block);
    let constant = |b: &mut NodeBuilder, i: usize| -> Result<Tensor> {
        let v = b.input(i)?;
        b.constant(v)
            .ok_or_else(|| unsupported("packed weights that are computed at run time"))
    };
    let size = |a: usize, b: usize| {
        a.checked_mul(b)
            .ok_or_else(|| invalid("the packed weights are too large"))
    };
    let packed = constant(b, 1)?;
    let padded = size(blocks, block)?;
    let numbers = numbers_of(&packed, bits, size(n, padded)?)?;
    let weights = if padded == k {
        numbers
    } else {
        numbers
            .chunks(padded)
            .flat_map(|row| row.iter().take(k).copied())
            .collect()
    };
    let weights = b.tensor_value(Tensor::from_slice(&[n, k], &weights)?);
    let scales = b.input(2)?;
    let scales = b.reshape(scales, &[n as i64, blocks as i64])?;
    let middle = 1u8 << (bits - 1);
    let zeros = match b.optional(3)? {
        Some(v) if b.dtype(v) != Some(DType::U8) => b.reshape(v, &[n as i64, blocks as i64])?,
        packed => {
            let zeros = match packed {
                None => vec![middle; size(n, blocks)?],
                Some(_) => {
                    let packed = constant(b, 3)?;
                    let per_row = blocks.next_multiple_of(8 / bits as usize);
                    let all = numbers_of(&packed, bits, size(n, per_row)?)?;
                    let rows = all.chunks(per_row.max(1));
                    rows.flat_map(|row| row.iter().take(blocks).copied())
                        .collect()
                }
            };
            b.tensor_value(Tensor::from_slice(&[n, blocks], &zeros)?)
        }
    };
    let a = b.input(0)?;
    let weights = if b.has_input(4) || b.dtype(zeros) != Some(DType::U8) {
        let groups = match b.optional(4)? {
            Some(groups) => b.slice(groups, 0, 0, k as i64)?,
            None => {
                let groups: Vec<i64> = (0..k).map(|column| (column / block) as i64).collect();
                b.i64s(&groups)?
            }
        };
        reordered(b, weights, [scales, zeros], groups)?
    } else {
        let op = DequantizeLinear { axis: 1, block };
        b.op(op, &[weights, scales, zeros])?
    };
    let weights = b.cast_like(weights, a)?;
    let product = MatMul {
        transpose_b: true,
        ..MatMul::default()
    };
    let mut y = b.op(product, &[a, weights])?;
    if let Some(bias) = b.optional(5)? {
        y = b.add(y, bias)?;
    }
    b.bind(0, y)
}

/// `(weights - zero) * scale`, where `groups` says which of a row's scales and zero points each column has.
fn reordered(
    b: &mut NodeBuilder,
    weights: ValueId,
    [scales, zeros]: [ValueId; 2],
    groups: ValueId,
) -> Result<ValueId> {
    let each = Gather { axis: 1 };
    let scale = b.op(each.clone(), &[scales, groups])?;
    let zero = b.op(each, &[zeros, groups])?;
    let (weights, zero) = (b.cast_like(weights, scales)?, b.cast_like(zero, scales)?);
    let centred = b.sub(weights, zero)?;
    b.mul(centred, scale)
}

/// The `count` numbers of `bits` bits that a tensor of bytes holds.
fn numbers_of(packed: &Tensor, bits: u32, count: usize) -> Result<Vec<u8>> {
    match bits {
        8 if packed.byte_len() == count => Ok(packed.read()?.to_vec()),
        8 => Err(invalid("the packed weights do not fit their shape")),
        _ => unpack(packed.read()?, bits as usize, count),
    }
}
