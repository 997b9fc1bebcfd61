//! A prepared stage: an arena, and for every node the dispatches to record.

mod adapt;
pub(crate) mod binder;
mod command;
pub(crate) mod constants;
pub(crate) mod exported;
pub(crate) mod heirs;
pub(crate) mod normed;
mod pace;
pub(crate) mod profile;
mod read;
pub(crate) mod room;

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::{
    DeviceTensor, Executable, KernelSpec, LocalFuture, Location, Progress, StageTensors, TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, PerKernel, PerPart, PerTensor, TensorIndex, each};
use kilim_core::memory::{Arena, Claim, Ledger, MemoryMode};
use kilim_core::{Error, ErrorCode, Interrupt, Result, Tensor};

use crate::device;
use crate::device::binding::Places;
use crate::device::faults::Faults;
use crate::device::gpu::{Gpu, GpuBuffer, STORAGE};
use crate::device::storage;
use crate::device::transfer::{self, Submitted};
use crate::executable::profile::Profiler;

use binder::Commands;
pub(crate) use command::{Command, record};
use exported::ExportedTensor;
use heirs::Heirs;
use normed::Normed;
use pace::Pace;
use room::Room;

/// What a context has made of a stage.
pub(crate) struct Prepared {
    pub faults: Arc<Faults>,
    pub tensors: Arc<StageTensors>,
    /// The data of tensors that are known, where it is kept.
    pub values: PerTensor<Option<Tensor>>,
    pub parts: PerPart<Range<KernelIndex>>,
    pub nodes: Arc<PerKernel<KernelSpec>>,
    pub normed: Arc<Normed>,
    pub commands: PerKernel<Vec<Command>>,
    pub heirs: Heirs,
    pub room: Room,
    /// How long each node takes, in seconds, as far as it can be told before it has run.
    pub seconds: Arc<PerKernel<f64>>,
    pub arena: Arena,
    /// Bytes of the arena, and of buffers of the stage's own.
    pub claims: [Claim; 2],
    pub memory: MemoryMode,
}

/// See [`Executable`].
pub(crate) struct WgpuExecutable {
    gpu: Arc<Gpu>,
    faults: Arc<Faults>,
    tensors: Arc<StageTensors>,
    values: PerTensor<Option<Tensor>>,
    parts: PerPart<Range<KernelIndex>>,
    nodes: Arc<PerKernel<KernelSpec>>,
    normed: Arc<Normed>,
    commands: PerKernel<Vec<Command>>,
    pub heirs: Heirs,
    room: Room,
    arena: Arena,
    claims: [Claim; 2],
    memory: MemoryMode,
    /// The generation of the arena's memory that the bind groups name.
    generation: Option<u64>,
    /// Recorded, not yet submitted.
    encoder: Option<wgpu::CommandEncoder>,
    /// What is recorded reads these, which are not to be destroyed before it is submitted.
    imported: Vec<Arc<GpuBuffer>>,
    staging: Option<Arc<GpuBuffer>>,
    profiler: Option<Profiler>,
    /// Kernels that the session leaves out.
    skipped: Option<Arc<PerKernel<bool>>>,
    pace: Pace,
    /// Where the part that runs now goes on, if it has been stopped on the way.
    resume: Option<KernelIndex>,
}

impl WgpuExecutable {
    /// The executable of a stage; nothing is bound to the arena yet.
    pub fn new(gpu: Arc<Gpu>, prepared: Prepared) -> WgpuExecutable {
        WgpuExecutable {
            gpu,
            faults: prepared.faults,
            tensors: prepared.tensors,
            values: prepared.values,
            parts: prepared.parts,
            nodes: prepared.nodes,
            normed: prepared.normed,
            commands: prepared.commands,
            heirs: prepared.heirs,
            room: prepared.room,
            arena: prepared.arena,
            claims: prepared.claims,
            memory: prepared.memory,
            generation: None,
            encoder: None,
            imported: Vec::new(),
            staging: None,
            profiler: None,
            skipped: None,
            pace: Pace::new(prepared.seconds),
            resume: None,
        }
    }

