//! A session on the device: its constants, and building the executables of its stages.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

#[cfg(target_arch = "wasm32")]
use kilim_core::backend::DeviceTensor;
use kilim_core::backend::{
    BackendContext, ContextState, Executable, KernelChange, KernelSpec, LocalFuture, NodeSpec,
    RawConstants, StageChange, StageSpec, StageTensors, TensorSpec,
};
use kilim_core::error::unsupported;
use kilim_core::ids::{KernelIndex, PerKernel, TensorIndex};
use kilim_core::{Interrupt, Result, Tensor};

#[cfg(target_arch = "wasm32")]
use crate::device;
use crate::device::faults::Faults;
use crate::device::gpu::Gpu;
#[cfg(target_arch = "wasm32")]
use crate::device::gpu::STORAGE;
use crate::device::pipelines::{self, Pipeline};
#[cfg(target_arch = "wasm32")]
use crate::device::storage;
use crate::device::transfer;
use crate::executable::binder::{Binder, Commands, scratch_bytes};
use crate::executable::constants::Constants;
#[cfg(target_arch = "wasm32")]
use crate::executable::exported::ExportedTensor;
use crate::executable::heirs::Heirs;
use crate::executable::normed::Normed;
use crate::executable::room::Room;
use crate::executable::{Prepared, WgpuExecutable, by_node};
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
            busy: self.gpu.busy(),
            half: self.gpu.half,
        }
    }

    /// The dispatches of a node about which nothing else is known.
    pub fn lower(&self, node: &NodeSpec) -> Lowers<Lowered> {
        self.lower_as(node, |_| {})
    }

    /// The dispatches of a node, with what `tell` says of it.
    pub fn lower_as<'a>(
        &self,
        node: &'a NodeSpec<'a>,
        tell: impl FnOnce(&mut Lowering<'a>),
    ) -> Lowers<Lowered> {
        let mut lowering = Lowering::new(node, self.caps());
        tell(&mut lowering);
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

    /// The dispatches of a node, and the bytes of scratch that they need.
    fn lower(
        &self,
        (kernel, node): (KernelIndex, &KernelSpec),
        tensors: &StageTensors,
        inputs: &[Option<TensorSpec>],
        outputs: &[TensorSpec],
        is_heir: bool,
        normed: &Normed,
    ) -> Result<(Lowered, u64)> {
        let root = |t: &TensorIndex| tensors.root(*t);
        let view = node.op.is_view()
            && matches!((node.inputs.first(), node.outputs.first()),
                (Some(Some(i)), Some(o)) if root(i) == root(o));
        if view || normed.is_norm(kernel) {
            return Ok((Lowered::default(), 0));
        }
        let spec = spec(node, inputs, outputs);
        let roots: Vec<_> = node.inputs.iter().map(|i| i.as_ref().map(root)).collect();
        let lowered = self
            .shared
            .lower_as(&spec, |lowering| {
                lowering.roots = &roots;
                lowering.tuned = self.state.tuned.clone();
                lowering.may_be_on_input = is_heir;
                lowering.norm = normed.epsilon(kernel);
            })
            .map_err(|stop| match stop {
                Stop::Refused(refusal) => unsupported(refusal.reason),
                Stop::Wrong(error) => error,
            })
            .map_err(|e| e.at(&node.name, node.op.name()))?;
        let alignment = self.shared.gpu.limits.min_storage_buffer_offset_alignment;
        let scratch = scratch_bytes(tensors, node, &lowered, alignment.max(16) as u64);
        Ok((lowered, scratch))
    }

    /// Finds the buffers of dispatches; `values` are the known tensors among those that they read.
    fn bind(
        &mut self,
        nodes: &PerKernel<KernelSpec>,
        tensors: &StageTensors,
        values: HashMap<TensorIndex, Tensor>,
        lowered: Vec<(KernelIndex, Lowered)>,
        faults: &Faults,
        interrupt: &Interrupt,
    ) -> Result<Commands> {
        let gpu = &self.shared.gpu.clone();
        let mut binder = Binder::new(gpu, &mut self.constants, faults, tensors, values)?;
        for (i, lowered) in lowered {
            interrupt.check()?;
            let node = &nodes[i];
            binder
                .node(i, node, lowered)
                .map_err(|e| e.at(&node.name, node.op.name()))?;
        }
        let commands = binder.finish(nodes)?;
        for (_, command) in &commands.commands {
            let is = |p: &Arc<Pipeline>| Arc::ptr_eq(p, &command.pipeline);
            if !self.cold.iter().any(is) {
                self.cold.push(command.pipeline.clone());
            }
        }
        gpu.check()?;
        Ok(commands)
    }
}

