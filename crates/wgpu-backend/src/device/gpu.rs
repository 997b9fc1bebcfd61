//! The GPU: opening it, its limits, and the errors it reports behind our back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kilim_core::backend::Speed;
use kilim_core::{Error, ErrorCode, Result};

use crate::device::pipelines::Pipelines;
use crate::device::selection::Selection;

/// Locks even if another thread panicked while it held the lock: what is guarded stays consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the device reported since the last check. A lost device stays lost.
#[derive(Default)]
struct Reports {
    lost: Mutex<Option<String>>,
    error: Mutex<Option<Error>>,
}

impl Reports {
    fn report(&self, error: wgpu::Error) {
        let error = match error {
            wgpu::Error::OutOfMemory { .. } => {
                Error::new(ErrorCode::Limit, "the GPU is out of memory")
            }
            wgpu::Error::Validation { description, .. }
            | wgpu::Error::Internal { description, .. } => Error::new(
                ErrorCode::Device,
                format!("the GPU refused an operation: {description}"),
            ),
        };
        lock(&self.error).get_or_insert(error);
    }

    fn check(&self) -> Result<()> {
        if let Some(reason) = lock(&self.lost).as_ref() {
            return Err(Error::new(
                ErrorCode::Device,
                format!("the GPU device was lost: {reason}"),
            )
            .with_hint("the session's next run opens it again"));
        }
        match lock(&self.error).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The way to this machine's GPUs.
pub(crate) fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle_from_env())
}

/// An open device with its queue, shared by all sessions.
pub(crate) struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: wgpu::AdapterInfo,
    pub limits: wgpu::Limits,
    pub timestamps: bool,
    /// Shaders may compute with `f16`.
    pub half: bool,
    pub pipelines: Pipelines,
    reports: Arc<Reports>,
}

impl Gpu {
    /// Opens the adapter that is meant; `Device` where there is none, or it does not open.
    pub async fn open(selection: &Selection) -> Result<Gpu> {
        let instance = instance();
        let adapter = selection.adapter(&instance).await?;
        let limits = adapter.limits();
        let wanted = wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::SUBGROUP
            | wgpu::Features::PIPELINE_CACHE
            | wgpu::Features::SHADER_F16;
        let features = adapter.features() & wanted;
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("kilim"),
                required_features: features,
                required_limits: limits.clone(),
                ..Default::default()
            })
            .await
            .map_err(|e| Error::new(ErrorCode::Device, format!("cannot open the GPU: {e}")))?;
        let reports = Arc::new(Reports::default());
        let on_error = reports.clone();
        device.on_uncaptured_error(Arc::new(move |e| on_error.report(e)));
        let on_lost = reports.clone();
        device.set_device_lost_callback(move |_, reason| {
            lock(&on_lost.lost).get_or_insert(reason);
        });
        Ok(Gpu {
            info: adapter.get_info(),
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            half: features.contains(wgpu::Features::SHADER_F16),
            pipelines: Pipelines::new(&device),
            limits,
            device,
            queue,
            reports,
        })
    }

    /// An error if the device was lost or reported one since the last check.
    pub fn check(&self) -> Result<()> {
        self.reports.check()
    }

    /// Whether the device was lost: nothing can be done with it any more.
    pub fn is_lost(&self) -> bool {
        if cfg!(not(target_arch = "wasm32")) {
            // Natively a device says so only when it is asked; an error means that it is gone.
            let _ = self.device.poll(wgpu::PollType::Poll);
        }
        lock(&self.reports.lost).is_some()
    }

    /// Bytes that one binding may have.
    pub fn max_binding(&self) -> u64 {
        self.limits
            .max_storage_buffer_binding_size
            .min(self.limits.max_buffer_size)
    }

    /// Rough figures by class of device: enough to tell whether an island is worth its crossings.
    pub fn speed(&self) -> Speed {
        let (flops, bytes, start) = match self.info.device_type {
            wgpu::DeviceType::DiscreteGpu => (4e12, 2e11, 5e-6),
            wgpu::DeviceType::Cpu => (1e10, 4e9, 3e-5),
            _ => (6e11, 3e10, 1e-5),
        };
        Speed {
            flops_per_second: flops,
            bytes_per_second: bytes,
            kernel_start: start,
            transfer_start: if cfg!(target_arch = "wasm32") {
                1e-3
            } else {
                5e-5
            },
            transfer_bytes_per_second: 5e9,
        }
    }

    /// Workgroups that keep the device busy: two for each multiprocessor of a large GPU, more than enough for what shares its
    /// memory with a CPU. Browsers do not tell the class.
    pub fn busy(&self) -> usize {
        match self.info.device_type {
            wgpu::DeviceType::DiscreteGpu => 256,
            _ => 128,
        }
    }

    /// A buffer that is destroyed when its last user lets go of it.
    ///
    /// # Errors
    /// `Limit` where the device does not have buffers of that size.
    pub fn buffer(
        &self,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<Arc<GpuBuffer>> {
        let bytes = bytes.max(16).next_multiple_of(4);
        if bytes > self.limits.max_buffer_size {
            return Err(Error::new(
                ErrorCode::Limit,
                format!("a GPU buffer of {bytes} bytes is too large"),
            )
            .with_expected(format!("at most {} bytes", self.limits.max_buffer_size)));
        }
        Ok(Arc::new(GpuBuffer {
            raw: self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: bytes,
                usage,
                mapped_at_creation: false,
            }),
            bytes,
        }))
    }

    /// The memory of an arena.
    pub fn arena(&self, bytes: usize) -> Result<Arc<GpuBuffer>> {
        self.buffer("arena", bytes as u64, STORAGE)
    }

    /// A storage buffer with this content.
    pub fn upload(&self, label: &str, data: &[u8]) -> Result<Arc<GpuBuffer>> {
        let buffer = self.buffer(label, data.len() as u64, STORAGE)?;
        self.write(&buffer.raw, 0, data);
        Ok(buffer)
    }

    /// Writes bytes whose number may not be a multiple of four.
    pub fn write(&self, buffer: &wgpu::Buffer, offset: u64, data: &[u8]) {
        let whole = data.len() & !3;
        if whole > 0 {
            self.queue.write_buffer(buffer, offset, &data[..whole]);
        }
        if whole < data.len() {
            let mut word = [0; 4];
            word[..data.len() - whole].copy_from_slice(&data[whole..]);
            self.queue
                .write_buffer(buffer, offset + whole as u64, &word);
        }
    }
}

/// What kernels read and write, and what is copied.
pub(crate) const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// A buffer that gives its memory back at once when it is dropped.
pub(crate) struct GpuBuffer {
    pub raw: wgpu::Buffer,
    pub bytes: u64,
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        self.raw.destroy();
    }
}