    /// An executable with these launches in the arena of another context.
    pub fn replica(
        &self,
        faults: &Arc<Faults>,
        arena: &Arena,
        ledger: &Ledger,
    ) -> Result<WgpuExecutable> {
        faults.know(&self.faults);
        let node = |commands: &Vec<Command>| {
            let replica = |c: &Command| c.replica((&self.faults, faults));
            commands.iter().map(replica).collect()
        };
        // Buffers of the stage's own are shared, and counted once.
        let mut room = self.room.clone();
        room.disown();
        let claims = room.claim(ledger)?;
        let pace = self.pace.replica();
        let prepared = Prepared {
            faults: faults.clone(),
            tensors: self.tensors.clone(),
            values: self.values.clone(),
            parts: self.parts.clone(),
            nodes: self.nodes.clone(),
            normed: self.normed.clone(),
            commands: self.commands.iter().map(node).collect(),
            heirs: self.heirs.clone(),
            room,
            seconds: Arc::default(),
            arena: arena.clone(),
            claims,
            memory: self.memory,
        };
        Ok(WgpuExecutable {
            pace,
            ..WgpuExecutable::new(self.gpu.clone(), prepared)
        })
    }

    /// The arena's buffer. Where it is another one than before, bind groups are made anew.
    fn bind(&mut self) -> Result<Option<Arc<GpuBuffer>>> {
        let gpu = &self.gpu;
        let bytes = self.claims[0].bytes();
        let mut guard = self.arena.lock(bytes)?;
        let generation = guard.generation();
        let buffer = guard.memory::<Arc<GpuBuffer>>()?.cloned();
        drop(guard);
        let moved = self.generation != Some(generation);
        if moved {
            self.heirs.unbind();
        }
        let own = self.heirs.buffers();
        let places = Places {
            arena: buffer.as_deref(),
            tensors: &self.tensors,
            scratch: self.room.scratch_at,
            own: &own,
        };
        for command in self.commands.iter_mut().flatten() {
            if moved || !command.is_bound() {
                command.bind(gpu, &places)?;
            }
        }
        self.generation = Some(generation);
        Ok(buffer)
    }

    fn buffer(&mut self) -> Result<Arc<GpuBuffer>> {
        self.bind()?
            .ok_or_else(|| state_error("the stage has no arena".into()))
    }

    /// Bytes of a tensor on the device.
    fn bytes(&self, tensor: TensorIndex) -> Result<u64> {
        let spec = &self.tensors.slot(tensor)?.spec;
        Ok(storage::device_bytes(spec.dtype, spec.elements()) as u64)
    }

    /// The buffer that a tensor is in, and where.
    fn place(&mut self, tensor: TensorIndex) -> Result<(Arc<GpuBuffer>, u64)> {
        let slot = self.tensors.slot(tensor)?;
        if let Some(own) = self.heirs.buffer(self.tensors.root(tensor)) {
            return Ok((own.clone(), 0));
        }
        match self.tensors.location(tensor) {
            Location::Arena { offset } => Ok((self.buffer()?, offset as u64)),
            _ => Err(state_error(format!(
                "the tensor `{}` is not in the arena",
                slot.name
            ))),
        }
    }

    /// Records a copy between the arena and another buffer.
    fn transfer(&mut self, from: (&GpuBuffer, u64), to: (&GpuBuffer, u64), bytes: u64) {
        if bytes > 0 {
            encoder(&self.gpu, &mut self.encoder).copy_buffer_to_buffer(
                &from.0.raw,
                from.1,
                &to.0.raw,
                to.1,
                bytes,
            );
        }
    }

    fn flush(&mut self) {
        self.submit_recorded();
    }

