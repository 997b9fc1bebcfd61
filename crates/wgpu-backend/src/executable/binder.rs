//! From lowered nodes to commands: finding the buffers of every dispatch.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::{KernelSpec, Location, StageTensors};
use kilim_core::ids::{KernelIndex, PerKernel, TensorIndex};
use kilim_core::{Error, ErrorCode, Result, Tensor};

use crate::device::binding::Binding;
use crate::device::faults::Faults;
use crate::device::gpu::{Gpu, GpuBuffer, STORAGE};
use crate::device::pipelines::Key;
use crate::device::storage;
use crate::executable::Command;
use crate::executable::constants::Constants;
use crate::lowering::{Dispatch, Lowered, Pack, PackKind, spread};
use crate::shaders::movement::copy;
use crate::shaders::{Call, LINEAR, Operand, Program, Target};

/// A dispatch with its buffers found; its parameters are not in the uniform buffer yet.
struct Bound {
    node: KernelIndex,
    program: Program,
    params: Vec<u32>,
    groups: [u32; 3],
    bindings: Vec<Binding>,
}

/// Finds the buffers of a stage's dispatches, node by node.
pub(crate) struct Binder<'a> {
    gpu: &'a Gpu,
    constants: &'a mut Constants,
    faults: &'a Faults,
    tensors: &'a StageTensors,
    /// The data of tensors that are known, by those that are no aliases.
    values: HashMap<TensorIndex, Tensor>,
    raw: HashMap<TensorIndex, Arc<GpuBuffer>>,
    empty: Arc<GpuBuffer>,
    bound: Vec<Bound>,
    /// Buffers that belong to this stage alone.
    own: Vec<Arc<GpuBuffer>>,
}

/// The commands of nodes in their order, and the buffers that belong to the stage alone.
pub(crate) struct Commands {
    pub commands: Vec<(KernelIndex, Command)>,
    pub own: Vec<Arc<GpuBuffer>>,
}

impl<'a> Binder<'a> {
    /// A binder for nodes of one stage, of whose tensors `values` are known; what kernels report goes to `faults`.
    pub fn new(
        gpu: &'a Gpu,
        constants: &'a mut Constants,
        faults: &'a Faults,
        tensors: &'a StageTensors,
        values: HashMap<TensorIndex, Tensor>,
    ) -> Result<Self> {
        Ok(Binder {
            gpu,
            constants,
            faults,
            tensors,
            values,
            raw: HashMap::new(),
            empty: gpu.buffer("empty", 16, STORAGE)?,
            bound: Vec::new(),
            own: Vec::new(),
        })
    }

    fn tensor(&mut self, tensor: TensorIndex) -> Result<Binding> {
        let root = self.tensors.root(tensor);
        let slot = self.tensors.slot(root)?;
        let bytes = storage::device_bytes(slot.spec.dtype, slot.spec.elements()) as u64;
        if bytes == 0 {
            return Ok(Binding::whole(self.empty.clone()));
        }
        match slot.location {
            Location::Arena { offset } => Ok(Binding::tensor(root, offset as u64, bytes)),
            Location::Constant(_) | Location::Planned => {
                if let Some(buffer) = self.raw.get(&root) {
                    return Ok(Binding::whole(buffer.clone()));
                }
                let buffer = self.constant(root, None)?;
                self.raw.insert(root, buffer.clone());
                Ok(Binding::whole(buffer))
            }
            Location::Input | Location::Output | Location::Alias(_) => Err(Error::new(
                ErrorCode::State,
                format!("the tensor `{}` has no place on the GPU", slot.name),
            )),
        }
    }

    fn packed(&mut self, spec: &KernelSpec, pack: &Pack) -> Result<Binding> {
        let tensor = spec.inputs.get(pack.input).copied().flatten();
        let root = self.tensors.root(tensor.ok_or_else(missing)?);
        let buffer = self.constant(root, Some(&pack.kind))?;
        Ok(Binding::whole(buffer))
    }

    /// The data of a tensor that is known, as it is or packed. What only this stage knows is the stage's own.
    fn constant(&mut self, root: TensorIndex, pack: Option<&PackKind>) -> Result<Arc<GpuBuffer>> {
        let key = self.tensors.location(root).constant();
        let buffer = (self.constants).get(self.gpu, key, self.values.get(&root), pack)?;
        if key.is_none() {
            self.own.push(buffer.clone());
        }
        Ok(buffer)
    }

