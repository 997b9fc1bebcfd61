//! A stage made ready: a kernel for each step, and where its tensors are.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::context::Context;
use super::memory::Block;
use super::queue::Queue;
use super::{Opened, Outcome, caught, guarded, list, node, tensor};
use crate::guest::{Build, Data, Failure, Guest, Kernel, Settings};
use crate::{self as abi, Status};

/// What Kilim calls an executable.
pub struct Executable {
    pub program: Arc<Mutex<Program>>,
    /// Where the program runs; `None` where `run` runs it.
    pub queue: Option<Arc<Queue>>,
}

impl Executable {
    /// The program when everything that was started has ended.
    pub fn settled(&self) -> MutexGuard<'_, Program> {
        if let Some(queue) = &self.queue {
            queue.drain();
        }
        lock(&self.program)
    }

    /// The settled program, or what has failed of it in this run.
    pub fn idle(&self) -> Outcome<MutexGuard<'_, Program>> {
        let program = self.settled();
        match &program.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(program),
        }
    }

    /// Runs a part, or has the queue run it unless something has failed by then.
    pub fn run(&self, part: usize) -> Outcome {
        let Some(queue) = &self.queue else {
            return self.idle()?.run(part);
        };
        let program = self.program.clone();
        let job = move || {
            let mut program = lock(&program);
            if program.failure.is_none() {
                program.failure = caught(|| program.run(part)).err();
            }
        };
        queue.push(Box::new(job)).map_err(|f| (f, -1))
    }
}

/// Locks a program. A kernel that panicked has left it as it was.
pub fn lock(program: &Mutex<Program>) -> MutexGuard<'_, Program> {
    program.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Program {
    pub steps: Vec<Prepared>,
    pub parts: Vec<usize>,
    /// The tensor that holds the bytes of each tensor.
    pub roots: Vec<usize>,
    pub homes: Vec<Home>,
    /// The beginning of the block that the program is bound to.
    pub block: Option<NonNull<u8>>,
    /// Bytes of the block that the program may use.
    pub room: usize,
    /// The block, where the program owns it because the host does not plan.
    pub own: Option<Block>,
    /// Tensors that lie in memory of the user's in this run: where, and how many bytes.
    pub lent: HashMap<usize, (NonNull<u8>, usize)>,
    /// Whether steps are timed.
    pub timing: bool,
    /// What has failed on the queue in this run, and the step to blame.
    pub failure: Option<(Failure, i64)>,
}

// SAFETY: what it points to is memory of the device or of the user, known elements and attached ones, which belong to no thread; kernels and
// blocks can be sent, and blocks that programs share are only read.
unsafe impl Send for Program {}

pub struct Prepared {
    pub name: String,
    pub kernel: Box<dyn Kernel>,
    /// `None` for an input that is left out, or that the kernel has packed.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// How long the step took when it was timed last.
    pub seconds: f64,
}

/// Where the bytes of a tensor are.
pub enum Home {
    /// So far into the block.
    Block { offset: usize, bytes: usize },
    /// Elements of a constant, which Kilim keeps as long as the context.
    Kept { start: NonNull<u8>, bytes: usize },
    /// Elements that are known for this program alone, as long as which Kilim keeps them.
    Planned { start: NonNull<u8>, bytes: usize },
    /// Known elements that Kilim has at an address of another alignment, or not as long as they are needed.
    Copied(Arc<Block>, usize),
    /// Nowhere: all kernels have the constant in forms of their own.
    Packed,
    /// In memory of the session's, whose beginning is known while a run has it attached.
    Attached {
        start: Option<NonNull<u8>>,
        bytes: usize,
    },
    /// The bytes are those of another tensor.
    Alias,
}

pub fn failed(text: &str) -> (Failure, i64) {
    (Failure::device(text), -1)
}

