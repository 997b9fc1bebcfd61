//! Blocks of 32 numbers with one scale (`block_q4_0` and its like in `ggml/src/ggml-common.h`, `dequantize_row_*` in
//! `ggml/src/ggml-quants.c`).

use half::f16;

use super::{Packing, Scales};

pub static Q4_0: Packing = Packing {
    bits: 4,
    block: 32,
    numbers: |block, out| halves(&block[2..], out),
    scales: Scales::Alone(|block, out| out[0] = half(block, 0)),
};

pub static Q4_1: Packing = Packing {
    bits: 4,
    block: 32,
    numbers: |block, out| halves(&block[4..], out),
    scales: Scales::WithOffsets(scale_and_offset),
};

pub static Q5_0: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        fifth_bits(&block[2..6], &block[6..], out);
        // 16 stands for zero, and is the middle of 8 bits.
        out.iter_mut().for_each(|n| *n += 128 - 16);
    },
    scales: Scales::Alone(|block, out| out[0] = half(block, 0)),
};

pub static Q5_1: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| fifth_bits(&block[4..8], &block[8..], out),
    scales: Scales::WithOffsets(scale_and_offset),
};

pub static Q8_0: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (to, n) in out.iter_mut().zip(&block[2..]) {
            *to = n ^ 0x80;
        }
    },
    scales: Scales::Alone(|block, out| out[0] = half(block, 0)),
};

pub static IQ4_NL: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        halves(&block[2..], out);
        looked_up(&NON_LINEAR, out);
    },
    scales: Scales::Alone(|block, out| out[0] = half(block, 0)),
};

pub static MXFP4: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        halves(&block[1..], out);
        looked_up(&TWICE_E2M1, out);
    },
    scales: Scales::Alone(|block, out| out[0] = half_power(block[0])),
};

/// `kvalues_iq4nl` in `ggml/src/ggml-common.h`.
pub const NON_LINEAR: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// The sixteen numbers of `float4_e2m1`, doubled (`kvalues_mxfp4`).
const TWICE_E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Numbers of a table in place of indices, as much larger as the middle of 8 bits.
pub fn looked_up(table: &[i8; 16], out: &mut [u8]) {
    for n in out {
        *n = table[usize::from(*n & 15)] as u8 ^ 0x80;
    }
}

/// Half of a power of two, whose exponent is that of `float8_e8m0` (`ggml_e8m0_to_fp32_half`).
fn half_power(exponent: u8) -> f32 {
    match exponent {
        0 | 1 => f32::from_bits(0x0020_0000 << exponent),
        _ => f32::from_bits(u32::from(exponent - 1) << 23),
    }
}

/// The half-precision number that begins at byte `at`.
pub fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn scale_and_offset(block: &[u8], scales: &mut [f32], offsets: &mut [f32]) {
    scales[0] = half(block, 0);
    offsets[0] = half(block, 2);
}

/// The low halves of all bytes, then the high ones.
pub fn halves(bytes: &[u8], out: &mut [u8]) {
    let (low, high) = out.split_at_mut(out.len() / 2);
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

/// Halves of bytes, each with a bit of `fifth` above.
fn fifth_bits(fifth: &[u8], bytes: &[u8], out: &mut [u8]) {
    halves(bytes, out);
    for (i, n) in out.iter_mut().enumerate() {
        *n |= (fifth[i / 8] >> (i % 8) & 1) << 4;
    }
}
