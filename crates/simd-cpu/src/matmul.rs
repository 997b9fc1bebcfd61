//! MatMul and Gemm of `float32`.
//!
//! A constant B is packed once; one that is computed is packed for each run. With a single B all
//! matrices of A are one tall matrix.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Gemm, MatMul};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result};

use super::gemm::{
    Depth, Panels, Product, RowStarts, Rows, multiply, multiply_split, pack, split_activation,
    weight,
};
use super::isa::Isa;
use super::math;
use super::memory::{Shared, share};
use kilim_reference_cpu::frame::{Build, Io, Kernel, PackKey};
use kilim_reference_cpu::registry::KernelRegistry;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<MatMul>(
        |op, node| accepts(node, Plan::of_matmul(op, node)),
        |op, node, build| kernel(node, build, Plan::of_matmul(op, node), Isa::best()),
    );
    registry.add::<Gemm>(
        |op, node| accepts(node, Plan::of_gemm(op, node)),
        |op, node, build| kernel(node, build, Plan::of_gemm(op, node), Isa::best()),
    );
}

/// What is added to the product.
#[derive(Clone, Debug, PartialEq)]
enum Addend {
    None,
    /// Input 2, an element for each column.
    Bias,
    /// The same, known when the kernel is built.
    Known(Vec<f32>),
    /// Input 2, of the output's shape.
    Full,
}

/// A batch of products, sizes and places spelled out.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    m: usize,
    k: usize,
    n: usize,
    /// The matrices of A and B that each matrix of C is the product of.
    pairs: Vec<(usize, usize)>,
    b_matrices: usize,
    transpose_a: bool,
    transpose_b: bool,
    scale: f32,
    addend: Addend,
    activation: Activation,
}