impl Home {
    /// # Safety
    /// The slot is Kilim's, and known elements live as long as the program.
    unsafe fn of(slot: &abi::Slot) -> Outcome<Home> {
        let bytes = slot.tensor.bytes;
        match slot.place {
            abi::ALIAS => return Ok(Home::Alias),
            abi::INPUT | abi::OUTPUT => return Ok(Home::Attached { start: None, bytes }),
            _ => {}
        }
        // SAFETY: the slot is Kilim's, so its tensor is as the interface says, and known elements live as long as the
        // program.
        let Some(known) = (unsafe { tensor(&slot.tensor) }).data else {
            let offset = slot.offset;
            return Ok(match slot.place {
                abi::CONSTANT if bytes > 0 => Home::Packed,
                _ => Home::Block { offset, bytes },
            });
        };
        if known.as_ptr().cast::<u64>().is_aligned() {
            let start = NonNull::from(known).cast();
            return Ok(match slot.place {
                abi::CONSTANT => Home::Kept { start, bytes },
                _ => Home::Planned { start, bytes },
            });
        }
        let block = Block::zeroed(bytes).map_err(|f| (f, -1))?;
        // SAFETY: the block is fresh, and large enough.
        unsafe { std::ptr::copy_nonoverlapping(known.as_ptr(), block.start().as_ptr(), bytes) };
        Ok(Home::Copied(Arc::new(block), bytes))
    }
}

pub unsafe extern "C" fn prepare<G: Guest>(
    this: *mut c_void,
    context: *mut c_void,
    stage: *const abi::Stage,
    executable: *mut *mut c_void,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the rest is Kilim's.
        let (opened, stage) = unsafe { (&*this.cast::<Opened<G>>(), &*stage) };
        let none = Context::new(Settings::default(), None);
        // SAFETY: the context is of `create_context` or `replica`, or NULL.
        let context = unsafe { context.cast::<Context>().as_ref() }.unwrap_or(&none);
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
        // SAFETY: the stage is Kilim's.
        let steps = unsafe { steps(opened, context, stage, slots, &roots) }?;
        let mut read = vec![false; slots.len()];
        // Whoever reads an alias reads the bytes of its root.
        let aliases = (0..).zip(&roots).filter(|(tensor, root)| tensor != *root);
        let inputs = steps.iter().flat_map(|step| step.inputs.iter().flatten());
        for &root in inputs.chain(aliases.map(|(_, root)| root)) {
            read[root] = true;
        }
        for (i, slot) in slots.iter().enumerate() {
            match slot.place == abi::CONSTANT {
                true if !read[i] && context.packs.holds(slot.key) => homes[i] = Home::Packed,
                true => context.packs.keep_raw(slot.key),
                false => {}
            }
        }
        let own = match opened.planned {
            true => None,
            false => Some(Block::of(&opened.guest, stage.arena_bytes).map_err(|f| (f, -1))?),
        };
        let program = Arc::new(Mutex::new(Program {
            steps,
            // SAFETY: Kilim's stage has one more limit of parts than parts.
            parts: unsafe { list(stage.parts, stage.part_count + 1) }.to_vec(),
            roots,
            homes,
            block: own.as_ref().map(Block::start),
            room: own.as_ref().map_or(0, Block::bytes),
            own,
            lent: HashMap::new(),
            timing: false,
            failure: None,
        }));
        context.add(&program);
        let queue = opened.queue.clone();
        let made = Box::new(Executable { program, queue });
        // SAFETY: Kilim gave `executable` to be written.
        unsafe { *executable = Box::into_raw(made).cast() };
        Ok(())
    })
}

