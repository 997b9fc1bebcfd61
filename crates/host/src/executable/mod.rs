//! A planned stage: its arena, its kernels, and running them.

mod adapt;
mod holder;
mod inherit;
mod outputs;
#[cfg(test)]
mod tests;
#[cfg(not(target_arch = "wasm32"))]
mod users;

use std::ops::Range;
use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
use kilim_core::backend::DeviceTensor;
use kilim_core::backend::{
    Executable, KernelSpec, LocalFuture, Location, Progress, StageTensors, TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, PerKernel, PerPart, PerTensor, TensorIndex, each};
use kilim_core::memory::{Arena, ArenaGuard, Claim, HostMemory, Ledger, MemoryMode, Storage};
use kilim_core::tensor::byte_count;
use kilim_core::{DType, Error, ErrorCode, Interrupt, Result, Tensor};
use web_time::Instant;

pub use self::adapt::Adapted;
use self::holder::{Holder, held};
pub use self::inherit::Inheritance;
use self::outputs::{Spare, output_bytes};
use crate::kernel::{Io, Kernel, Listed, Taken, Texts, View};
use crate::threads::Threads;
use crate::work::CpuRun;

/// A node of the stage with its kernel; inputs and outputs are indices of tensors.
pub struct Step {
    pub kernel: Box<dyn Kernel>,
    pub inputs: Box<[u32]>,
    pub outputs: Box<[u32]>,
    /// What the outputs may inherit.
    pub inherits: Box<[Inheritance]>,
}

/// What a context has made of a stage; replicas share it.
#[derive(Clone)]
pub struct Prepared {
    pub nodes: Arc<PerKernel<KernelSpec>>,
    pub parts: PerPart<Range<KernelIndex>>,
    pub steps: Arc<PerKernel<Step>>,
    pub tensors: Arc<StageTensors>,
    /// The data of tensors that are known and read as they are.
    pub values: PerTensor<Option<Tensor>>,
    pub arena_bytes: usize,
    /// Bytes that the kernels share, one after another.
    pub scratch: usize,
    pub threads: Threads,
    pub memory: MemoryMode,
}

pub struct CpuExecutable {
    prepared: Prepared,
    views: PerTensor<View>,
    holders: PerTensor<Holder>,
    arena: Arena,
    /// Bytes of arena: the tensors', then scratch.
    claim: Claim,
    /// Bytes of the outputs' own buffers.
    outputs: Option<Claim>,
    /// Memory that inputs gave back.
    spare: Spare,
    /// Outputs that get their memory when their node runs.
    heirs: Vec<TensorIndex>,
    /// Outputs that have got the memory of an input in this run.
    inherited: Vec<TensorIndex>,
    /// Tensors in memory of the user's in this run, each with what held it before.
    #[cfg(not(target_arch = "wasm32"))]
    users: Vec<(TensorIndex, Holder)>,
    /// Whether outputs have had other sizes before.
    grows: bool,
    /// The arena's generation when the views of [`Holder::Arena`] and `scratch` were made.
    generation: Option<u64>,
    scratch: View,
    scratch_at: usize,
    taken: Taken,
    /// Texts of the constants stay; texts of a run go when the next run begins.
    texts: Texts,
    /// For each part, the inputs that it reads.
    needed: PerPart<Vec<TensorIndex>>,
    /// Between `execute_begin` and `execute_end`, when the outputs have buffers of their own.
    begun: bool,
    seconds: Option<PerKernel<f64>>,
    /// Kernels that the session leaves out.
    skipped: Option<Arc<PerKernel<bool>>>,
}

// SAFETY: the views point into memory that the executable owns or shares (tensors, output buffers),
// and are only followed under `&mut self`; those into the arena only while it is locked and its
// generation is the one that they were made for.
unsafe impl Send for CpuExecutable {}

