//! ArgMax and ArgMin.

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{ArgReduce, normalize_axis};
use kilim_core::{DType, Result};
use kilim_host::by_class;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::Along;
use crate::common::is_nan;

pub fn build(op: &ArgReduce, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let search = Search {
        along: Along::new(&x.shape, normalize_axis(op.axis, x.shape.len())?),
        max: op.max,
        last: op.select_last,
        out: i64::codec(node.outputs[0].dtype),
    };
    match x.dtype {
        DType::F32 => Ok(Box::new(Plain::<f32> {
            search,
            element: PhantomData,
        })),
        DType::U8 => Ok(Box::new(Plain::<u8> {
            search,
            element: PhantomData,
        })),
        DType::I8 => Ok(Box::new(Plain::<i8> {
            search,
            element: PhantomData,
        })),
        dtype => {
            by_class!(dtype, W => Ok(Box::new(Generic::<W> { search, codec: W::codec(dtype) })))
        }
    }
}

struct Search {
    along: Along,
    max: bool,
    last: bool,
    out: Codec<i64>,
}

impl Search {
    fn run<W: PartialOrd + Copy>(
        &self,
        cpu: &CpuRun,
        y: &mut [u8],
        get: impl Fn(usize) -> W + Sync,
    ) -> Result<()> {
        let Along { outer, n, inner } = self.along;
        let cost = n.saturating_mul(COST);
        let y = by(y, self.out.size());
        cpu.rows(outer * inner, y, cost, |piece, y, cpu| {
            for line in piece.clone() {
                let first = line / inner * n * inner + line % inner;
                let (mut best, mut at) = (get(first), 0);
                cpu.pieces(n, COST, |part| {
                    for i in part {
                        let v = get(first + i * inner);
                        // The first NaN wins, as in numpy.
                        let better = match self.max {
                            true => v > best,
                            false => v < best,
                        };
                        let level = self.last && v == best;
                        if better || level || (is_nan(v) && !is_nan(best)) {
                            (best, at) = (v, i);
                        }
                    }
                    Ok(())
                })?;
                self.out.set(y, line - piece.start, at as i64);
            }
            Ok(())
        })
    }
}

/// Operations of reading an element and comparing it.
const COST: usize = 4;

/// What scores usually are: compared as they are in memory.
struct Plain<T> {
    search: Search,
    element: PhantomData<T>,
}

impl<T: Pod + PartialOrd + Send + Sync> Kernel for Plain<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<T>(0);
        self.search.run(io.cpu(), io.output_bytes(0), |i| x[i])
    }
}

struct Generic<W> {
    search: Search,
    codec: Codec<W>,
}

impl<W: Wide> Kernel for Generic<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input_bytes(0);
        let get = |i| self.codec.get(x, i);
        self.search.run(io.cpu(), io.output_bytes(0), get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn ties_and_axes() {
        let x = tensor::<f32>(&[2, 3], &[1.0, 5.0, 5.0, 2.0, 2.0, -1.0]);
        let of = |max, axis, select_last, shape: &[usize]| {
            let op = ArgReduce {
                max,
                axis,
                keep_dims: false,
                select_last,
                output: DType::I64,
            };
            run_as::<i64>(&op, &[&x], shape)
        };
        assert_eq!(of(true, 1, false, &[2]), [1, 0]);
        assert_eq!(of(true, -1, true, &[2]), [2, 1]);
        assert_eq!(of(false, 0, false, &[3]), [0, 1, 1]);
    }
}
