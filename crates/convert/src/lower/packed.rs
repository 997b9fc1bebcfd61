//! Weights and tables of 2, 4 or 8 bits.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, ExpertMatMulNBits, Gather, GatherBlockQuantized, MatMul, MatMulNBits,
    numbers_in_byte,
};
use kilim_formats::build::GraphBuilder;

use super::Lowered;

/// The weights `[n, blocks, bytes]` and scales `[n * blocks]` of onnxruntime's MatMulNBits. It has blocks of 16 and more, powers of two, of
/// 2, 4 or 8 bits.
pub fn product(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<MatMulNBits>() else {
        return Ok(None);
    };
    let [blocks, bytes, zero_bytes] = op.row()?;
    let weights = [op.n, blocks, bytes];
    let scales = [op.n * blocks];
    let zeros = match node.optional(3).and_then(|v| b.dtype(v)) {
        Some(DType::U8) => vec![op.n * zero_bytes],
        _ => scales.to_vec(),
    };
    let mut inputs = node.inputs.to_vec();
    let mut changed = false;
    for (i, shape) in [(1, &weights[..]), (2, &scales[..]), (3, &zeros[..])] {
        let Some(Some(v)) = inputs.get_mut(i) else {
            continue;
        };
        if b.shape(*v).is_some_and(|known| known != shape) {
            changed = true;
            *v = match b.constant(*v) {
                Some(tensor) => {
                    let tensor = tensor.reshaped(shape)?;
                    b.tensor_value(tensor)
                }
                None => {
                    let shape: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
                    b.reshape(*v, &shape)?
                }
            };
        }
    }
    if !changed {
        return Ok(None);
    }
    b.apply(op.clone(), &inputs, 1).map(Some)
}

/// A table whose zero points are real numbers, which onnxruntime does not have: rows are gathered, unpacked and scaled.
pub fn table(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<GatherBlockQuantized>() else {
        return Ok(None);
    };
    let Some(zeros) = node
        .optional(3)
        .filter(|&v| b.dtype(v).is_some_and(DType::is_float))
    else {
        return Ok(None);
    };
    let (table, indices, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let in_byte = numbers_in_byte(op.bits)?;
    let (rank, shape) = (b.rank(indices)?, b.shape(table));
    let (Some([_, bytes]), Some(dtype)) = (shape.as_deref(), b.dtype(scales)) else {
        return Err(unsupported("a packed table that is no matrix"));
    };
    let numbers = bytes * in_byte;
    if op.gather_axis != 0 || b.dtype(table) != Some(DType::U8) || !numbers.is_multiple_of(op.block)
    {
        return Err(unsupported("a packed table in another order"));
    }
    let rows = Gather { axis: 0 };
    let [packed, scales, zeros] = [
        b.op(rows.clone(), &[table, indices])?,
        b.op(rows.clone(), &[scales, indices])?,
        b.op(rows, &[zeros, indices])?,
    ];
    let unpacked = unpacked(b, packed, op.bits)?;
    let mut blocks = vec![0; rank];
    blocks.extend([(numbers / op.block) as i64, op.block as i64]);
    let unpacked = b.reshape(unpacked, &blocks)?;
    let unpacked = b.cast(unpacked, dtype)?;
    let (zeros, scales) = (b.unsqueeze(zeros, &[-1])?, b.unsqueeze(scales, &[-1])?);
    let moved = b.sub(unpacked, zeros)?;
    let y = b.mul(moved, scales)?;
    let mut whole = vec![0; rank];
    whole.push(numbers as i64);
    Ok(Some(vec![b.reshape(y, &whole)?]))
}

/// Bytes `[.., n]` as the numbers in them, `int32` `[.., n * numbers in a byte]`, lowest bits first.
fn unpacked(b: &mut GraphBuilder, packed: ValueId, bits: usize) -> Result<ValueId> {
    let (in_byte, rank) = (numbers_in_byte(bits)?, b.rank(packed)?);
    let mut rest = b.cast(packed, DType::I32)?;
    if in_byte == 1 {
        return Ok(rest);
    }
    let steps = b.number(f64::from(1 << bits), rest)?;
    let mut parts = Vec::with_capacity(in_byte);
    for _ in 0..in_byte {
        let part = b.binary(BinaryKind::Mod, rest, steps)?;
        parts.push(b.unsqueeze(part, &[-1])?);
        rest = b.div(rest, steps)?;
    }
    let beside = b.concat(&parts, -1)?;
    let mut whole = vec![0; rank];
    if let Some(last) = whole.last_mut() {
        *last = -1;
    }
    b.reshape(beside, &whole)
}

/// The packed weights of each route are gathered and unpacked, and each is a product of its own.
pub fn experts(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    let Some(op) = node.op::<ExpertMatMulNBits>() else {
        return Ok(None);
    };
    let [blocks, bytes, zero_bytes] = op.of_one().row()?;
    let (rows, routes, scales) = (node.input(0)?, node.input(1)?, node.input(3)?);
    let Some(dtype) = b.dtype(scales) else {
        return Err(unsupported("scales of an unknown type"));
    };
    let (n, k) = (op.n as i64, op.k as i64);
    let sizes = |last: &[usize]| {
        let last = last.iter().map(|&size| size as i64);
        [-1, n].into_iter().chain(last).collect::<Vec<i64>>()
    };
    // What each route reads of a list for all experts.
    let chosen = |b: &mut GraphBuilder, all: ValueId, shape: &[i64]| {
        let all = b.reshape(all, shape)?;
        b.op(Gather { axis: 0 }, &[all, routes])
    };
    let packed = chosen(b, node.input(2)?, &sizes(&[blocks * bytes]))?;
    let numbers = unpacked(b, packed, op.bits)?;
    let numbers = b.cast(numbers, dtype)?;
    let numbers = b.reshape(numbers, &[0, 0, n, blocks as i64, op.block as i64])?;
    let scales = chosen(b, scales, &sizes(&[blocks, 1]))?;
    let zeros = match node.optional(4) {
        None => b.number(f64::from(1 << (op.bits - 1)), numbers)?,
        Some(zeros) if b.dtype(zeros) == Some(DType::U8) => {
            let zeros = chosen(b, zeros, &sizes(&[zero_bytes]))?;
            let zeros = unpacked(b, zeros, op.bits)?;
            let zeros = b.slice(zeros, -1, 0, blocks as i64)?;
            let zeros = b.cast(zeros, dtype)?;
            b.unsqueeze(zeros, &[-1])?
        }
        Some(zeros) => chosen(b, zeros, &sizes(&[blocks, 1]))?,
    };
    let moved = b.sub(numbers, zeros)?;
    let weights = b.mul(moved, scales)?;
    let weights = b.reshape(weights, &[0, 0, n, -1])?;
    let weights = b.slice(weights, -1, 0, k)?;
    let columns = b.unsqueeze(rows, &[3])?;
    let columns = b.cast(columns, dtype)?;
    let y = b.op(MatMul::default(), &[weights, columns])?;
    let mut y = b.squeeze(y, &[3])?;
    if let Some(bias) = node.optional(5) {
        let bias = b.op(Gather { axis: 0 }, &[bias, routes])?;
        y = b.add(y, bias)?;
    }
    Ok(Some(vec![y]))
}
