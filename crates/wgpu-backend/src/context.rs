//! A session on the device: its constants, and building the executables of its stages.

use std::sync::Arc;

use kilim_core::backend::{
    BackendContext, DeviceTensor, Executable, KernelSpec, LocalFuture, NodeSpec, Place, StageSpec,
};
use kilim_core::error::unsupported;
use kilim_core::{Error, ErrorCode, Result, Tensor};

use crate::backend::Shared;
use crate::constants::{Constants, Pack};
use crate::executable::{Command, ExportedTensor, Slot, WgpuExecutable};
use crate::faults::Faults;
use crate::gpu::{Gpu, GpuBuffer};
use crate::lower::{Dispatch, Lowered, Operand};
use crate::params::Params;
use crate::pipelines::{self, Pipeline};
use crate::shaders::Variant;
use crate::transfer;

pub(crate) struct WgpuContext {
    shared: Arc<Shared>,
    constants: Constants,
    faults: Arc<Faults>,
    /// Pipelines of prepared stages that nobody has waited for yet.
    cold: Vec<Arc<Pipeline>>,
}

impl WgpuContext {
    pub fn new(shared: Arc<Shared>) -> Result<WgpuContext> {
        Ok(WgpuContext {
            faults: Faults::new(&shared.gpu)?,
            shared,
            constants: Constants::default(),
            cold: Vec::new(),
        })
    }
}

/// Part of a buffer that a dispatch binds.
#[derive(Clone)]
struct Binding {
    buffer: Arc<GpuBuffer>,
    offset: u64,
    bytes: u64,
    read_only: bool,
}

impl Binding {
    fn whole(buffer: Arc<GpuBuffer>) -> Binding {
        Binding {
            bytes: buffer.bytes,
            buffer,
            offset: 0,
            read_only: true,
        }
    }

    /// WebGPU forbids two bindings of one dispatch to overlap if either is written.
    fn clashes(&self, other: &Binding) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && !(self.read_only && other.read_only)
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// A dispatch with its buffers found; its parameters are not in the uniform buffer yet.
struct Bound {
    node: usize,
    dispatch: Dispatch,
    bindings: Vec<Binding>,
}

struct Builder<'a> {
    gpu: &'a Gpu,
    constants: &'a mut Constants,
    faults: &'a Faults,
    stage: &'a StageSpec,
    arena: Option<Arc<GpuBuffer>>,
    scratch: Option<Arc<GpuBuffer>>,
    raw: Vec<Option<Arc<GpuBuffer>>>,
    empty: Arc<GpuBuffer>,
    bound: Vec<Bound>,
}

const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

