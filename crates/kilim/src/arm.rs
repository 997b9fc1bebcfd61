//! The ARM Compute Library's backends, on the targets that have them.

pub use here::{by_default, register};

#[cfg(all(
    feature = "arm",
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]
mod here {
    use std::sync::Arc;

    use kilim_core::backend::{DeviceOptions, LocalFuture};
    use kilim_core::{Backend, BackendId, BackendRegistry, Result};
    use kilim_native_arm::AclBackend;

    fn neon(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(AclBackend::neon()?) as Arc<dyn Backend>) })
    }

    fn cl(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(AclBackend::cl()?) as Arc<dyn Backend>) })
    }

    pub fn register(registry: &mut BackendRegistry) {
        registry.register(AclBackend::CL, cl);
        registry.register(AclBackend::NEON, neon);
    }

    /// `acl_neon` where its library is there; `acl_cl`, whose kernels copy over the host, only runs
    /// where it is named.
    pub fn by_default(id: &BackendId) -> bool {
        match id {
            id if *id == AclBackend::NEON => AclBackend::is_there(),
            id => *id != AclBackend::CL,
        }
    }
}

#[cfg(not(all(
    feature = "arm",
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
)))]
mod here {
    use kilim_core::{BackendId, BackendRegistry};

    pub fn register(_: &mut BackendRegistry) {}

    pub fn by_default(_: &BackendId) -> bool {
        true
    }
}
