//! What becomes of 32-bit sums.

use kilim_core::ops::Requantize;

use crate::isa::{Isa, PairTask, Pairs};

/// What becomes of a sum of each channel.
#[derive(Clone, Debug)]
pub(super) enum Finish {
    /// It is the output, in `int32`.
    Sum,
    /// Scaled in `float32`, rounded to the nearest, ties to even, and moved to a zero point.
    Real {
        factors: Vec<f32>,
        zero: f32,
        range: [f32; 2],
    },
    /// Scaled in fixed point.
    Fixed(Fixed),
}

/// [`Requantize`] with a factor for each channel, taken apart for vectors.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    multipliers: Vec<i32>,
    left: Vec<u32>,
    right: Vec<u32>,
    zero: i32,
    /// Without the zero point.
    range: [i32; 2],
}

impl Fixed {
    pub(super) fn new(requantize: &Requantize, channels: usize) -> Fixed {
        let several = requantize.factors.len() > 1;
        let factors = || (0..channels).map(|c| requantize.factors[if several { c } else { 0 }]);
        Fixed {
            multipliers: factors().map(|f| f.multiplier).collect(),
            left: factors().map(|f| f.shift.max(0).unsigned_abs()).collect(),
            right: factors().map(|f| f.shift.min(0).unsigned_abs()).collect(),
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
            Finish::Real {
                factors,
                zero,
                range: [low, high],
            } => {
                for row in rows {
                    for (sum, factor) in row.iter_mut().zip(factors) {
                        let scaled = (*sum as f32 * factor).round_ties_even() + zero;
                        *sum = scaled.max(*low).min(*high) as i32;
                    }
                }
            }
            Finish::Fixed(f) => {
                let [low, high] = f.range;
                for row in rows {
                    let factors = f.multipliers.iter().zip(&f.left).zip(&f.right);
                    for (sum, ((&multiplier, &left), &right)) in row.iter_mut().zip(factors) {
                        let scaled = fixed(*sum, multiplier, left, right);
                        *sum = scaled.max(low).min(high).wrapping_add(f.zero);
                    }
                }
            }
        }
    }
}

/// `kilim_core::fixed::Factor::apply` without what keeps it from being vectorised. The multiplier is
/// not negative, so that the product does not saturate.
#[inline(always)]
fn fixed(x: i32, multiplier: i32, left: u32, right: u32) -> i32 {
    let product = i64::from(x.wrapping_shl(left)) * i64::from(multiplier);
    let high = ((product + (1 << 30)) >> 31) as i32;
    // Ties go away from zero.
    let mask = 1i32.wrapping_shl(right).wrapping_sub(1);
    let rest = high & mask;
    let threshold = ((mask as u32) >> 1) as i32 + i32::from(high < 0);
    let up = i32::from(rest > threshold);
    high.wrapping_shr(right).wrapping_add(up)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use kilim_core::DType;
    use kilim_core::fixed::Factor;

    #[test]
    fn fixed_point_is_that_of_the_core() {
        let factors: Vec<Factor> = [1e-9, 0.0003, 0.25, 0.5, 0.999, 1.0, 3.7, 0.0, 1e-7]
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
