//! The kernel trait and what kernels are built with.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{ConstantKey, NodeSpec};
use kilim_core::memory::MemoryMode;
use kilim_core::tensor::AlignedBytes;
use kilim_core::tuning::Tuned;

use super::cpu::CpuRun;
use super::io::Io;
use super::packs::{PackKey, Packs};
use super::scratch::Scratch;

/// One operator prepared for concrete shapes, element types and attributes. Everything that can be
/// decided beforehand is decided when it is built: [`Kernel::run`] allocates nothing.
pub trait Kernel: Send + Sync {
    /// Computes the outputs, in pieces of [`Io::cpu`].
    ///
    /// # Errors
    /// `InvalidValue` where the data itself is out of the operator's domain (an index too large), `Aborted` where the
    /// run is to stop.
    fn run(&self, io: &mut Io) -> Result<()>;

    /// [`Io::scratch`] that a run needs; all kernels of a session share it.
    fn scratch(&self) -> Scratch {
        Scratch::NONE
    }
}

/// What a kernel is built with beside its node.
pub struct Build<'a> {
    pub(crate) packs: &'a mut Packs,
    pub(crate) constants: &'a [Option<ConstantKey>],
    pub(crate) cpu: &'a CpuRun<'a>,
    pub(crate) memory: MemoryMode,
    pub(crate) tuned: &'a Tuned,
    /// Inputs that were packed.
    pub(crate) packed: Vec<usize>,
}

impl<'a> Build<'a> {
    /// What the kernel is built with: the threads that it will have, too, and what may stop the building.
    pub fn cpu(&self) -> &'a CpuRun<'a> {
        self.cpu
    }

    /// The threads that the kernel will have.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
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
        make: impl FnOnce(&CpuRun) -> Result<AlignedBytes>,
    ) -> Result<Arc<AlignedBytes>> {
        debug_assert!(node.input(input).is_some_and(|s| s.value.is_some()));
        self.cpu.check()?;
        self.packed.push(input);
        let make = || make(self.cpu);
        match self.constants.get(input).copied().flatten() {
            Some(constant) => self.packs.get_or_insert(constant, key, make),
            None => Ok(Arc::new(make()?)),
        }
    }
}
