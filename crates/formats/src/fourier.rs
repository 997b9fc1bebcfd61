//! The Fourier transform as a product with a matrix of cosines and one of sines.

use std::f64::consts::TAU;

use kilim_core::error::{Result, unsupported};
use kilim_core::tensor::Tensor;

/// The largest transform whose matrix is a constant.
const MAX_DFT: usize = 2048;

/// The matrices that take `n` real (or imaginary) parts, as rows, to the cosine and sine sums, in float64 and scale included.
/// `onesided` is about half of the spectrum: the output's, or when inverse the input's.
///
/// # Errors
/// `Unsupported` where the matrices would be too large.
pub fn matrices(n: usize, inverse: bool, onesided: bool) -> Result<[Tensor; 2]> {
    if n == 0 || n > MAX_DFT {
        return Err(unsupported(format!("a transform of {n} values")));
    }
    let bins = n / 2 + 1;
    let (rows, columns) = match (inverse, onesided) {
        (false, true) => (n, bins),
        (true, true) => (bins, n),
        _ => (n, n),
    };
    let sign = if inverse { 1.0 } else { -1.0 };
    let scale = if inverse { 1.0 / n as f64 } else { 1.0 };
    let mut cos = Vec::with_capacity(rows * columns);
    let mut sin = Vec::with_capacity(rows * columns);
    for r in 0..rows {
        // Of a half spectrum each bin but the first and the middle one stands for two.
        let twice = inverse && onesided && r != 0 && 2 * r != n;
        let scale = if twice { 2.0 * scale } else { scale };
        for c in 0..columns {
            let angle = TAU * ((r * c) % n) as f64 / n as f64;
            cos.push(scale * angle.cos());
            sin.push(scale * sign * angle.sin());
        }
    }
    let shape = [rows, columns];
    Ok([
        Tensor::from_slice(&shape, &cos)?,
        Tensor::from_slice(&shape, &sin)?,
    ])
}
