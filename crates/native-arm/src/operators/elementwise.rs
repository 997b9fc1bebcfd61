//! Functions of two tensors that broadcast against each other.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{Binary, BinaryKind};
use kilim_host::registry::KernelRegistry;

use super::{Lower, activation, finite, input, operand, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{BinaryFunction, BinaryInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, Binary>(registry);
}

/// The function in ACL's words.
pub fn function(kind: BinaryKind) -> Result<BinaryFunction, Refusal> {
    Ok(match kind {
        BinaryKind::Add => BinaryFunction::Add,
        BinaryKind::Sub => BinaryFunction::Sub,
        BinaryKind::Mul => BinaryFunction::Mul,
        BinaryKind::Div => BinaryFunction::Div,
        BinaryKind::Max => BinaryFunction::Max,
        BinaryKind::Min => BinaryFunction::Min,
        BinaryKind::PRelu => BinaryFunction::PRelu,
        _ => return refuse("ACL has no such function"),
    })
}

impl Lower for Binary {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let kind = function(self.kind)?;
        if self.kind == BinaryKind::PRelu {
            finite(node, 1, "slopes")?;
        }
        let y = output(node)?;
        let whole = Form::new(y, &y.shape)?;
        let alike = input(node, 0)?.shape == input(node, 1)?.shape;
        let in_vectors = matches!(self.kind, BinaryKind::Max | BinaryKind::Min);
        let form = match whole.in_vectors() {
            Some(rows) if in_vectors && (alike || rows.shape() == whole.shape()) => rows,
            _ if in_vectors => return refuse(activation::LOSES_NAN),
            _ => whole,
        };
        let of_input = |spec: &TensorSpec| match alike {
            true => Form::new(spec, form.shape()),
            false => Form::new(spec, &spec.shape),
        };
        let inputs = vec![operand(node, 0, of_input)?, operand(node, 1, of_input)?];
        let mut calls = vec![Call::new(BinaryInfo { kind }, inputs, form.clone())];
        calls.extend(activation::calls(self.activation, &form)?);
        Ok(calls)
    }
}

/// Adds input `i`, of the shape of `form`, to what the calls before it left in the output.
pub fn add_input(i: usize, form: &Form) -> Call {
    add_to_output(
        Operand {
            source: Source::Input(i),
            form: form.clone(),
        },
        form,
    )
}

/// Adds a tensor that broadcasts to `form` to what the calls before it left in the output.
pub fn add_to_output(operand: Operand, form: &Form) -> Call {
    let so_far = Operand {
        source: Source::Output,
        form: form.clone(),
    };
    let info = BinaryInfo {
        kind: BinaryFunction::Add,
    };
    Call::new(info, vec![Some(so_far), Some(operand)], form.clone())
}
