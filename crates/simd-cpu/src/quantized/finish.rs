//! What becomes of 32-bit sums.

use kilim_core::DType;
use kilim_core::backend::NodeSpec;
use kilim_core::fixed::Factor;
use kilim_core::ops::Requantize;
use kilim_host::Io;

use super::product::Real;
use super::steps::Steps;
use crate::isa::{IntegerTask, Integers, Isa, RESULTS, Rescale, Round};

/// What becomes of a sum of each channel.
#[derive(Clone, Debug)]
pub(super) enum Finish {
    /// The sum is the output, in `int32`.
    Sum,
    /// Scaled in `float32` and rounded.
    Real(Rounded),
    /// Scaled in fixed point.
    Fixed(Fixed),
    /// Scaled in `float32`, and with a bias.
    Floats(Floats),
}

/// A factor for each channel, and the integers of results.
#[derive(Clone, Debug)]
pub(super) struct Rounded {
    /// The factors that [`Round`] takes.
    factors: Vec<f32>,
    zero: i16,
    range: [i16; 2],
    /// Whether no product is as large as [`Round::MOST`].
    small: bool,
}

impl Rounded {
    /// Results that are bytes, as their zero point and their range are.
    pub(super) fn new(factors: Vec<f32>, zero: i16, range: [i16; 2]) -> Rounded {
        let many = factors.len() + RESULTS - 1;
        Rounded {
            small: false,
            factors: factors.into_iter().cycle().take(many).collect(),
            zero,
            range,
        }
    }

    fn steps(&self) -> Steps {
        Steps::new(self.zero.into(), self.range.map(i32::from))
    }
}

/// Scales and a bias of an output in `float32`, by their inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floats {
    scales: [usize; 2],
    bias: usize,
}

impl Floats {
    /// `None` where scales or bias are not those of `columns`.
    pub(super) fn of(
        node: &NodeSpec,
        scales: [usize; 2],
        bias: usize,
        columns: usize,
    ) -> Option<Floats> {
        let [a, b] = scales.map(|i| node.input(i).filter(|s| s.dtype == DType::F32));
        let each = |n: usize| n == 1 || n == columns;
        let fits = a?.elements() == 1 && each(b?.elements());
        let biases = node.input(bias);
        let biased = biases.is_none_or(|s| s.dtype == DType::F32 && s.elements() == columns);
        (fits && biased).then_some(Floats { scales, bias })
    }

    /// Elements that [`Floats::read`] fills.
    pub(super) fn room(columns: usize) -> usize {
        2 * columns
    }

    /// What each column is multiplied with, and what is added to it.
    pub(super) fn read<'a>(&self, io: &Io, room: &'a mut [i32]) -> Real<'a> {
        let room: &mut [f32] = bytemuck::cast_slice_mut(room);
        let (factors, biases) = room.split_at_mut(room.len() / 2);
        let [a, b] = self.scales.map(|i| io.input::<f32>(i));
        for (factor, b) in factors.iter_mut().zip(b.iter().cycle()) {
            *factor = a[0] * b;
        }
        match io.optional::<f32>(self.bias) {
            Some(bias) => biases.copy_from_slice(bias),
            // Only this zero leaves zeros of both signs as they are.
            None => biases.fill(-0.0),
        }
        Real { factors, biases }
    }
}

/// [`Requantize`] with a factor for each channel: the members of their [`Scale`]s one by one, for vectors.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    /// One for each channel even where all are the same: of one for all LLVM makes products of 64 bits.
    multipliers: Vec<i32>,
    shifts: Shifts,
    /// The factors in `float32`, and the nudges of [`Rescale`], if no channel shifts to the left.
    reals: Option<[Vec<f32>; 2]>,
    /// Whether no product is as large as [`Round::MOST`].
    small: bool,
    zero: i32,
    /// Limits of results without the zero point.
    range: [i32; 2],
}

#[derive(Clone, Debug)]
enum Shifts {
    /// Bits by which all channels shift to the left, and to the right.
    One(u32, u32),
    /// Products with powers of two for each channel: WebAssembly shifts all elements of a vector by one number.
    Each {
        /// What a shift to the left multiplies with.
        left: Vec<i32>,
        /// Half of what a shift to the right divides by; zero where there is none.
        halves: Vec<u32>,
        /// 2^31 over what it divides by.
        right: Vec<u32>,
    },
}

