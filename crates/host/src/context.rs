//! A session's constants and packed weights, and making the executables of its stages.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::{
    BackendContext, ConstantKey, ContextState, Executable, Location, NodeSpec, RawConstants,
    StageChange, StageSpec, StageTensors,
};
#[cfg(not(target_arch = "wasm32"))]
use kilim_core::backend::{DeviceTensor, InHost, TensorSpec, UserMemory};
use kilim_core::ids::{PerKernel, PerTensor, TensorIndex};
use kilim_core::interrupt::Meter;
use kilim_core::memory::{Claim, MemoryMode, Storage};
use kilim_core::{Interrupt, Result, Tensor};

use crate::executable::{Adapted, CpuExecutable, Inheritance, Prepared, Step};
use crate::kernel::{ABSENT, Build, Kernel, Packs};
use crate::registry::KernelRegistry;
use crate::threads::Threads;
use crate::work::CpuRun;

pub struct CpuContext {
    registry: Arc<KernelRegistry>,
    threads: Threads,
    state: ContextState,
    /// Constants that kernels read as they are.
    constants: HashMap<ConstantKey, (Tensor, Arc<Claim>)>,
    packs: Packs,
    /// Room for the constants that a kernel reads, while it is told other sizes.
    keys: Vec<Option<ConstantKey>>,
}

/// The kernels of a stage, and what they need.
struct Kernels {
    steps: PerKernel<Step>,
    scratch: usize,
    /// Tensors that a kernel reads as they are.
    read: PerTensor<bool>,
}

impl CpuContext {
    pub fn new(registry: Arc<KernelRegistry>, threads: Threads, state: ContextState) -> CpuContext {
        CpuContext {
            registry,
            threads,
            constants: HashMap::new(),
            packs: Packs::on(state.ledger.clone()),
            keys: Vec::new(),
            state,
        }
    }

    /// Makes the kernels. Where raw constants are dropped, each goes as soon as its last reader has
    /// packed it.
    fn kernels(&mut self, stage: &mut StageSpec, interrupt: &Interrupt) -> Result<Kernels> {
        let mut readers: PerTensor<usize> = vec![0; stage.tensors.len()].into();
        for &input in stage.nodes.iter().flat_map(|n| n.inputs.iter().flatten()) {
            readers[stage.root(input)] += 1;
        }
        let inherits = stage
            .nodes
            .iter()
            .map(|n| Inheritance::of(stage, n, &readers));
        let mut inherits: PerKernel<_> = inherits.collect();
        let mut kernels = Kernels {
            steps: PerKernel::new(),
            scratch: 0,
            read: vec![false; stage.tensors.len()].into(),
        };
        let cpu = CpuRun::new(self.threads, interrupt);
        for n in stage.nodes.indices() {
            let node = &stage.nodes[n];
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &inputs,
                outputs: &outputs,
            };
            let roots: Vec<_> = node
                .inputs
                .iter()
                .map(|i| Some(stage.root((*i)?)))
                .collect();
            let keys: Vec<_> = roots
                .iter()
                .map(|root| stage.tensors[(*root)?].location.constant())
                .collect();
            let make = |registry: &KernelRegistry, build: &mut Build| registry.build(&spec, build);
            let (kernel, packed) = self.build(&spec, &keys, &cpu, make)?;
            kernels.scratch = kernels.scratch.max(self.scratch(&spec, &*kernel)?);
            let index = |i: &Option<TensorIndex>| i.map_or(ABSENT, |i| i.0 as u32);
            kernels.steps.push(Step {
                kernel,
                inputs: node.inputs.iter().map(index).collect(),
                outputs: node.outputs.iter().map(|o| o.0 as u32).collect(),
                inherits: std::mem::take(&mut inherits[n]),
            });
            drop(inputs);
            for (i, root) in roots.into_iter().enumerate() {
                let Some(root) = root else { continue };
                kernels.read[root] |= !packed.contains(&i);
                readers[root] -= 1;
                if readers[root] == 0
                    && !kernels.read[root]
                    && self.state.raw == RawConstants::Drop
                    && let Location::Constant(_) = stage.tensors[root].location
                {
                    stage.tensors[root].spec.value = None;
                }
            }
        }
        Ok(kernels)
    }

    /// Has `make` make the kernel of a node. Gives what it gives, and the inputs that the kernel does not read as they are.
    /// `keys` are those of its inputs that are constants of the session.
    fn build<T>(
        &mut self,
        node: &NodeSpec,
        keys: &[Option<ConstantKey>],
        cpu: &CpuRun,
        make: impl FnOnce(&KernelRegistry, &mut Build) -> Result<T>,
    ) -> Result<(T, Vec<usize>)> {
        cpu.check()?;
        let mut build = Build {
            packs: &mut self.packs,
            constants: keys,
            cpu,
            memory: self.state.memory,
            tuned: &self.state.tuned,
            ledger: &self.state.ledger,
            packed: Vec::new(),
        };
        let made = make(&self.registry, &mut build);
        let packed = build.packed;
        let made = made.map_err(|e| e.at(node.name, node.op.name()))?;
        Ok((made, packed))
    }

    /// The bytes of scratch memory that the kernel of a node needs.
    fn scratch(&self, node: &NodeSpec, kernel: &dyn Kernel) -> Result<usize> {
        let scratch = kernel.scratch().bytes(self.threads.count());
        scratch.map_err(|e| e.at(node.name, node.op.name()))
    }

    /// The data of a tensor that is known, for kernels that read it as it is.
    fn known(&mut self, meter: &Meter, value: &Tensor, location: Location) -> Result<Tensor> {
        let Location::Constant(key) = location else {
            return Ok(value.clone());
        };
        if let Some((known, _)) = self.constants.get(&key) {
            return Ok(known.clone());
        }
        let own = match self.state.raw {
            RawConstants::Keep => {
                value.read_on(meter)?;
                value.clone()
            }
            // Nobody else is to keep the buffer of a whole file.
            RawConstants::Drop => value.clone().detached(meter)?,
        };
        let claim = self.state.ledger.acquire(Storage::Static, own.byte_len())?;
        self.constants.insert(key, (own.clone(), Arc::new(claim)));
        Ok(own)
    }
}

