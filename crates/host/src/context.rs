//! A session's constants and packed weights, and making the executables of its stages.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::{
    BackendContext, ConstantKey, ContextConfig, Executable, Location, NodeSpec, RawConstants,
    StageSpec, StageTensors, TensorRegistry,
};
use kilim_core::ids::{PerKernel, PerTensor, TensorIndex};
use kilim_core::interrupt::Meter;
use kilim_core::memory::{Arena, Claim, Ledger, MemoryMode, Storage};
use kilim_core::tuning::Tuned;
use kilim_core::{Interrupt, Result, Tensor};

use crate::executable::{CpuExecutable, Prepared, Step};
use crate::kernel::{ABSENT, Build, Packs};
use crate::registry::KernelRegistry;
use crate::threads::Threads;
use crate::work::CpuRun;

pub struct CpuContext {
    registry: Arc<KernelRegistry>,
    threads: Threads,
    memory: MemoryMode,
    tuned: Tuned,
    raw: RawConstants,
    /// Constants that kernels read as they are.
    constants: HashMap<ConstantKey, (Tensor, Arc<Claim>)>,
    packs: Packs,
    tensors: TensorRegistry,
    ledger: Ledger,
    arena: Arena,
}

/// The kernels of a stage, and what they need.
struct Kernels {
    steps: PerKernel<Step>,
    scratch: usize,
    /// Tensors that a kernel reads as they are.
    read: PerTensor<bool>,
}

impl CpuContext {
    pub fn new(
        registry: Arc<KernelRegistry>,
        threads: Threads,
        config: &ContextConfig,
    ) -> CpuContext {
        let ledger = Ledger::limited(&config.limits);
        CpuContext {
            registry,
            threads,
            memory: config.memory,
            tuned: config.tuned.clone(),
            raw: RawConstants::default(),
            constants: HashMap::new(),
            packs: Packs::on(ledger.clone()),
            tensors: TensorRegistry::default(),
            ledger,
            arena: config.arena.clone().unwrap_or_default(),
        }
    }

    /// Makes the kernels. Where raw constants are dropped, each goes as soon as its last reader has
    /// packed it.
    fn kernels(&mut self, stage: &mut StageSpec, interrupt: &Interrupt) -> Result<Kernels> {
        let mut readers: PerTensor<usize> = vec![0; stage.tensors.len()].into();
        for &input in stage.nodes.iter().flat_map(|n| n.inputs.iter().flatten()) {
            readers[stage.root(input)] += 1;
        }
        let mut kernels = Kernels {
            steps: PerKernel::new(),
            scratch: 0,
            read: vec![false; stage.tensors.len()].into(),
        };
        let cpu = CpuRun::new(self.threads, interrupt);
        for n in stage.nodes.indices() {
            cpu.check()?;
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
                .map(|root| match stage.tensors[(*root)?].location {
                    Location::Constant(key) => Some(key),
                    _ => None,
                })
                .collect();
            let mut build = Build {
                packs: &mut self.packs,
                constants: &keys,
                cpu: &cpu,
                memory: self.memory,
                tuned: &self.tuned,
                ledger: &self.ledger,
                packed: Vec::new(),
            };
            let built = self.registry.build(&spec, &mut build);
            let packed = build.packed;
            let sized = built
                .and_then(|kernel| Ok((kernel.scratch().bytes(self.threads.count())?, kernel)));
            let (scratch, kernel) = sized.map_err(|e| e.at(&node.name, node.op.name()))?;
            kernels.scratch = kernels.scratch.max(scratch);
            let index = |i: &Option<TensorIndex>| i.map_or(ABSENT, |i| i.0 as u32);
            kernels.steps.push(Step {
                kernel,
                inputs: node.inputs.iter().map(index).collect(),
                outputs: node.outputs.iter().map(|o| o.0 as u32).collect(),
            });
            drop(inputs);
            for (i, root) in roots.into_iter().enumerate() {
                let Some(root) = root else { continue };
                kernels.read[root] |= !packed.contains(&i);
                readers[root] -= 1;
                if readers[root] == 0
                    && !kernels.read[root]
                    && self.raw == RawConstants::Drop
                    && let Location::Constant(_) = stage.tensors[root].location
                {
                    stage.tensors[root].spec.value = None;
                }
            }
        }
        Ok(kernels)
    }

    /// The data of a tensor that is known, if a kernel reads it as it is.
    fn known(
        &mut self,
        meter: &Meter,
        stage: &StageSpec,
        t: TensorIndex,
    ) -> Result<Option<Tensor>> {
        let slot = &stage.tensors[t];
        let Some(value) = &slot.spec.value else {
            return Ok(None);
        };
        let Location::Constant(key) = slot.location else {
            return Ok(Some(value.clone()));
        };
        if let Some((known, _)) = self.constants.get(&key) {
            return Ok(Some(known.clone()));
        }
        let own = match self.raw {
            RawConstants::Keep => {
                value.read_on(meter)?;
                value.clone()
            }
            // Nobody else is to keep the buffer of a whole file.
            RawConstants::Drop => value.clone().detached(meter)?,
        };
        let claim = self.ledger.acquire(Storage::Static, own.byte_len())?;
        self.constants.insert(key, (own.clone(), Arc::new(claim)));
        Ok(Some(own))
    }
}

impl BackendContext for CpuContext {
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        self.raw = raw;
        Ok(())
    }

    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        Ok(self.tensors.register(stage))
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
            values.push(match kernels.read[t] {
                true => self.known(&meter, &stage, t)?,
                false => None,
            });
            stage.tensors[t].spec.value = None;
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
            memory: self.memory,
        };
        let executable = CpuExecutable::new(prepared, &self.arena, &self.ledger)?;
        Ok(Box::new(executable))
    }

    fn resize_end(&mut self) -> Result<()> {
        if self.raw == RawConstants::Drop || self.memory == MemoryMode::Limit {
            self.packs.drop_unused();
        }
        let bytes = self.ledger.bytes(Storage::Dynamic);
        self.arena.reserve(bytes)
    }

    fn tensors(&self) -> &TensorRegistry {
        &self.tensors
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        let ledger = self.ledger.another();
        Some(Box::new(CpuContext {
            registry: self.registry.clone(),
            threads: self.threads,
            memory: self.memory,
            tuned: self.tuned.clone(),
            raw: self.raw,
            constants: self.constants.clone(),
            packs: self.packs.share(ledger.clone()),
            tensors: TensorRegistry::default(),
            ledger,
            arena: self.arena.another(),
        }))
    }

    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let executable: &dyn Any = executable;
        let own: &CpuExecutable = executable.downcast_ref()?;
        Some(Box::new(own.replica(&self.arena, &self.ledger).ok()?))
    }
}
