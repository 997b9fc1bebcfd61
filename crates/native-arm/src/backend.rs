//! The backends `acl_neon` and `acl_cl`.

use std::sync::Arc;

use kilim_core::backend::{
    Backend, BackendConfig, BackendContext, BackendId, ContextConfig, Description, Grade, Half,
    Memory, NodeSpec, Quantized, Refusal, Speed,
};
use kilim_core::ops::Cost;
use kilim_core::{DType, Result};
use kilim_host::CpuBackend;

use crate::ffi;
use crate::kernel::{Cl, Native, Neon, Target};
use crate::library::Library;
use crate::operators;

/// The host's frame of memory and executables, with kernels of the ARM Compute Library.
pub struct AclBackend {
    description: Description,
    library: &'static Library,
    host: CpuBackend,
}

impl AclBackend {
    pub const NEON: BackendId = BackendId::new("acl_neon");
    pub const CL: BackendId = BackendId::new("acl_cl");

    /// Whether `libkilim_acl.so` and the library behind it are there.
    pub fn is_there() -> bool {
        Library::get().is_ok()
    }

    /// The backend on the CPU, with NEON and whatever else the library was built for.
    ///
    /// # Errors
    /// `NoBackend` where the library is not there.
    pub fn neon() -> Result<AclBackend> {
        let library = Library::get()?;
        library.start(ffi::NEON)?;
        Ok(AclBackend::new::<Neon>(AclBackend::NEON, "CPU", library))
    }

    /// The backend on an OpenCL device. Every kernel copies its tensors from and to host memory.
    ///
    /// # Errors
    /// `NoBackend` where the library or OpenCL is not there.
    pub fn cl() -> Result<AclBackend> {
        let library = Library::get()?;
        library.start(ffi::CL)?;
        Ok(AclBackend::new::<Cl>(AclBackend::CL, "OpenCL", library))
    }

    /// Whether ACL runs the node in its own element types. [`Backend::supports`] also takes `float16` that
    /// ACL computes in `float32`.
    ///
    /// # Errors
    /// The reason, ACL's own where its `validate` refuses.
    pub fn supports_as_it_is(&self, node: &NodeSpec) -> Result<(), Refusal> {
        self.host.registry().supports_as_it_is(node)
    }

    /// This backend with ACL's own arithmetic of quantised tensors, see [`Quantized::Native`].
    pub fn native(&self) -> AclBackend {
        let host = match self.description.id == AclBackend::CL {
            true => host::<Native<Cl>>(),
            false => host::<Native<Neon>>(),
        };
        AclBackend {
            description: self.description.clone(),
            library: self.library,
            host,
        }
    }

    fn new<A: Target>(id: BackendId, device: &str, library: &'static Library) -> AclBackend {
        let host = host::<A>();
        let mut config = BackendConfig {
            quantized: Quantized::Native,
            ..host.describe().config.clone()
        };
        let mut half = Grade::Arithmetic;
        if operators::has_half::<A>() {
            (half, config.f16) = (Grade::Fast, Half::Kept);
        }
        let mut dtypes = vec![(DType::F32, Grade::Fast), (DType::F16, half)];
        dtypes.extend([DType::I8, DType::U8].map(|d| (d, Grade::Fast)));
        AclBackend {
            description: Description {
                id,
                device: format!("{device}, ARM Compute Library {}", version(library)),
                memory: Memory::Host,
                dtypes,
                max_tensor_bytes: i32::MAX as u64,
                speed: Speed {
                    kernel_start: 2e-6,
                    ..host.describe().speed
                },
                config,
                ..host.describe().clone()
            },
            library,
            host,
        }
    }
}

fn host<A: Target>() -> CpuBackend {
    CpuBackend::with_registry(operators::all::<A>(), "neon")
}

/// The release in ACL's description of its build, `arm_compute_version=v24.11 Build options: ...`.
fn version(library: &Library) -> String {
    let text = library.build_info();
    let word = text.split_whitespace().next().unwrap_or_default();
    match word.split_once('=') {
        Some((_, version)) => version.to_string(),
        None => word.to_string(),
    }
}

impl Backend for AclBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.host.supports(node)
    }

    fn configured(&self, config: &BackendConfig) -> Option<Arc<dyn Backend>> {
        (config.quantized == Quantized::Native).then(|| Arc::new(self.native()) as Arc<dyn Backend>)
    }

    /// Only where ACL computes the node in `float16`: `supports` also takes what is widened.
    fn prefers_half(&self, half: &NodeSpec) -> Result<(), Refusal> {
        if !self.description.f16() {
            let device = &self.description.device;
            return Err(Refusal::new(format!("no float16 on {device}")));
        }
        self.supports_as_it_is(half)
    }

    fn memory_kinds(&self) -> &[kilim_core::MemoryKind] {
        self.host.memory_kinds()
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        if let Some(threads) = config.threads {
            self.library.set_threads(threads);
        }
        self.host.create_context(config)
    }
}
