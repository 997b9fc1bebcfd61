//! Real numbers to small integers.

/// The bits of a small number with this, 1.5 * 2^23, added to it count up from those of the latter.
const ROUND: f32 = 12_582_912.0;

/// The integers of a quantised tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Limits of the bits that rounding leaves.
    range: [i32; 2],
    /// What is added to the bits to get the integer.
    offset: i32,
}

impl Steps {
    /// The steps for a zero point and a range, both those of a byte.
    pub(super) fn new(zero: i32, range: [i32; 2]) -> Steps {
        let bits = ROUND.to_bits() as i32;
        Steps {
            range: range.map(|r| r - zero + bits),
            offset: zero - bits,
        }
    }

    /// Rounds to the nearest, ties to even, moves to the zero point and saturates. NaN becomes the zero point.
    ///
    /// It saturates as an integer: of floats that are clamped in a loop LLVM makes relaxed instructions where
    /// WebAssembly has them, and what those give of NaN is left to the machine.
    #[inline(always)]
    pub(super) fn nearest(self, x: f32) -> i32 {
        let x = if x.is_nan() { 0.0 } else { x };
        let bits = (x + ROUND).to_bits() as i32;
        let [low, high] = self.range;
        bits.max(low).min(high).wrapping_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;

    #[test]
    fn all_magnitudes_saturate() {
        let steps = Steps::new(-5, [-128, 127]);
        let mut x: Vec<f32> = (-1200..1200).map(|i| i as f32 * 0.25).collect();
        for power in 0..128 {
            let size = 2f32.powi(power);
            x.extend([size, -size, size * 1.5, -size * 1.5, size * 1.75]);
        }
        x.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0]);
        for x in x {
            let want = (x.round_ties_even() - 5.0).clamp(-128.0, 127.0);
            assert_eq!(steps.nearest(x), want as i32, "{x}");
        }
        assert_eq!(steps.nearest(f32::NAN), -5);
        assert_eq!(steps.nearest(-f32::NAN), -5);
    }
}
