//! ArgMax and ArgMin of what scores usually are: `float32` and bytes.

use std::array::from_fn;
use std::ops::Range;

use bytemuck::Pod;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{ArgReduce, normalize_axis};
use kilim_core::{DType, Result};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Io, Kernel, by};

use super::isa::{Isa, Simd, Task};

/// Operations of reading an element and comparing it.
const COST: usize = 2;
/// Lines that lie beside each other and are searched together.
const BLOCK: usize = 256;
/// Lines behind each other that are searched together.
const BESIDE: usize = 4;
/// Elements that a line may have: it is searched without a look at what may stop the run.
const LONGEST: usize = 1 << 22;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<ArgReduce>(
        |op, node| match Search::of(op, node, Isa::best()) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                "the SIMD search: neither float32 nor bytes, or lines that are empty or very long",
            )),
        },
        |op, node, _| {
            let search = Search::of(op, node, Isa::best());
            Ok(Box::new(search.ok_or_else(|| unsupported("this search"))?))
        },
    );
}

/// Searches lines of `n` elements; `inner` lines lie beside each other.
#[derive(Clone, Copy, Debug)]
struct Search {
    isa: Isa,
    max: bool,
    last: bool,
    n: usize,
    inner: usize,
    from: DType,
    to: DType,
}

impl Search {
    fn of(op: &ArgReduce, node: &NodeSpec, isa: Isa) -> Option<Search> {
        let x = node.input(0)?;
        let axis = normalize_axis(op.axis, x.shape.len()).ok()?;
        let search = Search {
            isa,
            max: op.max,
            last: op.select_last,
            n: x.shape[axis],
            inner: x.shape[axis + 1..].iter().product(),
            from: x.dtype,
            to: node.outputs.first()?.dtype,
        };
        let known = matches!(search.from, DType::F32 | DType::U8 | DType::I8)
            && matches!(search.to, DType::I32 | DType::I64);
        (known && (1..=LONGEST).contains(&search.n)).then_some(search)
    }

    fn typed<T, O>(&self, io: &mut Io) -> Result<()>
    where
        T: Pod + PartialOrd + Default + Send + Sync,
        O: Pod + From<i32> + Send + Sync,
    {
        let (x, y) = (io.input::<T>(0), io.output::<O>(0));
        let (lines, cost) = (y.len(), self.n.saturating_mul(COST));
        io.cpu().rows(lines, by(y, 1), cost, |lines, y, _| {
            self.isa.dispatch(Lines {
                search: *self,
                x,
                lines,
                y,
            });
            Ok(())
        })
    }
}

impl Kernel for Search {
    fn run(&self, io: &mut Io) -> Result<()> {
        match (self.from, self.to) {
            (DType::F32, DType::I64) => self.typed::<f32, i64>(io),
            (DType::F32, _) => self.typed::<f32, i32>(io),
            (DType::U8, DType::I64) => self.typed::<u8, i64>(io),
            (DType::U8, _) => self.typed::<u8, i32>(io),
            (_, DType::I64) => self.typed::<i8, i64>(io),
            (_, _) => self.typed::<i8, i32>(io),
        }
    }
}

impl Search {
    /// Lines of bytes behind each other: a number with the byte above and the place below is the largest where both are.
    #[inline(always)]
    fn bytes<O: From<i32>>(&self, lines: &[u8], y: &mut [O]) {
        const PLACES: u32 = LONGEST as u32 - 1;
        let sign = if self.from == DType::I8 { 0x80 } else { 0 };
        // The smallest byte is the one whose complement is the largest, and so is the first place.
        let value = sign ^ if self.max { 0 } else { 0xff };
        let place = if self.last { 0 } else { PLACES };
        for (line, y) in lines.chunks_exact(self.n).zip(y) {
            let mut largest = 0;
            for (&byte, i) in line.iter().zip(0u32..) {
                let number = u32::from(byte ^ value) << PLACES.count_ones() | (i ^ place);
                largest = number.max(largest);
            }
            *y = (((largest ^ place) & PLACES) as i32).into();
        }
    }
}

/// Some of all lines of `x`, and the places that are found in them.
struct Lines<'a, T, O> {
    search: Search,
    x: &'a [T],
    lines: Range<usize>,
    y: &'a mut [O],
}

impl<T, O> Task for Lines<'_, T, O>
where
    T: Pod + PartialOrd + Default,
    O: Pod + From<i32>,
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        match self.search.max {
            true => self.find(|a, b| a > b),
            false => self.find(|a, b| a < b),
        }
    }
}

