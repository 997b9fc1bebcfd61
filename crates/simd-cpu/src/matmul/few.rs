//! A few rows of A with a B that is computed, as in the attention of a decoder that makes one word.

use std::ops::Range;

use kilim_core::Result;
use kilim_core::ops::Activation;
use kilim_host::{CpuRun, Io, Kernel, by};

use super::Operands;
use super::plan::{Addend, Plan};
use crate::gemm::{FewRows, split_activation};
use crate::isa::{Isa, Simd, Task, read, write};
use crate::math;

/// The most rows for which packing B takes longer than reading it once for three of them.
const FEW: usize = 12;

/// [`FEW`] of a transposed B, whose rows may be short.
const FEW_TRANSPOSED: usize = 8;

/// Columns of C that one thread computes at least.
const COLUMNS: usize = 64;

pub(super) fn fits(plan: &Plan) -> bool {
    let few = if plan.transpose_b {
        FEW_TRANSPOSED
    } else {
        FEW
    };
    plan.m <= few && (plan.m == 1 || !plan.transpose_a)
}

pub(super) struct Few {
    isa: Isa,
    plan: Plan,
    clamp: (f32, f32),
    rest: Activation,
}

impl Few {
    pub fn new(isa: Isa, plan: Plan) -> Few {
        let (clamp, rest) = split_activation(plan.activation);
        Few {
            isa,
            plan,
            clamp,
            rest,
        }
    }

    /// The product of a pair.
    fn product<'a>(&self, pair: usize, operands: &Operands<'a>, out: &mut [f32]) -> FewRows<'a> {
        let p = &self.plan;
        let (a, b) = p.pairs.at(pair);
        assert_eq!(out.len(), p.m * p.n);
        FewRows {
            a: &operands.a[a * p.m * p.k..][..p.m * p.k],
            a_stride: p.k,
            b: &operands.b[b * p.b_elements()..][..p.b_elements()],
            b_stride: if p.transpose_b { p.k } else { p.n },
            c: out.as_mut_ptr(),
            c_stride: p.n,
            m: p.m,
            k: p.k,
            n: p.n,
        }
    }

    /// Some columns of a product.
    ///
    /// # Safety
    /// `product.c` is valid for reads and writes of these columns of its rows, which nothing else uses meanwhile.
    unsafe fn columns(&self, product: &FewRows, columns: Range<usize>, operands: &Operands) {
        let (p, n) = (&self.plan, columns.len());
        let part = product.columns(columns.clone(), p.transpose_b);
        let row = |i: usize| {
            // SAFETY: the columns of a row, by the contract of this function.
            unsafe { std::slice::from_raw_parts_mut(part.c.add(i * part.c_stride), n) }
        };
        if p.transpose_b {
            // SAFETY: the columns of all rows, by the contract of this function.
            unsafe { part.multiply_transposed(self.isa) };
        } else {
            (0..p.m).for_each(|i| row(i).fill(0.0));
            // SAFETY: the columns of all rows, by the contract of this function.
            unsafe { part.add(self.isa) };
        }
        for i in 0..p.m {
            let addend = match (&p.addend, operands.addend) {
                (Addend::Known(known), _) => Some(&known[columns.clone()]),
                (Addend::Bias, Some(x)) => Some(&x[columns.clone()]),
                (Addend::Full, Some(x)) => Some(&x[i * p.n..][columns.clone()]),
                _ => None,
            };
            self.isa.dispatch(Finish {
                c: row(i),
                scale: p.scale,
                addend,
                clamp: self.clamp,
            });
            math::activate_piece(self.isa, self.rest, row(i));
        }
    }
}

impl Kernel for Few {
    fn run(&self, io: &mut Io) -> Result<()> {
        let operands = Operands {
            a: io.input(0),
            b: io.input(1),
            addend: io.optional(2),
        };
        let out: &mut [f32] = io.output(0);
        let (cpu, p) = (io.cpu(), &self.plan);
        let (pairs, size) = (p.pairs.len(), p.m * p.n);
        // A core reads about two elements of B from memory in the time of an operation.
        let cost = |n: usize| {
            let weights = p.k.saturating_mul(n);
            self.isa.cost(weights.saturating_mul(p.m)).max(weights / 2)
        };
        if pairs >= cpu.threads() {
            let work = |piece: Range<usize>, out: &mut [f32], _: &CpuRun| {
                for (pair, out) in piece.zip(out.chunks_exact_mut(size)) {
                    let product = self.product(pair, &operands, out);
                    // SAFETY: the product took a slice of the size of C.
                    unsafe { self.columns(&product, 0..p.n, &operands) };
                }
                Ok(())
            };
            return cpu.rows(pairs, by(out, size), cost(p.n), work);
        }
        for (pair, out) in out.chunks_exact_mut(size).enumerate() {
            let product = self.product(pair, &operands, out);
            cpu.split(p.n.div_ceil(COLUMNS), cost(COLUMNS), |some, _| {
                let columns = some.start * COLUMNS..p.n.min(some.end * COLUMNS);
                // SAFETY: the product took a slice of the size of C, and no other part has these columns.
                unsafe { self.columns(&product, columns, &operands) };
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// `c = clamp(scale c + addend)`.
struct Finish<'a> {
    c: &'a mut [f32],
    scale: f32,
    addend: Option<&'a [f32]>,
    clamp: (f32, f32),
}

impl Task for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Finish {
            c,
            scale,
            addend,
            clamp: (low, high),
        } = self;
        let n = c.len();
        assert!(addend.is_none_or(|x| x.len() == n));
        let (scale, low, high) = (s.splat(scale), s.splat(low), s.splat(high));
        let (c, addend) = (c.as_mut_ptr(), addend.map(<[f32]>::as_ptr));
        let whole = n - n % S::LANES;
        macro_rules! finish {
            ($full:literal, $at:expr, $count:expr) => {
                // SAFETY: `$count` elements from `$at` on are inside of `c`, and of an addend, which is as long.
                unsafe {
                    let x = read::<S, $full>(s, c.add($at), $count);
                    let more = match addend {
                        Some(addend) => read::<S, $full>(s, addend.add($at), $count),
                        None => s.splat(0.0),
                    };
                    let x = s.min(s.max(s.fma(x, scale, more), low), high);
                    write::<S, $full>(s, c.add($at), x, $count);
                }
            };
        }
        for at in (0..whole).step_by(S::LANES) {
            finish!(true, at, S::LANES);
        }
        if whole < n {
            finish!(false, whole, n - whole);
        }
    }
}
