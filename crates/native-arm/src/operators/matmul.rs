//! Matrix products: with weights a fully connected layer, with two computed factors GEMM, and MatMul
//! where one of these is transposed or there is a stack of them.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Activation, Gemm, MatMul, MatMulGeometry};
use kilim_host::registry::KernelRegistry;

use super::activation::{self, NO_ACTIVATION};
use super::{Lower, as_is, elementwise, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{ActivationInfo, FullyConnectedInfo, Function, GemmInfo, MatMulInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, MatMul>(registry);
    add::<A, Gemm>(registry);
}

/// `activation(alpha * a b + bias)`: a `[rows, k]` or, transposed, `[k, rows]`; b `[k, n]` or `[n, k]`.
struct Product {
    rows: usize,
    k: usize,
    n: usize,
    alpha: f32,
    transpose_a: bool,
    transpose_b: bool,
    activation: Activation,
}

impl Product {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
        let form = Form::new(y, &[self.rows, self.n])?;
        let stored = |rows, columns, transposed| match transposed {
            true => [columns, rows],
            false => [rows, columns],
        };
        let left = Operand {
            source: Source::Input(0),
            form: Form::new(a, &stored(self.rows, self.k, self.transpose_a))?,
        };
        if b.value.is_some() && self.alpha == 1.0 && !self.transpose_a {
            return self.with_weights(node, left, form);
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
            form: Form::new(b, &stored(self.k, self.n, self.transpose_b))?,
        };
        let mut calls = match self.transpose_a || self.transpose_b {
            true => self.multiplied(left, right, &form),
            false => {
                let info = GemmInfo { alpha: self.alpha };
                vec![Call::new(info, vec![Some(left), Some(right)], form.clone())]
            }
        };
        if let Some(bias) = self.bias(node)? {
            calls.push(elementwise::add_to_output(bias, &form));
        }
        calls.extend(activation::calls(self.activation, &form)?);
        Ok(calls)
    }

    /// `alpha * a b` of computed factors.
    fn multiplied(&self, left: Operand, right: Operand, form: &Form) -> Vec<Call> {
        let info = MatMulInfo {
            transpose_a: self.transpose_a.into(),
            transpose_b: self.transpose_b.into(),
        };
        let mut calls = vec![Call::new(info, vec![Some(left), Some(right)], form.clone())];
        if self.alpha != 1.0 {
            let scaled = ActivationInfo {
                enabled: 1,
                function: Function::Linear,
                a: self.alpha,
                b: 0.0,
            };
            calls.push(Call::pointwise(scaled, Source::Output, form));
        }
        calls
    }

    /// Each matrix of a stack by the one of another.
    fn of_stacks(&self, node: &NodeSpec, g: &MatMulGeometry) -> Result<Vec<Call>, Refusal> {
        let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
        if node.input(2).is_some() {
            return refuse("a bias behind a stack of products");
        }
        // Where the stacks are as high as each other, one dimension counts them.
        let one = g.a_batch == g.b_batch;
        let stack = |batch: &[usize], rows, columns| match one {
            true => vec![batch.iter().product(), rows, columns],
            false => [batch, &[rows, columns]].concat(),
        };
        let second = match self.transpose_b {
            true => stack(&g.b_batch, g.n, g.k),
            false => stack(&g.b_batch, g.k, g.n),
        };
        let operand = |i, spec, shape: &[usize]| -> Result<Operand, Refusal> {
            Ok(Operand {
                source: Source::Input(i),
                form: Form::new(spec, shape)?,
            })
        };
        if a.value.is_some() || b.value.is_some() {
            return refuse("ACL multiplies stacks that are computed");
        }
        let form = Form::new(y, &stack(&g.batch, g.m, g.n))?;
        let left = operand(0, a, &stack(&g.a_batch, g.m, g.k))?;
        let mut calls = self.multiplied(left, operand(1, b, &second)?, &form);
        calls.extend(activation::calls(self.activation, &form)?);
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
            None => activation::within(self.activation, &form),
            Some(_) => None,
        };
        let info = FullyConnectedInfo {
            activation: fused.unwrap_or(NO_ACTIVATION),
        };
        let inputs = vec![Some(left), Some(weights), within];
        let mut calls = vec![Call::new(info, inputs, form.clone())];
        calls.extend(behind.map(|bias| elementwise::add_to_output(bias, &form)));
        if fused.is_none() {
            calls.extend(activation::calls(self.activation, &form)?);
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
        let product = Product {
            rows: g.a_batch.iter().product::<usize>() * g.m,
            k: g.k,
            n: g.n,
            alpha: self.alpha.unwrap_or(1.0),
            transpose_a: false,
            transpose_b: self.transpose_b,
            activation: self.activation,
        };
        match g.b_batch.iter().all(|&d| d == 1) {
            true => product.lower(node),
            false => product.of_stacks(node, &g),
        }
    }
}

impl Lower for Gemm {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        if self.beta != 1.0 && node.input(2).is_some() {
            return refuse("a bias with a factor");
        }
        let (a, b) = (input(node, 0)?, input(node, 1)?);
        let mut left = a.shape.clone();
        if self.transpose_a {
            left.reverse();
        }
        let g = resolved(MatMulGeometry::new(&left, &b.shape, self.transpose_b))?;
        Product {
            rows: g.m,
            k: g.k,
            n: g.n,
            alpha: self.alpha,
            transpose_a: self.transpose_a,
            transpose_b: self.transpose_b,
            activation: self.activation,
        }
        .lower(node)
    }
}
