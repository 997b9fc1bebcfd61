//! Softmax and its logarithm.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{QuantizedSoftmax, Softmax, SoftmaxKind, normalize_axis};
use kilim_host::registry::KernelRegistry;

use super::quantization::Quanta;
use super::{Lower, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::SoftmaxInfo;
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, QuantizedSoftmax>(registry);
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
            return refuse("along other axes than the innermost ACL turns NaN into a number");
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

/// Bits behind the point in TFLite's softmax of bytes.
const FRACTIONAL_BITS: i32 = 26;

impl Lower for QuantizedSoftmax {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse("ACL's softmax of bytes exponentiates in floating point, TFLite's in fixed point")
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        Some(in_floating_point(self, node))
    }
}

fn in_floating_point(op: &QuantizedSoftmax, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let size = x.shape.last().copied().unwrap_or(1);
    let shape = [x.elements() / size.max(1), size];
    // Only differences count, so that the zero point of the data does not.
    let data = Quanta {
        scale: op.factor.value() * 2f64.powi(-FRACTIONAL_BITS),
        zero_point: 0,
    };
    let result = Quanta {
        scale: 1.0 / 256.0,
        zero_point: match y.dtype {
            DType::I8 => -128,
            _ => 0,
        },
    };
    let info = SoftmaxInfo {
        beta: 1.0,
        axis: 0,
        logarithm: 0,
    };
    let data = Operand {
        source: Source::Input(0),
        form: data.form(x, &shape)?,
    };
    Ok(vec![Call::new(
        info,
        vec![Some(data)],
        result.form(y, &shape)?,
    )])
}
