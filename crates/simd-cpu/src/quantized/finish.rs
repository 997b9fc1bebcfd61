//! What becomes of 32-bit sums.

use kilim_core::fixed::Factor;
use kilim_core::ops::Requantize;

use super::steps::Steps;
use crate::isa::{Isa, PairTask, Pairs};

/// What becomes of a sum of each channel.
#[derive(Clone, Debug)]
pub(super) enum Finish {
    /// It is the output, in `int32`.
    Sum,
    /// Scaled in `float32` and rounded.
    Real { factors: Vec<f32>, steps: Steps },
    /// Scaled in fixed point.
    Fixed(Fixed),
}

/// [`Requantize`] with a factor for each channel: the members of their [`Scale`]s one by one, for vectors.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    left: Vec<i32>,
    multipliers: Vec<i32>,
    halves: Vec<u32>,
    right: Vec<u32>,
    zero: i32,
    /// Without the zero point.
    range: [i32; 2],
}

impl Fixed {
    pub(super) fn new(requantize: &Requantize, channels: usize) -> Fixed {
        let several = requantize.factors.len() > 1;
        let scales =
            || (0..channels).map(|c| Scale::new(requantize.factors[if several { c } else { 0 }]));
        Fixed {
            left: scales().map(|s| s.left).collect(),
            multipliers: scales().map(|s| s.multiplier).collect(),
            halves: scales().map(|s| s.half).collect(),
            right: scales().map(|s| s.right).collect(),
            zero: requantize.zero_point,
            range: requantize
                .range
                .map(|r| r.saturating_sub(requantize.zero_point)),
        }
    }
}

impl Finish {
    /// Bytes of a result.
    pub(super) fn size(&self) -> usize {
        if matches!(self, Finish::Sum) { 4 } else { 1 }
    }

    /// Turns rows of sums, one for each of `channels`, into the numbers of the output.
    pub(super) fn apply(&self, isa: Isa, channels: usize, sums: &mut [i32]) {
        if !matches!(self, Finish::Sum) {
            isa.dispatch_pairs(Apply {
                finish: self,
                channels,
                sums,
            });
        }
    }
}

struct Apply<'a> {
    finish: &'a Finish,
    channels: usize,
    sums: &'a mut [i32],
}

impl PairTask for Apply<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Pairs>(self, _: P) {
        let rows = self.sums.chunks_exact_mut(self.channels);
        match self.finish {
            Finish::Sum => {}
            Finish::Real { factors, steps } => {
                for row in rows {
                    for (sum, factor) in row.iter_mut().zip(factors) {
                        *sum = steps.nearest(*sum as f32 * factor);
                    }
                }
            }
            Finish::Fixed(f) => {
                let [low, high] = f.range;
                for row in rows {
                    let left = f.left.iter().zip(&f.multipliers);
                    let right = f.halves.iter().zip(&f.right);
                    for ((sum, (&left, &multiplier)), (&half, &right)) in
                        row.iter_mut().zip(left).zip(right)
                    {
                        let scale = Scale {
                            left,
                            multiplier,
                            half,
                            right,
                        };
                        let scaled = scale.apply(*sum);
                        *sum = scaled.max(low).min(high).wrapping_add(f.zero);
                    }
                }
            }
        }
    }
}

/// A [`Factor`] as vectors take it. Its shifts are products with powers of two: WebAssembly shifts all elements
/// of a vector by one number.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// What a shift to the left multiplies with.
    left: i32,
    multiplier: i32,
    /// Half of what a shift to the right divides by; zero where there is none.
    half: u32,
    /// 2^31 over what it divides by.
    right: u32,
}

impl Scale {
    pub(super) fn new(factor: Factor) -> Scale {
        let right = factor.shift.min(0).unsigned_abs().min(31);
        Scale {
            left: 1 << factor.shift.clamp(0, 31),
            multiplier: factor.multiplier,
            half: (1 << right) >> 1,
            right: (1 << 31) >> right,
        }
    }

    /// [`Factor::apply`]. The multiplier is not negative, so that no product saturates.
    #[inline(always)]
    pub(super) fn apply(self, x: i32) -> i32 {
        let product = i64::from(x.wrapping_mul(self.left)) * i64::from(self.multiplier);
        // The lower bits, which are all that is wanted, are the same with and without the sign.
        let high = ((product + (1 << 30)) as u64 >> 31) as i32;
        // The magnitude is rounded up where it ties.
        let sign = high >> 31;
        let magnitude = ((high ^ sign).wrapping_sub(sign) as u32).wrapping_add(self.half);
        let quotient = ((u64::from(magnitude) * u64::from(self.right)) >> 31) as i32;
        (quotient ^ sign).wrapping_sub(sign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use kilim_core::DType;

    #[test]
    fn fixed_point_is_that_of_the_core() {
        let factors: Vec<Factor> = [
            1e-9, 3e-10, 0.0003, 0.25, 0.5, 0.999, 1.0, 3.7, 0.0, 1e-7, 2e9,
        ]
        .into_iter()
        .map(|f| Factor::new(f).expect("a factor"))
        .collect();
        let requantize = Requantize {
            factors: factors.clone(),
            zero_point: -3,
            range: [-1_000_000, 1_000_000],
            output: DType::I32,
        };
        let finish = Finish::Fixed(Fixed::new(&requantize, factors.len()));
        let sums: Vec<i32> = (-40_000..40_000)
            .map(|i: i32| i.wrapping_mul(53_681) >> (i & 15))
            .collect();
        let sums = &sums[..sums.len() / factors.len() * factors.len()];
        let want: Vec<i32> = (0..sums.len())
            .map(|i| requantize.apply(i % factors.len(), sums[i]))
            .collect();
        for isa in Isa::available() {
            let mut got = sums.to_vec();
            finish.apply(isa, factors.len(), &mut got);
            assert_eq!(got, want, "{isa:?}");
        }
    }
}