impl Plan {
    pub(crate) fn of_matmul(op: &MatMul, node: &NodeSpec) -> Option<Plan> {
        let (a, b) = (&node.input(0)?.shape, &node.input(1)?.shape);
        let (a_lead, m, k) = match a.split_last_chunk::<2>() {
            Some((lead, &[m, k])) => (lead, m, k),
            None => (&a[..0], 1, *a.first()?),
        };
        let (b_lead, rows, columns) = match b.split_last_chunk::<2>() {
            Some((lead, &[rows, columns])) => (lead, rows, columns),
            None if op.transpose_b => return None,
            None => (&b[..0], *b.first()?, 1),
        };
        let (b_k, n) = if op.transpose_b {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let b_matrices: usize = b_lead.iter().product();
        let a_matrices: usize = a_lead.iter().product();
        let plan = Plan {
            m,
            k,
            n,
            pairs: pairs(a_lead, b_lead)?,
            b_matrices,
            transpose_a: false,
            transpose_b: op.transpose_b,
            scale: op.alpha.unwrap_or(1.0),
            addend: match node.input(2) {
                None => Addend::None,
                Some(bias) if bias.elements() == n => Addend::Bias,
                Some(_) => return None,
            },
            activation: op.activation,
        };
        if k != b_k {
            return None;
        }
        Some(if b_matrices == 1 {
            Plan {
                m: m * a_matrices,
                pairs: vec![(0, 0)],
                ..plan
            }
        } else {
            plan
        })
    }

    pub(crate) fn of_gemm(op: &Gemm, node: &NodeSpec) -> Option<Plan> {
        let (a, b) = (&node.input(0)?.shape, &node.input(1)?.shape);
        let (&[a0, a1], &[b0, b1]) = (a.as_slice(), b.as_slice()) else {
            return None;
        };
        let (m, k) = if op.transpose_a { (a1, a0) } else { (a0, a1) };
        let (b_k, n) = if op.transpose_b { (b1, b0) } else { (b0, b1) };
        (k == b_k).then_some(())?;
        Some(Plan {
            m,
            k,
            n,
            pairs: vec![(0, 0)],
            b_matrices: 1,
            transpose_a: op.transpose_a,
            transpose_b: op.transpose_b,
            scale: op.alpha,
            addend: match node.input(2) {
                None => Addend::None,
                Some(c) => gemm_addend(c, op.beta, m, n)?,
            },
            activation: op.activation,
        })
    }

    /// Steps through B, packed or not, from one matrix to the next.
    fn b_elements(&self) -> usize {
        self.k * self.n
    }

    fn pack(&self, panels: Panels, from: &[f32], value: impl Fn(f32) -> f32, to: &mut [f32]) {
        let (row, column) = if self.transpose_b {
            (1, self.k)
        } else {
            (self.n, 1)
        };
        let rows = RowStarts::even(self.k, row);
        pack(panels, from, rows, column, |x| value(x) * self.scale, to);
    }
}

fn gemm_addend(c: &TensorSpec, beta: f32, m: usize, n: usize) -> Option<Addend> {
    if beta == 0.0 {
        return Some(Addend::None);
    }
    // A column of C does not fit a bias for each column of the output.
    let row = c.shape.last() == Some(&n) && c.elements() == n;
    if beta == 1.0 && row {
        return Some(Addend::Bias);
    }
    if beta == 1.0 && c.shape == [m, n] {
        return Some(Addend::Full);
    }
    let known = c.value.as_ref()?.as_slice::<f32>().ok()?;
    match known {
        [x] => Some(Addend::Known(vec![beta * x; n])),
        xs if row => Some(Addend::Known(xs.iter().map(|x| beta * x).collect())),
        _ => None,
    }
}

/// Broadcasts the leading dimensions.
fn pairs(a: &[usize], b: &[usize]) -> Option<Vec<(usize, usize)>> {
    let rank = a.len().max(b.len());
    let dim = |s: &[usize], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    let mut pairs = vec![(0, 0)];
    for i in 0..rank {
        let (x, y) = (dim(a, i), dim(b, i));
        if x != y && x != 1 && y != 1 {
            return None;
        }
        let count = if x == 1 { y } else { x };
        pairs = pairs
            .iter()
            .flat_map(|&(p, q)| {
                (0..count).map(move |j| {
                    (
                        p * x + if x == 1 { 0 } else { j },
                        q * y + if y == 1 { 0 } else { j },
                    )
                })
            })
            .collect();
    }
    Some(pairs)
}

fn accepts(node: &NodeSpec, plan: Option<Plan>) -> Result<(), Refusal> {
    let float = |i| node.input(i).is_none_or(|s| s.dtype == DType::F32);
    if !(0..3).all(float) {
        return Err(Refusal::new("the SIMD matrix product: not float32"));
    }
    match plan {
        Some(p) if p.m > 0 && p.n > 0 && p.k > 0 => Ok(()),
        _ => Err(Refusal::new(
            "the SIMD matrix product: shapes that it does not broadcast, or an empty tensor",
        )),
    }
}

/// Builds the kernel.
pub(crate) fn kernel(
    node: &NodeSpec,
    build: &mut Build,
    plan: Option<Plan>,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let plan = plan.ok_or_else(|| unsupported("a matrix product of these shapes"))?;
    let panels = Panels::new(isa, plan.n);
    let size = panels.elements(plan.k);
    let constant = match node.input(1).and_then(|b| b.value.as_ref()) {
        None => None,
        Some(value) => {
            let key = PackKey {
                kind: "matrix",
                parameters: [
                    isa.lanes(),
                    usize::from(plan.transpose_b),
                    plan.scale.to_bits() as usize,
                    plan.n,
                ],
            };
            Some(build.pack(node, 1, key, || {
                let mut bytes = AlignedBytes::zeroed(plan.b_matrices * size * size_of::<f32>())?;
                let to: &mut [f32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
                let from = value.as_slice::<f32>()?;
                for (from, to) in from
                    .chunks_exact(plan.b_elements())
                    .zip(to.chunks_exact_mut(size))
                {
                    plan.pack(panels, from, weight, to);
                }
                Ok(bytes)
            })?)
        }
    };
    let (clamp, rest) = split_activation(plan.activation);
    Ok(Box::new(Multiplication {
        depth: Depth::dense(isa, plan.k),
        threads: build.threads(),
        isa,
        panels,
        plan,
        constant,
        clamp,
        rest,
    }))
}

struct Multiplication {
    isa: Isa,
    plan: Plan,
    depth: Depth,
    panels: Panels,
    /// Packed B, if it is constant.
    constant: Option<Arc<AlignedBytes>>,
    clamp: (f32, f32),
    rest: Activation,
    threads: usize,
}

/// The tensors of a run.
struct Operands<'a> {
    a: &'a [f32],
    b: &'a [f32],
    addend: Option<&'a [f32]>,
}

impl Multiplication {
    fn packed_b(&self) -> usize {
        self.panels.elements(self.plan.k)
    }

