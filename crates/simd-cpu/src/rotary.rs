//! Rotary embedding of `float32`, of data and of what [`UnpackQkv`] takes apart. No products are fused with sums, so that every instruction set gives the same bits.

use kilim_core::DType;
use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Angles, RotaryEmbedding, UnpackQkv};
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, Io, Kernel, by};
use kilim_reference_cpu::attention::{Turning, Unpack};

use super::isa::{Isa, Simd, Task};

/// Operations of a number.
const COST: usize = 3;
/// Operations that a row takes however short it is.
const ROW: usize = 16;
/// Numbers that a row may have: it is computed without a look at what may stop the run.
const LONGEST: usize = 1 << 22;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<RotaryEmbedding>(accepts, |op, node, _| kernel(op, node, Isa::best()));
    registry.add::<UnpackQkv>(unpacks, |op, node, _| unpack(op, node, Isa::best()));
}

fn unpacks(_: &UnpackQkv, node: &NodeSpec) -> Result<(), Refusal> {
    let inputs = (0..5).map(|i| node.input(i));
    let fits = inputs.flatten().all(|s| s.dtype == DType::F32)
        && (node.outputs.first()).is_some_and(|y| y.shape.last().is_some_and(|n| *n <= LONGEST));
    match fits {
        true => Ok(()),
        false => Err(Refusal::new(
            "the SIMD rotary embedding: not float32, or heads that are very long",
        )),
    }
}

fn unpack(op: &UnpackQkv, node: &NodeSpec, isa: Isa) -> Result<Box<dyn Kernel>> {
    let order = Order::of(&op.rotary());
    let turns = move |_: &CpuRun, x: &[f32], [cosines, sines]: [&[f32]; 2], y: &mut [f32]| {
        let row = Turn {
            order,
            x,
            cosines,
            sines,
            y,
        };
        row.of_part(isa, 2 * cosines.len());
        Ok(())
    };
    Ok(Box::new(Unpack::new(op, node, turns)?))
}

fn accepts(op: &RotaryEmbedding, node: &NodeSpec) -> Result<(), Refusal> {
    let float = |i| node.input(i).is_some_and(|s| s.dtype == DType::F32);
    let fits = Turning::of(op, node).is_ok_and(|t| (1..=LONGEST).contains(&t.size));
    match (0..3).all(float) && fits {
        true => Ok(()),
        false => Err(Refusal::new(
            "the SIMD rotary embedding: not float32, or rows that are empty or very long",
        )),
    }
}

fn kernel(op: &RotaryEmbedding, node: &NodeSpec, isa: Isa) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Rotary {
        isa,
        order: Order::of(op),
        turning: Turning::of(op, node)?,
    }))
}

/// Where the numbers of a pair and their angles stand.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// In two halves, with an angle for each pair.
    Halves,
    /// In two halves, as do their angles.
    HalvesOfBoth,
    /// Beside each other, with an angle for each pair.
    Pairs,
    /// Beside each other, as do their angles.
    PairsOfBoth,
}

impl Order {
    fn of(op: &RotaryEmbedding) -> Order {
        match (op.interleaved, op.angles) {
            (false, Angles::OfPairs) => Order::Halves,
            (false, Angles::OfNumbers) => Order::HalvesOfBoth,
            (true, Angles::OfPairs) => Order::Pairs,
            (true, Angles::OfNumbers) => Order::PairsOfBoth,
        }
    }
}

#[derive(Debug)]
struct Rotary {
    isa: Isa,
    order: Order,
    turning: Turning,
}

impl Kernel for Rotary {
    fn run(&self, io: &mut Io) -> Result<()> {
        let [x, cosines, sines] = [0, 1, 2].map(|i| io.input::<f32>(i));
        let Turning { size, angles, .. } = self.turning;
        let (count, cost) = (self.turning.count(), size * COST + ROW);
        let y = by(io.output(0), size);
        io.cpu().rows(count, y, cost, |piece, y, _| {
            let from = x[piece.start * size..].chunks_exact(size);
            let mut lines = from.zip(y.chunks_exact_mut(size));
            self.turning.lines(piece, |[cosine, sine]| {
                if let Some((x, y)) = lines.next() {
                    let row = Turn {
                        order: self.order,
                        x,
                        cosines: &cosines[cosine..][..angles],
                        sines: &sines[sine..][..angles],
                        y,
                    };
                    row.of_part(self.isa, self.turning.turned);
                }
                Ok(())
            })
        })
    }
}

/// The numbers of a row that turn, and the row's angles.
struct Turn<'a> {
    order: Order,
    x: &'a [f32],
    cosines: &'a [f32],
    sines: &'a [f32],
    y: &'a mut [f32],
}

impl Turn<'_> {
    /// Turns the first `turned` numbers; the others stay as they are.
    fn of_part(self, isa: Isa, turned: usize) {
        let (x, kept) = self.x.split_at(turned);
        let (y, behind) = self.y.split_at_mut(turned);
        behind.copy_from_slice(kept);
        isa.dispatch(Turn { x, y, ..self });
    }
}

impl Task for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Turn {
            order,
            x,
            cosines,
            sines,
            y,
        } = self;
        let pairs = x.len() / 2;
        match order {
            Order::Halves => halves(x, [cosines; 2], [sines; 2], y),
            Order::HalvesOfBoth => {
                let [cosines, sines] = [cosines, sines].map(|all| all.split_at(pairs));
                halves(x, cosines.into(), sines.into(), y);
            }
            Order::Pairs => beside::<1>(x, cosines, sines, y),
            Order::PairsOfBoth => beside::<2>(x, cosines, sines, y),
        }
    }
}