    /// Submits what is recorded, if anything is.
    fn submit_recorded(&mut self) -> Option<wgpu::SubmissionIndex> {
        let encoder = self.encoder.take()?;
        let submitted = self.gpu.queue.submit([encoder.finish()]);
        self.imported.clear();
        Some(submitted)
    }

    /// Whether the session leaves the node out.
    pub(super) fn is_skipped(&self, node: KernelIndex) -> bool {
        self.skipped.as_ref().is_some_and(|skipped| skipped[node])
    }

    /// Records nodes until they make a slice; gives the first that is left.
    fn record_slice(&mut self, nodes: Range<KernelIndex>) -> KernelIndex {
        let (gpu, skipped) = (&self.gpu, self.skipped.as_deref());
        let encoder = encoder(gpu, &mut self.encoder);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let mut current = None;
        for node in each(nodes.clone()) {
            if skipped.is_some_and(|skipped| skipped[node]) {
                continue;
            }
            record(gpu, &mut pass, &self.commands[node], &mut current);
            if self.pace.record(node) {
                return KernelIndex(node.0 + 1);
            }
        }
        nodes.end
    }
}

/// Commands by their nodes; a stage has `nodes` of them.
pub(crate) fn by_node(nodes: usize, made: Commands) -> PerKernel<Vec<Command>> {
    let mut commands: PerKernel<Vec<Command>> = (0..nodes).map(|_| Vec::new()).collect();
    for (node, command) in made.commands {
        commands[node].push(command);
    }
    commands
}

fn encoder<'a>(
    gpu: &Gpu,
    slot: &'a mut Option<wgpu::CommandEncoder>,
) -> &'a mut wgpu::CommandEncoder {
    slot.get_or_insert_with(|| gpu.device.create_command_encoder(&Default::default()))
}

