//! The backend: what it says of itself and which nodes it takes.

use std::sync::Arc;

use kilim_core::backend::{
    Allocator, Backend, BackendConfig, BackendContext, BackendId, ContextConfig, ContextState,
    DataLayout, Description, DeviceOption, DeviceOptions, Grade, Half, LocalFuture, Memory,
    NodeSpec, Refusal,
};
use kilim_core::ops::Cost;
use kilim_core::tuning::Choice;
use kilim_core::{DType, Error, ErrorCode, Result};

use crate::context::{Shared, WgpuContext};
use crate::device::allocator::GpuAllocator;
use crate::device::gpu::{self, Gpu};
use crate::device::selection::{self, Selection};
use crate::device::{self, Device};
use crate::kernels::Kernels;
use crate::lowering::{self, Lowered, Lowers, Stop};

/// The backend `wgpu`.
pub struct WgpuBackend {
    device: Arc<Device>,
    kernels: Arc<Kernels>,
    description: Description,
    /// Which GPU is opened again where it was lost.
    selection: Selection,
}

impl WgpuBackend {
    /// The name of the backend.
    pub const ID: BackendId = device::ID;
    /// What web developers call it.
    pub const ALIAS: &str = "webgpu";

    /// Opens the GPU that the options ask for, the fastest where they say nothing.
    ///
    /// # Errors
    /// `Device` where there is no such GPU or it cannot be opened, `InvalidValue` for options that the backend does
    /// not have.
    pub async fn new(options: &DeviceOptions) -> Result<WgpuBackend> {
        let selection = Selection::of(options)?;
        let gpu = Gpu::open(&selection).await?;
        let software = gpu.info.device_type == wgpu::DeviceType::Cpu;
        Ok(WgpuBackend {
            selection,
            ..WgpuBackend::on(gpu, software)
        })
    }

    /// The backend on `gpu`, with the kernels for devices that are a CPU if `software`, else with those for
    /// real ones.
    pub(crate) fn on(gpu: Gpu, software: bool) -> WgpuBackend {
        let half = match gpu.half {
            true => Grade::Fast,
            false => Grade::Storage,
        };
        let description = Description {
            id: WgpuBackend::ID,
            device: selection::describe(&gpu.info),
            memory: Memory::Device,
            dtypes: vec![
                (DType::F32, Grade::Fast),
                (DType::I32, Grade::Arithmetic),
                (DType::U32, Grade::Arithmetic),
                (DType::Bool, Grade::Arithmetic),
                (DType::I64, Grade::Arithmetic),
                (DType::U64, Grade::Arithmetic),
                (DType::I8, Grade::Arithmetic),
                (DType::U8, Grade::Arithmetic),
                (DType::I16, Grade::Arithmetic),
                (DType::U16, Grade::Arithmetic),
                (DType::F16, half),
                (DType::BF16, Grade::Storage),
                (DType::F64, Grade::Storage),
            ],
            alignment: (gpu.limits.min_storage_buffer_offset_alignment as usize).max(16),
            max_tensor_bytes: gpu.max_binding(),
            max_arena_bytes: gpu.limits.max_buffer_size,
            speed: gpu.speed(),
            software,
            config: BackendConfig {
                layouts: vec![DataLayout::ChannelsLast, DataLayout::ChannelsFirst],
                dynamic_tensors: true,
                f16: if gpu.half { Half::Chosen } else { Half::Off },
                timers: gpu.timestamps,
                ..BackendConfig::default()
            },
        };
        WgpuBackend {
            device: Arc::new(Device::new(gpu)),
            kernels: Arc::new(Kernels::all()),
            description,
            selection: Selection::default(),
        }
    }

    /// The GPU that is open now, with the kernels.
    pub(crate) fn shared(&self) -> Shared {
        Shared {
            gpu: self.device.gpu(),
            kernels: self.kernels.clone(),
            software: self.description.software,
        }
    }
}

impl Backend for WgpuBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn options(&self) -> &[DeviceOption] {
        selection::OPTIONS
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn devices(&self) -> LocalFuture<'_, Vec<String>> {
        Box::pin(async {
            let adapters = selection::all(&gpu::instance()).await;
            let infos = adapters.iter().map(wgpu::Adapter::get_info);
            infos.map(|info| selection::describe(&info)).collect()
        })
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        supported(self.shared().lower(node))?;
        Ok(node.cost())
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(GpuAllocator(self.device.clone()))
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        let shared = self.shared();
        shared.gpu.check()?;
        let state = ContextState::new(self.allocator(), config);
        Ok(Box::new(WgpuContext::new(shared, state)?))
    }

    fn choice(&self, node: &NodeSpec, _: &ContextConfig) -> Option<Choice> {
        let lowered = self.shared().lower(node);
        lowered.ok()?.choice
    }

    fn prefers_half(&self, half: &NodeSpec) -> Result<(), Refusal> {
        let shared = self.shared();
        if !shared.gpu.half {
            return Err(Refusal::new(lowering::NO_HALF));
        }
        // Others are bound by what they start, or have to widen every element first.
        match supported(shared.lower(half))? {
            Some(lowered) if lowered.half => Ok(()),
            _ => Err(Refusal::new("its kernel is not faster in float16")),
        }
    }

    fn reopen(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async move {
            let old = self.device.gpu();
            if !old.is_lost() {
                return Ok(());
            }
            let gpu = Gpu::open(&self.selection).await?;
            let device = selection::describe(&gpu.info);
            if device != self.description.device || gpu.limits != old.limits {
                return Err(
                    Error::new(ErrorCode::Device, "another GPU came back than was lost")
                        .with_expected(&self.description.device)
                        .with_got(device),
                );
            }
            self.device.replace(gpu);
            Ok(())
        })
    }

    fn save_cache(&self) -> Option<Vec<u8>> {
        self.device.gpu().pipelines.save()
    }

    unsafe fn load_cache(&self, cache: &[u8]) -> Result<()> {
        let gpu = self.device.gpu();
        // SAFETY: by the contract of the trait.
        unsafe { gpu.pipelines.load(&gpu, cache) }
    }
}

/// A mistake of ours does not move the node to another backend: it is taken, and making its kernels fails.
fn supported(lowered: Lowers<Lowered>) -> Result<Option<Lowered>, Refusal> {
    match lowered {
        Ok(lowered) => Ok(Some(lowered)),
        Err(Stop::Refused(refusal)) => Err(refusal),
        Err(Stop::Wrong(_)) => Ok(None),
    }
}
