//! Running a stage in a library.

mod calls;

use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{
    BackendId, DeviceTensor, Executable, LocalFuture, Location, Progress, StageSpec, StageTensors,
};
use kilim_core::ids::{KernelIndex, PartIndex, PerKernel, TensorIndex};
use kilim_core::memory::{Arena, ArenaGuard, Claim, Ledger, Storage};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Error, ErrorCode, Interrupt, Result, Tensor};
use kilim_plugin_abi as abi;

use crate::context::ContextHandle;
use crate::host::{self, Attached};
use crate::kept::KeptTensor;
use crate::library::{Library, Message, check};
use crate::memory::PluginMemory;

/// A stage that a backend has prepared.
pub struct PluginExecutable {
    id: BackendId,
    raw: *mut c_void,
    /// Keeps the data of known tensors, to which the backend may point.
    stage: Names,
    /// In the context's registry for as long as the stage is kept.
    tensors: Arc<StageTensors>,
    arena: Arena,
    /// Bytes of the arena that the stage takes; none where the library allocates for itself.
    planned: Claim,
    _own: Claim,
    /// The generation of the arena's memory that the library was told of.
    generation: Option<u64>,
    attached: Attached,
    context: Arc<ContextHandle>,
}

// SAFETY: an executable may be used by any thread, one at a time; it is used under `&mut`.
unsafe impl Send for PluginExecutable {}

impl Drop for PluginExecutable {
    fn drop(&mut self) {
        let table = &self.context.library.table;
        if let Some(release) = table.release_executable.filter(|_| !self.raw.is_null()) {
            // SAFETY: made by `prepare`, released once and before its context.
            unsafe { release(table.this, self.raw) };
        }
    }
}

/// The stage, for what it is called in errors.
pub struct Names(StageSpec);

impl Names {
    /// The error with the node that the backend blames.
    pub fn at(&self, error: Error, node: Option<KernelIndex>) -> Error {
        match node.and_then(|i| self.0.nodes.get(i)) {
            Some(node) => error.at(&node.name, node.op.name()),
            None => error,
        }
    }
}

type Step = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut abi::Message) -> abi::Status;

impl PluginExecutable {
    /// Takes over what `prepare` gave. `succeeded` says whether it did.
    pub fn new(
        id: BackendId,
        (raw, stage, tensors): (*mut c_void, StageSpec, Arc<StageTensors>),
        context: Arc<ContextHandle>,
        (arena, ledger, alignment): (&Arena, &Ledger, usize),
        succeeded: impl FnOnce(&Names) -> Result<()>,
    ) -> Result<PluginExecutable> {
        let stage = Names(stage);
        succeeded(&stage)?;
        let table = &context.library.table;
        let ask = |bytes: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> usize>| {
            // SAFETY: a function of the table, with what `prepare` gave.
            bytes.map(|bytes| unsafe { bytes(table.this, raw) })
        };
        let (tensors_end, own) = (stage.0.arena_bytes, ask(table.bytes));
        let (planned, own) = match (table.bind, ask(table.scratch_bytes)) {
            (None, _) => (0, own.unwrap_or(tensors_end)),
            (Some(_), None | Some(0)) => (tensors_end, own.unwrap_or(0)),
            (Some(_), Some(scratch)) => {
                let start = tensors_end.checked_next_multiple_of(alignment);
                let end = start.unwrap_or(usize::MAX).saturating_add(scratch);
                (end, own.unwrap_or(0))
            }
        };
        Ok(PluginExecutable {
            id,
            raw,
            stage,
            tensors,
            arena: arena.clone(),
            planned: ledger.acquire(Storage::Dynamic, planned)?,
            _own: ledger.acquire(Storage::DynamicSeparate, own)?,
            generation: None,
            attached: Attached::default(),
            context,
        })
    }

    /// What `library` calls the executable; `None` where it is another library's.
    pub fn raw_of(&self, library: &Arc<Library>) -> Option<*mut c_void> {
        Arc::ptr_eq(&self.context.library, library).then_some(self.raw)
    }

