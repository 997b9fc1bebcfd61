//! Arithmetic on two `float32` tensors that broadcast.
//!
//! Dimensions that both tensors walk through alike are merged; what is left are rows along which
//! each tensor has either its own elements or a single one.

use std::ops::Range;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Binary, BinaryKind};
use kilim_core::{DType, Result};

use super::isa::{Isa, Simd, Task, read, write};
use super::math;
use kilim_host::elements::{Walk, broadcast_strides};
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, Io, Kernel, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Binary>(accepts, |op, node, _| {
        kernel(op, node, Isa::best()).ok_or_else(|| unsupported("this function of two tensors"))
    });
}

fn accepts(op: &Binary, node: &NodeSpec) -> Result<(), Refusal> {
    let float = |i| node.input(i).is_some_and(|s| s.dtype == DType::F32);
    if float(0) && float(1) && kernel(op, node, Isa::best()).is_some() {
        Ok(())
    } else {
        Err(Refusal::new(
            "the SIMD arithmetic: not float32, an integer function, or a rare way to broadcast",
        ))
    }
}

/// A function of two vectors.
trait Join: Copy + Send + Sync + 'static {
    /// Implementations are `#[inline(always)]`.
    fn apply<S: Simd>(s: S, a: S::V, b: S::V) -> S::V;
}

macro_rules! joins {
    ($($name:ident = |$s:ident, $a:ident, $b:ident| $e:expr;)*) => { $(
        #[derive(Clone, Copy)]
        struct $name;
        impl Join for $name {
            #[inline(always)]
            fn apply<S: Simd>($s: S, $a: S::V, $b: S::V) -> S::V {
                $e
            }
        }
    )* };
}

joins! {
    Add = |s, a, b| s.add(a, b);
    Sub = |s, a, b| s.sub(a, b);
    Mul = |s, a, b| s.mul(a, b);
    Div = |s, a, b| s.div(a, b);
    // NaN in either wins.
    Min = |s, a, b| s.select(s.is_nan(b), b, s.min(a, b));
    Max = |s, a, b| s.select(s.is_nan(b), b, s.max(a, b));
    PRelu = |s, a, b| s.select(s.less(a, s.splat(0.0)), s.mul(a, b), a);
}

/// Loops outside of the rows.
const OUTER: usize = 3;

/// The loops: sizes, and steps of both inputs, outermost first.
#[derive(Clone, Copy, Debug)]
struct Loops {
    sizes: [usize; OUTER],
    steps: [[usize; 2]; OUTER],
    row: usize,
    /// 1 where the input has its own element along a row, 0 where it has a single one.
    along: [usize; 2],
}

impl Loops {
    fn new(a: &[usize], b: &[usize], output: &[usize]) -> Option<Loops> {
        let strides = [broadcast_strides(a, output), broadcast_strides(b, output)];
        let walk = Walk::new(output, [&strides[0], &strides[1]]);
        let (row, along) = walk.row();
        let mut loops = Loops {
            sizes: [1; OUTER],
            steps: [[0; 2]; OUTER],
            row,
            along: along.map(|a| a as usize),
        };
        let outer = walk.outer();
        if outer.len() > OUTER || !along.iter().all(|a| (0..=1).contains(a)) {
            return None;
        }
        for (i, (size, steps)) in outer.iter().enumerate() {
            let at = OUTER - outer.len() + i;
            loops.sizes[at] = *size;
            loops.steps[at] = steps.map(|s| s as usize);
        }
        Some(loops)
    }

    /// Rows of the output.
    fn rows(&self) -> usize {
        self.sizes.iter().product()
    }

    /// One more than the last element that input `i` is read at.
    fn reach(&self, i: usize) -> usize {
        let last: usize = (0..OUTER)
            .map(|d| self.sizes[d].saturating_sub(1) * self.steps[d][i])
            .sum();
        last + self.row.saturating_sub(1) * self.along[i] + 1
    }
}

struct Arithmetic<J> {
    isa: Isa,
    join: J,
    loops: Loops,
    activation: Activation,
}

/// Builds the kernel, if there is one.
pub(crate) fn kernel(op: &Binary, node: &NodeSpec, isa: Isa) -> Option<Box<dyn Kernel>> {
    let (a, b) = (node.input(0)?, node.input(1)?);
    let loops = Loops::new(&a.shape, &b.shape, &node.outputs.first()?.shape)?;
    macro_rules! made {
        ($join:expr) => {
            Some(Box::new(Arithmetic {
                isa,
                join: $join,
                loops,
                activation: op.activation,
            }))
        };
    }
    match op.kind {
        BinaryKind::Add => made!(Add),
        BinaryKind::Sub => made!(Sub),
        BinaryKind::Mul => made!(Mul),
        BinaryKind::Div => made!(Div),
        BinaryKind::Min => made!(Min),
        BinaryKind::Max => made!(Max),
        BinaryKind::PRelu => made!(PRelu),
        _ => None,
    }
}

