//! Functions of whole rows: softmax, and normalisation over trailing dimensions.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{LayerNorm, RmsNorm, Softmax, SoftmaxKind, normalize_axis};
use kilim_core::{DType, Result};

use super::isa::{Isa, Simd, Task, read, write};
use super::math;
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, Io, Kernel, by};

/// Operations of an element.
const COST: usize = 2;
/// Operations that a row takes however short it is.
const ROW: usize = 16;

/// Elements that a row may have: it is computed without a look at what may stop the run.
const LONGEST: usize = 1 << 22;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Softmax>(
        |op, node| accepts(node, of_softmax(op, node)),
        |op, node, _| boxed(of_softmax(op, node)),
    );
    registry.add::<LayerNorm>(
        |op, node| accepts(node, of_norm(node, op.axis, op.epsilon, true)),
        |op, node, _: &mut Build| boxed(of_norm(node, op.axis, op.epsilon, true)),
    );
    registry.add::<RmsNorm>(
        |op, node| accepts(node, of_norm(node, op.axis, op.epsilon, false)),
        |op, node, _| boxed(of_norm(node, op.axis, op.epsilon, false)),
    );
}

fn accepts(node: &NodeSpec, rows: Option<Rows>) -> Result<(), Refusal> {
    let float = |i| node.input(i).is_none_or(|s| s.dtype == DType::F32);
    if (0..3).all(float) && rows.is_some() {
        Ok(())
    } else {
        Err(Refusal::new(
            "the SIMD row functions: not float32, not along the last axis, longer rows, or more outputs",
        ))
    }
}

fn boxed(rows: Option<Rows>) -> Result<Box<dyn Kernel>> {
    let rows = rows.ok_or_else(|| unsupported("rows of these shapes"))?;
    Ok(Box::new(rows))
}

fn of_softmax(op: &Softmax, node: &NodeSpec) -> Option<Rows> {
    let shape = &node.input(0)?.shape;
    let axis = normalize_axis(op.axis, shape.len()).ok()?;
    let log = match op.kind {
        SoftmaxKind::Softmax => false,
        SoftmaxKind::LogSoftmax => true,
        SoftmaxKind::Hardmax => return None,
    };
    let last = shape[axis + 1..].iter().all(|&d| d == 1);
    let function = Function::Softmax { log, beta: op.beta };
    last.then(|| Rows::new(Isa::best(), function, shape[axis]))?
}

fn of_norm(node: &NodeSpec, axis: i64, epsilon: f32, centred: bool) -> Option<Rows> {
    let shape = &node.input(0)?.shape;
    let n = shape[normalize_axis(axis, shape.len()).ok()?..]
        .iter()
        .product();
    // A scale for each element of a row, the same for all rows.
    let fits = |i: usize| node.input(i).is_none_or(|s| s.elements() == n);
    let known = node.outputs.len() == 1 && node.input(1).is_some() && fits(1) && fits(2);
    let function = Function::Norm { epsilon, centred };
    known.then(|| Rows::new(Isa::best(), function, n))?
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Softmax {
        log: bool,
        beta: f32,
    },
    /// `(x - mean) / deviation * scale + bias`; without mean and bias if not `centred`.
    Norm {
        epsilon: f32,
        centred: bool,
    },
}

#[derive(Debug)]
struct Rows {
    isa: Isa,
    function: Function,
    /// Elements of a row.
    n: usize,
}

impl Rows {
    fn new(isa: Isa, function: Function, n: usize) -> Option<Rows> {
        (1..=LONGEST)
            .contains(&n)
            .then_some(Rows { isa, function, n })
    }
}

impl Kernel for Rows {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (from, n) = (io.input::<f32>(0), self.n);
        let bias = match self.function {
            Function::Norm { centred: true, .. } => io.optional(2),
            _ => None,
        };
        let scale = io.optional(1);
        let to = by(io.output(0), n);
        io.cpu()
            .rows(from.len() / n, to, n * COST + ROW, |rows, to, _| {
                self.isa.dispatch(Apply {
                    function: self.function,
                    n,
                    from: &from[rows.start * n..rows.end * n],
                    to,
                    scale,
                    bias,
                });
                Ok(())
            })
    }
}

struct Apply<'a> {
    function: Function,
    n: usize,
    from: &'a [f32],
    to: &'a mut [f32],
    scale: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
}