impl Executable for WgpuExecutable {
    fn execute_begin(&mut self) -> Result<()> {
        self.encoder = None;
        self.imported.clear();
        self.resume = None;
        self.pace.begin();
        self.gpu.check()?;
        self.heirs.let_go();
        self.bind().map(drop)
    }

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        // What is recorded has to see the arena as it was.
        self.flush();
        let spec = TensorSpec::new(data.dtype(), data.shape());
        self.tensors.check(tensor, &spec)?;
        if self.bytes(tensor)? > 0 {
            let bytes = storage::to_device(data)?;
            let root = self.tensors.root(tensor);
            if self.heirs.takes(root) {
                self.heirs.give(root, self.gpu.upload("kept", &bytes)?);
                return Ok(());
            }
            let (buffer, offset) = self.place(tensor)?;
            self.gpu.write(&buffer.raw, offset, &bytes);
        }
        Ok(())
    }

    fn takes(&self, data: &DeviceTensor) -> bool {
        ExportedTensor::on(&self.gpu, data).is_some()
    }

    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        let from = ExportedTensor::on(&self.gpu, data);
        let from = from.ok_or_else(|| state_error("a tensor is on another device".into()))?;
        let spec = TensorSpec::new(data.dtype, &data.shape);
        self.tensors.check(tensor, &spec)?;
        let bytes = self.bytes(tensor)?;
        if bytes == 0 {
            return Ok(());
        }
        let root = self.tensors.root(tensor);
        if let Some(given) = self.heirs.give(root, from.buffer.clone()) {
            let (buffer, offset) = self.place(tensor)?;
            self.transfer((&given, 0), (&buffer, offset), bytes);
            self.imported.push(given);
        }
        Ok(())
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        let (source, target) = (self.tensors.slot(from)?, self.tensors.slot(to)?);
        if source.spec.dtype != target.spec.dtype
            || source.spec.elements() != target.spec.elements()
        {
            return Err(state_error(format!(
                "`{}` cannot be copied into `{}`",
                source.name, target.name
            )));
        }
        let bytes = self.bytes(from)?;
        if bytes == 0 {
            return Ok(());
        }
        let source = self.place(from)?;
        // WebGPU copies between two buffers only.
        let between = self.gpu.buffer("copy", bytes, STORAGE)?;
        self.transfer((&source.0, source.1), (&between, 0), bytes);
        let root = self.tensors.root(to);
        if let Some(between) = self.heirs.give(root, between) {
            let target = self.place(to)?;
            self.transfer((&between, 0), (&target.0, target.1), bytes);
            self.flush();
        }
        Ok(())
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        interrupt.check()?;
        let range =
            self.parts.get(part).cloned().ok_or_else(|| {
                Error::new(ErrorCode::State, format!("the stage has no part {part}"))
            })?;
        if self.commands[range.clone()].iter().all(Vec::is_empty) {
            return Ok(Progress::Whole);
        }
        if self.generation.is_none() {
            return Err(state_error("a stage runs that was not begun".into()));
        }
        self.inherit(&range)?;
        let gpu = &self.gpu;
        if let Some(profiler) = &mut self.profiler {
            profiler.run(gpu, &mut self.encoder, range, &self.commands, record)?;
            return Ok(Progress::Whole);
        }
        let mut next = self.resume.take().unwrap_or(range.start);
        while next < range.end {
            next = self.record_slice(next..range.end);
            if next < range.end
                && let Some(index) = self.submit_recorded()
                && self.pace.submitted(Submitted::new(&self.gpu, index))
            {
                self.resume = Some(next);
                return Ok(Progress::Partly);
            }
        }
        Ok(Progress::Whole)
    }

    fn skip(&mut self, kernels: Option<Arc<PerKernel<bool>>>) -> bool {
        self.skipped = kernels;
        true
    }

    fn wait_room(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(self.pace.wait_room(&self.gpu))
    }

    fn submit(&mut self) -> Result<()> {
        self.flush();
        Ok(())
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        self.flush();
        Box::pin(async move { transfer::idle(&self.gpu).await })
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        Box::pin(self.read_back(tensors))
    }

    fn export(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        let spec = self.tensors.slot(tensor)?.spec.clone();
        let gpu = &self.gpu;
        let buffer = match &self.values[tensor] {
            Some(value) => gpu.upload("exported", &storage::to_device(value)?)?,
            None => {
                let own = self.heirs.buffer(self.tensors.root(tensor)).cloned();
                let bytes = self.bytes(tensor)?;
                match own {
                    Some(own) => {
                        self.imported.push(own.clone());
                        own
                    }
                    None => {
                        let buffer = gpu.buffer("exported", bytes, STORAGE)?;
                        if bytes > 0 {
                            let (from, offset) = self.place(tensor)?;
                            self.transfer((&from, offset), (&buffer, 0), bytes);
                        }
                        buffer
                    }
                }
            }
        };
        Ok(DeviceTensor {
            backend: device::ID,
            dtype: spec.dtype,
            shape: spec.shape,
            handle: Arc::new(ExportedTensor {
                gpu: self.gpu.clone(),
                faults: self.faults.clone(),
                buffer,
            }),
        })
    }

    fn execute_end(&mut self) -> Result<()> {
        self.flush();
        self.imported.clear();
        self.heirs.let_go();
        self.gpu.check()
    }

    fn set_profiling(&mut self, on: bool) {
        let launches =
            |node: KernelIndex| !self.commands[node].is_empty() && !self.is_skipped(node);
        let nodes = self.commands.indices();
        self.profiler = on.then(|| Profiler::new(&self.gpu, nodes.map(launches).collect()));
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        Box::pin(async move {
            self.flush();
            let gpu = &self.gpu;
            match &mut self.profiler {
                Some(profiler) => profiler.seconds(gpu).await,
                None => Ok(PerKernel::new()),
            }
        })
    }

    fn launches(&self) -> usize {
        self.commands.iter().map(Vec::len).sum()
    }
}

fn state_error(message: String) -> Error {
    Error::new(ErrorCode::State, message)
}
