//! Elements that only move. A reshape is a view: no backend runs it.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{Concat, Transpose, normalize_axis};
use kilim_host::registry::KernelRegistry;

use super::{Lower, input, operand, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{ConcatenateInfo, PermuteInfo};
use crate::kernel::{MAX_INPUTS, Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, Concat>(registry);
    add::<A, Transpose>(registry);
}

/// Dimensions of a concatenation and of a permutation at most.
const DIMENSIONS: usize = 4;

impl Lower for Concat {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let y = output(node)?;
        let rank = y.shape.len();
        let axis = resolved(normalize_axis(self.axis, rank))?;
        if node.inputs.len() > MAX_INPUTS {
            return refuse(format!("more than {MAX_INPUTS} inputs"));
        }
        // In front of the axis one dimension is enough, and none behind it.
        let flat = |shape: &[usize]| {
            let (outer, inner) = shape.split_at(axis);
            [outer.iter().product::<usize>(), inner.iter().product()]
        };
        let form = |spec: &TensorSpec| Form::of_elements(spec, &flat(&spec.shape));
        let inputs = (0..node.inputs.len())
            .map(|i| operand(node, i, form))
            .collect::<Result<_, _>>()?;
        let info = ConcatenateInfo { axis: 0 };
        Ok(vec![Call::new(info, inputs, form(y)?)])
    }
}

impl Lower for Transpose {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let rank = x.shape.len();
        if rank > DIMENSIONS {
            return refuse(format!("ACL permutes {DIMENSIONS} dimensions at most"));
        }
        let mut order = [0; DIMENSIONS];
        for (i, to) in order.iter_mut().enumerate() {
            *to = i as u32;
        }
        for (i, to) in order[..rank].iter_mut().enumerate() {
            *to = (rank - 1 - self.perm[rank - 1 - i]) as u32;
        }
        let info = PermuteInfo {
            rank: rank as u32,
            order,
        };
        let data = Operand {
            source: Source::Input(0),
            form: Form::of_elements(x, &x.shape)?,
        };
        let form = Form::of_elements(y, &y.shape)?;
        Ok(vec![Call::new(info, vec![Some(data)], form)])
    }
}