impl Fixed {
    pub(super) fn new(requantize: &Requantize, channels: usize) -> Fixed {
        let several = requantize.factors.len() > 1;
        let scales =
            || (0..channels).map(|c| Scale::new(requantize.factors[if several { c } else { 0 }]));
        let first = Scale::new(requantize.factors[0]);
        let shifts = match scales().all(|s| (s.left, s.right) == (first.left, first.right)) {
            true => Shifts::One(first.left, first.right),
            false => Shifts::Each {
                left: scales().map(|s| 1 << s.left).collect(),
                halves: scales().map(|s| (1 << s.right) >> 1).collect(),
                right: scales().map(|s| (1 << 31) >> s.right).collect(),
            },
        };
        let several = channels + RESULTS - 1;
        let real = |s: Scale| s.multiplier as f32 * small_power(31 + s.right);
        let nudge = |s: Scale| match s.right {
            0 => 0.0,
            right => small_power(1 + right),
        };
        let reals = || {
            let all = |of: fn(Scale) -> f32| scales().map(of).cycle().take(several).collect();
            [all(real), all(nudge)]
        };
        Fixed {
            multipliers: scales().map(|s| s.multiplier).collect(),
            reals: scales().all(|s| s.left == 0).then(reals),
            small: false,
            shifts,
            zero: requantize.zero_point,
            range: requantize
                .range
                .map(|r| r.saturating_sub(requantize.zero_point)),
        }
    }
}

impl Fixed {
    /// What [`Rescale`] needs; `None` unless results are bytes, no channel shifts to the left, and products are small.
    fn rescale(&self, channels: usize) -> Option<Rescale<'_>> {
        let [factors, nudges] = self.reals.as_ref().filter(|_| self.small)?;
        let range = self.range.map(|r| i64::from(r) + i64::from(self.zero));
        let inside = |low, high| {
            let all = range.into_iter().chain([self.zero.into()]);
            all.into_iter().all(|r| (low..=high).contains(&r))
        };
        let bytes = inside(-128, 127) || inside(0, 255);
        bytes.then_some(Rescale {
            round: Round {
                channels,
                factors,
                zero: self.zero as i16,
                range: range.map(|r| r as i16),
            },
            nudges,
        })
    }

    /// The factor of a channel.
    fn scale(&self, channel: usize) -> Scale {
        let (left, right) = match &self.shifts {
            &Shifts::One(left, right) => (left, right),
            Shifts::Each { left, right, .. } => (
                left[channel].trailing_zeros(),
                31 - right[channel].trailing_zeros(),
            ),
        };
        Scale {
            left,
            multiplier: self.multipliers[channel],
            right,
        }
    }
}

impl Finish {
    /// What becomes of sums that are no larger than `most`, nor smaller than minus it.
    pub(super) fn of_at_most(mut self, most: f64) -> Finish {
        let small = |factors: &[f32]| {
            let mut products = factors.iter().map(|&f| most * f64::from(f).abs());
            products.all(|product| product < Round::MOST)
        };
        match &mut self {
            Finish::Real(rounded) => rounded.small = small(&rounded.factors),
            Finish::Fixed(fixed) => {
                fixed.small = fixed.reals.as_ref().is_some_and(|[f, _]| small(f));
            }
            Finish::Sum | Finish::Floats(_) => {}
        }
        self
    }

    /// Whether sums are computed in the memory of the output, where the product leaves what becomes of them.
    pub(super) fn in_place(&self) -> bool {
        matches!(self, Finish::Sum | Finish::Floats(_))
    }

    /// Bytes of a result.
    pub(super) fn size(&self) -> usize {
        if self.in_place() { 4 } else { 1 }
    }

    /// Turns rows of sums, one for each of `channels`, into the numbers of the output.
    pub(super) fn apply(&self, isa: Isa, channels: usize, sums: &mut [i32]) {
        if !self.in_place() {
            isa.dispatch_integers(Apply {
                finish: self,
                channels,
                sums,
            });
        }
    }