    /// Locks the arena, and tells the library where it is if that is another place than before.
    fn lock<'a>(&mut self, arena: &'a Arena) -> Result<Option<ArenaGuard<'a>>> {
        let (table, bytes) = (&self.context.library.table, self.planned.bytes());
        let Some(bind) = table.bind.filter(|_| bytes > 0) else {
            return Ok(None);
        };
        let mut guard = arena.lock(bytes)?;
        let generation = guard.generation();
        if self.generation != Some(generation)
            && let Some(memory) = guard.memory::<PluginMemory>()?
        {
            self.generation = None;
            let mut message = Message::new();
            // SAFETY: a function of the table, with what `prepare` and `allocate` gave; the block has
            // at least so many bytes.
            let status = unsafe { bind(table.this, self.raw, memory.raw, bytes, message.raw()) };
            self.check(status, &message, "did not take its memory")?;
            self.generation = Some(generation);
        }
        Ok(Some(guard))
    }

    fn check(&self, status: abi::Status, message: &Message, what: &str) -> Result<()> {
        check(status, message, &format!("`{}` {what}", self.id))
            .map_err(|e| self.stage.at(e, message.node()))
    }

    fn optional(&mut self, step: Option<Step>, what: &str) -> Result<()> {
        let Some(step) = step else { return Ok(()) };
        let mut message = Message::new();
        // SAFETY: a function of the table, with what `prepare` gave.
        let status = unsafe { step(self.context.library.table.this, self.raw, message.raw()) };
        self.check(status, &message, what)
    }

    /// The name of a tensor of the stage that is of this element type and shape.
    fn fits(&self, tensor: TensorIndex, dtype: DType, shape: &[usize]) -> Result<&str> {
        let slot = self.stage.0.tensors.get(tensor);
        let slot = slot.filter(|s| s.spec.dtype == dtype && s.spec.shape == shape);
        let what = "a tensor is not what the stage was planned for";
        slot.map(|slot| slot.name.as_str())
            .ok_or_else(|| Error::new(ErrorCode::Shape, what))
    }

    /// Waits for the device.
    fn finish(&self) -> Result<()> {
        self.context
            .finish(&format!("`{}` did not finish", self.id))
    }

    fn location(&self, tensor: TensorIndex) -> Option<Location> {
        let slot = self.stage.0.tensors.get(tensor)?;
        Some(slot.location)
    }

    fn take(&mut self, tensor: TensorIndex) -> Result<Tensor> {
        let Some(slot) = self.stage.0.tensors.get(tensor) else {
            return Err(Error::new(ErrorCode::State, "the stage has no such tensor"));
        };
        if self.attached.holds(&self.stage.0, tensor) {
            self.finish()?;
            return self.attached.hand_out(&self.stage.0, tensor);
        }
        let (dtype, shape, name) = (slot.spec.dtype, slot.spec.shape.clone(), slot.name.clone());
        let mut bytes = AlignedBytes::zeroed(byte_count(dtype, &shape)?)?;
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let table = &self.context.library.table;
        let Some(read) = table.read else {
            return Err(Error::new(ErrorCode::State, "the backend reads nothing"));
        };
        let mut message = Message::new();
        let room = bytes.as_mut_slice();
        // SAFETY: a function of the table; `room` has as many bytes as it is told.
        let status = unsafe {
            let to = room.as_mut_ptr().cast();
            read(
                table.this,
                self.raw,
                tensor.0,
                to,
                room.len(),
                message.raw(),
            )
        };
        self.check(status, &message, "did not give a tensor")
            .map_err(|e| e.with_input(name))?;
        Tensor::from_bytes(dtype, &shape, Arc::new(bytes))
    }
}

