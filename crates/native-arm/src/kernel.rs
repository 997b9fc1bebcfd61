//! Calls of ACL functions as kernels of the host's frame.

use std::marker::PhantomData;

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
    let library = Library::get().map_err(|e| Refusal::new(e.to_string()))?;
    for call in op.lower(node)? {
        match library.ask(A::TARGET, &call, &[], None) {
            Answer::Yes => {}
            Answer::Refused(reason) | Answer::Failed(reason) => {
                return Err(Refusal::new(format!("the ARM Compute Library: {reason}")));
            }
        }
    }
    Ok(())
}

fn build<A: Target, T: Lower>(
    op: &T,
    node: &NodeSpec,
    _build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let calls = op
        .lower(node)
        .map_err(|r| kilim_core::error::unsupported(r.reason))?;
    let library = Library::get()?;
    let mut kernel = AclKernel::<A> {
        library,
        steps: Vec::with_capacity(calls.len()),
        target: PhantomData,
    };
    for call in &calls {
        let step = make(library, A::TARGET, call, node)?;
        kernel.steps.push(step);
    }
    Ok(Box::new(kernel))
}

fn make(library: &Library, target: i32, call: &Call, node: &NodeSpec) -> Result<Step> {
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
    match library.ask(target, call, &data, Some(&mut op)) {
        Answer::Yes => Ok(Step {
            op,
            inputs: call.inputs.iter().map(Argument::of).collect(),
        }),
        Answer::Refused(reason) | Answer::Failed(reason) => Err(failure(&reason)),
    }
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

struct Step {
    op: *mut ffi::Operator,
    inputs: Vec<Argument>,
}

struct AclKernel<A> {
    library: &'static Library,
    steps: Vec<Step>,
    target: PhantomData<A>,
}

// SAFETY: operators have no thread of their own; the library lets one call at a time touch them.
unsafe impl<A> Send for AclKernel<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for AclKernel<A> {}

/// Inputs of one call at most; concatenations have the most.
pub const MAX_INPUTS: usize = 64;

impl<A: Target> Kernel for AclKernel<A> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let output = io.output_bytes(0).as_mut_ptr();
        for step in &self.steps {
            let mut inputs = [std::ptr::null(); MAX_INPUTS];
            for (to, argument) in inputs.iter_mut().zip(&step.inputs) {
                *to = match argument {
                    Argument::Nothing => std::ptr::null(),
                    Argument::Input(i) => io.input_bytes(*i).as_ptr(),
                    Argument::Output => output.cast_const(),
                };
            }
            // SAFETY: the operator is of this library and was made for these tensors: `io` has them
            // with the sizes that the node was planned with.
            unsafe {
                self.library
                    .run(step.op, &inputs[..step.inputs.len()], output)
            }
            .map_err(|reason| failure(&reason))?;
        }
        Ok(())
    }
}

impl<A> Drop for AclKernel<A> {
    fn drop(&mut self) {
        for step in &self.steps {
            // SAFETY: made by this library, and gone with the kernel.
            unsafe { self.library.destroy(step.op) }
        }
    }
}
