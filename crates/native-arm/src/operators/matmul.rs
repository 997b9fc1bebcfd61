//! Matrix products: with weights a fully connected layer, with two computed factors GEMM.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Activation, Gemm, MatMul, MatMulGeometry};
use kilim_reference_cpu::registry::KernelRegistry;

use super::activation::{self, NO_ACTIVATION};
use super::{Lower, as_is, elementwise, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{FullyConnectedInfo, GemmInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, MatMul>(registry);
    add::<A, Gemm>(registry);
}

/// `activation(alpha * a b + bias)`: a `[rows, k]`, b `[k, n]` or, transposed, `[n, k]`.
struct Product {
    rows: usize,
    k: usize,
    n: usize,
    alpha: f32,
    transpose_b: bool,
    activation: Activation,
}

impl Product {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
        let form = Form::new(y, &[self.rows, self.n])?;
        let left = Operand {
            source: Source::Input(0),
            form: Form::new(a, &[self.rows, self.k])?,
        };
        if b.value.is_some() && self.alpha == 1.0 {
            return self.with_weights(node, left, form);
        }
        if self.transpose_b {
            return refuse("ACL has no product with a computed factor transposed");
        }
        let source = match b.value {
            Some(_) => Source::Constant {
                input: 1,
                order: as_is(b),
            },
            None => Source::Input(1),
        };
        let right = Operand {
            source,
            form: Form::new(b, &[self.k, self.n])?,
        };
        let info = GemmInfo { alpha: self.alpha };
        let mut calls = vec![Call::new(info, vec![Some(left), Some(right)], form.clone())];
        if let Some(bias) = self.bias(node)? {
            calls.push(elementwise::add_to_output(bias, &form));
        }
        calls.extend(activation::calls(self.activation, &form));
        Ok(calls)
    }

    fn with_weights(
        &self,
        node: &NodeSpec,
        left: Operand,
        form: Form,
    ) -> Result<Vec<Call>, Refusal> {
        let b = input(node, 1)?;
        let mut order = as_is(b);
        let rank = order.len();
        match rank {
            0 | 1 => {}
            _ if self.transpose_b => {}
            _ => order.swap(rank - 1, rank - 2),
        }
        let weights = Operand {
            source: Source::Constant { input: 1, order },
            form: Form::new(b, &[self.n, self.k])?,
        };
        let bias = self.bias(node)?;
        let is_constant = |o: &Operand| matches!(o.source, Source::Constant { .. });
        let (within, behind): (Option<Operand>, Option<Operand>) = match bias {
            Some(bias) if is_constant(&bias) => (Some(bias), None),
            other => (None, other),
        };
        let fused = match behind {
            None => activation::within(self.activation),
            Some(_) => None,
        };
        let info = FullyConnectedInfo {
            activation: fused.unwrap_or(NO_ACTIVATION),
        };
        let inputs = vec![Some(left), Some(weights), within];
        let mut calls = vec![Call::new(info, inputs, form.clone())];
        calls.extend(behind.map(|bias| elementwise::add_to_output(bias, &form)));
        if fused.is_none() {
            calls.extend(activation::calls(self.activation, &form));
        }
        Ok(calls)
    }

    /// The bias as a row of `n`.
    fn bias(&self, node: &NodeSpec) -> Result<Option<Operand>, Refusal> {
        let Some(bias) = node.input(2) else {
            return Ok(None);
        };
        if bias.shape.last() != Some(&self.n) || bias.elements() != self.n {
            return refuse("a bias that is not one row");
        }
        let source = match bias.value {
            Some(_) => Source::Constant {
                input: 2,
                order: as_is(bias),
            },
            None => Source::Input(2),
        };
        Ok(Some(Operand {
            source,
            form: Form::new(bias, &[self.n])?,
        }))
    }
}

impl Lower for MatMul {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (a, b) = (input(node, 0)?, input(node, 1)?);
        let g = resolved(MatMulGeometry::new(&a.shape, &b.shape, self.transpose_b))?;
        if g.b_batch.iter().any(|&d| d != 1) {
            return refuse("a stack of products with different second factors");
        }
        Product {
            rows: g.a_batch.iter().product::<usize>() * g.m,
            k: g.k,
            n: g.n,
            alpha: self.alpha.unwrap_or(1.0),
            transpose_b: self.transpose_b,
            activation: self.activation,
        }
        .lower(node)
    }
}

impl Lower for Gemm {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        if self.transpose_a {
            return refuse("ACL has no product with the first factor transposed");
        }
        if self.beta != 1.0 && node.input(2).is_some() {
            return refuse("a bias with a factor");
        }
        let (a, b) = (input(node, 0)?, input(node, 1)?);
        let g = resolved(MatMulGeometry::new(&a.shape, &b.shape, self.transpose_b))?;
        Product {
            rows: g.m,
            k: g.k,
            n: g.n,
            alpha: self.alpha,
            transpose_b: self.transpose_b,
            activation: self.activation,
        }
        .lower(node)
    }
}