impl Executable for PluginExecutable {
    fn execute_begin(&mut self) -> Result<()> {
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        self.optional(self.context.library.table.begin, "did not begin a run")?;
        for tensor in host::outputs(&self.stage.0) {
            let place = self.attached.room(&self.stage.0, tensor)?;
            self.attach(tensor, place)?;
        }
        Ok(())
    }

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        let name = self.fits(tensor, data.dtype(), data.shape())?.to_string();
        if self.location(tensor) == Some(Location::Input) {
            let place = self.attached.share(tensor, data)?;
            return self.attach(tensor, place).map_err(|e| e.with_input(name));
        }
        if self.location(tensor) == Some(Location::Output)
            && self.attached.holds(&self.stage.0, tensor)
        {
            return self.attached.fill(tensor, data);
        }
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let table = &self.context.library.table;
        let Some(write) = table.write else {
            return Err(Error::new(ErrorCode::State, "the backend takes nothing"));
        };
        let mut message = Message::new();
        let bytes = data.read()?;
        // SAFETY: a function of the table; the data has as many bytes as it is told.
        let status = unsafe {
            let from = bytes.as_ptr().cast();
            write(
                table.this,
                self.raw,
                tensor.0,
                from,
                bytes.len(),
                message.raw(),
            )
        };
        self.check(status, &message, "did not take a tensor")
            .map_err(|e| e.with_input(name))
    }

    fn takes(&self, data: &DeviceTensor) -> bool {
        let on_host = || host::is_attached(&self.stage.0);
        (host::users(data).is_some() && on_host())
            || KeptTensor::of(data, &self.context.library).is_some()
    }

    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        self.use_kept(tensor, data)
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        let on_device = [from, to].map(|t| !self.attached.holds(&self.stage.0, t)) == [true; 2];
        if let Some(copy) = self.context.library.table.copy.filter(|_| on_device) {
            let arena = self.arena.clone();
            let _guard = self.lock(&arena)?;
            let mut message = Message::new();
            // SAFETY: a function of the table, with what `prepare` gave.
            let status = unsafe {
                let this = self.context.library.table.this;
                copy(this, self.raw, from.0, to.0, message.raw())
            };
            return self.check(status, &message, "did not copy a tensor");
        }
        let value = self.take(from)?;
        let slot = self.stage.0.tensors.get(to);
        let shape = slot.map_or(&[][..], |s| &s.spec.shape);
        let value = value.reshaped(shape)?;
        self.write(to, &value)
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        interrupt.check()?;
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let table = &self.context.library.table;
        let Some(run) = table.run.filter(|_| part < self.stage.0.parts.end()) else {
            return Err(Error::new(ErrorCode::State, "the stage has no such part"));
        };
        let mut message = Message::new();
        // SAFETY: a function of the table, with what `prepare` gave.
        let status = unsafe { run(table.this, self.raw, part.0, message.raw()) };
        self.check(status, &message, "failed")?;
        Ok(Progress::Whole)
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let read = tensors.iter().map(|&t| self.take(t)).collect();
        Box::pin(std::future::ready(read))
    }

    fn export(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        self.keep(tensor)
    }

    fn export_into(&mut self, tensor: TensorIndex, memory: &DeviceTensor) -> Result<bool> {
        self.keep_in(tensor, memory)
    }

    fn submit(&mut self) -> Result<()> {
        self.optional(self.context.library.table.submit, "did not start its work")
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        let what = format!("`{}` did not finish", self.id);
        self.context.wait_finish(what)
    }

    fn set_profiling(&mut self, on: bool) {
        let table = &self.context.library.table;
        if let Some(set_timing) = table.set_timing {
            // SAFETY: a function of the table, with what `prepare` gave.
            unsafe { set_timing(table.this, self.raw, i32::from(on)) };
        }
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        Box::pin(std::future::ready(self.times()))
    }

    fn execute_end(&mut self) -> Result<()> {
        let ended = self.optional(self.context.library.table.end, "did not end a run");
        let finished = match self.attached.is_empty() {
            true => Ok(()),
            // The device may still use the memory.
            false => self.finish(),
        };
        self.attached.clear();
        ended.and(finished)
    }

    fn launches(&self) -> usize {
        self.stage.0.nodes.len()
    }
}