impl<J: Join> Arithmetic<J> {
    /// Computes `out`, some columns of some rows. A function of its own: the loops are in the binary once.
    #[inline(never)]
    fn apply(
        &self,
        [a, b]: [&[f32]; 2],
        [rows, columns]: [Range<usize>; 2],
        out: &mut [f32],
        cpu: &CpuRun,
    ) -> Result<()> {
        self.isa.dispatch(Apply {
            join: self.join,
            loops: &self.loops,
            rows,
            columns,
            a,
            b,
            out: &mut *out,
        });
        math::activate(cpu, self.isa, self.activation, out)
    }
}

impl<J: Join> Kernel for Arithmetic<J> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, out): (_, &mut [f32]) = (io.cpu(), io.output(0));
        let inputs: [&[f32]; 2] = [io.input(0), io.input(1)];
        let (rows, row) = (self.loops.rows(), self.loops.row);
        if out.is_empty() {
            return Ok(());
        }
        if rows < FEW || row >= cpu.piece() {
            for (at, out) in out.chunks_exact_mut(row).enumerate() {
                cpu.rows(row, by(out, 1), 1, |columns, out, cpu| {
                    self.apply(inputs, [at..at + 1, columns], out, cpu)
                })?;
            }
            return Ok(());
        }
        cpu.rows(rows, by(out, row), row, |rows, out, cpu| {
            self.apply(inputs, [rows, 0..row], out, cpu)
        })
    }
}

/// So few rows are cut themselves.
const FEW: usize = 16;

/// Some columns of some rows; of a single row, if not all columns.
struct Apply<'a, J> {
    join: J,
    loops: &'a Loops,
    rows: Range<usize>,
    columns: Range<usize>,
    a: &'a [f32],
    b: &'a [f32],
    out: &'a mut [f32],
}

impl<J: Join> Task for Apply<'_, J> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Apply {
            join,
            loops,
            mut rows,
            columns,
            a,
            b,
            out,
        } = self;
        assert!(loops.reach(0) <= a.len() && loops.reach(1) <= b.len());
        assert!(rows.end <= loops.rows() && columns.end <= loops.row);
        assert!(rows.len() * columns.len() == out.len());
        assert!(rows.len() == 1 || columns.len() == loops.row);
        let (a, b, mut to) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        let [_, middle, inner] = loops.sizes;
        let [p, q, r] = loops.steps;
        while !rows.is_empty() {
            let (i, j, first) = (
                rows.start / inner / middle,
                rows.start / inner % middle,
                rows.start % inner,
            );
            let block = Block {
                rows: rows.len().min(inner - first),
                columns: columns.len(),
                steps: [r[0], r[1], loops.row],
            };
            let [x, y] =
                [0, 1].map(|t| i * p[t] + j * q[t] + first * r[t] + columns.start * loops.along[t]);
            // SAFETY: by the assertions, `reach` being the end of the last row.
            unsafe {
                let (a, b) = (a.add(x), b.add(y));
                match loops.along {
                    [1, 1] => block.walk::<S, J, 1, 1>(s, join, a, b, to),
                    [1, _] => block.walk::<S, J, 1, 0>(s, join, a, b, to),
                    [_, 1] => block.walk::<S, J, 0, 1>(s, join, a, b, to),
                    _ => block.walk::<S, J, 0, 0>(s, join, a, b, to),
                }
            }
            to = to.wrapping_add(block.rows * columns.len());
            rows.start += block.rows;
        }
    }
}

/// Rows that follow each other in equal steps.
struct Block {
    rows: usize,
    columns: usize,
    /// Steps from a row to the next, of both inputs and of the output.
    steps: [usize; 3],
}

impl Block {
    /// # Safety
    /// The first rows are at `a`, `b` and `to`, and all rows are good for what [`row`] says.
    #[inline(always)]
    unsafe fn walk<S: Simd, J: Join, const A: usize, const B: usize>(
        &self,
        s: S,
        join: J,
        mut a: *const f32,
        mut b: *const f32,
        mut to: *mut f32,
    ) {
        let [step_a, step_b, step] = self.steps;
        for _ in 0..self.rows {
            // SAFETY: this row of all three is good for `columns` elements; past the last row the pointers are not
            // followed.
            unsafe { row::<S, J, A, B>(s, join, a, b, to, self.columns) }
            a = a.wrapping_add(step_a);
            b = b.wrapping_add(step_b);
            to = to.wrapping_add(step);
        }
    }
}