    /// [`Finish::apply`] where results are bytes, and these; the sums are lost.
    pub(super) fn bytes(&self, isa: Isa, channels: usize, sums: &mut [i32], to: &mut [u8]) {
        if sums.is_empty() {
            return;
        }
        let task = ToBytes {
            finish: self,
            channels,
            sums: &*sums,
            to: &mut *to,
        };
        if isa.dispatch_integers(task) {
            return;
        }
        self.apply(isa, channels, sums);
        to.iter_mut()
            .zip(sums)
            .for_each(|(to, sum)| *to = *sum as u8);
    }
}

struct ToBytes<'a> {
    finish: &'a Finish,
    channels: usize,
    sums: &'a [i32],
    to: &'a mut [u8],
}

impl IntegerTask for ToBytes<'_> {
    /// Whether it was done.
    type Output = bool;

    #[inline(always)]
    fn run<P: Integers>(self, p: P) -> bool {
        let ToBytes {
            finish,
            channels,
            sums,
            to,
        } = self;
        match finish {
            Finish::Real(rounded) => {
                let by = Round {
                    channels,
                    factors: &rounded.factors,
                    zero: rounded.zero,
                    range: rounded.range,
                };
                if rounded.small && p.round(&by, sums, to) {
                    return true;
                }
                // Written without vectors: the compiler makes them for each instruction set.
                let steps = rounded.steps();
                let rows = sums.chunks_exact(channels);
                for (sums, to) in rows.zip(to.chunks_exact_mut(channels)) {
                    for ((to, &sum), factor) in to.iter_mut().zip(sums).zip(&rounded.factors) {
                        *to = steps.nearest(sum as f32 * factor) as u8;
                    }
                }
                true
            }
            Finish::Fixed(fixed) => match fixed.rescale(channels) {
                Some(by) => {
                    let exact = |channel: usize, sum: i32| fixed.scale(channel).apply(sum);
                    p.rescale(&by, exact, sums, to)
                }
                None => false,
            },
            Finish::Sum | Finish::Floats(_) => false,
        }
    }
}

struct Apply<'a> {
    finish: &'a Finish,
    channels: usize,
    sums: &'a mut [i32],
}

