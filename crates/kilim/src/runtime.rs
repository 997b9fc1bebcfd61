//! Backends that outlive sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(any(feature = "cpu", feature = "wgpu"))]
use kilim_core::backend::LocalFuture;
use kilim_core::ops::CustomOperators;
use kilim_core::tuning::Tuning;
use kilim_core::{Backend, BackendId, BackendRegistry, Calibration, Graph, Result};
use kilim_formats::{Interpreter, InterpreterRegistry};

use crate::{ModelSource, Session, SessionOptions};

/// Opens each backend once and keeps it: devices, compiled pipelines and tuning are shared by all
/// sessions of a runtime.
pub struct Runtime {
    registry: BackendRegistry,
    interpreters: InterpreterRegistry,
    opened: Mutex<HashMap<BackendId, Arc<dyn Backend>>>,
    /// What was measured of the devices' kernels.
    pub(crate) tuning: Arc<Tuning>,
    /// Why the cache that was given last is not used.
    cache_ignored: Mutex<Option<String>>,
}

#[cfg(feature = "cpu")]
fn cpu() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
    Box::pin(async { Ok(Arc::new(kilim_simd_cpu::backend()) as Arc<dyn Backend>) })
}

#[cfg(feature = "wgpu")]
fn wgpu() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
    Box::pin(async {
        let backend = kilim_wgpu::WgpuBackend::new().await?;
        Ok(Arc::new(backend) as Arc<dyn Backend>)
    })
}

/// The backends of a session that names none, in the order of preference.
pub(crate) fn default_backends() -> Vec<BackendId> {
    let registry = default_registry();
    let ids = registry.ids().filter(|id| crate::arm::by_default(id));
    ids.cloned().collect()
}

/// The backends that this build holds, in the order of preference.
pub(crate) fn default_registry() -> BackendRegistry {
    let mut registry = BackendRegistry::new();
    #[cfg(feature = "wgpu")]
    registry.register(kilim_wgpu::WgpuBackend::ID, wgpu);
    crate::arm::register(&mut registry);
    #[cfg(feature = "cpu")]
    registry.register(kilim_simd_cpu::CpuBackend::ID, cpu);
    registry
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new(default_registry())
    }
}

impl Runtime {
    /// With these backends; none is opened before a session asks for it.
    pub fn new(registry: BackendRegistry) -> Runtime {
        #[cfg(target_arch = "wasm32")]
        kilim_core::ops::set_case_mapping(kilim_core::ops::CaseMapping {
            lower: |text| js_sys::JsString::from(text).to_lower_case().into(),
            upper: |text| js_sys::JsString::from(text).to_upper_case().into(),
        });
        Runtime {
            registry,
            interpreters: InterpreterRegistry::default(),
            opened: Mutex::default(),
            tuning: Arc::default(),
            cache_ignored: Mutex::default(),
        }
    }

    /// Reads another format, too; one of the same id is replaced.
    pub fn with_interpreter(mut self, interpreter: impl Interpreter + 'static) -> Runtime {
        self.interpreters.register(interpreter);
        self
    }

    /// Adds a backend that is open already; one of the same id is replaced.
    pub fn with_backend(self, backend: Arc<dyn Backend>) -> Runtime {
        let id = backend.describe().id.clone();
        self.opened().insert(id, backend);
        self
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

    pub(crate) fn opened(&self) -> MutexGuard<'_, HashMap<BackendId, Arc<dyn Backend>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cache_ignored(&self) -> MutexGuard<'_, Option<String>> {
        let ignored = self.cache_ignored.lock();
        ignored.unwrap_or_else(PoisonError::into_inner)
    }

    /// The backend `id`, opened if it is not yet.
    ///
    /// # Errors
    /// `NoBackend` where there is none of that id; `Device` where its device cannot be opened.
    pub async fn backend(&self, id: &BackendId) -> Result<Arc<dyn Backend>> {
        self.open(id, &SessionOptions::default()).await
    }

    async fn open(&self, id: &BackendId, options: &SessionOptions) -> Result<Arc<dyn Backend>> {
        let known = self.opened().get(id).cloned();
        if let Some(backend) = known {
            return Ok(backend);
        }
        #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
        let plugin = match self.ids().contains(id) {
            false => kilim_plugin::find(id, &options.plugin_path)?,
            true => None,
        };
        #[cfg(not(all(feature = "plugins", not(target_arch = "wasm32"))))]
        let (plugin, _) = (None::<Arc<dyn Backend>>, options);
        let backend = match plugin {
            Some(backend) => backend,
            None => self.registry.create(id).await?,
        };
        Ok(self.opened().entry(id.clone()).or_insert(backend).clone())
    }

    /// The backends that a session with these options has.
    ///
    /// # Errors
    /// Those of [`Runtime::backend`], for the first that cannot be opened.
    pub async fn backends(&self, options: &SessionOptions) -> Result<Vec<Arc<dyn Backend>>> {
        let mut backends = Vec::with_capacity(options.backends.len());
        for id in &options.backends {
            backends.push(self.open(id, options).await?);
        }
        Ok(backends)
    }

    /// What computes constants and shapes: the CPU if this build has it, else the first backend of
    /// the session.
    async fn evaluator(&self, backends: &[Arc<dyn Backend>]) -> Result<Arc<dyn Backend>> {
        let cpu = BackendId::new("cpu");
        match backends.first() {
            Some(first) if !self.ids().contains(&cpu) => Ok(first.clone()),
            _ => self.backend(&cpu).await,
        }
    }

    /// See [`Session::load`].
    pub async fn load(
        &self,
        source: impl Into<ModelSource>,
        options: SessionOptions,
    ) -> Result<Session> {
        let graph = self.parse(source, &options).await?;
        self.session(graph, options).await
    }

    /// Reads a model, for [`Runtime::session`].
    ///
    /// # Errors
    /// Those of [`Session::load`] that concern the file.
    pub async fn parse(
        &self,
        source: impl Into<ModelSource>,
        options: &SessionOptions,
    ) -> Result<Graph> {
        let mut operators = CustomOperators::default();
        for backend in self.backends(options).await? {
            backend
                .operators()
                .iter()
                .for_each(|o| operators.add(o.clone()));
        }
        operators.extend(&options.operators);
        let source = source.into();
        source.parse(
            &self.interpreters,
            &operators,
            options.pictures,
            &options.limits,
        )
    }

    /// A session of a graph that was built or parsed before.
    pub async fn session(&self, graph: Graph, options: SessionOptions) -> Result<Session> {
        let backends = self.backends(&options).await?;
        let evaluator = self.evaluator(&backends).await?;
        let mut core = options.core;
        core.tuning = self.tuning.clone();
        core.cache_ignored.clone_from(&self.cache_ignored());
        if core.calibration.is_empty() {
            core.calibration = kept_calibration();
        }
        kilim_core::Session::new(graph, backends, evaluator, core)
            .await
            .map(Session)
    }
}

/// What this machine's file holds, read once. A file that cannot be read is as good as none: the
/// report says that nothing is calibrated.
fn kept_calibration() -> Calibration {
    #[cfg(not(target_arch = "wasm32"))]
    {
        static KEPT: std::sync::OnceLock<Calibration> = std::sync::OnceLock::new();
        let read = || {
            let file = crate::calibration::file()?;
            crate::calibration::load(&file).ok()
        };
        KEPT.get_or_init(|| read().unwrap_or_default()).clone()
    }
    #[cfg(target_arch = "wasm32")]
    Calibration::default()
}
