//! Softmax over the innermost dimension.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Softmax, SoftmaxKind, normalize_axis};
use kilim_reference_cpu::registry::KernelRegistry;

use super::{Lower, collapse, input, output, refuse, resolved};
use crate::call::{Call, Form, Source};
use crate::ffi::SoftmaxInfo;
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, Softmax>(registry);
}

impl Lower for Softmax {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let x = input(node, 0)?;
        let axis = resolved(normalize_axis(self.axis, x.shape.len()))?;
        if self.kind != SoftmaxKind::Softmax {
            return refuse("ACL has Softmax alone");
        }
        if axis + 1 != x.shape.len() {
            return refuse("an axis that is not the innermost");
        }
        let form = Form::new(output(node)?, &collapse(&x.shape, 2))?;
        let info = SoftmaxInfo { beta: self.beta };
        Ok(vec![Call::pointwise(info, Source::Input(0), &form)])
    }
}