impl CpuExecutable {
    pub fn new(prepared: Prepared, arena: &Arena, ledger: &Ledger) -> Result<CpuExecutable> {
        let tensors = &prepared.tensors;
        let mut views = PerTensor::new();
        let mut holders = PerTensor::new();
        let mut texts = Texts::default();
        for (slot, value) in tensors.slots().iter().zip(&prepared.values) {
            let dtype = slot.spec.dtype;
            let (view, holder) = match (slot.location, value) {
                (Location::Constant(_) | Location::Planned, Some(value)) => {
                    held(value.clone(), &mut texts)?
                }
                (Location::Arena { .. }, _) => (View::empty(dtype), Holder::Arena),
                (Location::Output, _) => (View::empty(dtype), Holder::Output(None)),
                _ => (View::empty(dtype), Holder::Missing),
            };
            views.push(view);
            holders.push(holder);
        }
        let needed = prepared
            .parts
            .iter()
            .map(|part| {
                let read = prepared.nodes[part.clone()].iter().flat_map(|n| &n.inputs);
                let mut roots: Vec<_> = read.flatten().map(|&t| tensors.root(t)).collect();
                roots.sort_unstable();
                roots.dedup();
                roots.retain(|&t| tensors.location(t) == Location::Input);
                roots
            })
            .collect();
        texts.keep();
        let (scratch_at, bytes) = arena_bytes(&prepared);
        let own = output_bytes(&prepared, false)?;
        let heirs = prepared.steps.iter().flat_map(|s| &s.inherits);
        let most_outputs = prepared.steps.iter().map(|s| s.outputs.len()).max();
        let mut executable = CpuExecutable {
            texts,
            needed,
            begun: false,
            views,
            holders,
            arena: arena.clone(),
            claim: ledger.acquire(Storage::Dynamic, bytes)?,
            outputs: Some(ledger.acquire(Storage::DynamicSeparate, own)?),
            spare: Spare::default(),
            heirs: heirs.map(|heir| heir.to).collect(),
            inherited: Vec::new(),
            #[cfg(not(target_arch = "wasm32"))]
            users: Vec::new(),
            grows: false,
            generation: None,
            scratch: View::empty(DType::U8),
            scratch_at,
            taken: Taken::new(most_outputs.unwrap_or(0)),
            prepared,
            seconds: None,
            skipped: None,
        };
        for tensor in executable.views.indices() {
            executable.follow(tensor);
        }
        Ok(executable)
    }

