//! Data for the tests of crates that bring kernels.

use kilim_core::Tensor;
use kilim_core::tensor::Element;

/// A tensor of these elements.
///
/// # Panics
/// Where they do not fit the shape.
pub fn tensor<T: Element>(shape: &[usize], data: &[T]) -> Tensor {
    Tensor::from_slice(shape, data).expect("data fits shape")
}

/// Numbers in -1..1 that look random and are the same every time.
pub fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2654435761).wrapping_add(12345);
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / u32::MAX as f32 * 2.0 - 1.0
        })
        .collect()
}

/// `|got - want| <= 1e-5 + 1e-5 |want|` everywhere.
pub fn assert_close(got: &[f32], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let g = f64::from(*g);
        let close = (g - w).abs() <= 1e-5 + 1e-5 * w.abs() || g == *w || (g.is_nan() && w.is_nan());
        assert!(close, "element {i}: {g} instead of {w}");
    }
}