    /// Finds the buffers of a node's dispatches. Operands that clash are copied out of the way.
    pub fn node(&mut self, index: KernelIndex, spec: &KernelSpec, lowered: Lowered) -> Result<()> {
        let Lowered {
            dispatches,
            scratch,
            packs,
            tables,
            ..
        } = lowered;
        let alignment = self.gpu.limits.min_storage_buffer_offset_alignment.max(16) as u64;
        let mut scratch_at = Vec::with_capacity(scratch.len());
        let mut scratch_end = 0;
        for &bytes in &scratch {
            scratch_at.push(scratch_end);
            scratch_end = (scratch_end + bytes as u64).next_multiple_of(alignment);
        }
        let tables = tables
            .iter()
            .map(|t| self.gpu.upload("table", bytemuck::cast_slice(t)))
            .collect::<Result<Vec<_>>>()?;
        self.own.extend(tables.iter().cloned());
        for Dispatch { call, groups } in dispatches {
            let Call {
                program,
                operands,
                params,
            } = call;
            let mut params = params.words;
            if operands.contains(&Operand::Fault) {
                params.push(self.faults.number(&spec.name, spec.op.name()));
            }
            let mut bindings: Vec<Binding> = Vec::with_capacity(operands.len());
            for operand in &operands {
                let mut binding = match *operand {
                    Operand::Input(i) => {
                        let tensor = spec.inputs.get(i).copied().flatten();
                        self.tensor(tensor.ok_or_else(missing)?)?
                    }
                    Operand::Output(i) => {
                        let tensor = spec.outputs.get(i).copied();
                        let binding = self.tensor(tensor.ok_or_else(missing)?)?;
                        if binding.is(&self.empty) {
                            // An output without elements beside others that have some.
                            Binding::whole(self.gpu.buffer("empty", 16, STORAGE)?).written()
                        } else {
                            binding
                        }
                    }
                    Operand::Scratch(i) => in_scratch(scratch_at[i], scratch[i]),
                    Operand::Pack(i) => self.packed(spec, &packs[i])?,
                    Operand::Table(i) => Binding::whole(tables[i].clone()),
                    Operand::Fault => Binding::whole(self.faults.buffer.clone()).written(),
                };
                if matches!(operand, Operand::Input(_))
                    && bindings.iter().any(|b| b.clashes(&binding))
                {
                    let copy = in_scratch(scratch_end, binding.bytes as usize);
                    scratch_end = (scratch_end + binding.bytes).next_multiple_of(alignment);
                    self.copy(index, binding, copy.clone());
                    binding = copy;
                }
                bindings.push(binding);
            }
            self.bound.push(Bound {
                node: index,
                program,
                params,
                groups,
                bindings,
            });
        }
        Ok(())
    }

    fn copy(&mut self, node: KernelIndex, from: Binding, to: Binding) {
        let words = (from.bytes / 4) as usize;
        // The bindings stand for the buffers.
        let call = Call::from(copy::Launch {
            x: Operand::Input(0),
            y: Target::Output(0),
            params: copy::Params { count: words },
        });
        self.bound.push(Bound {
            node,
            program: call.program,
            params: call.params.words,
            groups: spread(words.div_ceil(LINEAR)).map(|g| g as u32),
            bindings: vec![from, to],
        });
    }

    /// Puts all parameters in one uniform buffer and finds the pipelines.
    pub fn finish(self, nodes: &PerKernel<KernelSpec>) -> Result<Commands> {
        let Binder {
            gpu,
            bound,
            mut own,
            ..
        } = self;
        // Whole blocks are bound: a struct may declare more fields at its end than a variant uses.
        let step = (gpu.limits.min_uniform_buffer_offset_alignment as usize).max(256);
        let mut words: Vec<u32> = Vec::new();
        let mut ranges = Vec::with_capacity(bound.len());
        for b in &bound {
            let start = words.len() * 4;
            words.extend(&b.params);
            let end = words.len().max(1).saturating_mul(4).next_multiple_of(step);
            words.resize(end / 4, 0);
            ranges.push((start as u64, (end - start) as u64));
        }
        let mut commands = Vec::with_capacity(bound.len());
        if bound.is_empty() {
            return Ok(Commands { commands, own });
        }
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let uniforms = gpu.buffer("parameters", words.len() as u64 * 4, usage)?;
        gpu.write(&uniforms.raw, 0, bytemuck::cast_slice(&words));
        for (b, (offset, bytes)) in bound.into_iter().zip(ranges) {
            let node = &nodes[b.node];
            let key = Key {
                program: b.program,
                read_only: b.bindings.iter().map(|b| b.read_only).collect(),
            };
            let pipeline = gpu
                .pipelines
                .get(gpu, &key)
                .map_err(|e| e.at(&node.name, node.op.name()))?;
            let parameters = Binding::part(uniforms.clone(), offset, bytes);
            let command = Command::new(pipeline, b.groups, parameters, b.bindings);
            commands.push((b.node, command));
        }
        own.push(uniforms);
        Ok(Commands { commands, own })
    }
}

fn in_scratch(offset: u64, bytes: usize) -> Binding {
    Binding::scratch(offset, bytes.next_multiple_of(4).max(4) as u64)
}

/// Where scratch begins in an arena whose tensors take `arena_bytes`: behind them.
pub(crate) fn scratch_start(gpu: &Gpu, arena_bytes: usize) -> u64 {
    let alignment = gpu.limits.min_storage_buffer_offset_alignment.max(16) as u64;
    (arena_bytes as u64).next_multiple_of(alignment)
}

fn missing() -> Error {
    Error::new(ErrorCode::State, "a kernel binds an input that is missing")
}

/// Bytes of scratch that a node may need, with copies of clashing inputs.
pub(crate) fn scratch_bytes(
    tensors: &StageTensors,
    spec: &KernelSpec,
    lowered: &Lowered,
    alignment: u64,
) -> u64 {
    let own: u64 = lowered
        .scratch
        .iter()
        .map(|&b| (b as u64).next_multiple_of(alignment))
        .sum();
    let roots: Vec<TensorIndex> = spec
        .inputs
        .iter()
        .flatten()
        .map(|&t| tensors.root(t))
        .collect();
    let twins: u64 = roots
        .iter()
        .enumerate()
        .filter(|(i, r)| roots[..*i].contains(r))
        .map(|(_, &r)| {
            let s = &tensors.slots()[r].spec;
            (storage::device_bytes(s.dtype, s.elements()) as u64).next_multiple_of(alignment)
        })
        .sum();
    own + twins * lowered.dispatches.len() as u64
}
