//! Functions of two quantised tensors that broadcast against each other.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::fixed::Factor;
use kilim_core::ops::{BinaryKind, Combination, QLinearBinary, QuantizedBinary};
use kilim_host::registry::KernelRegistry;

use super::quantization::{Quanta, clamped};
use super::{Lower, elementwise, operand, output, refuse};
use crate::call::Call;
use crate::ffi::BinaryInfo;
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, QLinearBinary>(registry);
    add::<A, QuantizedBinary>(registry);
}

const OTHER_BYTES: &str =
    "ACL scales quantised tensors in an arithmetic of its own, to other bytes";

/// `kind` of both inputs, with these scales and zero points, clamped to `range`.
fn calls(
    node: &NodeSpec,
    kind: BinaryKind,
    operands: [Quanta; 2],
    result: Quanta,
    range: [i32; 2],
) -> Result<Vec<Call>, Refusal> {
    let info = BinaryInfo {
        kind: elementwise::function(kind)?,
    };
    let [a, b] = operands;
    let inputs = vec![
        operand(node, 0, |spec| a.form(spec, &spec.shape))?,
        operand(node, 1, |spec| b.form(spec, &spec.shape))?,
    ];
    let y = output(node)?;
    let call = Call::new(info, inputs, result.form(y, &y.shape)?);
    let clamp = clamped(y, &y.shape, range)?;
    Ok(std::iter::once(call).chain(clamp).collect())
}

impl Lower for QLinearBinary {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let least = match output(node)?.dtype {
            DType::I8 => -128.0,
            _ => 0.0,
        };
        if self.offset != 0.0 || self.range != [least, least + 255.0] {
            return refuse(OTHER_BYTES);
        }
        let [a, b] = self.operands;
        match self.kind {
            // The larger byte is that of the larger number.
            BinaryKind::Max | BinaryKind::Min if a == b && b == self.result => {
                let range = self.range.map(|v| v as i32);
                calls(node, self.kind, [Quanta::ONE; 2], Quanta::ONE, range)
            }
            _ => refuse(OTHER_BYTES),
        }
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        if self.offset != 0.0 {
            return Some(refuse("ACL's functions of quantised tensors add nothing"));
        }
        let range = self.range.map(|v| v as i32);
        let operands = self.operands.map(Quanta::from);
        Some(calls(node, self.kind, operands, self.result.into(), range))
    }
}

impl Lower for QuantizedBinary {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse(OTHER_BYTES)
    }

    /// The result's steps are of 1, and what both inputs are multiplied with are their scales.
    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let result = self.result.factors.first()?.value();
        let (kind, scales) = match self.combination {
            Combination::Sum {
                left_shift,
                factors,
            } => (BinaryKind::Add, terms(left_shift, factors, result)),
            Combination::Difference {
                left_shift,
                factors,
            } => (BinaryKind::Sub, terms(left_shift, factors, result)),
            Combination::Product => (BinaryKind::Mul, [result, 1.0]),
        };
        let operand = |i: usize| Quanta {
            scale: scales[i],
            zero_point: self.zero_points[i],
        };
        let y = Quanta {
            scale: 1.0,
            zero_point: self.result.zero_point,
        };
        Some(calls(
            node,
            kind,
            [operand(0), operand(1)],
            y,
            self.result.range,
        ))
    }
}

/// The scales of two terms in steps of the result.
fn terms(left_shift: u32, factors: [Factor; 2], result: f64) -> [f64; 2] {
    factors.map(|f| f.value() * 2f64.powi(left_shift as i32) * result)
}
