//! CumSum and CumProd.

use kilim_core::backend::NodeSpec;
use kilim_core::error::value_error;
use kilim_core::ops::{Cumulative, normalize_axis};
use kilim_core::{DType, Result};
use kilim_host::elements::{Class, Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel};

use super::Along;

pub fn build(op: &Cumulative, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axis = i64::codec(required(node, 1)?.dtype);
    let shape = x.shape.clone();
    let op = op.clone();
    Ok(match Class::of(x.dtype) {
        Class::F32 | Class::F64 => Box::new(Running {
            codec: f64::codec(x.dtype),
            combine: if op.product {
                |a, b| a * b
            } else {
                |a, b| a + b
            },
            first: if op.product { 1.0 } else { 0.0 },
            op,
            shape,
            axis,
        }),
        // Sums and products of unsigned integers have the bits of those of signed ones.
        class => Box::new(Running {
            codec: i64::codec(if class == Class::U64 {
                DType::I64
            } else {
                x.dtype
            }),
            combine: if op.product {
                i64::wrapping_mul
            } else {
                i64::wrapping_add
            },
            first: i64::from(op.product),
            op,
            shape,
            axis,
        }),
    })
}

struct Running<W> {
    op: Cumulative,
    shape: Vec<usize>,
    axis: Codec<i64>,
    codec: Codec<W>,
    combine: fn(W, W) -> W,
    first: W,
}

/// Operations of an element: reading and writing it, and going on.
const COST: usize = 8;

impl<W: Wide> Kernel for Running<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        if io.input_len(1) != 1 {
            return Err(value_error("one axis is needed"));
        }
        let axis = normalize_axis(self.axis.get(io.input_bytes(1), 0), self.shape.len())?;
        let along = Along::new(&self.shape, axis);
        let (x, y, size) = (io.input_bytes(0), io.output_bytes(0), self.codec.size());
        along.lines(io.cpu(), y, size, COST, |block, line, y, cpu| {
            let x = &x[block * along.block() * size..];
            let mut sum = self.first;
            cpu.pieces(along.n, COST, |part| {
                for i in part {
                    let i = if self.op.reverse { along.n - 1 - i } else { i };
                    let at = line + i * along.inner;
                    let next = (self.combine)(sum, self.codec.get(x, at));
                    let value = if self.op.exclusive { sum } else { next };
                    self.codec.set(y, at, value);
                    sum = next;
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn directions() {
        let x = tensor::<i32>(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let of = |axis: i64, exclusive, reverse| {
            let op = Cumulative {
                product: false,
                exclusive,
                reverse,
            };
            run_as::<i32>(&op, &[&x, &tensor(&[], &[axis])], &[2, 3])
        };
        assert_eq!(of(1, false, false), [1, 3, 6, 4, 9, 15]);
        assert_eq!(of(-1, true, false), [0, 1, 3, 0, 4, 9]);
        assert_eq!(of(0, false, true), [5, 7, 9, 4, 5, 6]);
        assert_eq!(of(1, true, true), [5, 3, 0, 11, 6, 0]);
    }
}