    /// Locks the arena, and finds its tensors again where its memory is not what it was.
    fn lock<'a>(&mut self, arena: &'a Arena) -> Result<ArenaGuard<'a>> {
        let bytes = self.claim.bytes();
        let mut guard = arena.lock(bytes)?;
        let generation = guard.generation();
        if self.generation == Some(generation) {
            return Ok(guard);
        }
        let base = match guard.memory::<HostMemory>()? {
            Some(memory) => View::of_arena(memory),
            None => View::empty(DType::U8),
        };
        for tensor in self.views.indices() {
            let slot = &self.prepared.tensors.slots()[tensor];
            if let Location::Arena { offset } = slot.location {
                let bytes = byte_count(slot.spec.dtype, &slot.spec.shape)?;
                let view = base.part(offset, bytes, slot.spec.dtype).ok_or_else(|| {
                    state_error(format!("`{}` lies outside of the arena", slot.name))
                })?;
                self.views[tensor] = view;
            }
        }
        for tensor in self.views.indices() {
            self.follow(tensor);
        }
        let scratch = base.part(self.scratch_at, bytes - self.scratch_at, DType::U8);
        self.scratch = scratch.unwrap_or(View::empty(DType::U8));
        self.generation = Some(generation);
        Ok(guard)
    }

    /// Gives an alias the bytes that its root has now.
    fn follow(&mut self, tensor: TensorIndex) {
        let root = self.prepared.tensors.root(tensor);
        if root != tensor {
            let dtype = self.prepared.tensors.slots()[tensor].spec.dtype;
            self.views[tensor] = self.views[root].with_dtype(dtype);
        }
    }

    fn set_view(&mut self, root: TensorIndex, view: View) {
        self.views[root] = view;
        let tensors = self.prepared.tensors.clone();
        tensors.aliases(root).for_each(|alias| self.follow(alias));
    }

    /// The tensor as the host sees it now.
    fn host_tensor(&mut self, tensor: TensorIndex) -> Result<Tensor> {
        let tensors = self.prepared.tensors.clone();
        let slot = tensors.slot(tensor)?;
        let (dtype, shape) = (slot.spec.dtype, &slot.spec.shape[..]);
        match &self.holders[tensors.root(tensor)] {
            Holder::Tensor(value) | Holder::Texts { value, .. } => value.reshaped(shape),
            Holder::Output(Some(buffer)) if dtype == DType::String => {
                self.texts.tensor(shape, buffer.as_slice())
            }
            Holder::Output(Some(buffer)) => Tensor::from_bytes(dtype, shape, buffer.clone()),
            Holder::Arena => {
                let arena = self.arena.clone();
                let _guard = self.lock(&arena)?;
                // SAFETY: the arena is locked, so that no kernel runs now.
                let bytes = unsafe { self.views[tensor].read() };
                match dtype {
                    DType::String => self.texts.tensor(shape, bytes),
                    _ => Tensor::from_raw(dtype, shape, bytes),
                }
            }
            #[cfg(not(target_arch = "wasm32"))]
            Holder::User(memory) => users::copy(memory, shape),
            Holder::Missing | Holder::Output(None) => Err(missing(&slot.name)),
        }
    }

    /// # Errors
    /// `Input` where an input of a part was not given. Where kernels are left out, those of the others count.
    fn check_given(&self, part: PartIndex, nodes: Range<KernelIndex>) -> Result<()> {
        let tensors = &self.prepared.tensors;
        let check = |tensor: TensorIndex| match self.holders[tensor] {
            Holder::Missing => Err(missing(&tensors.slots()[tensor].name)),
            _ => Ok(()),
        };
        let Some(skipped) = &self.skipped else {
            return self.needed[part].iter().copied().try_for_each(check);
        };
        let running = each(nodes).filter(|i| !skipped[*i]);
        let read = running.flat_map(|i| self.prepared.nodes[i].inputs.iter().flatten());
        let roots = read.map(|&t| tensors.root(t));
        let given = |t: &TensorIndex| tensors.location(*t) == Location::Input;
        roots.filter(given).try_for_each(check)
    }

    /// Runs a step, unless it is left out. The arena is locked, and `lock` has found it as it is now.
    fn run_step(&mut self, i: KernelIndex, cpu: &CpuRun) -> Result<()> {
        if self.skipped.as_ref().is_some_and(|skipped| skipped[i]) {
            return Ok(());
        }
        cpu.check()?;
        let at = |nodes: &PerKernel<KernelSpec>, e: Error| {
            let node = &nodes[i];
            e.at(&node.name, node.op.name())
        };
        for heir in 0..self.prepared.steps[i].inherits.len() {
            let given = self.inherit(i, self.prepared.steps[i].inherits[heir]);
            given.map_err(|e| at(&self.prepared.nodes, e))?;
        }
        let step = &self.prepared.steps[i];
        // SAFETY: the views of a stage are live (inputs were checked to be written in `run`,
        // outputs got their buffers in `execute_begin` or now, memory of the user's is held, the arena is locked), aligned to
        // their element type by the planner, by `Tensor` and by `InHost`; what the user gave overlaps nothing else of the run,
        // as whoever made `UserMemory` says; the planner gives outputs locations that
        // overlap nothing still in use, and an input whose memory an output inherits has an empty
        // view; the scratch memory lies behind all tensors.
        let mut io = unsafe {
            Io::new(
                Listed {
                    views: &self.views,
                    inputs: &step.inputs,
                    outputs: &step.outputs,
                },
                &mut self.taken,
                self.scratch.write(),
                &mut self.texts,
                cpu,
            )
        };
        step.kernel
            .run(&mut io)
            .map_err(|e| at(&self.prepared.nodes, e))
    }
}

impl CpuExecutable {
    /// An executable that shares these kernels and has its tensors in another arena.
    pub fn replica(&self, arena: &Arena, ledger: &Ledger) -> Result<CpuExecutable> {
        CpuExecutable::new(self.prepared.clone(), arena, ledger)
    }
}

impl Executable for CpuExecutable {
    fn execute_begin(&mut self) -> Result<()> {
        let arena = self.arena.clone();
        drop(self.lock(&arena)?);
        self.texts.forget();
        for tensor in self.holders.indices() {
            let written = self.prepared.tensors.slots()[tensor].location == Location::Input;
            if written && matches!(self.holders[tensor], Holder::Texts { .. }) {
                self.holders[tensor] = Holder::Missing;
            }
        }
        self.begin_outputs()?;
        self.begun = true;
        Ok(())
    }