/// Turns pairs whose numbers stand in two halves of `x`, by angles for those of each half.
#[inline(always)]
fn halves(x: &[f32], cosines: [&[f32]; 2], sines: [&[f32]; 2], y: &mut [f32]) {
    let n = x.len() / 2;
    let (first, second) = x.split_at(n);
    let (real, imaginary) = y.split_at_mut(n);
    let [first, second, c, d, s, t] =
        [first, second, cosines[0], cosines[1], sines[0], sines[1]].map(|all| &all[..n]);
    let (real, imaginary) = (&mut real[..n], &mut imaginary[..n]);
    for i in 0..n {
        let (a, b) = (first[i], second[i]);
        real[i] = a * c[i] - b * s[i];
        imaginary[i] = b * d[i] + a * t[i];
    }
}

/// Turns pairs whose numbers stand beside each other, by `EACH` angles for each.
#[inline(always)]
fn beside<const EACH: usize>(x: &[f32], cosines: &[f32], sines: &[f32], y: &mut [f32]) {
    let angles = cosines.chunks_exact(EACH).zip(sines.chunks_exact(EACH));
    let numbers = x.chunks_exact(2).zip(y.chunks_exact_mut(2));
    for ((x, y), (c, s)) in numbers.zip(angles) {
        let (a, b) = (x[0], x[1]);
        y[0] = a * c[0] - b * s[0];
        y[1] = b * c[EACH - 1] + a * s[EACH - 1];
    }
}

#[cfg(test)]
mod tests {
    use super::{Isa, kernel, unpack};
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{run_kernel, run_kernels};
    use kilim_core::ops::{Angles, RotaryEmbedding, UnpackQkv};
    use kilim_host::testing::{noise, tensor};

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for (pairs, kept) in [(1, 0), (3, 1), (4, 0), (8, 5), (32, 0), (33, 7)] {
            for (interleaved, of_numbers) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let (size, angles) = (2 * pairs + kept, pairs * if of_numbers { 2 } else { 1 });
                let op = RotaryEmbedding {
                    interleaved,
                    angles: match of_numbers {
                        true => Angles::OfNumbers,
                        false => Angles::OfPairs,
                    },
                    partial: kept > 0,
                };
                let (x, c, s) = (
                    noise(6 * size, 3),
                    noise(3 * angles, 5),
                    noise(3 * angles, 7),
                );
                let mut want = x.clone();
                for (row, y) in want.chunks_exact_mut(size).enumerate() {
                    let from = &x[row * size..];
                    for i in 0..pairs {
                        let both = match interleaved {
                            true => [2 * i, 2 * i + 1],
                            false => [i, pairs + i],
                        };
                        let own = if of_numbers { both } else { [i, i] };
                        let own = own.map(|at| (row % 3) * angles + at);
                        let [a, b] = both.map(|at| from[at]);
                        y[both[0]] = a * c[own[0]] - b * s[own[0]];
                        y[both[1]] = b * c[own[1]] + a * s[own[1]];
                    }
                }
                let inputs = [
                    tensor(&[2, 3, size], &x),
                    tensor(&[3, angles], &c),
                    tensor(&[1, 3, angles], &s),
                ];
                let inputs = [0, 1, 2].map(|i| Some(&inputs[i]));
                for isa in Isa::available() {
                    let got = run_kernel(&op, &inputs, &[2, 3, size], |node, _| {
                        kernel(&op, node, isa)
                    });
                    assert_eq!(got, want, "{pairs} pairs, {kept} kept, {op:?} on {isa:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_unpacked_turns_by_the_same_bits() {
        let ([steps, queries, keys], rest) = ([5, 3, 2], 1);
        for pairs in [1, 4, 33] {
            let (size, heads) = (2 * pairs + rest, queries + 2 * keys);
            let op = UnpackQkv {
                query_heads: queries,
                key_heads: keys,
                interleaved: pairs == 4,
            };
            let packed = noise(steps * heads * size, 3);
            let (c, s) = (noise(steps * pairs, 5), noise(steps * pairs, 7));
            let queries_of = |step: usize| &packed[step * heads * size..][..queries * size];
            let apart: Vec<f32> = (0..steps).flat_map(queries_of).copied().collect();
            let angles = [&c, &s].map(|all| tensor(&[1, steps, 1, pairs], all));
            let rotary = op.rotary();
            let apart = tensor(&[1, steps, queries, size], &apart);
            let inputs = [&apart, &angles[0], &angles[1]].map(Some);
            let turned = run_kernel(&rotary, &inputs, &[1, steps, queries, size], |node, _| {
                kernel(&rotary, node, Isa::best())
            });
            let mut want: Vec<f32> = Vec::new();
            for head in 0..queries {
                let row = |step: usize| &turned[(step * queries + head) * size..][..size];
                want.extend((0..steps).flat_map(row));
            }
            let cache = tensor(&[1, keys, steps, size], &noise(keys * steps * size, 9));
            let inputs = [
                &tensor(&[1, steps, heads * size], &packed),
                &tensor(&[1, steps, pairs], &c),
                &tensor(&[1, steps, pairs], &s),
                &cache,
                &cache,
                &tensor(&[1], &[0i64]),
            ];
            let outputs = [queries, keys, keys].map(|heads| [1, heads, steps, size]);
            let outputs = [0, 1, 2].map(|i| &outputs[i][..]);
            for isa in Isa::available() {
                let got = run_kernels(&op, &inputs.map(Some), &outputs, |node, _| {
                    unpack(&op, node, isa)
                });
                assert_eq!(got[0], want, "{op:?} on {isa:?}");
                for head in 0..keys {
                    for step in 0..steps {
                        let from = (step * heads + queries + keys + head) * size;
                        let at = (head * steps + step) * size;
                        assert_eq!(got[2][at..][..size], packed[from..][..size]);
                    }
                }
            }
        }
    }
}
