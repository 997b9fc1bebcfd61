//! A stage made ready: a kernel for each step, and where its tensors are.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::memory::Block;
use super::{Opened, Outcome, guarded, list, node, tensor};
use crate::guest::{Data, Failure, Guest, Kernel};
use crate::{self as abi, Status};

struct Program {
    steps: Vec<Prepared>,
    parts: Vec<usize>,
    /// The tensor that holds the bytes of each tensor.
    roots: Vec<usize>,
    homes: Vec<Home>,
    /// The beginning of the block that the program is bound to.
    block: Option<NonNull<u8>>,
    /// Bytes of the block that the program may use.
    room: usize,
    /// The block, where the program owns it because the host does not plan.
    own: Option<Block>,
}

struct Prepared {
    kernel: Box<dyn Kernel>,
    inputs: Vec<Option<usize>>,
    outputs: Vec<usize>,
}

/// Where the bytes of a tensor are.
enum Home {
    /// So far into the block.
    Block { offset: usize, bytes: usize },
    /// Known elements, which Kilim keeps as long as the program.
    Kept { start: NonNull<u8>, bytes: usize },
    /// Known elements that Kilim has at an address of another alignment.
    Copied(Block, usize),
    /// The bytes are those of another tensor.
    Alias,
}

fn failed(text: &str) -> (Failure, i64) {
    (Failure::device(text), -1)
}

impl Home {
    /// # Safety
    /// The slot is Kilim's, and known elements live as long as the program.
    unsafe fn of(slot: &abi::Slot) -> Outcome<Home> {
        let bytes = slot.tensor.bytes;
        if slot.place == abi::ALIAS {
            return Ok(Home::Alias);
        }
        // SAFETY: the slot is Kilim's, so its tensor is as the interface says, and known elements live as long as the
        // program.
        let Some(known) = (unsafe { tensor(&slot.tensor) }).data else {
            let offset = slot.offset;
            return Ok(Home::Block { offset, bytes });
        };
        if known.as_ptr().cast::<u64>().is_aligned() {
            let start = NonNull::from(known).cast();
            return Ok(Home::Kept { start, bytes });
        }
        let block = Block::zeroed(bytes).map_err(|f| (f, -1))?;
        // SAFETY: the block is fresh, and large enough.
        unsafe { std::ptr::copy_nonoverlapping(known.as_ptr(), block.start().as_ptr(), bytes) };
        Ok(Home::Copied(block, bytes))
    }
}

pub unsafe extern "C" fn prepare<G: Guest>(
    this: *mut c_void,
    _context: *mut c_void,
    stage: *const abi::Stage,
    executable: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the rest is Kilim's.
        let (opened, stage) = unsafe { (&*this.cast::<Opened<G>>(), &*stage) };
        // SAFETY: Kilim's stage has `tensor_count` tensors.
        let slots = unsafe { list(stage.tensors, stage.tensor_count) };
        let mut roots: Vec<usize> = (0..slots.len()).collect();
        let mut homes = Vec::with_capacity(slots.len());
        for (i, slot) in slots.iter().enumerate() {
            while slots[roots[i]].place == abi::ALIAS {
                roots[i] = slots[roots[i]].of;
            }
            // SAFETY: the interface keeps known elements until the executable is released.
            homes.push(unsafe { Home::of(slot) }?);
        }
        let mut steps = Vec::with_capacity(stage.step_count);
        // SAFETY: Kilim's stage has `step_count` steps.
        for (i, step) in unsafe { list(stage.steps, stage.step_count) }
            .iter()
            .enumerate()
        {
            // SAFETY: the lists of a step are as long as those of its node.
            let (n, inputs, outputs) = unsafe {
                let n = node(step.node);
                let inputs = list(step.inputs, n.inputs.len());
                let outputs = list(step.outputs, n.outputs.len());
                (n, inputs, outputs)
            };
            steps.push(Prepared {
                kernel: opened.guest.kernel(&n).map_err(|f| (f, i as i64))?,
                inputs: inputs
                    .iter()
                    .map(|&t| (t != abi::ABSENT).then(|| roots[t]))
                    .collect(),
                outputs: outputs.iter().map(|&t| roots[t]).collect(),
            });
        }
        let own = match opened.planned {
            true => None,
            false => Some(Block::zeroed(stage.arena_bytes).map_err(|f| (f, -1))?),
        };
        let program = Box::new(Program {
            steps,
            // SAFETY: Kilim's stage has one more limit of parts than parts.
            parts: unsafe { list(stage.parts, stage.part_count + 1) }.to_vec(),
            roots,
            homes,
            block: own.as_ref().map(Block::start),
            room: own.as_ref().map_or(0, Block::bytes),
            own,
        });
        // SAFETY: Kilim gave `executable` to be written.
        unsafe { *executable = Box::into_raw(program).cast() };
        Ok(())
    })
}