impl<T, O> Lines<'_, T, O>
where
    T: Pod + PartialOrd + Default,
    O: Pod + From<i32>,
{
    #[inline(always)]
    fn find(self, beats: impl Fn(T, T) -> bool + Copy) {
        let Search { n, inner, last, .. } = self.search;
        // The first NaN wins, as in numpy.
        let wins = |v: T, best: T| beats(v, best) | (last & (v == best)) | nan(v) & !nan(best);
        if inner == 1 {
            let all = &self.x[self.lines.start * n..self.lines.end * n];
            if size_of::<T>() == 1 {
                return self.search.bytes(bytemuck::cast_slice(all), self.y);
            }
            // Each element of a line waits for the one before it: others are searched beside it.
            let groups = all.chunks(n * BESIDE).zip(self.y.chunks_mut(BESIDE));
            for (rows, y) in groups {
                // Where lines are missing, the first ones are searched again.
                let row: [_; BESIDE] = from_fn(|j| &rows[j % y.len() * n..][..n]);
                let (mut best, mut at) = (row.map(|row| row[0]), [0; BESIDE]);
                for (i, elements) in (0..n).map(|i| (i, row.map(|row| row[i]))) {
                    for ((v, best), at) in elements.into_iter().zip(&mut best).zip(&mut at) {
                        let better = wins(v, *best);
                        *best = if better { v } else { *best };
                        *at = if better { i as i32 } else { *at };
                    }
                }
                y.iter_mut().zip(at).for_each(|(y, at)| *y = at.into());
            }
            return;
        }
        let (mut best, mut at) = ([T::default(); BLOCK], [0i32; BLOCK]);
        let (mut line, mut y) = (self.lines.start, self.y);
        while line < self.lines.end {
            let (outer, first) = (line / inner, line % inner);
            let count = (inner - first).min(self.lines.end - line).min(BLOCK);
            let (best, at) = (&mut best[..count], &mut at[..count]);
            let block = &self.x[outer * n * inner + first..];
            best.copy_from_slice(&block[..count]);
            at.fill(0);
            for i in 1..n {
                let row = &block[i * inner..][..count];
                for ((&v, best), at) in row.iter().zip(&mut *best).zip(&mut *at) {
                    let better = wins(v, *best);
                    *best = if better { v } else { *best };
                    *at = if better { i as i32 } else { *at };
                }
            }
            let (found, rest) = y.split_at_mut(count);
            for (y, &at) in found.iter_mut().zip(&*at) {
                *y = at.into();
            }
            (line, y) = (line + count, rest);
        }
    }
}

#[inline(always)]
#[expect(
    clippy::eq_op,
    reason = "only what is not a number differs from itself"
)]
fn nan<T: PartialOrd>(v: T) -> bool {
    v != v
}

#[cfg(test)]
mod tests {
    use super::{Isa, Search};
    use crate::testing::run_node;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use kilim_core::backend::{NodeSpec, TensorSpec};
    use kilim_core::ops::ArgReduce;
    use kilim_core::{DType, Tensor};
    use kilim_host::testing::noise;

    /// What stands first, or last, among the largest or smallest of a line; the first NaN, if there is one.
    fn place(line: &[f32], max: bool, last: bool) -> i64 {
        if let Some(i) = line.iter().position(|v| v.is_nan()) {
            return i as i64;
        }
        let fold = if max { f32::max } else { f32::min };
        let best = line.iter().copied().reduce(fold).unwrap();
        let found = match last {
            true => line.iter().rposition(|&v| v == best),
            false => line.iter().position(|&v| v == best),
        };
        found.unwrap() as i64
    }

    #[test]
    fn lines_of_every_kind() {
        for [outer, n, inner] in [[3, 7, 1], [2, 21, 5], [1, 3, 300], [2, 1, 4], [5, 130, 1]] {
            let shape = [outer, n, inner];
            // Whole numbers of few values, so that many are level.
            let bytes: Vec<u8> = noise(outer * n * inner, 3)
                .iter()
                .map(|v| (v * 6.0 + 8.0) as u8)
                .collect();
            let mut floats: Vec<f32> = bytes.iter().map(|&v| f32::from(v) - 8.0).collect();
            let line = |i: usize, of: &[f32]| -> Vec<f32> {
                let first = i / inner * n * inner + i % inner;
                (0..n).map(|k| of[first + k * inner]).collect()
            };
            for with_nan in [false, true] {
                if with_nan {
                    floats[n * inner / 2] = f32::NAN;
                }
                for (max, last) in [(true, false), (true, true), (false, false), (false, true)] {
                    if with_nan && last {
                        // numpy has no such choice.
                        continue;
                    }
                    let want: Vec<i64> = (0..outer * inner)
                        .map(|i| place(&line(i, &floats), max, last))
                        .collect();
                    let mut inputs = vec![Tensor::from_slice(&shape, &floats).unwrap()];
                    if !with_nan {
                        let signed: Vec<i8> = bytes.iter().map(|&v| v as i8 - 8).collect();
                        inputs.push(Tensor::from_slice(&shape, &bytes).unwrap());
                        inputs.push(Tensor::from_slice(&shape, &signed).unwrap());
                    }
                    for (x, output) in inputs
                        .iter()
                        .flat_map(|x| [(x, DType::I64), (x, DType::I32)])
                    {
                        let op = ArgReduce {
                            max,
                            axis: 1,
                            keep_dims: true,
                            select_last: last,
                            output,
                        };
                        let inputs = [Some(TensorSpec::of(x))];
                        let outputs = [TensorSpec::new(output, &[outer, 1, inner])];
                        let node = NodeSpec {
                            name: "test",
                            op: &op,
                            inputs: &inputs,
                            outputs: &outputs,
                        };
                        for isa in Isa::available() {
                            let got = run_node(&node, |node, _| {
                                Ok(Box::new(Search::of(&op, node, isa).unwrap()))
                            });
                            let got = got.to_i64s().unwrap();
                            assert_eq!(got, want, "{shape:?} {:?} {op:?} {isa:?}", x.dtype());
                        }
                    }
                }
            }
        }
    }
}
