//! The calls of a program: binding it, writing, running and reading it.

use std::ffi::c_void;
use std::ptr::NonNull;

use super::memory::Block;
use super::program::{Executable, Home, failed};
use super::{guarded, list};
use crate::{self as abi, Status};

pub unsafe extern "C" fn bind(
    _this: *mut c_void,
    executable: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`, the block of `allocate`.
        let (executable, block) =
            unsafe { (&*executable.cast::<Executable>(), &*memory.cast::<Block>()) };
        let mut program = executable.settled();
        if bytes > block.bytes() {
            return Err(failed("the memory is smaller than it is said to be"));
        }
        program.block = Some(block.start());
        program.room = bytes;
        Ok(())
    })
}

pub unsafe extern "C" fn set_timing(_this: *mut c_void, executable: *mut c_void, on: i32) {
    // SAFETY: the executable is of `prepare`.
    unsafe { &*executable.cast::<Executable>() }
        .settled()
        .timing = on != 0;
}

pub unsafe extern "C" fn times(
    _this: *mut c_void,
    executable: *mut c_void,
    seconds: *mut f64,
    count: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let program = unsafe { &*executable.cast::<Executable>() }.idle()?;
        if program.steps.len() != count {
            return Err(failed("the stage has another number of steps"));
        }
        for (i, step) in program.steps.iter().enumerate() {
            // SAFETY: Kilim gave room for `count` numbers.
            unsafe { seconds.add(i).write(step.seconds) };
        }
        Ok(())
    })
}

pub unsafe extern "C" fn copy(
    _this: *mut c_void,
    executable: *mut c_void,
    from: usize,
    to: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let program = unsafe { &*executable.cast::<Executable>() }.idle()?;
        if !program.is_writable(to) {
            return Err(failed("a tensor is written that is not the device's"));
        }
        let root = |tensor: usize| program.roots.get(tensor).copied();
        let (Some(from), Some(to)) = (root(from), root(to)) else {
            return Err(failed("the stage has no such tensor"));
        };
        if from == to {
            return Ok(());
        }
        // SAFETY: nothing else runs now; both are only copied, by a move that lets them overlap.
        let (from, mut to) = unsafe { (program.data(from)?, program.data(to)?) };
        let bytes = from.bytes().len();
        if bytes != to.bytes().len() {
            return Err(failed("a tensor is copied to one of another size"));
        }
        let into = to.bytes_mut().as_mut_ptr();
        // SAFETY: both have so many bytes.
        unsafe { std::ptr::copy(from.bytes().as_ptr(), into, bytes) };
        Ok(())
    })
}

pub unsafe extern "C" fn bytes(_this: *mut c_void, executable: *mut c_void) -> usize {
    // SAFETY: the executable is of `prepare`.
    let program = unsafe { &*executable.cast::<Executable>() }.settled();
    let copied = program.homes.iter().map(|home| match home {
        Home::Copied(_, bytes) => *bytes,
        _ => 0,
    });
    copied.sum::<usize>() + program.own.as_ref().map_or(0, Block::bytes)
}

pub unsafe extern "C" fn write(
    _this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    data: *const c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`, the data Kilim's.
        let (executable, data) =
            unsafe { (&*executable.cast::<Executable>(), list(data.cast(), bytes)) };
        let program = executable.idle()?;
        if !program.is_writable(tensor) {
            return Err(failed("a tensor is written that is not the device's"));
        }
        // SAFETY: nothing else runs now.
        let mut into = unsafe { program.whole(tensor, bytes) }?;
        into.bytes_mut().copy_from_slice(data);
        Ok(())
    })
}

pub unsafe extern "C" fn run(
    _this: *mut c_void,
    executable: *mut c_void,
    part: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        unsafe { &*executable.cast::<Executable>() }.run(part)
    })
}

pub unsafe extern "C" fn read(
    _this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    data: *mut c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let program = unsafe { &*executable.cast::<Executable>() }.idle()?;
        // SAFETY: nothing else runs now.
        let from = unsafe { program.whole(tensor, bytes) }?;
        // SAFETY: Kilim gave `data` to be written, with room for `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.bytes().as_ptr(), data.cast(), bytes) };
        Ok(())
    })
}

pub unsafe extern "C" fn begin(
    _this: *mut c_void,
    executable: *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let mut program = unsafe { &*executable.cast::<Executable>() }.settled();
        program.failure = None;
        Ok(())
    })
}

pub unsafe extern "C" fn end(
    _this: *mut c_void,
    executable: *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let mut program = unsafe { &*executable.cast::<Executable>() }.settled();
        // Nobody reads what was to go into memory of the user's, and would hear of a failure so.
        let unheard = !program.lent.is_empty();
        let failure = program.failure.take().filter(|_| unheard);
        program.detach();
        failure.map_or(Ok(()), Err)
    })
}

pub unsafe extern "C" fn attach(
    _this: *mut c_void,
    executable: *mut c_void,
    tensor: usize,
    data: *mut c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the executable is of `prepare`.
        let mut program = unsafe { &*executable.cast::<Executable>() }.idle()?;
        let Some(Home::Attached {
            start,
            bytes: planned,
        }) = program.homes.get_mut(tensor)
        else {
            return Err(failed("a tensor is attached that is not in host memory"));
        };
        if *planned != bytes || !data.cast::<u64>().is_aligned() {
            return Err(failed(
                "a tensor is attached with another size or alignment than was planned",
            ));
        }
        *start = NonNull::new(data.cast());
        Ok(())
    })
}
