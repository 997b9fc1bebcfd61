//! What the machine can do at most: the instruction of each kind of kernel in a loop on registers, and memory read in order.

use std::hint::black_box;

use kilim_core::tensor::AlignedBytes;
use kilim_core::{Interrupt, Result};
use kilim_host::{CpuRun, Threads};
use serde::Serialize;

use super::case::Arithmetic;
use crate::isa::{ByteTask, Bytes, IntegerTask, Integers, Isa, Simd, Task};

/// Sums that do not wait for each other: as many as hide the time that an addition takes, two a cycle of at most six
/// cycles, and as find room in 16 registers beside two operands.
const SUMS: usize = 12;
/// Additions to each sum in one item of work.
const STEPS: usize = 1 << 14;
/// Nanoseconds of an item, about.
const COST: usize = 1 << 15;
/// Samples at most; the best counts.
const SAMPLES: usize = 10;
/// Seconds of a sample at least: a thread that shares its core with another program gets a turn in that time.
const SAMPLE: f64 = 0.01;
/// Items of a sample at most, whatever the clock says.
const MOST_ITEMS: usize = 1 << 18;
/// Seconds that nothing is faster than, by a clock that is too coarse.
const COARSE: f64 = 1e-6;
/// Seconds after which no more samples are taken.
const ENOUGH: f64 = 0.3;

/// Bytes that are read: several times the last cache of most machines.
#[cfg(not(target_family = "wasm"))]
const READ: usize = 256 << 20;
#[cfg(target_family = "wasm")]
const READ: usize = 128 << 20;
/// Bytes of an item of reading.
const BLOCK: usize = 1 << 20;

/// The most that so many threads of this machine do in a second.
#[derive(Clone, Debug, Serialize)]
pub struct Peaks {
    /// Threads that computed.
    pub threads: usize,
    /// The set of instructions of the kernels.
    pub instructions: &'static str,
    /// Operations of `float32`, two for a multiply-add.
    pub float32: f64,
    /// Operations on `int16`, two for a product that is added.
    pub int16: f64,
    /// Operations on bytes, two for a product that is added.
    pub int8: f64,
    /// Bytes of memory that are read.
    pub memory: f64,
}

impl Peaks {
    /// Measures this machine in about a second; `clock` gives seconds.
    ///
    /// # Errors
    /// `Limit` where there is no memory to read.
    pub fn measure(threads: Threads, clock: fn() -> f64) -> Result<Peaks> {
        let isa = Isa::best();
        let cpu = CpuRun::new(threads, &Interrupt::NEVER);
        let each = (2 * STEPS * SUMS) as f64;
        let in_loops = |products: usize, work: &(dyn Fn() + Sync)| -> Result<f64> {
            let mut items = threads.count();
            let run = |items| {
                cpu.split(items, COST, |piece, _| {
                    piece.for_each(|_| work());
                    Ok(())
                })
            };
            loop {
                let seconds = best(clock, || run(items))?;
                if seconds >= SAMPLE || items >= MOST_ITEMS {
                    return Ok(items as f64 * each * products as f64 / seconds.max(COARSE));
                }
                items *= 4;
            }
        };
        Ok(Peaks {
            threads: threads.count(),
            instructions: isa.name(),
            float32: in_loops(isa.lanes(), &|| isa.dispatch(Loop))?,
            int16: in_loops(2 * isa.integer_sizes().0, &|| isa.dispatch_integers(Loop))?,
            int8: in_loops(isa.vector_bytes(), &|| isa.dispatch_bytes(Loop))?,
            memory: bandwidth(&cpu, isa, clock)?,
        })
    }

    /// Operations of a kind in a second.
    pub fn of(&self, arithmetic: Arithmetic) -> f64 {
        match arithmetic {
            Arithmetic::Float32 => self.float32,
            Arithmetic::Int16 => self.int16,
            Arithmetic::Int8 => self.int8,
        }
    }
}

/// The seconds of the fastest of several runs; one where it takes long.
fn best(clock: fn() -> f64, run: impl Fn() -> Result<()>) -> Result<f64> {
    let begin = clock();
    run()?;
    let mut best = clock() - begin;
    for _ in 0..SAMPLES {
        let start = clock();
        if start - begin > ENOUGH {
            break;
        }
        run()?;
        best = best.min(clock() - start);
    }
    Ok(best)
}

/// Bytes that are read from memory in a second.
fn bandwidth(cpu: &CpuRun, isa: Isa, clock: fn() -> f64) -> Result<f64> {
    let mut bytes = AlignedBytes::zeroed(READ)?;
    // Pages that nobody has written are all the same one.
    cpu.fill(bytes.as_mut_slice(), 1)?;
    let floats: &[f32] = bytemuck::cast_slice(bytes.as_slice());
    let block = BLOCK / size_of::<f32>();
    let seconds = best(clock, || {
        cpu.split(READ / BLOCK, COST, |piece, _| {
            isa.dispatch(Read(&floats[piece.start * block..piece.end * block]));
            Ok(())
        })
    })?;
    Ok(READ as f64 / seconds.max(COARSE))
}

/// Additions of products to sums in registers. Where multiplying and adding are two instructions, the sum is a factor: a
/// product that is the same each time would be computed once.
struct Loop;

impl Task for Loop {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (a, b) = (s.splat(black_box(0.5)), s.splat(black_box(1.0)));
        let mut sums = [b; SUMS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = match S::ADDS_IN_PLACE {
                    true => s.fma(a, b, *sum),
                    false => s.fma(*sum, a, b),
                };
            }
        }
        black_box(sums);
    }
}

impl IntegerTask for Loop {
    type Output = ();

    #[inline(always)]
    fn run<P: Integers>(self, p: P) {
        let (a, b) = (p.splat(black_box(0x0003_0005)), p.splat(black_box(7)));
        let mut sums = [b; SUMS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = p.dot(*sum, a, b);
            }
        }
        black_box(sums);
    }
}

impl ByteTask for Loop {
    type Output = ();

    #[inline(always)]
    fn run<B: Bytes>(self, v: B) {
        let (a, b) = (v.splat(black_box(0x0102_0304)), v.splat(black_box(7)));
        let mut sums = [b; SUMS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = v.dot::<4>(*sum, a, b);
            }
        }
        black_box(sums);
    }
}

/// Numbers that are read in order.
struct Read<'a>(&'a [f32]);

/// Vectors that are read in a step.
const VECTORS: usize = 8;

impl Task for Read<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut sums = [s.splat(0.0); VECTORS];
        for step in self.0.chunks_exact(VECTORS * S::LANES) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a step has `VECTORS` vectors, and `i` is below that.
                let next = unsafe { s.load(step.as_ptr().add(i * S::LANES)) };
                *sum = s.add(*sum, next);
            }
        }
        black_box(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kilim_core::SessionOptions;

    #[test]
    fn a_machine_has_peaks_of_its_kind() {
        let clock = SessionOptions::default().clock;
        let peaks = Peaks::measure(Threads::SINGLE, clock).expect("there is memory");
        assert_eq!(peaks.threads, 1);
        // A loop that the compiler has made nothing of is faster by orders of magnitude than 16 vectors in a nanosecond.
        let lanes = Isa::best().lanes() as f64;
        for rate in [peaks.float32, peaks.int16, peaks.int8] {
            assert!(rate > 1e6 && rate < lanes * 1e12, "{peaks:?}");
        }
        assert!(peaks.memory > 1e6 && peaks.memory < 1e13, "{peaks:?}");
        assert_eq!(peaks.of(Arithmetic::Int16), peaks.int16);
    }
}
