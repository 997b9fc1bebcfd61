//! Softmax and its logarithm.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Softmax, SoftmaxKind, normalize_axis};
use kilim_reference_cpu::registry::KernelRegistry;

use super::{Lower, input, output, refuse, resolved};
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
        let logarithm = match self.kind {
            SoftmaxKind::Softmax => false,
            SoftmaxKind::LogSoftmax => true,
            SoftmaxKind::Hardmax => return refuse("ACL has no Hardmax"),
        };
        // In front of the axis and behind it, one dimension is enough.
        let (outer, rest) = x.shape.split_at(axis);
        let (size, inner) = (rest[0], rest[1..].iter().product());
        let shape = match inner {
            1 => vec![outer.iter().product(), size],
            _ => vec![outer.iter().product(), size, inner],
        };
        if logarithm && inner != 1 {
            return refuse("along other axes than the innermost ACL makes numbers of NaN");
        }
        let info = SoftmaxInfo {
            beta: self.beta,
            axis: shape.len() as u32 - 2,
            logarithm: logarithm.into(),
        };
        let form = Form::new(output(node)?, &shape)?;
        Ok(vec![Call::pointwise(info, Source::Input(0), &form)])
    }
}