pub unsafe extern "C" fn release(_this: *mut c_void, executable: *mut c_void) {
    // SAFETY: the box of `prepare`, released once.
    let program = unsafe { Box::from_raw(executable.cast::<Program>()) };
    // A kernel that panics while it is dropped has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(program)));
}

impl Program {
    /// The elements of a tensor that holds its own bytes.
    ///
    /// # Safety
    /// While the result lives nothing writes them that is not that result, and it is not written
    /// where the elements are known.
    unsafe fn data(&self, root: usize) -> Outcome<Data> {
        let (start, bytes) = match &self.homes[root] {
            Home::Kept { start, bytes } => (*start, *bytes),
            Home::Copied(block, bytes) => (block.start(), *bytes),
            Home::Block { bytes: 0, .. } => (NonNull::<u64>::dangling().cast(), 0),
            Home::Block { offset, bytes } => {
                let end = offset.checked_add(*bytes);
                let fits = end.is_some_and(|end| end <= self.room) && offset % 8 == 0;
                let Some(block) = self.block.filter(|_| fits) else {
                    return Err(failed("a tensor lies outside of the memory that was bound"));
                };
                // SAFETY: the block has room for so many bytes.
                (unsafe { block.add(*offset) }, *bytes)
            }
            Home::Alias => return Err(failed("a tensor is another name of itself")),
        };
        // SAFETY: aligned and initialised; nothing else writes the elements while the result lives, and known ones
        // are not written.
        Ok(unsafe { Data::new(start.cast(), bytes) })
    }

    /// The elements of any tensor, as many bytes as the host says.
    ///
    /// # Safety
    /// While the result lives nothing writes the elements that is not that result, and it is not written where they are
    /// known.
    unsafe fn whole(&self, tensor: usize, bytes: usize) -> Outcome<Data> {
        let root = self.roots.get(tensor).copied();
        let root = root.ok_or_else(|| failed("the stage has no such tensor"))?;
        // SAFETY: nothing else writes the elements while the result lives, and known ones are not written.
        let data = unsafe { self.data(root) }?;
        match data.bytes().len() == bytes {
            true => Ok(data),
            false => Err(failed("a tensor has another size than was planned")),
        }
    }

    fn is_known(&self, tensor: usize) -> bool {
        let home = self.roots.get(tensor).map(|&root| &self.homes[root]);
        !matches!(home, Some(Home::Block { .. }))
    }

    fn run(&mut self, part: usize) -> Outcome {
        let (Some(&from), Some(&to)) = (self.parts.get(part), self.parts.get(part + 1)) else {
            return Err(failed("there is no such part"));
        };
        for i in from..to {
            // SAFETY: outputs are computed and overlap nothing that the step reads: Kilim's planner
            // gives them places of their own. Both live until the kernel has run.
            let (inputs, mut outputs) = unsafe {
                let step = &self.steps[i];
                let inputs = step.inputs.iter();
                let inputs = inputs.map(|t| t.map(|t| self.data(t)).transpose());
                let outputs = step.outputs.iter().map(|&t| self.data(t));
                (
                    inputs.collect::<Outcome<Vec<_>>>()?,
                    outputs.collect::<Outcome<Vec<_>>>()?,
                )
            };
            let inputs: Vec<_> = inputs.iter().map(Option::as_ref).collect();
            let done = self.steps[i].kernel.run(&inputs, &mut outputs);
            done.map_err(|f| (f, i as i64))?;
        }
        Ok(())
    }
}

pub unsafe extern "C" fn bind(
    _this: *mut c_void,
    executable: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: the program is of `prepare`, the block of `allocate`.
        let (program, block) =
            unsafe { (&mut *executable.cast::<Program>(), &*memory.cast::<Block>()) };
        if bytes > block.bytes() {
            return Err(failed("the memory is smaller than it is said to be"));
        }
        program.block = Some(block.start());
        program.room = bytes;
        Ok(())
    })
}

pub unsafe extern "C" fn bytes(_this: *mut c_void, executable: *mut c_void) -> usize {
    // SAFETY: the program is of `prepare`.
    let program = unsafe { &*executable.cast::<Program>() };
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
        // SAFETY: the program is of `prepare`, the data Kilim's.
        let (program, data) = unsafe { (&*executable.cast::<Program>(), list(data.cast(), bytes)) };
        if program.is_known(tensor) {
            return Err(failed("a tensor is written whose elements are known"));
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
        // SAFETY: the program is of `prepare`.
        unsafe { &mut *executable.cast::<Program>() }.run(part)
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
        // SAFETY: the program is of `prepare`; nothing else runs now.
        let from = unsafe { (*executable.cast::<Program>()).whole(tensor, bytes) }?;
        // SAFETY: Kilim gave `data` to be written, with room for `bytes` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.bytes().as_ptr(), data.cast(), bytes) };
        Ok(())
    })
}
