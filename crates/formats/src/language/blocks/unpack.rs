//! Blocks of packed numbers as the inputs of products with packed weights.

use kilim_core::error::{Result, unsupported};
use kilim_core::{DType, Tensor};

use super::{ElementType, Form, Packing, Scales};

/// The inputs of MatMulNBits and GatherBlockQuantized for a matrix of `rows` rows and `columns` columns.
pub struct Packed {
    /// `[rows, columns · bits / 8]`, lowest bits first.
    pub numbers: Tensor,
    /// `[rows, columns / block]`, `float32`.
    pub scales: Tensor,
    /// Zero points of the shape of the scales, `float32`; without them zero is `2^(bits - 1)`.
    pub zeros: Option<Tensor>,
    pub bits: usize,
    pub block: usize,
}

/// Numbers of the largest block.
const MOST: usize = 256;
/// Scales of the largest block.
const MOST_SCALES: usize = 16;
/// Blocks that are read at once.
const AT_ONCE: usize = 64;

/// What the bytes `raw` of a matrix are packed from. Nothing is computed before it is read.
///
/// # Errors
/// `Unsupported` for a type whose blocks Kilim cannot read, `Limit` where the matrix is too large.
pub fn unpacked(of: &ElementType, raw: &Tensor, [rows, columns]: [usize; 2]) -> Result<Packed> {
    let Form::Packed(packing) = of.form else {
        return Err(unsupported(format!("elements of type {}", of.name)));
    };
    let in_byte = 8 / packing.bits;
    let blocks = [rows, columns / packing.block];
    let count = of.numbers / packing.block;
    let numbers = each_block(
        raw,
        of.bytes,
        of.numbers / in_byte,
        DType::U8,
        &[rows, columns / in_byte],
        move |block, out| packing.pack(block, count, out),
    )?;
    let scales = each_block(
        raw,
        of.bytes,
        count * size_of::<f32>(),
        DType::F32,
        &blocks,
        move |block, out| write(&packing.parameters(block, count).scales[..count], out),
    )?;
    let zeros = match packing.scales {
        Scales::Alone(_) => None,
        Scales::WithOffsets(_) => Some(each_block(
            raw,
            of.bytes,
            count * size_of::<f32>(),
            DType::F32,
            &blocks,
            move |block, out| write(&packing.parameters(block, count).zeros[..count], out),
        )?),
    };
    Ok(Packed {
        numbers,
        scales,
        zeros,
        bits: packing.bits,
        block: packing.block,
    })
}

/// What products are given for the scales of a block.
struct Parameters {
    scales: [f32; MOST_SCALES],
    zeros: [f32; MOST_SCALES],
    /// Where all numbers stand for one, the offset: they are read as 0.
    constant: [bool; MOST_SCALES],
}

impl Packing {
    fn parameters(&self, block: &[u8], count: usize) -> Parameters {
        let mut made = Parameters {
            scales: [0.0; MOST_SCALES],
            zeros: [0.0; MOST_SCALES],
            constant: [false; MOST_SCALES],
        };
        match self.scales {
            Scales::Alone(scales) => scales(block, &mut made.scales[..count]),
            Scales::WithOffsets(scales) => {
                let mut offsets = [0.0; MOST_SCALES];
                scales(block, &mut made.scales[..count], &mut offsets[..count]);
                for (i, &offset) in offsets[..count].iter().enumerate() {
                    // scale · q + offset = (q - zero) · scale, unless the scale is 0: then (0 - zero) · 1.
                    made.constant[i] = made.scales[i] == 0.0;
                    if made.constant[i] {
                        made.scales[i] = 1.0;
                    }
                    made.zeros[i] = -offset / made.scales[i];
                }
            }
        }
        made
    }

    /// Packs the numbers of a block, lowest bits first.
    fn pack(&self, block: &[u8], count: usize, out: &mut [u8]) {
        let mut numbers = [0; MOST];
        let numbers = &mut numbers[..count * self.block];
        (self.numbers)(block, numbers);
        if let Scales::WithOffsets(_) = self.scales {
            let constant = self.parameters(block, count).constant;
            let parts = numbers.chunks_mut(self.block).zip(constant);
            parts
                .filter(|(_, constant)| *constant)
                .for_each(|(part, _)| part.fill(0));
        }
        for (byte, numbers) in out.iter_mut().zip(numbers.chunks(8 / self.bits)) {
            let from_last = numbers.iter().rev();
            *byte = from_last.fold(0, |byte, &n| match self.bits {
                8 => n,
                bits => byte << bits | n,
            });
        }
    }
}

fn write(numbers: &[f32], out: &mut [u8]) {
    for (to, n) in out.chunks_exact_mut(size_of::<f32>()).zip(numbers) {
        to.copy_from_slice(&n.to_le_bytes());
    }
}

/// A tensor that has `made` bytes for each `bytes` bytes of `raw`.
fn each_block(
    raw: &Tensor,
    bytes: usize,
    made: usize,
    dtype: DType,
    shape: &[usize],
    write: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static,
) -> Result<Tensor> {
    raw.later(dtype, shape, move |raw, from, to| {
        let end = from + to.len();
        let mut read = vec![0; bytes * AT_ONCE];
        let mut out = [0; MOST];
        let mut first = from / made;
        while first * made < end {
            let count = (end.div_ceil(made) - first).min(AT_ONCE);
            let read = &mut read[..count * bytes];
            raw.copy_to(first * bytes, read)?;
            for block in read.chunks_exact(bytes) {
                write(block, &mut out[..made]);
                let start = first * made;
                let (a, b) = (from.max(start), end.min(start + made));
                to[a - from..b - from].copy_from_slice(&out[a - start..b - start]);
                first += 1;
            }
        }
        Ok(())
    })
}
