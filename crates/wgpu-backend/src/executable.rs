//! A prepared stage: an arena, and for every node the dispatches to record.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::{DeviceTensor, Executable, LocalFuture, Place, TensorSlot};
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};

use crate::WgpuBackend;
use crate::backend::Shared;
use crate::faults::{self, Faults};
use crate::gpu::{Gpu, GpuBuffer};
use crate::pipelines::Pipeline;
use crate::profile::Profiler;
use crate::transfer;

/// One recorded launch.
pub(crate) struct Command {
    pub pipeline: Arc<Pipeline>,
    pub group: wgpu::BindGroup,
    pub groups: [u32; 3],
    /// Destroying a buffer that a bind group still names would fail the submission.
    pub _keep: Vec<Arc<GpuBuffer>>,
}

/// What a run has to know of a tensor.
pub(crate) struct Slot {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    bytes: u64,
    /// Where it is in the arena.
    offset: Option<u64>,
    /// Its data, if it is not computed.
    value: Option<Tensor>,
}

impl Slot {
    pub fn new(tensor: &TensorSlot, root: &TensorSlot) -> Slot {
        let spec = &tensor.spec;
        Slot {
            name: tensor.name.clone(),
            dtype: spec.dtype,
            shape: spec.shape.clone(),
            bytes: transfer::device_bytes(spec.dtype, spec.elements()) as u64,
            offset: match root.place {
                Place::Arena { offset } => Some(offset as u64),
                _ => None,
            },
            value: match root.place {
                Place::Arena { .. } => None,
                _ => root.spec.value.clone(),
            },
        }
    }

    fn offset(&self) -> Result<u64> {
        self.offset.ok_or_else(|| {
            Error::new(
                ErrorCode::State,
                format!("the tensor `{}` is not in the arena", self.name),
            )
        })
    }

    fn accepts(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        if dtype == self.dtype && shape == self.shape {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Shape,
            format!("the tensor `{}` was planned otherwise", self.name),
        )
        .with_expected(format!("{}{:?}", self.dtype, self.shape))
        .with_got(format!("{dtype}{shape:?}")))
    }
}

/// A copy of a tensor that outlives the arena.
pub(crate) struct ExportedTensor {
    buffer: Arc<GpuBuffer>,
}

impl ExportedTensor {
    pub fn of(tensor: &DeviceTensor) -> Result<&ExportedTensor> {
        let handle: &dyn std::any::Any = tensor.handle.as_ref();
        handle.downcast_ref().ok_or_else(|| {
            Error::new(
                ErrorCode::State,
                format!("a tensor of `{}` is not one of `wgpu`", tensor.backend),
            )
        })
    }

    pub async fn read(&self, gpu: &Gpu, faults: &Faults, tensor: &DeviceTensor) -> Result<Tensor> {
        let bytes = transfer::device_bytes(tensor.dtype, tensor.shape.iter().product()) as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = gpu.buffer("staging", bytes + faults::BYTES, usage)?;
        let mut encoder = gpu.device.create_command_encoder(&Default::default());
        if bytes > 0 {
            encoder.copy_buffer_to_buffer(&self.buffer.raw, 0, &staging.raw, 0, bytes);
        }
        let fault = &faults.buffer.raw;
        encoder.copy_buffer_to_buffer(fault, 0, &staging.raw, bytes, faults::BYTES);
        gpu.queue.submit([encoder.finish()]);
        let data = transfer::map(gpu, &staging, bytes + faults::BYTES).await?;
        faults.check(gpu, &data[bytes as usize..])?;
        transfer::from_device(tensor.dtype, &tensor.shape, &data[..bytes as usize])
    }
}

/// See [`Executable`].
pub(crate) struct WgpuExecutable {
    shared: Arc<Shared>,
    faults: Arc<Faults>,
    slots: Vec<Slot>,
    parts: Vec<Range<usize>>,
    nodes: Vec<Vec<Command>>,
    arena: Option<Arc<GpuBuffer>>,
    bytes: usize,
    /// Recorded, not yet submitted.
    encoder: Option<wgpu::CommandEncoder>,
    staging: Option<Arc<GpuBuffer>>,
    profiler: Option<Profiler>,
}