impl Task for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.n;
        for (x, y) in self.from.chunks_exact(n).zip(self.to.chunks_exact_mut(n)) {
            match self.function {
                Function::Softmax { log, beta } => softmax(s, x, y, log, beta),
                Function::Norm { epsilon, centred } => {
                    norm(s, x, y, epsilon, centred, self.scale, self.bias);
                }
            }
        }
    }
}

/// Calls `$body` with `$x` for each vector of a row: whole ones, then the rest with its length.
macro_rules! for_vectors {
    ($s:ident: $lanes:expr, $n:expr, |$i:ident, $full:ident, $count:ident| $body:block) => {{
        let whole = $n - $n % $lanes;
        let mut $i = 0;
        while $i < whole {
            const $full: bool = true;
            let $count = $lanes;
            $body
            $i += $lanes;
        }
        if $i < $n {
            const $full: bool = false;
            let $count = $n - $i;
            $body
        }
    }};
}
pub(crate) use for_vectors;

#[inline(always)]
fn softmax<S: Simd>(s: S, x: &[f32], y: &mut [f32], log: bool, beta: f32) {
    let n = x.len();
    assert!(y.len() == n);
    let (from, to) = (x.as_ptr(), y.as_mut_ptr());
    let factor = s.splat(beta);
    let mut most = s.splat(f32::NEG_INFINITY);
    let whole = n - n % S::LANES;
    for i in (0..whole).step_by(S::LANES) {
        // SAFETY: a whole vector is there.
        most = s.max(s.mul(unsafe { s.load(from.add(i)) }, factor), most);
    }
    // Whatever is taken for the largest where one is NaN: the sum is NaN, too, and with it all results.
    let rest = x[whole..].iter().map(|&v| v * beta);
    let top = s.splat(rest.fold(s.largest(most), f32::max));
    let mut sum = s.splat(0.0);
    // SAFETY: `for_vectors` stays inside of the row.
    unsafe {
        for_vectors!(s: S::LANES, n, |i, FULL, count| {
            let v = s.sub(s.mul(read::<S, FULL>(s, from.add(i), count), factor), top);
            let e = math::exp(s, v);
            write::<S, FULL>(s, to.add(i), if log { v } else { e }, count);
            if FULL {
                sum = s.add(sum, e);
            } else {
                // What is behind the row does not count.
                let mut rest = [0.0f32; 16];
                s.store_part(rest.as_mut_ptr(), e, count);
                sum = s.add(sum, s.load(rest.as_ptr()));
            }
        });
    }
    let sum = s.sum(sum);
    let change = s.splat(if log { -sum.ln() } else { 1.0 / sum });
    // SAFETY: `for_vectors` stays inside of the row.
    unsafe {
        for_vectors!(s: S::LANES, n, |i, FULL, count| {
            let v = read::<S, FULL>(s, to.add(i), count);
            let v = if log { s.add(v, change) } else { s.mul(v, change) };
            write::<S, FULL>(s, to.add(i), v, count);
        });
    }
}