/// The steps of a stage with their kernels.
///
/// # Safety
/// The stage is Kilim's, as are its `slots`; the tensor that holds the bytes of each is in `roots`.
unsafe fn steps<G: Guest>(
    opened: &Opened<G>,
    context: &Context,
    stage: &abi::Stage,
    slots: &[abi::Slot],
    roots: &[usize],
) -> Outcome<Vec<Prepared>> {
    let mut made = Vec::with_capacity(stage.step_count);
    let algorithms: &[*const c_char] = match opened.told.chooses {
        // SAFETY: the host's stage has the field, and in it NULL, or a name or NULL for each step.
        true => unsafe { list(stage.algorithms, stage.step_count) },
        false => &[],
    };
    // SAFETY: Kilim's stage has `step_count` steps.
    let steps = unsafe { list(stage.steps, stage.step_count) };
    for (i, step) in steps.iter().enumerate() {
        // SAFETY: the lists of a step are as long as those of its node.
        let (n, inputs, outputs) = unsafe {
            let n = node(step.node);
            let inputs = list(step.inputs, n.inputs.len());
            let outputs = list(step.outputs, n.outputs.len());
            (n, inputs, outputs)
        };
        let algorithm = algorithms.get(i).filter(|name| !name.is_null());
        // SAFETY: it is not NULL, so it ends with a zero; it lives during the call.
        let algorithm = algorithm.map(|&name| unsafe { CStr::from_ptr(name) });
        let constant = |&t: &usize| slots.get(t).filter(|slot| slot.place == abi::CONSTANT);
        let keys = inputs.iter().map(|t| constant(t).map(|slot| slot.key));
        let keys: Vec<Option<u64>> = keys.collect();
        let session = (&context.settings, &*context.packs);
        let mut build = Build::new(session, algorithm, &n.inputs, &keys);
        let kernel = opened.guest.kernel_with(&n, &mut build);
        let inputs = inputs.iter().enumerate();
        made.push(Prepared {
            name: n.name.to_string(),
            kernel: kernel.map_err(|f| (f, i as i64))?,
            inputs: inputs
                .map(|(k, &t)| (t != abi::ABSENT && !build.has_packed(k)).then(|| roots[t]))
                .collect(),
            outputs: outputs.iter().map(|&t| roots[t]).collect(),
            seconds: 0.0,
        });
    }
    Ok(made)
}

pub unsafe extern "C" fn release(_this: *mut c_void, executable: *mut c_void) {
    // SAFETY: the box of `prepare`, released once.
    let executable = unsafe { Box::from_raw(executable.cast::<Executable>()) };
    // What it points to may be gone after this.
    drop(executable.settled());
    // A kernel that panics while it is dropped has nobody to hear it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(executable)));
}

impl Program {
    /// The elements of a tensor that holds its own bytes.
    ///
    /// # Safety
    /// While the result lives nothing writes them that is not that result, and it is not written
    /// where the elements are known.
    pub unsafe fn data(&self, root: usize) -> Outcome<Data> {
        if let Some(&(start, bytes)) = self.lent.get(&root) {
            // SAFETY: aligned and initialised, as whoever gave the memory says; nothing else writes the elements while the
            // result lives.
            return Ok(unsafe { Data::new(start.cast(), bytes) });
        }
        let (start, bytes) = match &self.homes[root] {
            Home::Kept { start, bytes } | Home::Planned { start, bytes } => (*start, *bytes),
            Home::Copied(block, bytes) => (block.start(), *bytes),
            Home::Attached { bytes: 0, .. } => (NonNull::<u64>::dangling().cast(), 0),
            Home::Attached { start, bytes } => {
                let missing = || failed("a tensor in host memory is used before it is attached");
                (start.ok_or_else(missing)?, *bytes)
            }
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
            Home::Packed => return Err(failed("the elements of a constant are gone")),
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
    pub unsafe fn whole(&self, tensor: usize, bytes: usize) -> Outcome<Data> {
        let root = self.roots.get(tensor).copied();
        let root = root.ok_or_else(|| failed("the stage has no such tensor"))?;
        // SAFETY: nothing else writes the elements while the result lives, and known ones are not written.
        let data = unsafe { self.data(root) }?;
        match data.bytes().len() == bytes {
            true => Ok(data),
            false => Err(failed("a tensor has another size than was planned")),
        }
    }

    /// Whether Kilim may write the tensor: it is in the block.
    pub fn is_writable(&self, tensor: usize) -> bool {
        let home = self.roots.get(tensor).map(|&root| &self.homes[root]);
        matches!(home, Some(Home::Block { .. }))
    }

    /// Forgets where tensors in host memory and in memory of the user's are.
    pub fn detach(&mut self) {
        self.lent.clear();
        for home in &mut self.homes {
            if let Home::Attached { start, .. } = home {
                *start = None;
            }
        }
    }

    pub fn run(&mut self, part: usize) -> Outcome {
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
            let start = self.timing.then(Instant::now);
            let done = self.steps[i].kernel.run(&inputs, &mut outputs);
            done.map_err(|f| (f, i as i64))?;
            if let Some(start) = start {
                self.steps[i].seconds = start.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }
}
