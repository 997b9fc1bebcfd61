//! Calls of ACL functions as kernels of the host's frame.

use std::marker::PhantomData;

use kilim_core::backend::{NodeSpec, Quantized, Refusal};
use kilim_core::{Error, ErrorCode, Operator, Result};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, Io, Kernel};

use crate::call::{Call, Source, arrange};
use crate::ffi;
use crate::library::{Answer, Library};
use crate::operators::Lower;

/// A target of ACL, and in which arithmetic quantised tensors may be computed on it.
pub trait Target: Send + Sync + 'static {
    const TARGET: i32;
    const QUANTIZED: Quantized = Quantized::Exact;
}

pub struct Neon;
impl Target for Neon {
    const TARGET: i32 = ffi::NEON;
}

pub struct Cl;
impl Target for Cl {
    const TARGET: i32 = ffi::CL;
}

/// The target `A` with ACL's own arithmetic of quantised tensors.
pub struct Native<A>(PhantomData<A>);
impl<A: Target> Target for Native<A> {
    const TARGET: i32 = A::TARGET;
    const QUANTIZED: Quantized = Quantized::Native;
}

/// Lets operator `T` run on target `A`, wherever ACL agrees.
pub fn add<A: Target, T: Lower + Operator>(registry: &mut KernelRegistry) {
    registry.add::<T>(
        |op, node| calls::<A, T>(op, node).map(drop),
        |op, node, _: &mut Build| {
            let calls = calls::<A, T>(op, node).map_err(unsupported)?;
            kernel::<A>(&calls, node)
        },
    );
}

/// The calls that ACL agrees to.
fn calls<A: Target, T: Lower>(op: &T, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
    let exact = op.lower(node).and_then(agreed::<A>);
    exact.or_else(|refusal| or_native::<A>(refusal, op.native(node)))
}

/// The calls in ACL's own arithmetic, if that may be used, after a refusal of the exact one, which else is
/// told of it.
pub fn or_native<A: Target>(
    refusal: Refusal,
    calls: Option<Result<Vec<Call>, Refusal>>,
) -> Result<Vec<Call>, Refusal> {
    let Some(calls) = calls else {
        return Err(refusal);
    };
    let calls = calls.and_then(agreed::<A>);
    match (A::QUANTIZED, calls) {
        (Quantized::Native, calls) => calls,
        (Quantized::Exact, Ok(_)) => Err(Refusal::new(format!(
            "{}; with quantized=native it runs",
            refusal.reason
        ))),
        (Quantized::Exact, Err(_)) => Err(refusal),
    }
}

fn agreed<A: Target>(calls: Vec<Call>) -> Result<Vec<Call>, Refusal> {
    calls.iter().try_for_each(ask::<A>).map(|()| calls)
}

/// What ACL's own `validate` says of a call.
pub fn ask<A: Target>(call: &Call) -> Result<(), Refusal> {
    let library = Library::get().map_err(|e| Refusal::new(e.to_string()))?;
    match library.ask(A::TARGET, call, &[], None) {
        Answer::Yes => Ok(()),
        Answer::Refused(reason) | Answer::Failed(reason) => {
            Err(Refusal::new(format!("the ARM Compute Library: {reason}")))
        }
    }
}

pub fn kernel<A: Target>(calls: &[Call], node: &NodeSpec) -> Result<Box<dyn Kernel>> {
    let steps = calls.iter().map(|call| Step::new::<A>(call, node));
    Ok(Box::new(AclKernel {
        steps: steps.collect::<Result<_>>()?,
    }))
}

pub fn unsupported(refusal: Refusal) -> Error {
    kilim_core::error::unsupported(refusal.reason)
}

fn failure(reason: &str) -> Error {
    Error::new(
        ErrorCode::Device,
        format!("the ARM Compute Library failed: {reason}"),
    )
}

/// What an operator reads.
enum Argument {
    Nothing,
    Input(usize),
    Output,
}

impl Argument {
    fn of(operand: &Option<crate::call::Operand>) -> Argument {
        match operand.as_ref().map(|o| &o.source) {
            Some(Source::Input(i)) => Argument::Input(*i),
            Some(Source::Output) => Argument::Output,
            Some(Source::Constant { .. }) | None => Argument::Nothing,
        }
    }
}

/// An operator of ACL, made for one call.
pub struct Step {
    library: &'static Library,
    op: *mut ffi::Operator,
    inputs: Vec<Argument>,
}

// SAFETY: operators have no thread of their own; the library lets one call at a time touch them.
unsafe impl Send for Step {}
// SAFETY: the library lets one call at a time touch an operator, whichever thread makes it.
unsafe impl Sync for Step {}

/// Inputs of one call at most; concatenations have the most.
pub const MAX_INPUTS: usize = 64;

impl Step {
    /// # Errors
    /// `Device` where ACL cannot make it.
    pub fn new<A: Target>(call: &Call, node: &NodeSpec) -> Result<Step> {
        let library = Library::get()?;
        let mut constants = Vec::with_capacity(call.inputs.len());
        for operand in &call.inputs {
            constants.push(match operand.as_ref().map(|o| &o.source) {
                Some(Source::Constant { input, order }) => {
                    let value = node.input(*input).and_then(|s| s.value.as_ref());
                    let value = value.ok_or_else(|| {
                        kilim_core::error::value_error(format!("input {input} has no value"))
                    })?;
                    Some(arrange(value, order)?)
                }
                _ => None,
            });
        }
        let data: Vec<Option<&[u8]>> = constants.iter().map(Option::as_deref).collect();
        let mut op = std::ptr::null_mut();
        match library.ask(A::TARGET, call, &data, Some(&mut op)) {
            Answer::Yes => Ok(Step {
                library,
                op,
                inputs: call.inputs.iter().map(Argument::of).collect(),
            }),
            Answer::Refused(reason) | Answer::Failed(reason) => Err(failure(&reason)),
        }
    }

    /// Reads the inputs of the node where `input` says they are.
    ///
    /// # Errors
    /// `Device` where ACL fails.
    ///
    /// # Safety
    /// Inputs and output are as large as the call said, and nobody else uses the output meanwhile.
    pub unsafe fn run(&self, input: impl Fn(usize) -> *const u8, output: *mut u8) -> Result<()> {
        let mut inputs = [std::ptr::null(); MAX_INPUTS];
        for (to, argument) in inputs.iter_mut().zip(&self.inputs) {
            *to = match argument {
                Argument::Nothing => std::ptr::null(),
                Argument::Input(i) => input(*i),
                Argument::Output => output.cast_const(),
            };
        }
        let inputs = &inputs[..self.inputs.len()];
        // SAFETY: the operator is of this library; the caller vouches for the tensors.
        unsafe { self.library.run(self.op, inputs, output) }.map_err(|reason| failure(&reason))
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // SAFETY: made by this library, and gone with the step.
        unsafe { self.library.destroy(self.op) }
    }
}

struct AclKernel {
    steps: Vec<Step>,
}

impl Kernel for AclKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let output = io.output_bytes(0).as_mut_ptr();
        for step in &self.steps {
            // SAFETY: the step was made for these tensors: `io` has them with the sizes that the node was
            // planned with.
            unsafe { step.run(|i| io.input_bytes(i).as_ptr(), output)? };
        }
        Ok(())
    }
}