    /// Elements of scratch memory of one thread: packed B and transposed A, where they are needed.
    fn scratch(&self) -> (usize, usize) {
        let b = if self.constant.is_some() {
            0
        } else {
            self.packed_b()
        };
        let a = if self.plan.transpose_a {
            self.plan.m * self.plan.k
        } else {
            0
        };
        (b, a)
    }

    /// Threads that work on different matrices; the others share in each product.
    fn outer_threads(&self) -> usize {
        if self.plan.pairs.len() >= self.threads {
            self.threads
        } else {
            1
        }
    }

    /// The product of a pair.
    fn product<'a>(
        &'a self,
        pair: usize,
        operands: &Operands<'a>,
        scratch: &'a mut [f32],
        out: &mut [f32],
    ) -> Product<'a> {
        let p = &self.plan;
        let (a_index, b_index) = p.pairs[pair];
        let (packed, transposed) = scratch.split_at_mut(self.scratch().0);
        let b = match &self.constant {
            Some(all) => {
                let all: &[f32] = bytemuck::cast_slice(all.as_slice());
                &all[b_index * self.packed_b()..][..self.packed_b()]
            }
            None => {
                let from = &operands.b[b_index * p.b_elements()..][..p.b_elements()];
                p.pack(self.panels, from, |x| x, packed);
                &*packed
            }
        };
        let mut a = &operands.a[a_index * p.m * p.k..][..p.m * p.k];
        if p.transpose_a {
            super::transpose::transpose(self.isa, a, p.k, p.m, transposed);
            a = transposed;
        }
        assert_eq!(out.len(), p.m * p.n);
        let (mut bias, mut residual) = (std::ptr::null(), std::ptr::null());
        match (&p.addend, operands.addend) {
            (Addend::Known(known), _) => bias = known.as_ptr(),
            (Addend::Bias, Some(x)) => bias = x[..p.n].as_ptr(),
            (Addend::Full, Some(x)) => residual = x[..p.m * p.n].as_ptr(),
            _ => {}
        }
        Product {
            isa: self.isa,
            a: a.as_ptr(),
            rows: Rows::Strided(p.k),
            depth: &self.depth,
            b: b.as_ptr(),
            m: p.m,
            n: p.n,
            c: out.as_mut_ptr(),
            c_stride: p.n,
            bias,
            residual,
            clamp: self.clamp,
        }
    }
}

