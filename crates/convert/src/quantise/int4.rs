//! Weights of 4 bits.

use kilim_core::error::Result;
use kilim_core::graph::{Activation, ValueId};
use kilim_core::ops::MatMulNBits;
use kilim_core::{DType, Tensor};
use kilim_formats::build::GraphBuilder;

use super::Work;
use super::weights::{Use, weights, with_bias};
use crate::rebuild::Given;

/// Neighbours that share a scale.
const BLOCK: usize = 32;
/// The number that stands for zero.
const ZERO: f32 = 8.0;

/// A product whose right factor is packed.
pub fn smaller(
    work: &mut Work,
    b: &mut GraphBuilder,
    given: &Given,
) -> Result<Option<Vec<ValueId>>> {
    let Some((i, Use::Product { transposed }, tensor)) = weights(b, given) else {
        return Ok(None);
    };
    let Some(v) = given.input(i) else {
        return Ok(None);
    };
    let [n, k] = match (tensor.shape(), transposed) {
        (&[n, k], true) | (&[k, n], false) => [n, k],
        _ => return Ok(None),
    };
    let parts = match work.made.get(&v) {
        Some(parts) => parts.clone(),
        None => {
            let [numbers, scales] = packed(&tensor, [n, k], transposed)?;
            let parts = vec![
                b.node_constant("int4", numbers),
                b.node_constant("scales", scales),
            ];
            work.made.insert(v, parts.clone());
            parts
        }
    };
    let op = MatMulNBits {
        k,
        n,
        bits: 4,
        block: BLOCK,
        int8: false,
        activation: Activation::None,
    };
    let y = b.step(op, &[given.input(0), Some(parts[0]), Some(parts[1])])?;
    Ok(Some(vec![with_bias(b, given, y)?]))
}

/// Packed numbers `[n, blocks, bytes]` and scales `[n * blocks]`. The number of the largest magnitude of a block becomes -8, which is exact.
fn packed(weights: &Tensor, [n, k]: [usize; 2], transposed: bool) -> Result<[Tensor; 2]> {
    let weights = weights.unread();
    let reals = weights.as_slice::<f32>()?;
    let at = |row: usize, column: usize| match transposed {
        true => reals[row * k + column],
        false => reals[column * n + row],
    };
    let blocks = k.div_ceil(BLOCK);
    let mut numbers = Vec::with_capacity(n * blocks * BLOCK / 2);
    let mut scales = Vec::with_capacity(n * blocks);
    for row in 0..n {
        for block in 0..blocks {
            let columns = block * BLOCK..(block * BLOCK + BLOCK).min(k);
            let largest = columns.clone().map(|column| at(row, column));
            let largest = largest.fold(0f32, |most, x| if x.abs() > most.abs() { x } else { most });
            let scale = largest / -ZERO;
            let number = |column: usize| match columns.contains(&column) && scale != 0.0 {
                true => ((at(row, column) / scale).round_ties_even() + ZERO).clamp(0.0, 15.0) as u8,
                false => ZERO as u8,
            };
            for column in (block * BLOCK..(block + 1) * BLOCK).step_by(2) {
                numbers.push(number(column) | number(column + 1) << 4);
            }
            scales.push(scale);
        }
    }
    Ok([
        Tensor::from_raw(DType::U8, &[n, blocks, BLOCK / 2], &numbers)?,
        Tensor::from_slice(&[n * blocks], &scales)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_largest_magnitude_exactly() {
        let reals: Vec<f32> = (0..40).map(|i| (i as f32 - 11.0) * 0.25).collect();
        let weights = Tensor::from_slice(&[1, 40], &reals).expect("a tensor");
        let [numbers, scales] = packed(&weights, [1, 40], true).expect("packed");
        let (bytes, scales) = (
            numbers.read().expect("bytes"),
            scales.as_slice::<f32>().expect("scales"),
        );
        assert_eq!((numbers.shape(), scales.len()), (&[1, 2, 16][..], 2));
        let real = |i: usize| {
            let number = bytes[i / 2] >> (4 * (i % 2)) & 15;
            (f32::from(number) - ZERO) * scales[i / BLOCK]
        };
        assert_eq!([real(31), real(39)], [reals[31], reals[39]]);
        for (i, &x) in reals.iter().enumerate() {
            // Half a step, and a whole one where the opposite sign ends at 7.
            assert!(
                (real(i) - x).abs() <= scales[i / BLOCK].abs() * 1.001,
                "{i}: {x}"
            );
        }
        assert_eq!(bytes[20..].iter().filter(|&&b| b != 0x88).count(), 0);
    }
}
