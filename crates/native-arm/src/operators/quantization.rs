//! Quantised tensors in ACL's words, and the way to them and back.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    Affine, AffineQuantize, DequantizeLinear, QuantizeLinear, TableLookup, Tabulated, UnaryKind,
};
use kilim_host::registry::KernelRegistry;

use super::{Lower, activation, collapse, constant, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{DequantizeInfo, ElementType, Family, QuantizeInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, AffineQuantize>(registry);
    add::<A, DequantizeLinear>(registry);
    add::<A, QuantizeLinear>(registry);
    add::<A, TableLookup>(registry);
}

/// What the bytes of a tensor stand for: `scale * (byte - zero_point)`.
#[derive(Clone, Copy, Debug)]
pub struct Quanta {
    pub scale: f64,
    pub zero_point: i32,
}

impl From<Affine> for Quanta {
    fn from(affine: Affine) -> Quanta {
        Quanta {
            scale: affine.scale.into(),
            zero_point: affine.zero as i32,
        }
    }
}

impl Quanta {
    /// Bytes that stand for themselves.
    pub const ONE: Quanta = Quanta {
        scale: 1.0,
        zero_point: 0,
    };

    /// The one scale and zero point in inputs `at` and `at + 1` of the node; a zero point that is left out is 0.
    pub fn of(node: &NodeSpec, at: usize) -> Result<Quanta, Refusal> {
        let scales = numbers(node, at)?;
        let zero_points = match node.input(at + 1) {
            Some(_) => numbers(node, at + 1)?,
            None => vec![0.0],
        };
        match (&scales[..], &zero_points[..]) {
            (&[scale], &[zero_point]) => Ok(Quanta {
                scale,
                zero_point: zero_point as i32,
            }),
            _ => refuse("ACL has one scale for these tensors"),
        }
    }

    /// A tensor of `spec`'s bytes under `shape`.
    pub fn form(&self, spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
        let form = Form::of_type(whole(spec.dtype)?, shape)?;
        Ok(form.with_scales(vec![scale(self.scale)?], self.zero_point))
    }
}

/// A scale that ACL can divide by.
pub fn scale(real: f64) -> Result<f32, Refusal> {
    let single = real as f32;
    match single.is_normal() && single > 0.0 {
        true => Ok(single),
        false => refuse(format!("{real} is no scale")),
    }
}

/// The elements of a constant input.
pub fn numbers(node: &NodeSpec, i: usize) -> Result<Vec<f64>, Refusal> {
    let value = constant(node, i, "scales")?.value.as_ref();
    resolved(value.map_or(Ok(Vec::new()), |v| v.to_f64s()))
}

pub fn whole(dtype: DType) -> Result<ElementType, Refusal> {
    match dtype {
        DType::U8 => Ok(ElementType::Qasymm8),
        DType::I8 => Ok(ElementType::Qasymm8Signed),
        other => refuse(format!("a quantised tensor of {other}")),
    }
}

/// Clamps the bytes that the calls before it left in the output; nothing where that changes none.
pub fn clamped(
    y: &TensorSpec,
    shape: &[usize],
    [low, high]: [i32; 2],
) -> Result<Option<Call>, Refusal> {
    let (least, most) = match whole(y.dtype)? {
        ElementType::Qasymm8 => (0, 255),
        _ => (-128, 127),
    };
    if low <= least && high >= most {
        return Ok(None);
    }
    let form = Quanta::ONE.form(y, shape)?;
    let clip = activation::clip(low as f32, high as f32);
    Ok(Some(Call::pointwise(clip, Source::Output, &form)))
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
}

impl Lower for TableLookup {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse("ACL makes tables of its own, in another precision")
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let Tabulated { function, from, to } = self.of?;
        let function = match function {
            UnaryKind::Identity => {
                return Some(pointwise(QuantizeInfo::default(), node, from, to));
            }
            UnaryKind::Clip { min, max } => within_bytes(min, max, from),
            UnaryKind::HardSwish
            | UnaryKind::LeakyRelu { .. }
            | UnaryKind::Relu
            | UnaryKind::Sigmoid
            | UnaryKind::Tanh => function,
            _ => return None,
        };
        Some(pointwise(activation::activation(function)?, node, from, to))
    }
}

/// A clip that does the same to bytes of any type, with limits that ACL can count in steps.
fn within_bytes(min: f64, max: f64, from: Affine) -> UnaryKind {
    let end = |steps: f64| f64::from(from.scale) * (steps - f64::from(from.zero));
    let limit = |v: f64| v.max(end(-128.0)).min(end(255.0));
    UnaryKind::Clip {
        min: limit(min),
        max: limit(max),
    }
}

/// A function of ACL, from one scale and zero point to another.
fn pointwise(
    family: impl Family + 'static,
    node: &NodeSpec,
    from: Affine,
    to: Affine,
) -> Result<Vec<Call>, Refusal> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let shape = collapse(&x.shape, 3);
    let data = Operand {
        source: Source::Input(0),
        form: Quanta::from(from).form(x, &shape)?,
    };
    let form = Quanta::from(to).form(y, &shape)?;
    Ok(vec![Call::new(family, vec![Some(data)], form)])
}

impl Lower for DequantizeLinear {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let shape = collapse(&x.shape, 3);
        let data = Operand {
            source: Source::Input(0),
            form: Quanta::of(node, 1)?.form(x, &shape)?,
        };
        let form = Form::new(y, &shape)?;
        Ok(vec![Call::new(
            DequantizeInfo::default(),
            vec![Some(data)],
            form,
        )])
    }
}