impl IntegerTask for Apply<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        let rows = self.sums.chunks_exact_mut(self.channels);
        match self.finish {
            Finish::Sum | Finish::Floats(_) => {}
            Finish::Real(rounded) => {
                let steps = rounded.steps();
                for row in rows {
                    for (sum, factor) in row.iter_mut().zip(&rounded.factors) {
                        *sum = steps.nearest(*sum as f32 * factor);
                    }
                }
            }
            Finish::Fixed(f) => {
                let [low, high] = f.range;
                let put = |x: i32| x.max(low).min(high).wrapping_add(f.zero);
                match &f.shifts {
                    &Shifts::One(left, right) => {
                        for row in rows {
                            for (sum, &multiplier) in row.iter_mut().zip(&f.multipliers) {
                                let scale = Scale {
                                    left,
                                    multiplier,
                                    right,
                                };
                                *sum = put(scale.apply(*sum));
                            }
                        }
                    }
                    Shifts::Each {
                        left,
                        halves,
                        right,
                    } => {
                        for row in rows {
                            let up = left.iter().zip(&f.multipliers);
                            let down = halves.iter().zip(right);
                            for ((sum, (left, &multiplier)), (half, &right)) in
                                row.iter_mut().zip(up).zip(down)
                            {
                                let high = high_product(sum.wrapping_mul(*left), multiplier);
                                // The magnitude is rounded up where it ties.
                                let sign = high >> 31;
                                let size = (high ^ sign).wrapping_sub(sign) as u32;
                                let size = u64::from(size.wrapping_add(*half));
                                let quotient = ((size * u64::from(right)) >> 31) as i32;
                                *sum = put((quotient ^ sign).wrapping_sub(sign));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Two to the power of `-n`, which is at most 126.
fn small_power(n: u32) -> f32 {
    f32::from_bits((127 - n) << 23)
}

/// [`kilim_core::fixed`]'s product for a multiplier that is not negative, with which nothing saturates.
#[inline(always)]
fn high_product(x: i32, multiplier: i32) -> i32 {
    let product = i64::from(x) * i64::from(multiplier);
    // The lower bits, which are all that is wanted, are the same with and without the sign.
    ((product + (1 << 30)) as u64 >> 31) as i32
}

/// A [`Factor`] as vectors take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    left: u32,
    multiplier: i32,
    right: u32,
}

impl Scale {
    pub(super) fn new(factor: Factor) -> Scale {
        Scale {
            left: factor.shift.clamp(0, 31).unsigned_abs(),
            multiplier: factor.multiplier,
            right: factor.shift.min(0).unsigned_abs().min(31),
        }
    }

    /// [`Factor::apply`].
    #[inline(always)]
    pub(super) fn apply(self, x: i32) -> i32 {
        let high = high_product(x.wrapping_shl(self.left), self.multiplier);
        // What is cut off counts where it is more than half, of negative numbers more than that.
        let cut = ((1u32 << self.right) - 1) as i32;
        let up = (high & cut) > (cut >> 1) - (high >> 31);
        (high >> self.right) + i32::from(up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use kilim_core::DType;

    fn factors(of: &[f64]) -> Vec<Factor> {
        of.iter()
            .map(|&f| Factor::new(f).expect("a factor"))
            .collect()
    }

    fn some_sums() -> Vec<i32> {
        (-40_000..40_000)
            .map(|i: i32| i.wrapping_mul(53_681) >> (i & 15))
            .chain([i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX])
            .collect()
    }

    #[test]
    fn fixed_point_is_that_of_the_core() {
        let factors = factors(&[
            1e-9, 3e-10, 0.0003, 0.25, 0.5, 0.999, 1.0, 3.7, 0.0, 1e-7, 2e9,
        ]);
        let sums = some_sums();
        let sums = &sums[..sums.len() / factors.len() * factors.len()];
        // All of them side by side, and each alone.
        let alone = factors.iter().map(|&f| vec![f]);
        for factors in alone.chain([factors.clone()]) {
            let channels = factors.len();
            let requantize = Requantize {
                factors,
                zero_point: -3,
                range: [-1_000_000, 1_000_000],
                output: DType::I32,
            };
            let finish = Finish::Fixed(Fixed::new(&requantize, channels));
            let want: Vec<i32> = (0..sums.len())
                .map(|i| requantize.apply(i % channels, sums[i]))
                .collect();
            for isa in Isa::available() {
                let mut got = sums.to_vec();
                finish.apply(isa, channels, &mut got);
                assert_eq!(got, want, "{:?} {isa:?}", requantize.factors);
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_core() {
        // Factors that shift alike, and not, to the right and to the left.
        let all: [&[f64]; 9] = [
            &[0.3],
            // Every other sum is in the middle.
            &[0.5],
            &[0.002, 0.0625],
            &[0.0001],
            &[1e-9, 1.1e-9, 1.3e-9],
            &[0.13, 0.15, 0.2, 0.24, 0.125],
            &[0.9],
            &[3.7, 0.2],
            &[0.0],
        ];
        let ranges = [
            (DType::U8, 130, [0, 255]),
            (DType::U8, 0, [0, 200]),
            (DType::I8, -128, [-128, 127]),
            (DType::I8, 5, [5, 90]),
        ];
        for (of, (output, zero_point, range)) in
            all.iter().flat_map(|of| ranges.map(|range| (of, range)))
        {
            // Vectors go on from row to row.
            for channels in [of.len(), of.len() * 8] {
                let requantize = Requantize {
                    factors: factors(of).repeat(if of.len() > 1 { channels / of.len() } else { 1 }),
                    zero_point,
                    range,
                    output,
                };
                // All of them, and those that are small.
                for most in [i32::MAX, 5_000_000, 50_000] {
                    let finish = Finish::Fixed(Fixed::new(&requantize, channels));
                    let finish = finish.of_at_most(most.into());
                    let mut sums = some_sums();
                    sums.retain(|sum| sum.unsigned_abs() <= most.unsigned_abs());
                    let sums = &sums[sums.len() % channels..];
                    let want: Vec<u8> = (0..sums.len())
                        .map(|i| requantize.apply(i % channels, sums[i]) as u8)
                        .collect();
                    for isa in Isa::available() {
                        let mut got = vec![0; sums.len()];
                        finish.bytes(isa, channels, &mut sums.to_vec(), &mut got);
                        assert_eq!(got, want, "{of:?} {output} {range:?} {most} {isa:?}");
                    }
                }
            }
        }
    }
}