#[inline(always)]
fn norm<S: Simd>(
    s: S,
    x: &[f32],
    y: &mut [f32],
    epsilon: f32,
    centred: bool,
    scale: Option<&[f32]>,
    bias: Option<&[f32]>,
) {
    let n = x.len();
    assert!(
        y.len() == n && scale.is_none_or(|p| p.len() == n) && bias.is_none_or(|p| p.len() == n)
    );
    let (from, to) = (x.as_ptr(), y.as_mut_ptr());
    let whole = n - n % S::LANES;
    let mut mean = 0.0;
    if centred {
        let mut sum = s.splat(0.0);
        for i in (0..whole).step_by(S::LANES) {
            // SAFETY: a whole vector is there.
            sum = s.add(sum, unsafe { s.load(from.add(i)) });
        }
        mean = (s.sum(sum) + x[whole..].iter().sum::<f32>()) / n as f32;
    }
    let centre = s.splat(mean);
    let mut squares = s.splat(0.0);
    for i in (0..whole).step_by(S::LANES) {
        // SAFETY: a whole vector is there.
        let v = s.sub(unsafe { s.load(from.add(i)) }, centre);
        squares = s.fma(v, v, squares);
    }
    let mut variance = s.sum(squares);
    for &v in &x[whole..] {
        variance += (v - mean) * (v - mean);
    }
    let slope = s.splat(1.0 / (variance / n as f32 + epsilon).sqrt());
    // SAFETY: `for_vectors` stays inside of the row, and scale and bias are as long.
    unsafe {
        for_vectors!(s: S::LANES, n, |i, FULL, count| {
            let v = read::<S, FULL>(s, from.add(i), count);
            let mut v = s.mul(s.sub(v, centre), slope);
            if let Some(scale) = scale {
                v = s.mul(v, read::<S, FULL>(s, scale.as_ptr().add(i), count));
            }
            if let Some(bias) = bias {
                v = s.add(v, read::<S, FULL>(s, bias.as_ptr().add(i), count));
            }
            write::<S, FULL>(s, to.add(i), v, count);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_host::testing::{noise, tensor};

    const LENGTHS: [usize; 9] = [1, 2, 4, 7, 8, 16, 31, 33, 100];

    #[test]
    fn softmax_of_rows() {
        for n in LENGTHS {
            for (log, beta) in [(false, 1.0f32), (true, 1.0), (false, 0.5), (true, 2.0)] {
                let mut data: Vec<f32> = noise(3 * n, 5).iter().map(|v| v * 30.0).collect();
                data[0] = 900.0;
                let mut want = Vec::new();
                for row in data.chunks(n) {
                    let v: Vec<f64> = row
                        .iter()
                        .map(|&v| f64::from(v) * f64::from(beta))
                        .collect();
                    let top = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = v.iter().map(|v| (v - top).exp()).sum();
                    want.extend(v.iter().map(|v| {
                        if log {
                            v - top - sum.ln()
                        } else {
                            (v - top).exp() / sum
                        }
                    }));
                }
                let op = Softmax {
                    kind: SoftmaxKind::Softmax,
                    axis: -1,
                    beta,
                };
                let x = tensor(&[3, n], &data);
                for isa in Isa::available() {
                    let got = run_kernel(&op, &[Some(&x)], &[3, n], |_, _| {
                        boxed(Rows::new(isa, Function::Softmax { log, beta }, n))
                    });
                    assert_within(&got, &want, 1e-6, &format!("softmax {n} {log} {isa:?}"));
                }
            }
        }
    }

    #[test]
    fn not_a_number_spreads() {
        for at in [0, 5, 18] {
            let mut data = noise(19, 1);
            data[at] = f32::NAN;
            let op = Softmax {
                kind: SoftmaxKind::Softmax,
                axis: 0,
                beta: 1.0,
            };
            let x = tensor(&[19], &data);
            for isa in Isa::available() {
                let function = Function::Softmax {
                    log: false,
                    beta: 1.0,
                };
                let got = run_kernel(&op, &[Some(&x)], &[19], |_, _| {
                    boxed(Rows::new(isa, function, 19))
                });
                assert!(got.iter().all(|v| v.is_nan()), "{at} {isa:?}: {got:?}");
            }
        }
    }

    #[test]
    fn norms_of_rows() {
        for n in LENGTHS {
            for (centred, with_bias) in [(true, true), (true, false), (false, false)] {
                let data = noise(4 * n, 1);
                let (scale, bias) = (noise(n, 2), noise(n, 3));
                let mut want = Vec::new();
                for row in data.chunks(n) {
                    let v: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
                    let mean = if centred {
                        v.iter().sum::<f64>() / n as f64
                    } else {
                        0.0
                    };
                    let variance = v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
                    want.extend(v.iter().enumerate().map(|(i, v)| {
                        let b = if with_bias { f64::from(bias[i]) } else { 0.0 };
                        (v - mean) / (variance + 0.01).sqrt() * f64::from(scale[i]) + b
                    }));
                }
                let op = LayerNorm {
                    axis: -1,
                    epsilon: 0.01,
                };
                let (x, scale) = (tensor(&[4, n], &data), tensor(&[n], &scale));
                let bias = with_bias.then(|| tensor(&[n], &bias));
                for isa in Isa::available() {
                    let function = Function::Norm {
                        epsilon: 0.01,
                        centred,
                    };
                    let inputs = [Some(&x), Some(&scale), bias.as_ref()];
                    let got = run_kernel(&op, &inputs, &[4, n], |_, _| {
                        boxed(Rows::new(isa, function, n))
                    });
                    assert_within(&got, &want, 2e-6, &format!("norm {n} {centred} {isa:?}"));
                }
            }
        }
    }
}
