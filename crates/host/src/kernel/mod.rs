//! The kernel trait and what kernels are built with.

mod io;
mod packs;
mod scratch;
mod table;
mod texts;
pub mod widen;

use std::any::Any;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{ConstantKey, NodeSpec};
use kilim_core::memory::{Ledger, MemoryMode};
use kilim_core::tensor::AlignedBytes;
use kilim_core::tuning::Tuned;

pub use self::io::{ABSENT, Io, Listed, Taken, View};
pub use self::packs::{PackKey, Packs};
pub use self::scratch::Scratch;
pub use self::table::Table;
pub use self::texts::Texts;
use crate::work::CpuRun;

/// One operator prepared for concrete shapes, element types and attributes. Everything that can be
/// decided beforehand is decided when it is built: [`Kernel::run`] allocates nothing.
pub trait Kernel: Send + Sync {
    /// Computes the outputs, in pieces of [`Io::cpu`].
    ///
    /// # Errors
    /// `InvalidValue` where the data itself is out of the operator's domain (an index too large), `Aborted` where the
    /// run is to stop.
    fn run(&self, io: &mut Io) -> Result<()>;

    /// Whether the output may have the memory of the input that it is written on
    /// ([`Operator::writes_on`](kilim_core::Operator::writes_on)): the kernel takes it by [`Io::output_on`] alone.
    fn writes_on(&self) -> bool {
        false
    }

    /// The kernel as what it is, where one for other sizes may take its place in its memory.
    fn in_place(&mut self) -> Option<&mut dyn Any> {
        None
    }

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
    /// Where tables are counted.
    pub(crate) ledger: &'a Ledger,
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

    /// A table of all elements of an iterator; `cost` is that of one, in operations.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory, or the machine has none, and `Aborted` where the load is to stop.
    pub fn table<T>(
        &self,
        mut elements: impl ExactSizeIterator<Item = T>,
        cost: usize,
    ) -> Result<Table<T>> {
        let len = elements.len();
        let mut table = self.room(len)?;
        self.cpu.long_pieces(len, cost, |piece| {
            for element in elements.by_ref().take(piece.len()) {
                table.push(element);
            }
            Ok(())
        })?;
        Ok(table)
    }

    /// An empty table with room for so many entries.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory, or the machine has none.
    pub fn room<T>(&self, entries: usize) -> Result<Table<T>> {
        Table::with_room(self.ledger, entries)
    }

    /// A table of a list whose length was not known before it was made.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory.
    pub fn keep<T>(&self, entries: Vec<T>) -> Result<Table<T>> {
        Table::of(self.ledger, entries)
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