    fn execute_end(&mut self) -> Result<()> {
        self.begun = false;
        self.let_go();
        #[cfg(not(target_arch = "wasm32"))]
        self.give_back();
        if self.prepared.memory == MemoryMode::Limit {
            for tensor in self.holders.indices() {
                let gone = match self.prepared.tensors.slots()[tensor].location {
                    Location::Input => Holder::Missing,
                    Location::Output => Holder::Output(None),
                    _ => continue,
                };
                let dtype = self.prepared.tensors.slots()[tensor].spec.dtype;
                self.set_view(tensor, View::empty(dtype));
                self.holders[tensor] = gone;
            }
        }
        Ok(())
    }

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        let spec = TensorSpec::new(data.dtype(), data.shape());
        self.prepared.tensors.check(tensor, &spec)?;
        let slot = self.prepared.tensors.slot(tensor)?;
        if slot.location != Location::Input {
            return Err(state_error(format!("`{}` is not an input", slot.name)));
        }
        let (view, holder) = held(data.clone(), &mut self.texts)?;
        self.reclaim(tensor);
        self.set_view(tensor, view);
        self.holders[tensor] = holder;
        Ok(())
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn takes(&self, data: &DeviceTensor) -> bool {
        View::of_users(data).is_some()
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        self.read_users(tensor, data)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn export_into(&mut self, tensor: TensorIndex, memory: &DeviceTensor) -> Result<bool> {
        self.write_users(tensor, memory)
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        let tensors = self.prepared.tensors.clone();
        let (source, target) = (tensors.slot(from)?, tensors.slot(to)?);
        let fits = source.spec.dtype == target.spec.dtype
            && source.spec.elements() == target.spec.elements();
        if !fits
            || matches!(
                tensors.location(to),
                Location::Constant(_) | Location::Planned
            )
        {
            return Err(state_error(format!(
                "`{}` cannot be copied into `{}`",
                source.name, target.name
            )));
        }
        if tensors.root(from) == tensors.root(to) {
            return Ok(());
        }
        let data = self.host_tensor(from)?;
        if tensors.location(to) == Location::Input {
            let root = tensors.root(to);
            let data = data.reshaped(&tensors.slot(root)?.spec.shape)?;
            return self.write(root, &data);
        }
        let numbers;
        let bytes = match data.dtype() {
            DType::String => {
                numbers = self.texts.admit(&data)?;
                numbers.as_slice()
            }
            _ => data.read()?,
        };
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        // SAFETY: the arena is locked, and the data is a copy or lies elsewhere.
        let into = unsafe { self.views[to].write() };
        if into.len() != bytes.len() {
            return Err(state_error(
                "a stage is copied in that was not begun".to_string(),
            ));
        }
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        let Some(nodes) = self.prepared.parts.get(part).cloned() else {
            return Err(state_error(format!("the stage has no part {part}")));
        };
        if !self.begun {
            return Err(state_error("a stage runs that was not begun".to_string()));
        }
        self.check_given(part, nodes.clone())?;
        let arena = self.arena.clone();
        let _guard = self.lock(&arena)?;
        let cpu = CpuRun::new(self.prepared.threads, interrupt);
        if let Some(mut seconds) = self.seconds.take() {
            for i in each(nodes) {
                let start = Instant::now();
                let done = self.run_step(i, &cpu);
                seconds[i] = start.elapsed().as_secs_f64();
                done?;
            }
            self.seconds = Some(seconds);
        } else {
            for i in each(nodes) {
                self.run_step(i, &cpu)?;
            }
        }
        Ok(Progress::Whole)
    }

    fn skip(&mut self, kernels: Option<Arc<PerKernel<bool>>>) -> bool {
        self.skipped = kernels;
        true
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let read = tensors.iter().map(|&t| self.host_tensor(t)).collect();
        Box::pin(std::future::ready(read))
    }

    fn set_profiling(&mut self, on: bool) {
        self.seconds = on.then(|| vec![0.0; self.prepared.steps.len()].into());
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        let seconds = self.seconds.clone().unwrap_or_default();
        Box::pin(std::future::ready(Ok(seconds)))
    }

    fn launches(&self) -> usize {
        self.prepared.steps.len()
    }
}

/// Where scratch memory begins in the arena of a stage, and the bytes of both.
fn arena_bytes(prepared: &Prepared) -> (usize, usize) {
    let scratch_at = prepared.arena_bytes.next_multiple_of(64);
    (scratch_at, scratch_at.saturating_add(prepared.scratch))
}

fn state_error(message: String) -> Error {
    Error::new(ErrorCode::State, message)
}

fn missing(name: &str) -> Error {
    Error::new(ErrorCode::Input, "a tensor was not given").with_input(name)
}
