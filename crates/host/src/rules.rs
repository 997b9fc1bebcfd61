//! Rules by which kernels accept nodes.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::shape_error;
use kilim_core::{DType, Error};

/// The floating-point types that kernels compute with.
pub const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// Input `i`'s element type is one of `allowed`; a missing input is fine.
pub fn input_is(node: &NodeSpec, i: usize, allowed: &[DType]) -> Result<(), Refusal> {
    match node.input(i) {
        Some(spec) if !allowed.contains(&spec.dtype) => Err(Refusal::new(format!(
            "{} of {} (input {i})",
            node.op.name(),
            spec.dtype
        ))),
        _ => Ok(()),
    }
}

/// Input `i` is of a type that can be computed with, not only stored.
pub fn computed(node: &NodeSpec, i: usize) -> Result<(), Refusal> {
    match node.input(i) {
        Some(spec) if spec.dtype.is_only_stored() => Err(Refusal::new(format!(
            "{} of {}",
            node.op.name(),
            spec.dtype
        ))),
        _ => Ok(()),
    }
}

/// The floating-point inputs are all `float32` or all `float64`. Narrower types come back widened
/// (see [`crate::registry`]).
pub fn reals<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    let mut seen = None;
    for spec in node.inputs.iter().flatten() {
        match spec.dtype {
            DType::F32 | DType::F64 if seen.is_none_or(|d| d == spec.dtype) => {
                seen = Some(spec.dtype);
            }
            d if d.is_float() => {
                return Err(Refusal::new(format!("{} of {d}", node.op.name())));
            }
            _ => {}
        }
    }
    match seen {
        Some(_) => Ok(()),
        None => Err(Refusal::new(format!(
            "{} without floating-point data",
            node.op.name()
        ))),
    }
}

/// Refuses a node whose first input has no numbers that kernels sum with real weights.
pub fn weighed(node: &NodeSpec) -> Result<(), Refusal> {
    input_is(node, 0, &[DType::F32, DType::F64, DType::C64, DType::C128])
}

/// Refuses a node whose first input is not of floating point.
pub fn float_data<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    input_is(node, 0, &FLOATS)
}

/// The value of input `i` must be known when the kernel is built.
pub fn known(node: &NodeSpec, i: usize) -> Result<(), Refusal> {
    match node.input(i) {
        Some(spec) if spec.value.is_none() => Err(Refusal::new(format!(
            "input {i} of {} is not known when the kernel is built",
            node.op.name()
        ))),
        _ => Ok(()),
    }
}

/// Input `i`, or an error that it is missing.
pub fn required<'a>(node: &'a NodeSpec, i: usize) -> Result<&'a TensorSpec, Error> {
    node.input(i)
        .ok_or_else(|| shape_error(format!("input {i} is missing")))
}

/// The smallest and the largest value of a quantised type.
pub fn range(dtype: DType) -> Result<(f64, f64), Error> {
    Ok(match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (u8::MIN.into(), u8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U16 => (u16::MIN.into(), u16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U32 => (u32::MIN.into(), u32::MAX.into()),
        DType::I4 => (-8.0, 7.0),
        DType::U4 => (0.0, 15.0),
        DType::I2 => (-2.0, 1.0),
        DType::U2 => (0.0, 3.0),
        _ => return Err(shape_error(format!("{dtype} is not a quantised type"))),
    })
}
