//! Quantised tensors, where ACL's results are the bytes of every other backend.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    AffineQuantize, BinaryKind, DequantizeLinear, QLinearBinary, QuantizeLinear, QuantizedBinary,
    QuantizedResize, QuantizedSoftmax, TableLookup,
};
use kilim_reference_cpu::registry::KernelRegistry;

use super::resolved;
use super::{Lower, as_is, collapse, constant, elementwise, input, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{BinaryInfo, DequantizeInfo, ElementType};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, AffineQuantize>(registry);
    add::<A, DequantizeLinear>(registry);
    add::<A, QLinearBinary>(registry);
    add::<A, QuantizeLinear>(registry);
    add::<A, QuantizedBinary>(registry);
    add::<A, QuantizedResize>(registry);
    add::<A, QuantizedSoftmax>(registry);
    add::<A, TableLookup>(registry);
}

/// Scales and zero points of a tensor.
struct Scale {
    scales: Vec<f32>,
    zero_points: Vec<i32>,
}

impl Scale {
    /// From inputs `at` and `at + 1` of the node; a zero point that is left out is 0.
    fn of(node: &NodeSpec, at: usize) -> Result<Scale, Refusal> {
        let numbers = |i: usize| -> Result<Vec<f64>, Refusal> {
            let value = constant(node, i, "scales")?.value.as_ref();
            resolved(value.map_or(Ok(Vec::new()), |v| v.to_f64s()))
        };
        let zero_points = match node.input(at + 1) {
            Some(_) => numbers(at + 1)?,
            None => vec![0.0],
        };
        Ok(Scale {
            scales: numbers(at)?.into_iter().map(|v| v as f32).collect(),
            zero_points: zero_points.into_iter().map(|v| v as i32).collect(),
        })
    }

    /// One scale for the whole tensor of `spec`, under `shape`.
    fn form(&self, spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
        let (&[scale], &[zero_point]) = (&self.scales[..], &self.zero_points[..]) else {
            return refuse("ACL has one scale for these tensors");
        };
        let form = Form::of_type(whole(spec.dtype)?, shape)?;
        Ok(form.with_scales(vec![scale], zero_point))
    }
}

fn whole(dtype: DType) -> Result<ElementType, Refusal> {
    match dtype {
        DType::U8 => Ok(ElementType::Qasymm8),
        DType::I8 => Ok(ElementType::Qasymm8Signed),
        other => refuse(format!("a quantised tensor of {other}")),
    }
}

impl Lower for QLinearBinary {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let least = match output(node)?.dtype {
            DType::I8 => -128.0,
            _ => 0.0,
        };
        if self.offset != 0.0 || self.range != [least, least + 255.0] {
            return refuse("ACL's functions of quantised tensors add and clamp nothing");
        }
        let [a, b] = self.operands;
        match self.kind {
            // The larger byte is that of the larger number.
            BinaryKind::Max | BinaryKind::Min if a == b && b == self.result => {}
            _ => {
                return refuse(
                    "ACL scales quantised tensors in an arithmetic of its own, to other bytes",
                );
            }
        }
        let bytes = |spec: &TensorSpec| {
            whole(spec.dtype)?;
            Form::of_elements(spec, &spec.shape)
        };
        let operand = |i: usize| -> Result<Option<Operand>, Refusal> {
            let spec = input(node, i)?;
            let source = match spec.value {
                Some(_) => Source::Constant {
                    input: i,
                    order: as_is(spec),
                },
                None => Source::Input(i),
            };
            Ok(Some(Operand {
                source,
                form: bytes(spec)?,
            }))
        };
        let info = BinaryInfo {
            kind: elementwise::function(self.kind)?,
        };
        let inputs = vec![operand(0)?, operand(1)?];
        Ok(vec![Call::new(info, inputs, bytes(output(node)?)?)])
    }
}

/// Operators on bytes that ACL has, too, with results that are a quantum off here and there.
macro_rules! other_bytes {
    ($($operator:ty: $reason:literal;)*) => {
        $(impl Lower for $operator {
            fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
                refuse($reason)
            }
        })*
    };
}

other_bytes! {
    AffineQuantize: "ACL takes ties to even, TFLite away from zero";
    QuantizeLinear: "ACL multiplies by the reciprocal of the scale, and large numbers wrap";
    QuantizedBinary: "ACL scales quantised tensors in an arithmetic of its own, to other bytes";
    QuantizedResize: "ACL interpolates bytes in an arithmetic of its own, to other bytes";
    QuantizedSoftmax: "ACL's softmax of bytes exponentiates in floating point, TFLite's in fixed point";
    TableLookup: "ACL makes tables of its own, in another precision";
}

impl Lower for DequantizeLinear {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let shape = collapse(&x.shape, 3);
        let data = Operand {
            source: Source::Input(0),
            form: Scale::of(node, 1)?.form(x, &shape)?,
        };
        let form = Form::new(y, &shape)?;
        Ok(vec![Call::new(
            DequantizeInfo::default(),
            vec![Some(data)],
            form,
        )])
    }
}
