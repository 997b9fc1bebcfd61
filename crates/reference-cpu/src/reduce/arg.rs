//! ArgMax and ArgMin.

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{ArgReduce, normalize_axis};
use kilim_core::{DType, Result};

use super::Along;
use crate::by_class;
use crate::common::rules::required;
use crate::common::{Codec, Wide, is_nan};
use crate::frame::{Build, Io, Kernel};

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
    fn run<W: PartialOrd + Copy>(&self, y: &mut [u8], get: impl Fn(usize) -> W) {
        let Along { n, inner, .. } = self.along;
        let mut o = 0;
        self.along.lines(|first| {
            let (mut best, mut at) = (get(first), 0);
            for i in 1..n {
                let v = get(first + i * inner);
                // The first NaN wins, as in numpy.
                let better = match self.max {
                    true => v > best || (self.last && v == best) || (is_nan(v) && !is_nan(best)),
                    false => v < best || (self.last && v == best) || (is_nan(v) && !is_nan(best)),
                };
                if better {
                    (best, at) = (v, i);
                }
            }
            self.out.set(y, o, at as i64);
            o += 1;
        });
    }
}

/// What scores usually are: compared as they are in memory.
struct Plain<T> {
    search: Search,
    element: PhantomData<T>,
}

impl<T: Pod + PartialOrd + Send + Sync> Kernel for Plain<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<T>(0);
        self.search.run(io.output_bytes(0), |i| x[i]);
        Ok(())
    }
}

struct Generic<W> {
    search: Search,
    codec: Codec<W>,
}

impl<W: Wide> Kernel for Generic<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input_bytes(0);
        self.search
            .run(io.output_bytes(0), |i| self.codec.get(x, i));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run_as, tensor};

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
