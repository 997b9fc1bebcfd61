//! The backends of this machine, as tests open them.

use std::sync::Arc;

use kilim::core::Backend;
use kilim::{BackendId, Result, Runtime};
use kilim_test_support::{skip, skip_part};

/// A backend that all sessions share.
///
/// # Errors
/// `NoBackend` where this machine does not have it.
pub fn backend(id: &str) -> Result<Arc<dyn Backend>> {
    pollster::block_on(Runtime::shared().backend(&BackendId::from(id)))
}

/// The backend `cpu`.
///
/// # Panics
/// Never: it is everywhere.
pub fn cpu() -> Arc<dyn Backend> {
    backend("cpu").expect("the CPU is always there")
}

/// The backend `wgpu`; without a GPU `None`, and the calling test says that it is skipped.
#[track_caller]
pub fn gpu() -> Option<Arc<dyn Backend>> {
    match backend("wgpu") {
        Ok(gpu) => Some(gpu),
        Err(e) => {
            skip(e);
            None
        }
    }
}

/// The backend `wgpu`, for a test that also uses others; without a GPU `None`, and the calling test says that it
/// leaves the GPU out.
#[track_caller]
pub fn gpu_beside_others() -> Option<Arc<dyn Backend>> {
    match backend("wgpu") {
        Ok(gpu) => Some(gpu),
        Err(e) => {
            skip_part(e);
            None
        }
    }
}

/// Whether the backend `wgpu` is there and computes on the CPU: it says that of its speed, which is no GPU's.
pub fn software_gpu() -> bool {
    const SLOWEST_GPU: f64 = 1e11;
    backend("wgpu").is_ok_and(|gpu| gpu.describe().speed.flops_per_second < SLOWEST_GPU)
}

/// The backends' names, where all of them open; else the calling test says that it is skipped.
#[track_caller]
pub fn opened(backends: &[&str]) -> Option<Vec<BackendId>> {
    for id in backends {
        if let Err(e) = backend(id) {
            skip(e);
            return None;
        }
    }
    Some(backends.iter().map(|&id| BackendId::from(id)).collect())
}
