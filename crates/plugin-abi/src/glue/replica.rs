//! Contexts and executables for runs of one session at the same time, and constants that are packed.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use super::context::Context;
use super::memory::Block;
use super::program::{Executable, Home, Prepared, Program, lock};
use super::{Opened, Outcome, guarded};
use crate::guest::{Call, Failure, Guest};
use crate::{self as abi, Status};

pub unsafe extern "C" fn replica<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    replica: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the context of `create_context` or of this.
        let (opened, context) =
            unsafe { (&*this.cast::<Opened<G>>(), &*context.cast::<Context>()) };
        let made = Box::new(context.replica());
        // SAFETY: Kilim gave `replica` to be written.
        unsafe { *replica = Box::into_raw(made).cast() };
        opened.hear(Call::Replica);
        Ok(())
    })
}

pub unsafe extern "C" fn replicate<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    executable: *mut c_void,
    replica: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the context of `replica`, the executable of `prepare`.
        let (opened, context, executable) = unsafe {
            (
                &*this.cast::<Opened<G>>(),
                &*context.cast::<Context>(),
                &*executable.cast::<Executable>(),
            )
        };
        let program = lock(&executable.program).replica()?;
        let program = Arc::new(Mutex::new(program));
        context.add(&program);
        let queue = opened.queue.clone();
        let made = Box::new(Executable { program, queue });
        // SAFETY: Kilim gave `replica` to be written.
        unsafe { *replica = Box::into_raw(made).cast() };
        opened.hear(Call::Replicate);
        Ok(())
    })
}

impl Program {
    /// A program of the same kernels, with memory of its own.
    fn replica(&self) -> Outcome<Program> {
        let none = || Failure::unsupported("a kernel cannot be replicated");
        let steps = self.steps.iter().enumerate().map(|(i, step)| {
            Ok(Prepared {
                name: step.name.clone(),
                kernel: step.kernel.replica().ok_or_else(|| (none(), i as i64))?,
                inputs: step.inputs.clone(),
                outputs: step.outputs.clone(),
                seconds: 0.0,
            })
        });
        Ok(Program {
            steps: steps.collect::<Outcome<_>>()?,
            parts: self.parts.clone(),
            roots: self.roots.clone(),
            homes: self
                .homes
                .iter()
                .map(Home::replica)
                .collect::<Result<_, _>>()
                .map_err(|f| (f, -1))?,
            block: None,
            room: 0,
            own: None,
            lent: HashMap::new(),
            timing: false,
            failure: None,
        })
    }
}

impl Home {
    /// Where the bytes of the tensor are in a replica, which outlives the program.
    fn replica(&self) -> Result<Home, Failure> {
        Ok(match self {
            Home::Block { offset, bytes } => Home::Block {
                offset: *offset,
                bytes: *bytes,
            },
            Home::Kept { start, bytes } => Home::Kept {
                start: *start,
                bytes: *bytes,
            },
            Home::Planned { start, bytes } => {
                let block = Block::zeroed(*bytes)?;
                let to = block.start().as_ptr();
                // SAFETY: Kilim keeps the elements as long as the program; the block is fresh, and large enough.
                unsafe { std::ptr::copy_nonoverlapping(start.as_ptr(), to, *bytes) };
                Home::Copied(Arc::new(block), *bytes)
            }
            Home::Copied(block, bytes) => Home::Copied(block.clone(), *bytes),
            Home::Attached { bytes, .. } => Home::Attached {
                start: None,
                bytes: *bytes,
            },
            Home::Packed => Home::Packed,
            Home::Alias => Home::Alias,
        })
    }
}

pub unsafe extern "C" fn is_packed<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    key: u64,
) -> i32 {
    // SAFETY: `this` is of `create`, the context of `create_context` or of `replica`.
    let (opened, context) = unsafe { (&*this.cast::<Opened<G>>(), &*context.cast::<Context>()) };
    let packed = context.packs.is_packed(key);
    if packed {
        opened.hear(Call::IsPacked);
    }
    i32::from(packed)
}
