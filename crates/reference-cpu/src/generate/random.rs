//! Random numbers: a hash of a running number, so that each depends on the seed and its place alone.

use std::f64::consts::TAU;
use std::sync::atomic::{AtomicU64, Ordering};

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Distribution, Random};
use kilim_host::elements::{Codec, Wide};
use kilim_host::{Build, Io, Kernel, by};

/// Seeds for operators that have none: stirred when a program begins, counted from there.
static SEEDS: AtomicU64 = AtomicU64::new(0x853c_49e6_748f_ea9b);

/// Makes the numbers of operators without a seed depend on the time. The web has no clock of its own;
/// the bindings stir.
pub fn stir_by_time() {
    #[cfg(not(target_arch = "wasm32"))]
    if let Ok(time) = std::time::SystemTime::UNIX_EPOCH.elapsed() {
        stir(time.as_nanos() as u64);
    }
}

/// Makes the numbers of operators without a seed depend on `noise`.
pub fn stir(noise: u64) {
    SEEDS.fetch_add(mix(noise), Ordering::Relaxed);
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `i`th number of a stream, uniform in `0..1` in steps of 2^-24: no element type but half
/// precision rounds it up to 1.
fn unit(seed: u64, i: u64) -> f64 {
    let bits = mix(seed.wrapping_add(i.wrapping_add(1).wrapping_mul(STEP)));
    (bits >> 40) as f64 / f64::from(1 << 24)
}

pub fn build(op: &Random, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Numbers {
        distribution: op.distribution,
        seed: op.seed,
        codec: f64::codec(node.outputs[0].dtype),
    }))
}

struct Numbers {
    distribution: Distribution,
    seed: Option<u64>,
    codec: Codec<f64>,
}

impl Kernel for Numbers {
    fn run(&self, io: &mut Io) -> Result<()> {
        let seed = mix(self
            .seed
            .unwrap_or_else(|| SEEDS.fetch_add(STEP, Ordering::Relaxed)));
        let n = io.output_len(0);
        let y = by(io.output_bytes(0), self.codec.size());
        io.cpu().rows(n, y, COST, |piece, y, _| {
            for i in piece.clone() {
                let number = self.number(seed, i as u64);
                self.codec.set(y, i - piece.start, number);
            }
            Ok(())
        })
    }
}

/// Operations of a number: the logarithm and the cosine of a normal one.
const COST: usize = 32;

impl Numbers {
    /// The `i`th number of the stream of a seed.
    fn number(&self, seed: u64, i: u64) -> f64 {
        match self.distribution {
            Distribution::Uniform { low, high } => {
                let (low, high) = (f64::from(low), f64::from(high));
                low + (high - low) * unit(seed, i)
            }
            Distribution::Normal { mean, deviation } => {
                // Box and Muller; the logarithm never sees 0.
                let radius = 1.0 - unit(seed, 2 * i);
                let angle = TAU * unit(seed, 2 * i + 1);
                let normal = (-2.0 * radius.ln()).sqrt() * angle.cos();
                f64::from(mean) + f64::from(deviation) * normal
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::DType;

    use super::*;
    use crate::testing::run_f32;

    fn numbers(distribution: Distribution, seed: Option<u64>) -> Vec<f32> {
        let op = Random {
            distribution,
            dtype: Some(DType::F32),
            shape: Some(vec![100, 200]),
            seed,
        };
        run_f32(&op, &[], &[100, 200])
    }

    /// Mean, variance, skewness and excess of the fourth moment.
    fn moments(numbers: &[f32]) -> [f64; 4] {
        let n = numbers.len() as f64;
        let mean = numbers.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let central = |power: i32| {
            let powers = numbers.iter().map(|&v| (f64::from(v) - mean).powi(power));
            powers.sum::<f64>() / n
        };
        let variance = central(2);
        let skewness = central(3) / variance.powf(1.5);
        [
            mean,
            variance,
            skewness,
            central(4) / variance.powi(2) - 3.0,
        ]
    }

    fn close(got: [f64; 4], want: [f64; 4]) {
        for (got, want) in got.into_iter().zip(want) {
            assert!((got - want).abs() < 0.05, "{got} for {want}");
        }
    }

    #[test]
    fn uniform_numbers() {
        let kind = Distribution::Uniform {
            low: -1.0,
            high: 2.0,
        };
        let all = numbers(kind, Some(7));
        assert!(all.iter().all(|v| (-1.0..2.0).contains(v)));
        close(moments(&all), [0.5, 0.75, 0.0, -1.2]);
        let mut tenths = [0; 10];
        for v in &all {
            tenths[((v + 1.0) / 0.3) as usize % 10] += 1;
        }
        assert!(
            tenths.iter().all(|&n| (1800..2200).contains(&n)),
            "{tenths:?}"
        );
    }

    #[test]
    fn normal_numbers() {
        let kind = Distribution::Normal {
            mean: 1.0,
            deviation: 1.0,
        };
        close(moments(&numbers(kind, Some(3))), [1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn seeds_repeat_and_runs_without_do_not() {
        let kind = Distribution::Uniform {
            low: 0.0,
            high: 1.0,
        };
        assert_eq!(numbers(kind, Some(1)), numbers(kind, Some(1)));
        assert_ne!(numbers(kind, Some(1)), numbers(kind, Some(2)));
        assert_ne!(numbers(kind, None), numbers(kind, None));
    }
}