impl Builder<'_> {
    fn tensor(&mut self, tensor: usize) -> Result<Binding> {
        let root = self.stage.root(tensor);
        let slot = &self.stage.tensors[root];
        let bytes = transfer::device_bytes(slot.spec.dtype, slot.spec.elements()) as u64;
        if bytes == 0 {
            return Ok(Binding::whole(self.empty.clone()));
        }
        match slot.place {
            Place::Arena { offset } => match &self.arena {
                Some(arena) => Ok(Binding {
                    buffer: arena.clone(),
                    offset: offset as u64,
                    bytes,
                    read_only: false,
                }),
                None => Err(Error::new(ErrorCode::State, "the stage has no arena")),
            },
            Place::Constant(key) => {
                if let Some(buffer) = &self.raw[root] {
                    return Ok(Binding::whole(buffer.clone()));
                }
                let value = known(slot)?;
                let buffer = self.constants.get(self.gpu, Some(key), value, None)?;
                self.raw[root] = Some(buffer.clone());
                Ok(Binding::whole(buffer))
            }
            Place::Planned => {
                if let Some(buffer) = &self.raw[root] {
                    return Ok(Binding::whole(buffer.clone()));
                }
                let buffer = self.constants.get(self.gpu, None, known(slot)?, None)?;
                self.raw[root] = Some(buffer.clone());
                Ok(Binding::whole(buffer))
            }
            Place::Input | Place::Output | Place::Alias(_) => Err(Error::new(
                ErrorCode::State,
                format!("the tensor `{}` has no place on the GPU", slot.name),
            )),
        }
    }

    fn packed(&mut self, spec: &KernelSpec, pack: &Pack) -> Result<Binding> {
        let tensor = spec.inputs.get(pack.input).copied().flatten();
        let root = self.stage.root(tensor.ok_or_else(missing)?);
        let slot = &self.stage.tensors[root];
        let key = match slot.place {
            Place::Constant(key) => Some(key),
            _ => None,
        };
        let value = known(slot)?;
        let buffer = self.constants.get(self.gpu, key, value, Some(&pack.kind))?;
        Ok(Binding::whole(buffer))
    }

    /// Finds the buffers of a node's dispatches. Operands that clash are copied out of the way.
    fn node(&mut self, index: usize, spec: &KernelSpec, lowered: Lowered) -> Result<()> {
        let Lowered {
            dispatches,
            scratch,
            packs,
            tables,
        } = lowered;
        let alignment = self.gpu.limits.min_storage_buffer_offset_alignment.max(16) as u64;
        let mut scratch_at = Vec::with_capacity(scratch.len());
        let mut scratch_end = 0u64;
        for &bytes in &scratch {
            scratch_at.push(scratch_end);
            scratch_end = (scratch_end + bytes as u64).next_multiple_of(alignment);
        }
        let tables = tables
            .iter()
            .map(|t| self.gpu.upload("table", bytemuck::cast_slice(t)))
            .collect::<Result<Vec<_>>>()?;
        for mut dispatch in dispatches {
            let mut bindings: Vec<Binding> = Vec::with_capacity(dispatch.operands.len());
            if dispatch.operands.contains(&Operand::Fault) {
                let number = self.faults.number(&spec.name, spec.op.name());
                dispatch.params.words.push(number);
            }
            for operand in &dispatch.operands {
                let mut binding = match *operand {
                    Operand::Input(i) => {
                        let tensor = spec.inputs.get(i).copied().flatten();
                        self.tensor(tensor.ok_or_else(missing)?)?
                    }
                    Operand::Output(i) => {
                        let tensor = spec.outputs.get(i).copied();
                        let binding = self.tensor(tensor.ok_or_else(missing)?)?;
                        if Arc::ptr_eq(&binding.buffer, &self.empty) {
                            // An output without elements beside others that have some.
                            Binding {
                                read_only: false,
                                ..Binding::whole(self.gpu.buffer("empty", 16, STORAGE)?)
                            }
                        } else {
                            binding
                        }
                    }
                    Operand::Scratch(i) => self.scratch(scratch_at[i], scratch[i])?,
                    Operand::Pack(i) => self.packed(spec, &packs[i])?,
                    Operand::Table(i) => Binding::whole(tables[i].clone()),
                    Operand::Fault => Binding {
                        read_only: false,
                        ..Binding::whole(self.faults.buffer.clone())
                    },
                };
                if matches!(operand, Operand::Input(_))
                    && bindings.iter().any(|b| b.clashes(&binding))
                {
                    let copy = self.scratch(scratch_end, binding.bytes as usize)?;
                    scratch_end = (scratch_end + binding.bytes).next_multiple_of(alignment);
                    self.copy(index, binding, copy.clone());
                    binding = copy;
                }
                bindings.push(binding);
            }
            self.bound.push(Bound {
                node: index,
                dispatch,
                bindings,
            });
        }
        Ok(())
    }

    fn scratch(&self, offset: u64, bytes: usize) -> Result<Binding> {
        match &self.scratch {
            Some(buffer) => Ok(Binding {
                buffer: buffer.clone(),
                offset,
                bytes: bytes.next_multiple_of(4).max(4) as u64,
                read_only: false,
            }),
            None => Err(Error::new(ErrorCode::State, "the stage has no scratch")),
        }
    }

    fn copy(&mut self, node: usize, from: Binding, to: Binding) {
        let words = (from.bytes / 4) as usize;
        let groups = crate::lower::spread(words.div_ceil(crate::shaders::LINEAR));
        self.bound.push(Bound {
            node,
            dispatch: Dispatch {
                shader: "copy",
                text: None,
                defines: vec![("T", "u32")],
                operands: Vec::new(),
                params: Params::new().u(words),
                groups: groups.map(|g| g as u32),
            },
            bindings: vec![from, to],
        });
    }
}

