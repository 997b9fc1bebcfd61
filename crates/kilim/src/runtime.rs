//! Backends that outlive sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kilim_core::backend::LocalFuture;
use kilim_core::{Backend, BackendId, BackendRegistry, Graph, Result};
use kilim_simd_cpu::CpuBackend;

use crate::{ModelSource, Session, SessionOptions};

/// Opens each backend once and keeps it: devices, compiled pipelines and tuning are shared by all
/// sessions of a runtime.
pub struct Runtime {
    registry: BackendRegistry,
    opened: Mutex<HashMap<BackendId, Arc<dyn Backend>>>,
}

fn cpu() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
    Box::pin(async { Ok(Arc::new(CpuBackend::new()) as Arc<dyn Backend>) })
}

#[cfg(feature = "wgpu")]
fn wgpu() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
    Box::pin(async {
        let backend = kilim_wgpu::WgpuBackend::new().await?;
        Ok(Arc::new(backend) as Arc<dyn Backend>)
    })
}

/// The backends that this build holds, in the order of preference.
pub(crate) fn default_registry() -> BackendRegistry {
    let mut registry = BackendRegistry::new();
    #[cfg(feature = "wgpu")]
    registry.register(kilim_wgpu::WgpuBackend::ID, wgpu);
    registry.register(CpuBackend::ID, cpu);
    registry
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new(default_registry())
    }
}

impl Runtime {
    pub fn new(registry: BackendRegistry) -> Runtime {
        Runtime {
            registry,
            opened: Mutex::default(),
        }
    }

    /// The runtime with the default backends: one for the process, on the web one for each worker.
    /// It is never dropped, since drivers do not like to be closed while the process ends.
    pub fn shared() -> Arc<Runtime> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            static SHARED: std::sync::LazyLock<Arc<Runtime>> =
                std::sync::LazyLock::new(Arc::default);
            SHARED.clone()
        }
        #[cfg(target_arch = "wasm32")]
        {
            thread_local! {
                static SHARED: Arc<Runtime> = Arc::default();
            }
            SHARED.with(Arc::clone)
        }
    }

    /// The ids of the backends that can be opened.
    pub fn ids(&self) -> Vec<BackendId> {
        self.registry.ids().cloned().collect()
    }

    /// The backend `id`, opened if it is not yet.
    pub async fn backend(&self, id: &BackendId) -> Result<Arc<dyn Backend>> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let known = opened().get(id).cloned();
        if let Some(backend) = known {
            return Ok(backend);
        }
        let backend = self.registry.create(id).await?;
        Ok(opened().entry(id.clone()).or_insert(backend).clone())
    }

    /// See [`Session::load`].
    pub async fn load(
        &self,
        source: impl Into<ModelSource>,
        options: SessionOptions,
    ) -> Result<Session> {
        let graph = source.into().parse(&options.limits)?;
        self.session(graph, options).await
    }

    /// A session of a graph that was built or parsed before.
    pub async fn session(&self, graph: Graph, options: SessionOptions) -> Result<Session> {
        let mut backends = Vec::with_capacity(options.backends.len());
        for id in &options.backends {
            backends.push(self.backend(id).await?);
        }
        let evaluator = self.backend(&CpuBackend::ID).await?;
        kilim_core::Session::new(graph, backends, evaluator, options.core)
            .await
            .map(Session)
    }
}
