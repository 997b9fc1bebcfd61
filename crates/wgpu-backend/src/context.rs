//! A session on the device: its constants, and building the executables of its stages.

use std::any::Any;
use std::sync::Arc;

use kilim_core::backend::{
    BackendContext, ContextState, DeviceTensor, Executable, LocalFuture, NodeSpec, RawConstants,
    StageSpec, StageTensors,
};
use kilim_core::error::unsupported;
use kilim_core::ids::{PerKernel, TensorIndex};
use kilim_core::memory::Storage;
use kilim_core::tuning::Tuned;
use kilim_core::{Interrupt, Result, Tensor};

use crate::device::faults::Faults;
use crate::device::gpu::Gpu;
use crate::device::pipelines::{self, Pipeline};
use crate::device::transfer;
use crate::executable::binder::{Binder, scratch_bytes, scratch_start};
use crate::executable::constants::Constants;
use crate::executable::{ExportedTensor, Prepared, WgpuExecutable};
use crate::kernels::Kernels;
use crate::lowering::{Caps, Lowered, Lowering, Lowers, Stop};

/// What sessions share of a GPU.
#[derive(Clone)]
pub(crate) struct Shared {
    pub gpu: Arc<Gpu>,
    pub kernels: Arc<Kernels>,
    pub software: bool,
}

impl Shared {
    fn caps(&self) -> Caps {
        Caps {
            max_binding: self.gpu.max_binding(),
            max_bindings: self.gpu.limits.max_storage_buffers_per_shader_stage as usize,
            software: self.software,
            half: self.gpu.half,
        }
    }

    /// The dispatches of a node. `roots` names the tensor behind each input, if that is known.
    pub fn lower(
        &self,
        node: &NodeSpec,
        roots: &[Option<TensorIndex>],
        tuned: &Tuned,
    ) -> Lowers<Lowered> {
        let mut lowering = Lowering::new(node, self.caps());
        lowering.roots = roots;
        lowering.tuned = tuned.clone();
        self.kernels.lower(&mut lowering)?;
        lowering.finish()
    }
}

pub(crate) struct WgpuContext {
    shared: Shared,
    faults: Arc<Faults>,
    constants: Constants,
    /// Pipelines of prepared stages that nobody has waited for yet.
    cold: Vec<Arc<Pipeline>>,
    state: ContextState,
}

impl WgpuContext {
    pub fn new(shared: Shared, state: ContextState) -> Result<WgpuContext> {
        Ok(WgpuContext {
            faults: Faults::new(&shared.gpu)?,
            shared,
            constants: Constants::on(state.ledger.clone()),
            cold: Vec::new(),
            state,
        })
    }

    /// The dispatches of every node, and the scratch that they share.
    fn lower(&self, stage: &StageSpec) -> Result<(Vec<Lowered>, u64)> {
        let alignment = self.shared.gpu.limits.min_storage_buffer_offset_alignment;
        let mut lowered = Vec::with_capacity(stage.nodes.len());
        let mut scratch = 0u64;
        for node in &stage.nodes {
            let view = node.op.is_view()
                && matches!((node.inputs.first(), node.outputs.first()),
                    (Some(Some(i)), Some(o)) if stage.root(*i) == stage.root(*o));
            if view {
                lowered.push(Lowered::default());
                continue;
            }
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            };
            let roots: Vec<_> = node
                .inputs
                .iter()
                .map(|i| i.map(|t| stage.root(t)))
                .collect();
            let l = self
                .shared
                .lower(&spec, &roots, &self.state.tuned)
                .map_err(|stop| match stop {
                    Stop::Refused(refusal) => unsupported(refusal.reason),
                    Stop::Wrong(error) => error,
                })
                .map_err(|e| e.at(&node.name, node.op.name()))?;
            scratch = scratch.max(scratch_bytes(stage, node, &l, alignment.max(16) as u64));
            lowered.push(l);
        }
        Ok((lowered, scratch))
    }
}

impl BackendContext for WgpuContext {
    fn state(&self) -> &ContextState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ContextState {
        &mut self.state
    }

    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        self.state.raw = raw;
        self.shared.gpu.check()
    }

    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        let gpu = &self.shared.gpu.clone();
        let (lowered, scratch) = self.lower(&stage)?;
        let speed = gpu.speed();
        let seconds = |node| {
            let (inputs, outputs) = stage.specs(node);
            let cost = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            }
            .cost();
            speed.seconds(&cost)
        };
        let seconds: PerKernel<f64> = stage.nodes.iter().map(seconds).collect();
        let mut binder = Binder::new(gpu, &mut self.constants, &self.faults, &stage)?;
        for ((i, node), l) in stage.nodes.entries().zip(lowered) {
            interrupt.check()?;
            binder
                .node(i, node, l)
                .map_err(|e| e.at(&node.name, node.op.name()))?;
        }
        let commands = binder.finish()?;
        for command in commands.nodes.iter().flatten() {
            let is = |p: &Arc<Pipeline>| Arc::ptr_eq(p, &command.pipeline);
            if !self.cold.iter().any(is) {
                self.cold.push(command.pipeline.clone());
            }
        }
        gpu.check()?;
        let bytes = match scratch {
            0 => stage.arena_bytes as u64,
            _ => scratch_start(gpu, &stage).saturating_add(scratch),
        };
        let claims = [
            self.state
                .ledger
                .acquire(Storage::Dynamic, bytes as usize)?,
            self.state
                .ledger
                .acquire(Storage::DynamicSeparate, commands.own as usize)?,
        ];
        let known = |t| match self.state.raw {
            RawConstants::Keep => stage.tensors[stage.root(t)].spec.value.clone(),
            RawConstants::Drop => None,
        };
        let values = stage.tensors.indices().map(known).collect();
        Ok(Box::new(WgpuExecutable::new(
            gpu.clone(),
            Prepared {
                faults: self.faults.clone(),
                tensors,
                values,
                parts: stage.parts,
                nodes: commands.nodes,
                seconds: Arc::new(seconds),
                arena: self.state.arena.clone(),
                claims,
                memory: self.state.memory,
            },
        )))
    }

    fn resize_end(&mut self) -> Result<()> {
        self.state.reserve()?;
        self.shared.gpu.check()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(transfer::idle(&self.shared.gpu))
    }

    fn warm_up<'a>(&'a mut self, interrupt: &'a Interrupt) -> LocalFuture<'a, Result<()>> {
        let cold = std::mem::take(&mut self.cold);
        Box::pin(async move { pipelines::warm(&self.shared.gpu, &cold, interrupt).await })
    }

    fn read<'a>(&'a mut self, tensors: &'a [DeviceTensor]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let gpu = self.shared.gpu.clone();
        Box::pin(async move {
            let mut out = Vec::with_capacity(tensors.len());
            for t in tensors {
                let tensor = ExportedTensor::of(t)?;
                out.push(tensor.read(&gpu, &self.faults, t).await?);
            }
            Ok(out)
        })
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        let state = self.state.replica();
        Some(Box::new(WgpuContext {
            faults: Faults::new(&self.shared.gpu).ok()?,
            shared: self.shared.clone(),
            constants: self.constants.share(state.ledger.clone()),
            cold: Vec::new(),
            state,
        }))
    }

    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let executable: &dyn Any = executable;
        let own: &WgpuExecutable = executable.downcast_ref()?;
        let replica = own.replica(&self.faults, &self.state.arena, &self.state.ledger);
        Some(Box::new(replica.ok()?))
    }

    fn is_lost(&self) -> bool {
        self.shared.gpu.is_lost()
    }
}