impl WgpuExecutable {
    pub fn new(
        shared: Arc<Shared>,
        faults: Arc<Faults>,
        slots: Vec<Slot>,
        parts: Vec<Range<usize>>,
        nodes: Vec<Vec<Command>>,
        arena: Option<Arc<GpuBuffer>>,
        bytes: usize,
    ) -> WgpuExecutable {
        WgpuExecutable {
            shared,
            faults,
            slots,
            parts,
            nodes,
            arena,
            bytes,
            encoder: None,
            staging: None,
            profiler: None,
        }
    }

    fn slot(&self, tensor: usize) -> Result<&Slot> {
        self.slots.get(tensor).ok_or_else(|| {
            Error::new(
                ErrorCode::State,
                format!("the stage has no tensor {tensor}"),
            )
        })
    }

    fn arena(&self) -> Result<&Arc<GpuBuffer>> {
        self.arena
            .as_ref()
            .ok_or_else(|| Error::new(ErrorCode::State, "the stage has no arena"))
    }

    fn flush(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            self.shared.gpu.queue.submit([encoder.finish()]);
        }
    }
}

fn encoder<'a>(
    gpu: &Gpu,
    slot: &'a mut Option<wgpu::CommandEncoder>,
) -> &'a mut wgpu::CommandEncoder {
    slot.get_or_insert_with(|| gpu.device.create_command_encoder(&Default::default()))
}

fn record(
    gpu: &Gpu,
    pass: &mut wgpu::ComputePass,
    commands: &[Command],
    current: &mut Option<*const Pipeline>,
) {
    for c in commands {
        let pipeline = Arc::as_ptr(&c.pipeline);
        if *current != Some(pipeline) {
            pass.set_pipeline(c.pipeline.raw(gpu));
            *current = Some(pipeline);
        }
        pass.set_bind_group(0, &c.group, &[]);
        pass.dispatch_workgroups(c.groups[0], c.groups[1], c.groups[2]);
    }
}

impl Executable for WgpuExecutable {
    fn begin(&mut self) -> Result<()> {
        self.encoder = None;
        self.shared.gpu.check()
    }

    fn write(&mut self, tensor: usize, data: &Tensor) -> Result<()> {
        // What is recorded has to see the arena as it was.
        self.flush();
        let slot = self.slot(tensor)?;
        slot.accepts(data.dtype(), data.shape())?;
        if slot.bytes > 0 {
            let bytes = transfer::to_device(data);
            self.shared
                .gpu
                .write(&self.arena()?.raw, slot.offset()?, &bytes);
        }
        Ok(())
    }

    fn import(&mut self, tensor: usize, data: &DeviceTensor) -> Result<()> {
        let from = ExportedTensor::of(data)?;
        let slot = self.slot(tensor)?;
        slot.accepts(data.dtype, &data.shape)?;
        let (bytes, offset) = (slot.bytes, slot.offset()?);
        if bytes > 0 {
            let arena = self.arena()?.clone();
            encoder(&self.shared.gpu, &mut self.encoder).copy_buffer_to_buffer(
                &from.buffer.raw,
                0,
                &arena.raw,
                offset,
                bytes,
            );
            // The source may be destroyed as soon as the caller drops it.
            self.flush();
        }
        Ok(())
    }

    fn run(&mut self, part: usize) -> Result<()> {
        let range =
            self.parts.get(part).cloned().ok_or_else(|| {
                Error::new(ErrorCode::State, format!("the stage has no part {part}"))
            })?;
        if self.nodes[range.clone()].iter().all(Vec::is_empty) {
            return Ok(());
        }
        let gpu = &self.shared.gpu;
        if let Some(profiler) = &mut self.profiler {
            return profiler.run(gpu, &mut self.encoder, range, &self.nodes, record);
        }
        let encoder = encoder(gpu, &mut self.encoder);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let mut current = None;
        for commands in &self.nodes[range] {
            record(gpu, &mut pass, commands, &mut current);
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        self.flush();
        Ok(())
    }

    fn finish(&mut self) -> LocalFuture<'_, Result<()>> {
        self.flush();
        Box::pin(async move { transfer::idle(&self.shared.gpu).await })
    }

