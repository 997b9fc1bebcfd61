//! Blocks of 256 numbers in parts with packed scales (`block_q2_K` and its like in `ggml/src/ggml-common.h`,
//! `dequantize_row_*` in `ggml/src/ggml-quants.c`).

use super::fours::{NON_LINEAR, half, halves, looked_up};
use super::{Packing, Scales};

pub static Q2_K: Packing = Packing {
    bits: 2,
    block: 16,
    numbers: |block, out| quarters(&block[16..80], out),
    scales: Scales::WithOffsets(|block, scales, offsets| {
        let (d, least) = (half(block, 80), half(block, 82));
        for (i, byte) in block[..16].iter().enumerate() {
            scales[i] = d * f32::from(byte & 15);
            offsets[i] = -(least * f32::from(byte >> 4));
        }
    }),
};

pub static Q3_K: Packing = Packing {
    bits: 4,
    block: 16,
    numbers: |block, out| {
        let (third, bytes) = block[..96].split_at(32);
        quarters(bytes, out);
        for (i, n) in out.iter_mut().enumerate() {
            // A bit that is not set takes 4 away. What is left is zero at the middle of 4 bits.
            *n += 8 - 4 + (third[i % 32] >> (i / 32) & 1) * 4;
        }
    },
    scales: Scales::Alone(|block, scales| {
        let (packed, d) = (&block[96..108], half(block, 108));
        for (i, scale) in scales.iter_mut().enumerate() {
            let low = packed[i % 8] >> (i / 8 * 4) & 15;
            let high = packed[8 + i % 4] >> (i / 4 * 2) & 3;
            *scale = d * (f32::from(high << 4 | low) - 32.0);
        }
    }),
};

pub static Q4_K: Packing = Packing {
    bits: 4,
    block: 32,
    numbers: |block, out| pairs_of_parts(&block[16..], out),
    scales: Scales::WithOffsets(scales_and_offsets),
};

pub static Q5_K: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        pairs_of_parts(&block[48..], out);
        for (i, n) in out.iter_mut().enumerate() {
            *n |= (block[16 + i % 32] >> (i / 32) & 1) << 4;
        }
    },
    scales: Scales::WithOffsets(scales_and_offsets),
};

pub static Q6_K: Packing = Packing {
    bits: 8,
    block: 16,
    numbers: |block, out| {
        let (low, high) = block[..192].split_at(128);
        for (half, out) in out.chunks_exact_mut(128).enumerate() {
            let (low, high) = (&low[half * 64..][..64], &high[half * 32..][..32]);
            for (i, n) in out.iter_mut().enumerate() {
                let low = low[i % 64] >> (i / 64 * 4) & 15;
                let high = high[i % 32] >> (i / 32 * 2) & 3;
                // 32 stands for zero, and is the middle of 8 bits.
                *n = (high << 4 | low) + 128 - 32;
            }
        }
    },
    scales: Scales::Alone(|block, scales| {
        let d = half(block, 208);
        for (scale, &n) in scales.iter_mut().zip(&block[192..208]) {
            *scale = d * f32::from(n as i8);
        }
    }),
};

pub static IQ4_XS: Packing = Packing {
    bits: 8,
    block: 32,
    numbers: |block, out| {
        for (bytes, out) in block[8..].chunks_exact(16).zip(out.chunks_exact_mut(32)) {
            halves(bytes, out);
        }
        looked_up(&NON_LINEAR, out);
    },
    scales: Scales::Alone(|block, scales| {
        let (d, high) = (half(block, 0), u16::from_le_bytes([block[2], block[3]]));
        for (i, scale) in scales.iter_mut().enumerate() {
            let low = block[4 + i / 2] >> (i % 2 * 4) & 15;
            let high = (high >> (i * 2) & 3) as u8;
            *scale = d * (f32::from(high << 4 | low) - 32.0);
        }
    }),
};

pub static TQ1_0: Packing = Packing {
    bits: 2,
    block: 256,
    numbers: |block, out| {
        let (first, rest) = out.split_at_mut(160);
        let (second, third) = rest.split_at_mut(80);
        digits(&block[..32], first);
        digits(&block[32..48], second);
        digits(&block[48..52], third);
    },
    scales: Scales::WithOffsets(|block, scales, offsets| {
        scales[0] = half(block, 52);
        offsets[0] = -scales[0];
    }),
};

pub static TQ2_0: Packing = Packing {
    bits: 2,
    block: 256,
    numbers: |block, out| quarters(&block[..64], out),
    scales: Scales::WithOffsets(|block, scales, offsets| {
        scales[0] = half(block, 64);
        offsets[0] = -scales[0];
    }),
};

/// Numbers of two bits: of each 32 bytes first the lowest bits of all, then the next ones.
fn quarters(bytes: &[u8], out: &mut [u8]) {
    for (bytes, out) in bytes.chunks_exact(32).zip(out.chunks_exact_mut(128)) {
        for (i, n) in out.iter_mut().enumerate() {
            *n = bytes[i % 32] >> (i / 32 * 2) & 3;
        }
    }
}

/// Numbers of four bits: of each 32 bytes first the low halves of all, then the high ones.
fn pairs_of_parts(bytes: &[u8], out: &mut [u8]) {
    for (bytes, out) in bytes.chunks_exact(32).zip(out.chunks_exact_mut(64)) {
        halves(bytes, out);
    }
}

/// Eight scales and offsets of six bits each in twelve bytes (`get_scale_min_k4`).
fn scales_and_offsets(block: &[u8], scales: &mut [f32], offsets: &mut [f32]) {
    let (d, least, packed) = (half(block, 0), half(block, 2), &block[4..16]);
    for i in 0..8 {
        let (scale, offset) = match i {
            0..4 => (packed[i] & 63, packed[i + 4] & 63),
            _ => (
                packed[i + 4] & 15 | packed[i - 4] >> 6 << 4,
                packed[i + 4] >> 4 | packed[i] >> 6 << 4,
            ),
        };
        scales[i] = d * f32::from(scale);
        offsets[i] = -(least * f32::from(offset));
    }
}

/// Numbers from 0 to 2, of each byte several: a byte is a part of 256, whose digits to the base 3 they are. First come those of all bytes.
fn digits(bytes: &[u8], out: &mut [u8]) {
    let mut power = 1u8;
    for out in out.chunks_exact_mut(bytes.len()) {
        for (n, byte) in out.iter_mut().zip(bytes) {
            *n = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
        }
        power *= 3;
    }
}
