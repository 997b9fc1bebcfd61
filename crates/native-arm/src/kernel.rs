//! Calls of ACL functions as kernels of the host's frame.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::{Error, ErrorCode, Operator, Result};
use kilim_reference_cpu::registry::KernelRegistry;
use kilim_reference_cpu::{Build, Io, Kernel};

use crate::call::{Call, Source, arrange};
use crate::ffi;
use crate::library::{Answer, Library};
use crate::operators::Lower;

/// A target of ACL.
pub trait Target: Send + Sync + 'static {
    const TARGET: i32;
}

pub struct Neon;
impl Target for Neon {
    const TARGET: i32 = ffi::NEON;
}

pub struct Cl;
impl Target for Cl {
    const TARGET: i32 = ffi::CL;
}

/// Lets operator `T` run on target `A`, wherever ACL agrees.
pub fn add<A: Target, T: Lower + Operator>(registry: &mut KernelRegistry) {
    registry.add::<T>(accepts::<A, T>, build::<A, T>);
}

fn accepts<A: Target, T: Lower>(op: &T, node: &NodeSpec) -> Result<(), Refusal> {
    let calls = op.lower(node)?;
    calls.iter().try_for_each(ask::<A>)
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

fn build<A: Target, T: Lower>(
    op: &T,
    node: &NodeSpec,
    _build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let calls = op.lower(node).map_err(unsupported)?;
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
// SAFETY: as above.
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
                    Some(arrange(value, order))
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