impl Kernel for Multiplication {
    fn run(&self, io: &mut Io) -> Result<()> {
        let operands = Operands {
            a: io.input(0),
            b: io.input(1),
            addend: io.optional(2),
        };
        let (outer, cpu) = (self.outer_threads(), io.cpu());
        let output = Shared::new(io.output(0));
        let (b, a) = self.scratch();
        let scratch = Shared::new(io.scratch(outer * (a + b)));
        let size = self.plan.m * self.plan.n;
        let pairs = self.plan.pairs.len();
        let work = |part: usize, parts: usize| {
            for pair in share(pairs, parts, part) {
                // SAFETY: each part has its own scratch memory, each pair its own matrix of C.
                let (scratch, out) = unsafe {
                    (
                        scratch.part(part * (a + b), a + b),
                        output.part(pair * size, size),
                    )
                };
                let product = self.product(pair, &operands, scratch, out);
                // SAFETY: `product` took slices of the matrices' sizes.
                unsafe {
                    if parts == 1 {
                        multiply_split(&product, cpu, self.threads);
                    } else {
                        multiply(&product);
                    }
                }
                math::activate(self.isa, self.rest, out);
            }
        };
        if outer == 1 {
            work(0, 1);
        } else {
            cpu.split(outer, 1, &|parts| {
                for part in parts {
                    work(part, outer);
                }
            });
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let (b, a) = self.scratch();
        self.outer_threads() * (a + b) * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_core::Tensor;
    use kilim_reference_cpu::common::testing::{noise, tensor};

    /// The product of `[m, k]` and `[k, n]` matrices given by their elements.
    fn reference(
        (m, k, n): (usize, usize, usize),
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f64> {
        let element = |i, j| {
            (0..k)
                .map(|x| f64::from(a(i, x)) * f64::from(b(x, j)))
                .sum()
        };
        (0..m * n).map(|i| element(i / n, i % n)).collect()
    }

    /// Without a value, as a tensor that another node computes. `run_kernel` gives it when it
    /// runs the kernel.
    fn computed(node: &NodeSpec) -> Vec<Option<TensorSpec>> {
        node.inputs
            .iter()
            .map(|i| i.as_ref().map(|s| TensorSpec::new(s.dtype, &s.shape)))
            .collect()
    }

    fn check_matmul(op: &MatMul, inputs: &[Option<&Tensor>], shape: &[usize], want: &[f64]) {
        for isa in Isa::available() {
            for constant in [true, false] {
                let got = run_kernel(op, inputs, shape, |node, build| {
                    let unknown = computed(node);
                    let node = if constant {
                        node.clone()
                    } else {
                        NodeSpec {
                            inputs: &unknown,
                            ..node.clone()
                        }
                    };
                    kernel(&node, build, Plan::of_matmul(op, &node), isa)
                });
                let what = format!("{op:?} {shape:?} {isa:?}, constant {constant}");
                assert_within(&got, want, 2e-5, &what);
            }
        }
    }

    #[test]
    fn sizes() {
        for m in [1, 2, 3, 5, 6, 7, 12, 13, 25, 100] {
            for n in [1, 3, 4, 8, 9, 16, 31, 32, 33, 50, 64] {
                for k in [1, 2, 3, 4, 9, 33] {
                    let (a, b, bias) = (noise(m * k, 1), noise(k * n, 2), noise(n, 3));
                    let mut want = reference((m, k, n), |i, x| a[i * k + x], |x, j| b[x * n + j]);
                    for (i, w) in want.iter_mut().enumerate() {
                        *w = (0.5 * *w + f64::from(bias[i % n])).max(0.0);
                    }
                    let op = MatMul {
                        alpha: Some(0.5),
                        activation: Activation::Relu,
                        ..MatMul::default()
                    };
                    let (a, b) = (tensor(&[m, k], &a), tensor(&[k, n], &b));
                    let bias = tensor(&[n], &bias);
                    check_matmul(&op, &[Some(&a), Some(&b), Some(&bias)], &[m, n], &want);
                }
            }
        }
    }

    #[test]
    fn deep_and_tall() {
        for (m, k, n) in [(70, 1300, 40), (300, 515, 17), (1, 2000, 100)] {
            let (a, b) = (noise(m * k, 1), noise(k * n, 2));
            let want = reference((m, k, n), |i, x| a[i * k + x], |x, j| b[j * k + x]);
            let op = MatMul {
                transpose_b: true,
                ..MatMul::default()
            };
            let (a, b) = (tensor(&[m, k], &a), tensor(&[n, k], &b));
            check_matmul(&op, &[Some(&a), Some(&b)], &[m, n], &want);
        }
    }

    #[test]
    fn batches_broadcast() {
        let cases: [(&[usize], &[usize], &[usize]); 8] = [
            (&[2, 3, 5, 7], &[2, 3, 7, 6], &[2, 3, 5, 6]),
            (&[2, 1, 5, 7], &[3, 7, 6], &[2, 3, 5, 6]),
            (&[5, 7], &[4, 7, 6], &[4, 5, 6]),
            (&[4, 5, 7], &[7, 6], &[4, 5, 6]),
            (&[4, 5, 7], &[1, 7, 6], &[4, 5, 6]),
            (&[7], &[7, 6], &[6]),
            (&[5, 7], &[7], &[5]),
            (&[3, 2, 1, 7], &[2, 7, 6], &[3, 2, 1, 6]),
        ];
        for (a_shape, b_shape, shape) in cases {
            let a = noise(a_shape.iter().product(), 1);
            let b = noise(b_shape.iter().product(), 2);
            let a_lead = &a_shape[..a_shape.len().saturating_sub(2)];
            let b_lead = &b_shape[..b_shape.len().saturating_sub(2)];
            let m = if a_shape.len() > 1 {
                a_shape[a_shape.len() - 2]
            } else {
                1
            };
            let n = if b_shape.len() > 1 {
                b_shape[b_shape.len() - 1]
            } else {
                1
            };
            let want: Vec<f64> = pairs(a_lead, b_lead)
                .expect("shapes broadcast")
                .into_iter()
                .flat_map(|(p, q)| {
                    reference(
                        (m, 7, n),
                        |i, x| a[(p * m + i) * 7 + x],
                        |x, j| b[(q * 7 + x) * n + j],
                    )
                })
                .collect();
            let (a, b) = (tensor(a_shape, &a), tensor(b_shape, &b));
            check_matmul(&MatMul::default(), &[Some(&a), Some(&b)], shape, &want);
        }
    }

    #[test]
    fn pairs_of_matrices() {
        assert_eq!(pairs(&[], &[]), Some(vec![(0, 0)]));
        assert_eq!(pairs(&[2], &[1]), Some(vec![(0, 0), (1, 0)]));
        assert_eq!(
            pairs(&[2, 1], &[2]),
            Some(vec![(0, 0), (0, 1), (1, 0), (1, 1)])
        );
        assert_eq!(pairs(&[2], &[3]), None);
    }

    #[test]
    fn gemm() {
        let (m, k, n) = (10, 19, 21);
        let (a, b, c) = (noise(m * k, 1), noise(k * n, 2), noise(m * n, 3));
        for (transpose_a, transpose_b) in
            [(false, false), (true, false), (false, true), (true, true)]
        {
            for (beta, c_shape) in [
                (1.0, vec![m, n]),
                (1.0, vec![n]),
                (0.5, vec![1, n]),
                (2.0, vec![]),
                (0.0, vec![m, 1]),
            ] {
                let op = Gemm {
                    alpha: 1.5,
                    beta,
                    transpose_a,
                    transpose_b,
                    activation: Activation::Tanh,
                };
                let mut want = reference(
                    (m, k, n),
                    |i, x| a[if transpose_a { x * m + i } else { i * k + x }],
                    |x, j| b[if transpose_b { j * k + x } else { x * n + j }],
                );
                let count: usize = c_shape.iter().product();
                for (i, w) in want.iter_mut().enumerate() {
                    let c = f64::from(c[i % count]);
                    *w = (1.5 * *w + f64::from(beta) * c).tanh();
                }
                let a_shape = if transpose_a { [k, m] } else { [m, k] };
                let b_shape = if transpose_b { [n, k] } else { [k, n] };
                let (a, b) = (tensor(&a_shape, &a), tensor(&b_shape, &b));
                let c = tensor(&c_shape, &c[..count]);
                for isa in Isa::available() {
                    let got = run_kernel(
                        &op,
                        &[Some(&a), Some(&b), Some(&c)],
                        &[m, n],
                        |node, build| kernel(node, build, Plan::of_gemm(&op, node), isa),
                    );
                    assert_within(&got, &want, 2e-5, &format!("{op:?} {c_shape:?} {isa:?}"));
                }
            }
        }
    }

    #[test]
    fn addends() {
        let spec = |shape: &[usize]| TensorSpec::new(DType::F32, shape);
        assert_eq!(gemm_addend(&spec(&[4]), 1.0, 3, 4), Some(Addend::Bias));
        assert_eq!(gemm_addend(&spec(&[3, 4]), 1.0, 3, 4), Some(Addend::Full));
        assert_eq!(gemm_addend(&spec(&[3, 1]), 1.0, 3, 4), None);
        assert_eq!(gemm_addend(&spec(&[4, 1]), 1.0, 4, 4), None);
        assert_eq!(gemm_addend(&spec(&[4]), 0.5, 3, 4), None);
    }
}