fn known(slot: &kilim_core::backend::TensorSlot) -> Result<&Tensor> {
    slot.spec.value.as_ref().ok_or_else(|| {
        Error::new(
            ErrorCode::State,
            format!("the constant `{}` has no data", slot.name),
        )
    })
}

fn missing() -> Error {
    Error::new(ErrorCode::State, "a kernel binds an input that is missing")
}

/// Bytes of scratch that a node may need, with copies of clashing inputs.
fn scratch_bytes(stage: &StageSpec, spec: &KernelSpec, lowered: &Lowered, alignment: u64) -> u64 {
    let own: u64 = lowered
        .scratch
        .iter()
        .map(|&b| (b as u64).next_multiple_of(alignment))
        .sum();
    let roots: Vec<usize> = spec
        .inputs
        .iter()
        .flatten()
        .map(|&t| stage.root(t))
        .collect();
    let twins: u64 = roots
        .iter()
        .enumerate()
        .filter(|(i, r)| roots[..*i].contains(r))
        .map(|(_, &r)| {
            let s = &stage.tensors[r].spec;
            (transfer::device_bytes(s.dtype, s.elements()) as u64).next_multiple_of(alignment)
        })
        .sum();
    own + twins * lowered.dispatches.len() as u64
}

impl BackendContext for WgpuContext {
    fn prepare(&mut self, stage: StageSpec) -> Result<Box<dyn Executable>> {
        let shared = self.shared.clone();
        let gpu = &shared.gpu;
        gpu.check()?;
        let alignment = gpu.limits.min_storage_buffer_offset_alignment.max(16) as u64;
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
            let l = shared
                .lower(&spec, &roots)
                .map_err(|r| unsupported(r.reason).at(&node.name, node.op.name()))?;
            scratch = scratch.max(scratch_bytes(&stage, node, &l, alignment));
            lowered.push(l);
        }
        let buffer = |label, bytes: u64| -> Result<Option<Arc<GpuBuffer>>> {
            (bytes > 0)
                .then(|| gpu.buffer(label, bytes, STORAGE))
                .transpose()
        };
        let mut builder = Builder {
            gpu,
            constants: &mut self.constants,
            faults: &self.faults,
            stage: &stage,
            arena: buffer("arena", stage.arena_bytes as u64)?,
            scratch: buffer("scratch", scratch)?,
            raw: vec![None; stage.tensors.len()],
            empty: gpu.buffer("empty", 16, STORAGE)?,
            bound: Vec::new(),
        };
        for (i, (node, l)) in stage.nodes.iter().zip(lowered).enumerate() {
            builder
                .node(i, node, l)
                .map_err(|e| e.at(&node.name, node.op.name()))?;
        }
        let Builder {
            arena,
            scratch,
            bound,
            ..
        } = builder;
        let (uniforms, commands) = bind(gpu, &stage, bound)?;
        for command in commands.iter().flatten() {
            let is = |p: &Arc<Pipeline>| Arc::ptr_eq(p, &command.pipeline);
            if !self.cold.iter().any(is) {
                self.cold.push(command.pipeline.clone());
            }
        }
        gpu.check()?;
        let slots = stage
            .tensors
            .iter()
            .enumerate()
            .map(|(i, t)| Slot::new(t, &stage.tensors[stage.root(i)]))
            .collect();
        let bytes = [&arena, &scratch]
            .into_iter()
            .flatten()
            .chain(&uniforms)
            .map(|b| b.bytes as usize)
            .sum();
        Ok(Box::new(WgpuExecutable::new(
            shared,
            self.faults.clone(),
            slots,
            stage.parts,
            commands,
            arena,
            bytes,
        )))
    }

    fn warm_up(&mut self) -> LocalFuture<'_, Result<()>> {
        let cold = std::mem::take(&mut self.cold);
        Box::pin(async move { pipelines::warm(&self.shared.gpu, &cold).await })
    }

    fn read<'a>(&'a mut self, tensors: &'a [DeviceTensor]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let mut out = Vec::with_capacity(tensors.len());
            for t in tensors {
                let tensor = ExportedTensor::of(t)?;
                out.push(tensor.read(&shared.gpu, &self.faults, t).await?);
            }
            Ok(out)
        })
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        Some(Box::new(WgpuContext {
            faults: Faults::new(&self.shared.gpu).ok()?,
            shared: self.shared.clone(),
            constants: self.constants.clone(),
            cold: Vec::new(),
        }))
    }

    fn is_lost(&self) -> bool {
        self.shared.gpu.is_lost()
    }

    fn constant_bytes(&self) -> usize {
        self.constants.bytes()
    }
}