/// A node with the specs of its inputs and outputs.
fn spec<'a>(
    node: &'a KernelSpec,
    inputs: &'a [Option<TensorSpec>],
    outputs: &'a [TensorSpec],
) -> NodeSpec<'a> {
    NodeSpec {
        name: &node.name,
        op: node.op.as_ref(),
        inputs,
        outputs,
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
        mut stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        let gpu = &self.shared.gpu.clone();
        let speed = gpu.speed();
        let normed = Normed::join(&mut stage);
        let mut heirs = Heirs::of(&stage);
        let mut lowered = Vec::with_capacity(stage.nodes.len());
        let mut seconds = PerKernel::new();
        let mut scratch = 0;
        for (i, node) in stage.nodes.entries() {
            let (inputs, outputs) = stage.specs(node);
            let is_heir = heirs.may(i);
            let (own, bytes) =
                self.lower((i, node), &tensors, &inputs, &outputs, is_heir, &normed)?;
            heirs.set(i, own.on_input);
            lowered.push((i, own));
            scratch = scratch.max(bytes);
            seconds.push(speed.seconds(&spec(node, &inputs, &outputs).cost()));
        }
        let values: HashMap<TensorIndex, Tensor> = (stage.tensors.entries())
            .filter_map(|(t, slot)| Some((t, slot.spec.value.clone()?)))
            .collect();
        let known = |t| match self.state.raw {
            RawConstants::Keep => values.get(&tensors.root(t)).cloned(),
            RawConstants::Drop => None,
        };
        let shown = stage.tensors.indices().map(known).collect();
        let faults = self.faults.clone();
        let nodes = Arc::new(stage.nodes);
        let commands = self.bind(&nodes, &tensors, values, lowered, &faults, interrupt)?;
        let mut room = Room::new(gpu, stage.arena_bytes, scratch);
        room.own(&commands.own);
        let claims = room.claim(&self.state.ledger)?;
        Ok(Box::new(WgpuExecutable::new(
            gpu.clone(),
            Prepared {
                faults,
                tensors,
                values: shown,
                parts: stage.parts,
                commands: by_node(nodes.len(), commands),
                nodes,
                normed: Arc::new(normed),
                heirs,
                room,
                seconds: Arc::new(seconds),
                arena: self.state.arena.clone(),
                claims,
                memory: self.state.memory,
            },
        )))
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
        let Some(own) = executable.downcast_mut::<WgpuExecutable>() else {
            return Ok(false);
        };
        self.shared.gpu.check()?;
        own.reshape(change, &mut self.state)?;
        let frame = own.frame();
        let speed = self.shared.gpu.speed();
        let mut values = HashMap::new();
        let mut lowered = Vec::with_capacity(change.kernels.len());
        let mut made = Vec::with_capacity(change.kernels.len());
        let mut scratch = 0;
        for KernelChange {
            kernel,
            inputs,
            outputs,
        } in &change.kernels
        {
            let node = frame.node(*kernel)?;
            let is_heir = own.heirs.may(*kernel);
            let normed = &frame.normed;
            let inputs = normed.inputs(*kernel, node, inputs, &frame.tensors)?;
            let (dispatches, bytes) = self.lower(
                (*kernel, node),
                &frame.tensors,
                &inputs,
                outputs,
                is_heir,
                normed,
            )?;
            own.heirs.set(*kernel, dispatches.on_input);
            lowered.push((*kernel, dispatches));
            scratch = scratch.max(bytes);
            let seconds = speed.seconds(&spec(node, &inputs, outputs).cost());
            made.push((*kernel, seconds));
            for (tensor, spec) in node.inputs.iter().zip(&inputs) {
                let known = spec.as_ref().and_then(|spec| spec.value.as_ref());
                if let (Some(tensor), Some(value)) = (tensor, known) {
                    values.insert(frame.tensors.root(*tensor), value.clone());
                }
            }
        }
        let commands = self.bind(
            &frame.nodes,
            &frame.tensors,
            values,
            lowered,
            &frame.faults,
            interrupt,
        )?;
        own.adapt(commands, made, scratch, change, &self.state.ledger)?;
        Ok(true)
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

    #[cfg(target_arch = "wasm32")]
    fn blank(&mut self, tensor: &TensorSpec) -> Result<Option<DeviceTensor>> {
        let gpu = &self.shared.gpu;
        gpu.check()?;
        if !storage::holds(tensor.dtype) {
            return Ok(None);
        }
        let bytes = storage::device_bytes(tensor.dtype, tensor.elements()) as u64;
        if bytes > gpu.max_binding() {
            return Ok(None);
        }
        Ok(Some(DeviceTensor {
            backend: device::ID,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            handle: Arc::new(ExportedTensor {
                gpu: gpu.clone(),
                faults: self.faults.clone(),
                buffer: gpu.buffer("blank", bytes, STORAGE)?,
            }),
        }))
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
