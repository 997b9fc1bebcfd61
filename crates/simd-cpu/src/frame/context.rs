//! A session's constants and packed weights, and the memory that its stages share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kilim_core::backend::{BackendContext, ConstantKey, Executable, NodeSpec, Place, StageSpec};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};

use super::executable::{CpuExecutable, Step};
use super::io::ABSENT;
use super::kernel::{Build, CpuRun};
use super::packs::Packs;
use crate::registry::KernelRegistry;

/// Scratch memory of all kernels of a session: they run one after another.
#[derive(Clone, Default)]
pub struct Scratch(Arc<Mutex<AlignedBytes>>);

impl Scratch {
    pub fn lock(&self) -> MutexGuard<'_, AlignedBytes> {
        // A kernel that panicked leaves rubbish behind, which is what scratch memory holds anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn grow(&self, bytes: usize) -> Result<()> {
        let mut memory = self.lock();
        if memory.len() < bytes {
            *memory = AlignedBytes::zeroed(bytes)?;
        }
        Ok(())
    }
}

pub struct CpuContext {
    registry: Arc<KernelRegistry>,
    run: CpuRun,
    constants: HashMap<ConstantKey, Tensor>,
    packs: Packs,
    scratch: Scratch,
}

impl CpuContext {
    pub fn new(registry: Arc<KernelRegistry>, run: CpuRun) -> CpuContext {
        CpuContext {
            registry,
            run,
            constants: HashMap::new(),
            packs: Packs::default(),
            scratch: Scratch::default(),
        }
    }

    fn steps(&mut self, stage: &StageSpec) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(stage.nodes.len());
        for node in &stage.nodes {
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &inputs,
                outputs: &outputs,
            };
            let keys: Vec<_> = node
                .inputs
                .iter()
                .map(|input| {
                    let root = stage.root((*input)?);
                    match stage.tensors[root].place {
                        Place::Constant(key) => Some(key),
                        _ => None,
                    }
                })
                .collect();
            let kernel = self
                .registry
                .build(
                    &spec,
                    &mut Build {
                        packs: &mut self.packs,
                        constants: &keys,
                        run: self.run,
                    },
                )
                .map_err(|e| e.at(&node.name, node.op.name()))?;
            self.scratch.grow(kernel.scratch_bytes())?;
            steps.push(Step {
                kernel,
                inputs: node
                    .inputs
                    .iter()
                    .map(|i| i.map_or(ABSENT, |i| i as u32))
                    .collect(),
                outputs: node.outputs.iter().map(|&o| o as u32).collect(),
            });
        }
        Ok(steps)
    }
}

impl BackendContext for CpuContext {
    fn prepare(&mut self, stage: StageSpec) -> Result<Box<dyn Executable>> {
        for slot in &stage.tensors {
            if let (Place::Constant(key), Some(value)) = (slot.place, &slot.spec.value) {
                self.constants.entry(key).or_insert_with(|| value.clone());
            }
        }
        let steps = self.steps(&stage)?;
        let executable = CpuExecutable::new(stage, steps, self.scratch.clone(), self.run)?;
        Ok(Box::new(executable))
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        Some(Box::new(CpuContext {
            registry: self.registry.clone(),
            run: self.run,
            constants: self.constants.clone(),
            packs: self.packs.clone(),
            scratch: Scratch::default(),
        }))
    }

    fn constant_bytes(&self) -> usize {
        let constants: usize = self.constants.values().map(|t| t.bytes().len()).sum();
        constants + self.packs.bytes()
    }
}
