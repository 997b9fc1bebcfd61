//! The device: opening it, its memory, its pipelines, and what it reports.

use std::sync::{Arc, Mutex};

use kilim_core::backend::BackendId;

pub(crate) mod allocator;
pub(crate) mod binding;

pub(crate) mod faults;
pub(crate) mod gpu;
pub(crate) mod pipelines;
pub(crate) mod selection;
pub(crate) mod storage;
pub(crate) mod transfer;

use gpu::{Gpu, lock};

/// The name of the backend.
pub(crate) const ID: BackendId = BackendId::new("wgpu");

/// The GPU that is open now: another one after it was lost and opened again.
pub(crate) struct Device(Mutex<Arc<Gpu>>);

impl Device {
    /// The device with this GPU open.
    pub fn new(gpu: Gpu) -> Device {
        Device(Mutex::new(Arc::new(gpu)))
    }

    /// The GPU, which all sessions share.
    pub fn gpu(&self) -> Arc<Gpu> {
        lock(&self.0).clone()
    }

    /// Replaces a lost GPU, unless another session was faster.
    pub fn replace(&self, gpu: Gpu) {
        let mut open = lock(&self.0);
        if open.is_lost() {
            *open = Arc::new(gpu);
        }
    }
}
