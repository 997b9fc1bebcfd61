//! Einstein summation of up to three inputs.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Einsum, EinsumPlan};
use kilim_host::elements::{Codec, Walk, Wide, contiguous_strides};
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel};

use crate::by_real;
use crate::common::Real;

/// Inputs at most.
const MOST: usize = 3;

pub fn accepts(op: &Einsum, node: &NodeSpec) -> Result<(), Refusal> {
    if node.inputs.len() > MOST {
        return Err(Refusal::new(format!(
            "Einsum of {} inputs",
            node.inputs.len()
        )));
    }
    match node.input(0) {
        Some(x) if !x.dtype.is_float() => rules::computed(node, 0),
        _ => rules::reals(op, node),
    }
}

pub fn build(op: &Einsum, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shapes: Vec<&[usize]> = node.inputs.iter().flatten().map(|s| &s.shape[..]).collect();
    let ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
    let plan = EinsumPlan::new(&op.equation, &ranks)?;
    let mut sizes = vec![1; plan.labels];
    let mut strides = vec![vec![0isize; plan.labels]; MOST + 1];
    for (t, (labels, shape)) in plan.inputs.iter().zip(&shapes).enumerate() {
        for ((&label, &n), step) in labels.iter().zip(*shape).zip(contiguous_strides(shape)) {
            if n != 1 {
                sizes[label] = n;
                // A label twice in one input walks its diagonal.
                strides[t][label] += step;
            }
        }
    }
    let out = &node.outputs[0];
    for (&label, step) in plan.output.iter().zip(contiguous_strides(&out.shape)) {
        strides[MOST][label] = step;
    }
    let walk = Walk::new(&sizes, [&strides[0], &strides[1], &strides[2], &strides[3]]);
    if !out.dtype.is_float() {
        return Ok(Box::new(IntegerSum {
            walk,
            inputs: shapes.len(),
            codec: i64::codec(out.dtype),
        }));
    }
    by_real!(out.dtype, T => Ok(Box::new(Sum::<T> {
        walk,
        inputs: shapes.len(),
        element: PhantomData,
    })))
}

/// Operations of a product of three numbers, and of adding it to a sum in memory.
const COST: usize = 4;

struct Sum<T> {
    walk: Walk<4>,
    inputs: usize,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Sum<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let one = [T::of(1.0)];
        let input = |i: usize| {
            if i < self.inputs {
                io.input::<T>(i)
            } else {
                &one[..]
            }
        };
        let (a, b, c) = (input(0), input(1), input(2));
        let (cpu, y) = (io.cpu(), io.output::<T>(0));
        cpu.fill(y, T::default())?;
        let (n, [sa, sb, sc, sy]) = self.walk.row();
        self.walk.rows(|[mut at_a, mut at_b, mut at_c, mut at_y]| {
            cpu.pieces(n, COST, |piece| {
                for _ in piece {
                    y[at_y as usize] += a[at_a as usize] * b[at_b as usize] * c[at_c as usize];
                    at_a += sa;
                    at_b += sb;
                    at_c += sc;
                    at_y += sy;
                }
                Ok(())
            })
        })
    }
}

/// Sums that wrap; modulo 2^64 signs make no difference.
struct IntegerSum {
    walk: Walk<4>,
    inputs: usize,
    codec: Codec<i64>,
}

impl Kernel for IntegerSum {
    fn run(&self, io: &mut Io) -> Result<()> {
        let mut inputs: [&[u8]; MOST] = [&[]; MOST];
        for (i, input) in inputs[..self.inputs].iter_mut().enumerate() {
            *input = io.input_bytes(i);
        }
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        cpu.fill(y, 0)?;
        let (n, steps) = self.walk.row();
        self.walk.rows(|starts| {
            cpu.pieces(n, 4 * COST, |piece| {
                for i in piece {
                    let at = |t: usize| (starts[t] + i as isize * steps[t]) as usize;
                    let factors = inputs[..self.inputs].iter().enumerate();
                    let product = factors.fold(1i64, |product, (t, bytes)| {
                        product.wrapping_mul(self.codec.get(bytes, at(t)))
                    });
                    let sum = self.codec.get(y, at(MOST)).wrapping_add(product);
                    self.codec.set(y, at(MOST), sum);
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::tensor;

    #[test]
    fn sums_and_diagonals() {
        let x = tensor(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let of = |equation: &str, inputs: &[&kilim_core::Tensor], shape: &[usize]| {
            let op = Einsum {
                equation: equation.to_string(),
            };
            run_f32(&op, inputs, shape)
        };
        assert_eq!(of("ii->", &[&x], &[]), [5.0]);
        assert_eq!(of("ij->ji", &[&x], &[2, 2]), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(of("ij,jk->ik", &[&x, &x], &[2, 2]), [7.0, 10.0, 15.0, 22.0]);
        assert_eq!(of("ij,jk,kl->il", &[&x, &x, &x], &[2, 2])[0], 37.0);
    }
}
