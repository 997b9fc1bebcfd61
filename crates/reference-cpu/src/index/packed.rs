//! GatherBlockQuantized.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{GatherBlockQuantized, Granularity};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use super::position;
use crate::reduce::Along;

/// Operations of finding a number, its scale and its zero point.
const COST: usize = 32;

pub fn build(op: &GatherBlockQuantized, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, indices, scale) = (required(node, 0)?, required(node, 1)?, required(node, 2)?);
    let packed = op.packed(x.dtype)?;
    let [gathered, quantized] = op.axes(x.shape.len(), packed)?;
    let mut shape = x.shape.clone();
    shape[quantized] = shape[quantized].saturating_mul(packed);
    Ok(Box::new(Rows {
        bits: 8 / packed,
        along: Along::new(&shape, gathered),
        blocks: Granularity::new(&shape, &scale.shape, quantized as i64, op.block)?,
        blocks_in_row: scale.shape[quantized].max(1),
        count: indices.elements().max(1),
        data: f64::codec(x.dtype),
        indices: i64::codec(indices.dtype),
        scale: f64::codec(scale.dtype),
        zeros: node
            .input(3)
            .filter(|zeros| zeros.dtype.is_float())
            .map(|zeros| f64::codec(zeros.dtype)),
        y: f64::codec(node.outputs[0].dtype),
        middle: match x.dtype {
            DType::U8 => f64::from(1u8 << (op.bits - 1)),
            _ => 0.0,
        },
    }))
}

struct Rows {
    /// Bits of a number; 8 where each number has an element of its own.
    bits: usize,
    along: Along,
    blocks: Granularity,
    /// Blocks of the last dimension, where numbers are packed along it.
    blocks_in_row: usize,
    count: usize,
    data: Codec<f64>,
    indices: Codec<i64>,
    scale: Codec<f64>,
    /// What reads zero points that are no numbers of the table.
    zeros: Option<Codec<f64>>,
    y: Codec<f64>,
    /// The zero point where there is no input of zero points.
    middle: f64,
}

impl Rows {
    /// Number `i` of packed bytes, or of elements.
    fn number(&self, bytes: &[u8], i: usize) -> f64 {
        if self.bits == 8 {
            return self.data.get(bytes, i);
        }
        let in_byte = 8 / self.bits;
        let byte = bytes[i / in_byte] >> (i % in_byte * self.bits);
        f64::from(byte & (u8::MAX >> (8 - self.bits)))
    }

    /// The zero point of a block; each row of packed ones begins with a byte of its own.
    fn zero(&self, bytes: &[u8], block: usize) -> f64 {
        if let Some(zeros) = &self.zeros {
            return zeros.get(bytes, block);
        }
        let (row, column) = (block / self.blocks_in_row, block % self.blocks_in_row);
        match self.bits {
            8 => self.number(bytes, block),
            bits => {
                let padded = self.blocks_in_row.next_multiple_of(8 / bits);
                self.number(bytes, row * padded + column)
            }
        }
    }
}

impl Kernel for Rows {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (data, indices, scales) = (io.input_bytes(0), io.input_bytes(1), io.input_bytes(2));
        let zeros = io.has_input(3).then(|| io.input_bytes(3));
        let (inner, n) = (self.along.inner.max(1), self.along.n);
        let (len, y) = (io.output_len(0), by(io.output_bytes(0), self.y.size()));
        io.cpu().rows(len, y, COST, |piece, y, _| {
            for (at, i) in piece.enumerate() {
                let (row, rest) = (i / inner, i % inner);
                let index = self.indices.get(indices, row % self.count);
                let from = (row / self.count * n + position(index, n)?) * inner + rest;
                let block = self.blocks.index(from);
                let zero = zeros.map_or(self.middle, |zeros| self.zero(zeros, block));
                let v = (self.number(data, from) - zero) * self.scale.get(scales, block);
                self.y.set(y, at, v);
            }
            Ok(())
        })
    }
}