/// # Safety
/// `to` is valid for writes of `n` elements; `a` for reads of as many if `A` is 1, else of one;
/// `b` likewise.
#[inline(always)]
unsafe fn row<S: Simd, J: Join, const A: usize, const B: usize>(
    s: S,
    _: J,
    a: *const f32,
    b: *const f32,
    to: *mut f32,
    n: usize,
) {
    // SAFETY: whole vectors below `whole`, and what is behind is shorter than a vector.
    unsafe {
        let (fixed_a, fixed_b) = (s.splat(*a), s.splat(*b));
        let whole = n - n % S::LANES;
        let mut i = 0;
        while i < whole {
            let x = if A == 1 { s.load(a.add(i)) } else { fixed_a };
            let y = if B == 1 { s.load(b.add(i)) } else { fixed_b };
            s.store(to.add(i), J::apply(s, x, y));
            i += S::LANES;
        }
        if i < n {
            let rest = n - i;
            let x = if A == 1 {
                read::<S, false>(s, a.add(i), rest)
            } else {
                fixed_a
            };
            let y = if B == 1 {
                read::<S, false>(s, b.add(i), rest)
            } else {
                fixed_b
            };
            write::<S, false>(s, to.add(i), J::apply(s, x, y), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_host::testing::{noise, tensor};

    fn reference(kind: BinaryKind, a: f64, b: f64) -> f64 {
        match kind {
            BinaryKind::Add => a + b,
            BinaryKind::Sub => a - b,
            BinaryKind::Mul => a * b,
            BinaryKind::Div => a / b,
            BinaryKind::Min | BinaryKind::Max if a.is_nan() || b.is_nan() => f64::NAN,
            BinaryKind::Min => a.min(b),
            BinaryKind::Max => a.max(b),
            _ if a < 0.0 => a * b,
            _ => a,
        }
    }

    const KINDS: [BinaryKind; 7] = [
        BinaryKind::Add,
        BinaryKind::Sub,
        BinaryKind::Mul,
        BinaryKind::Div,
        BinaryKind::Min,
        BinaryKind::Max,
        BinaryKind::PRelu,
    ];

    #[test]
    fn broadcasts() {
        let cases: [(&[usize], &[usize], &[usize]); 10] = [
            (&[3, 37], &[3, 37], &[3, 37]),
            (&[3, 37], &[], &[3, 37]),
            (&[1], &[5, 9], &[5, 9]),
            (&[2, 3, 5, 19], &[19], &[2, 3, 5, 19]),
            (&[2, 3, 5, 19], &[3, 1, 1], &[2, 3, 5, 19]),
            (&[2, 1, 1, 19], &[2, 3, 5, 19], &[2, 3, 5, 19]),
            (&[2, 3, 1, 4], &[3, 5, 1], &[2, 3, 5, 4]),
            (&[7, 1], &[1, 6], &[7, 6]),
            (&[0, 3], &[3], &[0, 3]),
            (&[], &[], &[]),
        ];
        for (a_shape, b_shape, shape) in cases {
            let mut a = noise(a_shape.iter().product(), 1);
            let mut b = noise(b_shape.iter().product(), 2);
            if let Some(last) = a.last_mut() {
                *last = f32::NAN;
            }
            if let Some(first) = b.first_mut().filter(|_| shape.len() > 1) {
                *first = f32::NAN;
            }
            let strides = [
                broadcast_strides(a_shape, shape),
                broadcast_strides(b_shape, shape),
            ];
            let mut pairs = Vec::new();
            let walk = Walk::new(shape, [&strides[0], &strides[1]]);
            let (n, step) = walk.row();
            let rows = walk.rows(|at| {
                let of = |t: usize, i: usize| (at[t] + i as isize * step[t]) as usize;
                pairs.extend((0..n).map(|i| (a[of(0, i)], b[of(1, i)])));
                Ok(())
            });
            rows.unwrap();
            let (ta, tb) = (tensor(a_shape, &a), tensor(b_shape, &b));
            for kind in KINDS {
                let want: Vec<f64> = pairs
                    .iter()
                    .map(|&(x, y)| reference(kind, x.into(), y.into()))
                    .collect();
                for isa in Isa::available() {
                    let op = Binary::new(kind);
                    let got = run_kernel(&op, &[Some(&ta), Some(&tb)], shape, |node, _| {
                        Ok(kernel(&op, node, isa).expect("a kernel"))
                    });
                    let what = format!("{kind:?} {a_shape:?} {b_shape:?} {isa:?}");
                    assert_within(&got, &want, 1e-6, &what);
                }
            }
        }
    }

    #[test]
    fn activation() {
        let (a, b) = (noise(50, 1), noise(50, 2));
        let op = Binary {
            kind: BinaryKind::Add,
            activation: Activation::Relu,
        };
        let want: Vec<f64> = a
            .iter()
            .zip(&b)
            .map(|(x, y)| (f64::from(*x) + f64::from(*y)).max(0.0))
            .collect();
        let (a, b) = (tensor(&[50], &a), tensor(&[50], &b));
        let got = run_kernel(&op, &[Some(&a), Some(&b)], &[50], |node, _| {
            Ok(kernel(&op, node, Isa::best()).expect("a kernel"))
        });
        assert_within(&got, &want, 1e-6, "activation");
    }
}
