//! Blocks of 256 numbers of one to three bits, whose numbers are places of a grid (`block_iq1_s` and its like in `ggml/src/ggml-common.h`,
//! `dequantize_row_*` in `ggml/src/ggml-quants.c`).

use super::fours::half;
use super::grids;
use super::{Packing, Scales};

/// What zero is in 8 bits.
const MIDDLE: u8 = 128;

/// What two bits of a place stand for in grids of `IQ2`.
const TWOS: [u8; 4] = [8, 25, 43, 0];
/// What three bits of a place stand for in the grid of `IQ3_XXS`.
const THREES: [u8; 8] = [4, 12, 20, 28, 36, 44, 52, 62];
/// What they stand for in that of `IQ3_S`.
const ODD: [u8; 8] = [1, 3, 5, 7, 9, 11, 13, 15];

pub static IQ1_S: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let more = short(block, 34 + i / 4 * 2);
            let place = block[2 + i] as usize | usize::from(more >> (i % 4 * 3) & 7) << 8;
            eighths(out, place, more >> 15 == 1);
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = eighth_of(half(block, 0), short(block, 34 + i * 2) >> 12);
        }
    }),
};

pub static IQ1_M: Packing = Packing {
    bits: 8,
    block: 16,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let more = block[32 + i / 2] >> (i % 2 * 4);
            eighths(
                out,
                block[i] as usize | usize::from(more & 7) << 8,
                more & 8 != 0,
            );
        }
    },
    scales: Scales::Alone(|block, scales| {
        let parts: [u16; 4] = std::array::from_fn(|i| short(block, 48 + 2 * i));
        // The highest four bits of each part are those of a half, the lowest first.
        let bits = parts
            .iter()
            .rev()
            .fold(0, |bits, part| bits << 4 | part >> 12);
        let d = half(&bits.to_le_bytes(), 0);
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = eighth_of(d, parts[i / 4] >> (i % 4 * 3));
        }
    }),
};

pub static IQ2_XXS: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let part = &block[2 + i / 4 * 8..][..8];
            let place = grids::IQ2_XXS[usize::from(part[i % 4])];
            placed(out, place, 2, &TWOS, even(long(part, 4) >> (i % 4 * 7)));
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = quarter_of(half(block, 0), long(block, 6 + i * 8) >> 28);
        }
    }),
};

pub static IQ2_XS: Packing = Packing {
    bits: 8,
    block: 16,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let number = short(block, 2 + i * 2);
            let place = grids::IQ2_XS[usize::from(number & 511)];
            placed(out, place, 2, &TWOS, even(u32::from(number >> 9)));
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = quarter_of(half(block, 0), nibble(&block[66..], i));
        }
    }),
};

pub static IQ2_S: Packing = Packing {
    bits: 8,
    block: 16,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let more = usize::from(block[66 + i / 4] >> (i % 4 * 2) & 3);
            let place = grids::IQ2_S[usize::from(block[2 + i]) | more << 8];
            placed(out, place, 2, &TWOS, block[34 + i]);
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = quarter_of(half(block, 0), nibble(&block[74..], i));
        }
    }),
};

pub static IQ3_XXS: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(4).enumerate() {
            let place = grids::IQ3_XXS[usize::from(block[2 + i])];
            let signs = even(long(block, 66 + i / 8 * 4) >> (i / 2 % 4 * 7));
            placed(out, place, 4, &THREES, signs >> (i % 2 * 4));
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = 2.0 * quarter_of(half(block, 0), long(block, 66 + i * 4) >> 28);
        }
    }),
};

pub static IQ3_S: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (i, out) in out.chunks_exact_mut(4).enumerate() {
            let more = usize::from(block[66 + i / 8] >> (i % 8) & 1);
            let place = grids::IQ3_S[usize::from(block[2 + i]) | more << 8];
            placed(out, place, 4, &ODD, block[74 + i / 2] >> (i % 2 * 4));
        }
    },
    scales: Scales::Alone(|block, scales| {
        for (i, scale) in scales.iter_mut().enumerate() {
            *scale = half(block, 0) * (1 + 2 * nibble(&block[106..], i)) as f32;
        }
    }),
};

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from(short(bytes, at)) | u32::from(short(bytes, at + 2)) << 16
}

/// Number `i` of four bits each.
fn nibble(bytes: &[u8], i: usize) -> u32 {
    u32::from(bytes[i / 2] >> (i % 2 * 4) & 15)
}

/// A quarter of `d` for each half step (`IQ2`).
fn quarter_of(d: f32, steps: u32) -> f32 {
    d * (0.5 + steps as f32) * 0.25
}

/// An eighth of `d` times an odd number of three bits (`IQ1`).
fn eighth_of(d: f32, bits: u16) -> f32 {
    d * f32::from(2 * (bits & 7) + 1) / 8.0
}

/// Signs of eight numbers. An even number of them is negative, so that seven are written (`ksigns_iq2xs`).
fn even(bits: u32) -> u8 {
    let seven = (bits & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// Writes the numbers of a place, `bits` wide, which stand for `values`: negative where their bit of `signs` is set.
fn placed(out: &mut [u8], place: u16, bits: usize, values: &[u8], signs: u8) {
    for (i, n) in out.iter_mut().enumerate() {
        let value = values[usize::from(place >> (i * bits)) & (values.len() - 1)];
        *n = match signs >> i & 1 {
            0 => MIDDLE + value,
            _ => MIDDLE - value,
        };
    }
}

/// Writes a place of the grid of `IQ1` in eighths: -1, 0 or 1, and an eighth more, or less where `below`.
fn eighths(out: &mut [u8], place: usize, below: bool) {
    let place = grids::IQ1[place];
    for (i, n) in out.iter_mut().enumerate() {
        let whole = (place >> (i * 2) & 3) as u8 * 8;
        *n = MIDDLE - 8 + whole - 1 + u8::from(!below) * 2;
    }
}