    fn read<'a>(&'a mut self, tensors: &'a [usize]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        Box::pin(async move {
            let mut starts = Vec::with_capacity(tensors.len());
            let mut total = 0u64;
            for &t in tensors {
                starts.push(total);
                let slot = self.slot(t)?;
                if slot.value.is_none() {
                    total += slot.bytes;
                }
            }
            let results = total;
            if self.faults.possible() {
                total += faults::BYTES;
            }
            let shared = self.shared.clone();
            let gpu = &shared.gpu;
            let mut data = Vec::new();
            if total > 0 {
                let staging = match self.staging.take() {
                    Some(s) if s.bytes >= total => s,
                    _ => gpu.buffer(
                        "staging",
                        total,
                        wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                    )?,
                };
                for (&t, &start) in tensors.iter().zip(&starts) {
                    let slot = self.slot(t)?;
                    let bytes = slot.bytes;
                    if bytes > 0 && slot.value.is_none() {
                        let (from, arena) = (slot.offset()?, self.arena()?.clone());
                        encoder(gpu, &mut self.encoder).copy_buffer_to_buffer(
                            &arena.raw,
                            from,
                            &staging.raw,
                            start,
                            bytes,
                        );
                    }
                }
                if total > results {
                    encoder(gpu, &mut self.encoder).copy_buffer_to_buffer(
                        &self.faults.buffer.raw,
                        0,
                        &staging.raw,
                        results,
                        faults::BYTES,
                    );
                }
                self.flush();
                data = transfer::map(gpu, &staging, total).await?;
                self.staging = Some(staging);
                self.faults.check(gpu, &data[results as usize..])?;
            } else {
                self.flush();
                gpu.check()?;
            }
            tensors
                .iter()
                .zip(starts)
                .map(|(&t, start)| {
                    let slot = self.slot(t)?;
                    match &slot.value {
                        Some(value) => value.reshaped(&slot.shape),
                        None => {
                            let range = start as usize..(start + slot.bytes) as usize;
                            transfer::from_device(slot.dtype, &slot.shape, &data[range])
                        }
                    }
                })
                .collect()
        })
    }

    fn export(&mut self, tensor: usize) -> Result<DeviceTensor> {
        let slot = self.slot(tensor)?;
        let (dtype, shape, bytes) = (slot.dtype, slot.shape.clone(), slot.bytes);
        let buffer = match &slot.value {
            Some(value) => self
                .shared
                .gpu
                .upload("exported", &transfer::to_device(value))?,
            None => {
                let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
                let buffer = self.shared.gpu.buffer("exported", bytes, usage)?;
                if bytes > 0 {
                    let (from, arena) = (slot.offset()?, self.arena()?.clone());
                    encoder(&self.shared.gpu, &mut self.encoder).copy_buffer_to_buffer(
                        &arena.raw,
                        from,
                        &buffer.raw,
                        0,
                        bytes,
                    );
                    self.flush();
                }
                buffer
            }
        };
        Ok(DeviceTensor {
            backend: WgpuBackend::ID,
            dtype,
            shape,
            handle: Arc::new(ExportedTensor { buffer }),
        })
    }

    fn end(&mut self) -> Result<()> {
        self.flush();
        self.shared.gpu.check()
    }

    fn set_profiling(&mut self, on: bool) {
        self.profiler = on.then(|| Profiler::new(&self.shared.gpu, &self.nodes));
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<Vec<f64>>> {
        Box::pin(async move {
            self.flush();
            let gpu = &self.shared.gpu;
            match &mut self.profiler {
                Some(profiler) => profiler.seconds(gpu).await,
                None => Ok(Vec::new()),
            }
        })
    }

    fn launches(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