impl BackendContext for CpuContext {
    #[cfg(not(target_arch = "wasm32"))]
    fn import(&mut self, tensor: &TensorSpec, memory: &UserMemory) -> Result<DeviceTensor> {
        InHost::tensor(memory, tensor.dtype, &tensor.shape)
    }

    fn state(&self) -> &ContextState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ContextState {
        &mut self.state
    }

    fn gen_kernels(
        &mut self,
        mut stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        let kernels = self.kernels(&mut stage, interrupt)?;
        let meter = Meter::new(interrupt);
        let mut values = PerTensor::new();
        for t in stage.tensors.indices() {
            let slot = &mut stage.tensors[t];
            let value = slot.spec.value.take().filter(|_| kernels.read[t]);
            let known = value.map(|value| self.known(&meter, &value, slot.location));
            values.push(known.transpose()?);
        }
        let prepared = Prepared {
            nodes: stage.nodes.into(),
            parts: stage.parts,
            steps: kernels.steps.into(),
            tensors,
            values,
            arena_bytes: stage.arena_bytes,
            scratch: kernels.scratch,
            threads: self.threads,
            memory: self.state.memory,
        };
        let executable = CpuExecutable::new(prepared, &self.state.arena, &self.state.ledger)?;
        Ok(Box::new(executable))
    }

    fn adapts(&self) -> bool {
        true
    }

    fn adapt(
        &mut self,
        executable: &mut dyn Executable,
        change: &StageChange,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let executable: &mut dyn Any = executable;
        let Some(own) = executable.downcast_mut::<CpuExecutable>() else {
            return Ok(false);
        };
        if !own.can_adapt(change) {
            return Ok(false);
        }
        let cpu = CpuRun::new(self.threads, interrupt);
        let meter = Meter::new(interrupt);
        let mut adapted = Adapted::default();
        let mut keys = std::mem::take(&mut self.keys);
        for made in &change.kernels {
            let (node, tensors, kernel) = own.node(made.kernel)?;
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &made.inputs,
                outputs: &made.outputs,
            };
            let location = |i: &Option<TensorIndex>| Some(tensors.location((*i)?));
            keys.clear();
            keys.extend((node.inputs.iter()).map(|i| location(i)?.constant()));
            let (scratch, packed) = self.build(&spec, &keys, &cpu, |registry, build| {
                registry.renew(&spec, build, kernel)?;
                kernel.scratch().bytes(build.threads())
            })?;
            for (i, (tensor, spec)) in node.inputs.iter().zip(&made.inputs).enumerate() {
                let known = spec.as_ref().and_then(|spec| spec.value.as_ref());
                if let (Some(of), Some(location), Some(value)) = (tensor, location(tensor), known)
                    && !packed.contains(&i)
                {
                    let value = self.known(&meter, value, location)?;
                    adapted.values.push((tensors.root(*of), value));
                }
            }
            adapted.scratch = adapted.scratch.max(scratch);
        }
        self.keys = keys;
        own.adapt(adapted, change, &mut self.state)?;
        Ok(true)
    }

    fn resize_end(&mut self) -> Result<()> {
        if self.state.raw == RawConstants::Drop || self.state.memory == MemoryMode::Limit {
            self.packs.drop_unused();
        }
        self.state.reserve()
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        let state = self.state.replica();
        Some(Box::new(CpuContext {
            registry: self.registry.clone(),
            threads: self.threads,
            constants: self.constants.clone(),
            packs: self.packs.share(state.ledger.clone()),
            keys: Vec::new(),
            state,
        }))
    }

    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let executable: &dyn Any = executable;
        let own: &CpuExecutable = executable.downcast_ref()?;
        Some(Box::new(
            own.replica(&self.state.arena, &self.state.ledger).ok()?,
        ))
    }
}
