//! From a node to calls of ACL functions, a file for each family.

mod activation;
mod convolution;
mod elementwise;
mod integer;
mod matmul;
mod movement;
mod normalization;
mod pooling;
mod quantization;
mod quantized_binary;
mod quantized_convolution;
mod resize;
mod softmax;

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::Activation;
use kilim_host::registry::KernelRegistry;

use crate::call::{Call, Form, Operand, Source};
use crate::ffi::ElementType;
use crate::kernel::{self, Target};

/// An operator that ACL has functions for.
pub trait Lower {
    /// The calls that compute the node's first output, at least one, each on what the calls before
    /// it left there. ACL itself is asked afterwards whether it runs them.
    ///
    /// # Errors
    /// Where no function of ACL means the same.
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal>;

    /// The calls in ACL's own arithmetic of quantised tensors: each result is at most one step of
    /// quantisation from that of real numbers. Asked for what [`Lower::lower`] or ACL refuses. `None` where
    /// ACL has no such function.
    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let _ = node;
        None
    }
}

/// Every operator that can be lowered.
pub fn all<A: Target>() -> KernelRegistry {
    let mut registry = KernelRegistry::default();
    activation::register::<A>(&mut registry);
    convolution::register::<A>(&mut registry);
    elementwise::register::<A>(&mut registry);
    integer::register::<A>(&mut registry);
    matmul::register::<A>(&mut registry);
    movement::register::<A>(&mut registry);
    normalization::register::<A>(&mut registry);
    pooling::register::<A>(&mut registry);
    quantization::register::<A>(&mut registry);
    quantized_binary::register::<A>(&mut registry);
    resize::register::<A>(&mut registry);
    softmax::register::<A>(&mut registry);
    registry
}

/// Whether ACL was built with kernels for `float16`, and the processor has them.
pub fn has_half<A: Target>() -> bool {
    let form = Form::of_type(ElementType::F16, &[8]);
    form.is_ok_and(|form| {
        let relu = activation::calls(Activation::Relu, &form).unwrap_or_default();
        !relu.is_empty() && relu.iter().all(|call| kernel::ask::<A>(call).is_ok())
    })
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(reason))
}

/// Input `i`, which the operator cannot do without.
fn input<'a>(node: &'a NodeSpec, i: usize) -> Result<&'a TensorSpec, Refusal> {
    node.input(i)
        .ok_or_else(|| Refusal::new(format!("input {i} is missing")))
}

/// Input `i`, which ACL packs once.
fn constant<'a>(node: &'a NodeSpec, i: usize, what: &str) -> Result<&'a TensorSpec, Refusal> {
    let spec = input(node, i)?;
    match spec.value {
        Some(_) => Ok(spec),
        None => refuse(format!("ACL packs {what} once, and they are computed")),
    }
}

/// Input `i`, a constant without NaN and infinity: ACL multiplies it by zeros, too, where padding is or a
/// function has its bend.
fn finite<'a>(node: &'a NodeSpec, i: usize, what: &str) -> Result<&'a TensorSpec, Refusal> {
    let spec = constant(node, i, what)?;
    let numbers = spec.value.as_ref().map(|v| v.to_f64s());
    let numbers = resolved(numbers.unwrap_or(Ok(Vec::new())))?;
    match numbers.iter().all(|v| v.is_finite()) {
        true => Ok(spec),
        false => refuse(format!(
            "{what} that are not finite, which ACL multiplies by zeros, too"
        )),
    }
}

fn output<'a>(node: &'a NodeSpec) -> Result<&'a TensorSpec, Refusal> {
    match node.outputs {
        [output] => Ok(output),
        _ => refuse("more than one output"),
    }
}

/// What core's geometry says of shapes that do not fit, as a reason.
fn resolved<T>(result: kilim_core::Result<T>) -> Result<T, Refusal> {
    result.map_err(|e| Refusal::new(e.to_string()))
}

/// The shape with its leading dimensions made one, so that `rank` are left.
fn collapse(shape: &[usize], rank: usize) -> Vec<usize> {
    if shape.len() <= rank {
        return shape.to_vec();
    }
    let (leading, rest) = shape.split_at(shape.len() - rank + 1);
    let mut collapsed = vec![leading.iter().product()];
    collapsed.extend(rest);
    collapsed
}

/// Input `i` in the form that `form` makes of it. ACL packs a constant once.
fn operand(
    node: &NodeSpec,
    i: usize,
    form: impl FnOnce(&TensorSpec) -> Result<Form, Refusal>,
) -> Result<Option<Operand>, Refusal> {
    let spec = input(node, i)?;
    let source = match spec.value {
        Some(_) => Source::Constant {
            input: i,
            order: as_is(spec),
        },
        None => Source::Input(i),
    };
    let form = form(spec)?;
    Ok(Some(Operand { source, form }))
}

/// The order of dimensions that changes nothing.
fn as_is(spec: &TensorSpec) -> Vec<usize> {
    (0..spec.shape.len()).collect()
}
