//! MatMul, Gemm, MatMulNBits and their like with experts, of `float32`.
//!
//! A constant B is packed once; one that is computed is packed for each run, or read where it lies if A has few rows.
//! With a single B all matrices of A are one tall matrix.

mod experts;
mod few;
mod packed;
mod plan;
#[cfg(test)]
mod tests;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Gemm, MatMul};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result};

use self::plan::{Addend, Plan};
use super::gemm::{
    Depth, Form, Matrices, Panels, Product, Reading, Rows, append, multiply, multiply_split, pack,
    split_activation,
};
use super::isa::Isa;
use super::math;
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, CpuRun, Io, Kernel, PackKey, Scratch, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<MatMul>(
        |op, node| accepts(node, Plan::of_matmul(op, node)),
        |op, node, build| kernel(node, build, Plan::of_matmul(op, node), Isa::best()),
    );
    registry.add::<Gemm>(
        |op, node| accepts(node, Plan::of_gemm(op, node)),
        |op, node, build| kernel(node, build, Plan::of_gemm(op, node), Isa::best()),
    );
    experts::register(registry);
    packed::register(registry);
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
fn kernel(
    node: &NodeSpec,
    build: &mut Build,
    plan: Option<Plan>,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let plan = plan.ok_or_else(|| unsupported("a matrix product of these shapes"))?;
    let computed = node.input(1).is_some_and(|b| b.value.is_none());
    if computed && few::fits(&plan) {
        return Ok(Box::new(few::Few::new(isa, plan)));
    }
    let panels = Panels::new(isa, plan.n);
    let constant = match node.input(1).and_then(|b| b.value.as_ref()) {
        None => None,
        Some(value) => {
            let matrix = plan.b(Reading::WEIGHT);
            let (form, value) = Form::of(value, matrix.reading);
            let key = PackKey {
                kind: "matrix",
                parameters: [
                    isa.lanes(),
                    usize::from(plan.transpose_b) + 2 * form as usize,
                    plan.scale.to_bits() as usize,
                    plan.n,
                ],
            };
            let bytes = build.pack(node, 1, key, |cpu| {
                let size = plan.b_matrices * panels.elements(plan.k) * form.size();
                let mut bytes = AlignedBytes::with_capacity(size)?;
                for i in 0..plan.b_matrices {
                    let start = i * plan.b_elements();
                    append(cpu, panels, matrix, (form, &value), start, &mut bytes)?;
                }
                Ok(bytes)
            })?;
            Some(Matrices { bytes, form })
        }
    };
    let (clamp, rest) = split_activation(plan.activation);
    Ok(Box::new(Multiplication {
        depth: Depth::dense(isa, plan.k),
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
    constant: Option<Matrices>,
    clamp: (f32, f32),
    rest: Activation,
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
    fn thread_scratch(&self) -> [usize; 2] {
        let b = if self.constant.is_some() {
            0
        } else {
            self.packed_b()
        };
        let a = if self.plan.transpose_a {
            self.plan.m.saturating_mul(self.plan.k)
        } else {
            0
        };
        [b, a]
    }

    /// The product of a pair.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn product<'a>(
        &'a self,
        cpu: &CpuRun,
        pair: usize,
        operands: &Operands<'a>,
        scratch: &'a mut [f32],
        out: &mut [f32],
    ) -> Result<Product<'a>> {
        let p = &self.plan;
        let (a_index, b_index) = p.pairs.at(pair);
        let (packed, transposed) = scratch.split_at_mut(self.thread_scratch()[0]);
        let b = match &self.constant {
            Some(all) => all.at(b_index, self.packed_b()),
            None => {
                let from = &operands.b[b_index * p.b_elements()..][..p.b_elements()];
                pack(cpu, self.panels, p.b(Reading::PLAIN), from, packed)?;
                packed.as_ptr().into()
            }
        };
        let mut a = &operands.a[a_index * p.m * p.k..][..p.m * p.k];
        if p.transpose_a {
            super::transpose::transpose(cpu, self.isa, a, p.k, p.m, transposed)?;
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
        Ok(Product {
            isa: self.isa,
            a: a.as_ptr(),
            rows: Rows::Strided(p.k),
            depth: &self.depth,
            b,
            m: p.m,
            n: p.n,
            c: out.as_mut_ptr(),
            c_stride: p.n,
            bias,
            residual,
            clamp: self.clamp,
        })
    }
}

impl Kernel for Multiplication {
    fn run(&self, io: &mut Io) -> Result<()> {
        let operands = Operands {
            a: io.input(0),
            b: io.input(1),
            addend: io.optional(2),
        };
        let out: &mut [f32] = io.output(0);
        let [b, a] = self.thread_scratch();
        let scratch = io.thread_scratch(b.saturating_add(a));
        let (cpu, p) = (io.cpu(), &self.plan);
        let (pairs, size) = (p.pairs.len(), p.m * p.n);
        if pairs < cpu.threads() {
            let scratch = &mut scratch[..b + a];
            // The threads share in each product.
            for (pair, out) in out.chunks_exact_mut(size).enumerate() {
                let product = self.product(cpu, pair, &operands, scratch, out)?;
                // SAFETY: `product` took slices of the matrices' sizes.
                unsafe { multiply_split(&product, cpu)? }
                math::activate(cpu, self.isa, self.rest, out)?;
            }
            return Ok(());
        }
        let cost = self.isa.cost(size.saturating_mul(p.k));
        cpu.rows_with(
            pairs,
            by(out, size),
            scratch,
            cost,
            |piece, out, scratch, cpu| {
                for (pair, out) in piece.zip(out.chunks_exact_mut(size)) {
                    let product = self.product(cpu, pair, &operands, scratch, out)?;
                    // SAFETY: `product` took slices of the matrices' sizes.
                    unsafe { multiply(&product, cpu)? }
                    math::activate(cpu, self.isa, self.rest, out)?;
                }
                Ok(())
            },
        )
    }

    fn scratch(&self) -> Scratch {
        let [b, a] = self.thread_scratch();
        Scratch::on_each_thread::<f32>(b.saturating_add(a))
    }
}
