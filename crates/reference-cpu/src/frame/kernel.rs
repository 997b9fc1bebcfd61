//! The kernel trait and what kernels are built with.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::{ConstantKey, NodeSpec};
use kilim_core::memory::MemoryMode;
use kilim_core::tensor::AlignedBytes;
use kilim_core::tuning::Tuned;
use kilim_core::{Interrupt, Result};

use super::io::Io;
use super::packs::{PackKey, Packs};

/// One operator prepared for concrete shapes, element types and attributes. Everything that can be
/// decided beforehand is decided when it is built: [`Kernel::run`] allocates nothing.
pub trait Kernel: Send + Sync {
    /// Computes the outputs.
    ///
    /// # Errors
    /// `InvalidValue` where the data itself is out of the operator's domain (an index too large).
    fn run(&self, io: &mut Io) -> Result<()>;

    /// Bytes of [`Io::scratch`] that a run needs; all kernels of a session share them.
    fn scratch_bytes(&self) -> usize {
        0
    }
}

/// The threads that the kernels of a context may spread their work over.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    count: usize,
}

impl Threads {
    pub(crate) const SINGLE: Threads = Threads { count: 1 };

    /// The number of threads, the calling one included.
    pub fn count(&self) -> usize {
        self.count
    }
}

/// What a kernel computes with during a run: the threads that it may use, and what may stop it.
#[derive(Clone, Copy, Debug)]
pub struct CpuRun<'a> {
    threads: Threads,
    interrupt: &'a Interrupt,
}

impl<'a> CpuRun<'a> {
    pub(crate) fn new(threads: Threads, interrupt: &'a Interrupt) -> CpuRun<'a> {
        CpuRun { threads, interrupt }
    }

    /// The number of threads, the calling one included.
    pub fn threads(&self) -> usize {
        self.threads.count
    }

    /// Asks whether the run is to stop. A kernel asks about once for each millisecond of computing.
    ///
    /// # Errors
    /// `Aborted` if it is.
    pub fn check(&self) -> Result<()> {
        self.interrupt.check()
    }

    /// Calls `work` with ranges that together are `0..items`, each at least `grain` long but the
    /// last.
    pub fn split(&self, items: usize, grain: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        let _ = grain;
        if items > 0 {
            work(0..items);
        }
    }
}

/// What a kernel is built with beside its node.
pub struct Build<'a> {
    pub(crate) packs: &'a mut Packs,
    pub(crate) constants: &'a [Option<ConstantKey>],
    pub(crate) threads: Threads,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) memory: MemoryMode,
    pub(crate) tuned: &'a Tuned,
    /// Inputs that were packed, as bits.
    pub(crate) packed: u64,
}

impl Build<'_> {
    /// The threads that the kernel will have.
    pub fn threads(&self) -> usize {
        self.threads.count
    }

    /// Whether to spare memory rather than time.
    pub fn memory(&self) -> MemoryMode {
        self.memory
    }

    /// What was measured of this device's kernels.
    pub fn tuned(&self) -> &Tuned {
        self.tuned
    }

    /// A constant input in the form that a kernel wants, made at most once in a session for each
    /// `key`. Inputs that are not constants of the session are packed anew. The kernel finds no
    /// elements in the input itself when it runs.
    ///
    /// # Errors
    /// Those of `make`, and `Aborted` or `Timeout` where the load was interrupted.
    pub fn pack(
        &mut self,
        node: &NodeSpec,
        input: usize,
        key: PackKey,
        make: impl FnOnce() -> Result<AlignedBytes>,
    ) -> Result<Arc<AlignedBytes>> {
        debug_assert!(node.input(input).is_some_and(|s| s.value.is_some()));
        self.interrupt.check()?;
        self.packed |= 1 << input;
        match self.constants.get(input).copied().flatten() {
            Some(constant) => self.packs.get_or_insert(constant, key, make),
            None => Ok(Arc::new(make()?)),
        }
    }
}