fn part(buffer: &GpuBuffer, offset: u64, bytes: u64) -> wgpu::BindingResource<'_> {
    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer: &buffer.raw,
        offset,
        size: std::num::NonZeroU64::new(bytes),
    })
}

type Bind = (Option<Arc<GpuBuffer>>, Vec<Vec<Command>>);

/// Puts all parameters in one uniform buffer and makes pipelines and bind groups. The commands are
/// in a list for each node.
fn bind(gpu: &Gpu, stage: &StageSpec, bound: Vec<Bound>) -> Result<Bind> {
    // Whole blocks are bound: a struct may declare more fields at its end than a variant uses.
    let step = (gpu.limits.min_uniform_buffer_offset_alignment as usize).max(256);
    let mut words: Vec<u32> = Vec::new();
    let mut ranges = Vec::with_capacity(bound.len());
    for b in &bound {
        let start = words.len() * 4;
        words.extend(&b.dispatch.params.words);
        let end = words.len().max(1).saturating_mul(4).next_multiple_of(step);
        words.resize(end / 4, 0);
        ranges.push((start as u64, (end - start) as u64));
    }
    let mut commands: Vec<Vec<Command>> = stage.nodes.iter().map(|_| Vec::new()).collect();
    if bound.is_empty() {
        return Ok((None, commands));
    }
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let uniforms = gpu.buffer("parameters", words.len() as u64 * 4, usage)?;
    gpu.write(&uniforms.raw, 0, bytemuck::cast_slice(&words));
    for (b, (offset, bytes)) in bound.into_iter().zip(ranges) {
        let node = &stage.nodes[b.node];
        let variant = Variant {
            shader: b.dispatch.shader,
            text: b.dispatch.text,
            defines: b.dispatch.defines,
            read_only: b.bindings.iter().map(|b| b.read_only).collect(),
        };
        let pipeline = gpu
            .pipelines
            .get(gpu, &variant)
            .map_err(|e| e.at(&node.name, node.op.name()))?;
        let mut entries = vec![wgpu::BindGroupEntry {
            binding: 0,
            resource: part(&uniforms, offset, bytes),
        }];
        for (i, binding) in b.bindings.iter().enumerate() {
            entries.push(wgpu::BindGroupEntry {
                binding: i as u32 + 1,
                resource: part(&binding.buffer, binding.offset, binding.bytes),
            });
        }
        let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut keep: Vec<Arc<GpuBuffer>> = b.bindings.into_iter().map(|b| b.buffer).collect();
        keep.push(uniforms.clone());
        commands[b.node].push(Command {
            pipeline,
            group,
            groups: b.dispatch.groups,
            _keep: keep,
        });
    }
    Ok((Some(uniforms), commands))
}
