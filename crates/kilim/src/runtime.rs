//! Backends that outlive sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(any(feature = "cpu", feature = "wgpu"))]
use kilim_core::backend::LocalFuture;
use kilim_core::backend::{DeviceOptions, check_version};
use kilim_core::ops::CustomOperators;
use kilim_core::tuning::Tuning;
use kilim_core::{
    Backend, BackendId, BackendRegistry, Calibration, Error, ErrorCode, Graph, Result,
};
use kilim_formats::{Importer, ImporterRegistry};

use crate::source::More;
use crate::{LoadOptions, ModelSource, Session};

/// A backend, and the options for which its device was opened: `None` where it takes any, which its contexts are told.
pub(crate) type Opened = (BackendId, Option<DeviceOptions>);

/// Opens each backend once for each set of options of its own and keeps it: devices, compiled pipelines and tuning are
/// shared by all sessions of a runtime.
pub struct Runtime {
    registry: BackendRegistry,
    importers: ImporterRegistry,
    opened: Mutex<HashMap<Opened, Arc<dyn Backend>>>,
    /// The ids of the open backends that are in libraries.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    loaded: Mutex<Vec<BackendId>>,
    /// The open importers that are in libraries, by their files.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    read_by: Mutex<HashMap<std::path::PathBuf, Arc<dyn Importer>>>,
    /// What was measured of the devices' kernels.
    pub(crate) tuning: Arc<Tuning>,
    /// Why the cache that was given last is not used.
    cache_ignored: Mutex<Option<String>>,
}

#[cfg(feature = "cpu")]
fn cpu(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
    Box::pin(async { Ok(Arc::new(kilim_simd_cpu::backend()) as Arc<dyn Backend>) })
}

#[cfg(feature = "wgpu")]
fn wgpu(options: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
    Box::pin(async {
        let backend = kilim_wgpu::WgpuBackend::new(options).await?;
        Ok(Arc::new(backend) as Arc<dyn Backend>)
    })
}

/// The backends that this build holds, in the order of preference.
pub(crate) fn default_registry() -> BackendRegistry {
    let mut registry = BackendRegistry::new();
    #[cfg(feature = "wgpu")]
    {
        registry.register(kilim_wgpu::WgpuBackend::ID, wgpu);
        registry.alias(kilim_wgpu::WgpuBackend::ALIAS, kilim_wgpu::WgpuBackend::ID);
    }
    crate::arm::register(&mut registry);
    #[cfg(feature = "cpu")]
    {
        registry.register(kilim_simd_cpu::CpuBackend::ID, cpu);
        registry.alias(
            kilim_simd_cpu::CpuBackend::ALIAS,
            kilim_simd_cpu::CpuBackend::ID,
        );
    }
    registry
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime::new(default_registry())
    }
}

impl Runtime {
    /// A runtime with these backends; none is opened before a session asks for it.
    pub fn new(registry: BackendRegistry) -> Runtime {
        #[cfg(target_arch = "wasm32")]
        kilim_core::ops::set_case_mapping(kilim_core::ops::CaseMapping {
            lower: |text| js_sys::JsString::from(text).to_lower_case().into(),
            upper: |text| js_sys::JsString::from(text).to_upper_case().into(),
        });
        Runtime {
            registry,
            importers: ImporterRegistry::default(),
            opened: Mutex::default(),
            #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
            loaded: Mutex::default(),
            #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
            read_by: Mutex::default(),
            tuning: Arc::default(),
            cache_ignored: Mutex::default(),
        }
    }

    /// Reads another format, too; one of the same id is replaced.
    pub fn with_importer(mut self, importer: impl Importer + 'static) -> Runtime {
        self.importers.register(importer);
        self
    }

    /// Adds a backend that is open already; one of the same id is replaced.
    pub fn with_backend(self, backend: Arc<dyn Backend>) -> Runtime {
        self.bring(backend);
        self
    }

    /// Adds a backend that is open already to a runtime that others have, too. One of the same id is replaced for the
    /// sessions that are made from now on.
    pub fn bring(&self, backend: Arc<dyn Backend>) {
        let id = backend.describe().id.clone();
        self.opened().insert((id, None), backend);
    }

    /// The runtime with the default backends: one for the process, on the web one for each worker.
    /// It is never dropped, since drivers do not like to be closed while the process ends; see
    /// [`Runtime::close_libraries`].
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

    pub(crate) fn opened(&self) -> MutexGuard<'_, HashMap<Opened, Arc<dyn Backend>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cache_ignored(&self) -> MutexGuard<'_, Option<String>> {
        let ignored = self.cache_ignored.lock();
        ignored.unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the backend that `id` is an alias of (`webgpu` of `wgpu`, `wasm` of `cpu`); `id` itself
    /// where it is none, or where a backend of that very id is there.
    pub fn resolve(&self, id: &BackendId) -> BackendId {
        match self.opened().keys().any(|(open, _)| open == id) {
            true => id.clone(),
            false => self.registry.resolve(id),
        }
    }

    /// The backend `id`, opened if it is not yet.
    ///
    /// # Errors
    /// `NoBackend` where there is none of that id, or it was built for another version of the backend
    /// API; `Device` where its device cannot be opened.
    pub async fn backend(&self, id: &BackendId) -> Result<Arc<dyn Backend>> {
        self.open(id, &LoadOptions::default()).await
    }

    pub(crate) async fn open(
        &self,
        id: &BackendId,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Backend>> {
        let id = &self.resolve(id);
        let mut configs = options.session.configs.clone();
        configs.rename(|id| self.resolve(id));
        let wanted = configs.get(id).device;
        let (any, exact) = ((id.clone(), None), (id.clone(), Some(wanted)));
        let known = {
            let opened = self.opened();
            opened.get(&any).or_else(|| opened.get(&exact)).cloned()
        };
        if let Some(backend) = known {
            // A backend that was brought open has not been asked yet.
            check_version(&*backend)?;
            return Ok(backend);
        }
        let (key, backend) = match &exact {
            (id, Some(wanted)) if self.ids().contains(id) => {
                let backend = self.registry.create(id, wanted).await?;
                (exact, backend)
            }
            _ => (any, self.library(id, options)?),
        };
        Ok(self.opened().entry(key).or_insert(backend).clone())
    }

    /// The open backend of this id whose device is called so; else the backend `id`, opened if it is not yet.
    ///
    /// # Errors
    /// Those of [`Runtime::backend`].
    pub(crate) async fn on_device(&self, id: &BackendId, device: &str) -> Result<Arc<dyn Backend>> {
        let open = {
            let opened = self.opened();
            let mut of_id = opened.iter().filter(|((open, _), _)| open == id);
            of_id
                .find(|(_, backend)| backend.describe().device == device)
                .map(|(_, backend)| backend.clone())
        };
        match open {
            Some(backend) => Ok(backend),
            None => self.backend(id).await,
        }
    }

    /// A backend that this build does not hold.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    fn library(&self, id: &BackendId, options: &LoadOptions) -> Result<Arc<dyn Backend>> {
        if let Some(backend) = kilim_plugin::find(id, &options.plugin_path)? {
            let loaded = self.loaded.lock();
            loaded
                .unwrap_or_else(PoisonError::into_inner)
                .push(id.clone());
            return Ok(backend);
        }
        let mut known = self.known();
        known.extend(self.libraries(options));
        let searched = kilim_plugin::searched(id, &options.plugin_path);
        Err(no_backend(id, &searched.unwrap_or_default(), &known))
    }

    /// The backends that this build does not hold, but whose libraries lie in the folders of the options
    /// or of `KILIM_BACKEND_PATH`. None of them is opened.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    pub fn libraries(&self, options: &LoadOptions) -> Vec<BackendId> {
        let held = self.known();
        let found = kilim_plugin::list(&options.plugin_path).into_iter();
        let found = found.map(|(id, _)| id).filter(|id| !held.contains(id));
        found.collect()
    }

    /// Lets go of the backends that are in libraries: each is destroyed as soon as no session has it any
    /// more, and opened anew where a later session asks for it. A runtime that is dropped does the same; the
    /// shared one never is, so that a program that uses libraries calls this before it ends.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    pub fn close_libraries(&self) {
        let loaded = self.loaded.lock();
        let loaded = std::mem::take(&mut *loaded.unwrap_or_else(PoisonError::into_inner));
        let mut opened = self.opened();
        let closed: Vec<_> = loaded
            .into_iter()
            .filter_map(|id| opened.remove(&(id, None)))
            .collect();
        // What a library does when it is destroyed must not wait for the lock.
        drop(opened);
        drop(closed);
        let importers = self.read_by.lock();
        let importers = std::mem::take(&mut *importers.unwrap_or_else(PoisonError::into_inner));
        drop(importers);
    }

    /// The importers that are in libraries in the folders of the options or of `KILIM_BACKEND_PATH`, opened where they are not yet, and why the first
    /// of those that cannot be opened cannot.
    #[cfg(all(feature = "plugins", not(target_arch = "wasm32")))]
    fn importers_of_libraries(&self, options: &LoadOptions) -> More {
        let mut open = self.read_by.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut failed): More = (Vec::new(), None);
        for (id, file) in kilim_plugin::importers(&options.plugin_path) {
            let importer = match open.get(&file) {
                Some(known) => known.clone(),
                None => match kilim_plugin::LibraryImporter::open(&id, &file) {
                    Ok(importer) => Arc::new(importer),
                    Err(error) => {
                        failed.get_or_insert(error);
                        continue;
                    }
                },
            };
            open.insert(file, importer.clone());
            found.push(importer);
        }
        (found, failed)
    }

    #[cfg(not(all(feature = "plugins", not(target_arch = "wasm32"))))]
    fn importers_of_libraries(&self, _: &LoadOptions) -> More {
        More::default()
    }

    /// A backend that this build does not hold, nor can load.
    #[cfg(not(all(feature = "plugins", not(target_arch = "wasm32"))))]
    fn library(&self, id: &BackendId, _: &LoadOptions) -> Result<Arc<dyn Backend>> {
        Err(no_backend(id, "", &self.known()))
    }

    /// The backends that are built in, and those that are open.
    fn known(&self) -> Vec<BackendId> {
        let mut known = self.ids();
        let open = self.opened();
        let mut brought: Vec<_> = open
            .keys()
            .map(|(id, _)| id)
            .filter(|id| !known.contains(id))
            .collect();
        brought.sort_unstable();
        known.extend(brought.into_iter().cloned());
        known
    }

    /// The backends that a session with these options has.
    ///
    /// # Errors
    /// Those of [`Runtime::backend`], for the first that cannot be opened, and of [`Runtime::pick`] where none is named.
    pub async fn backends(&self, options: &LoadOptions) -> Result<Vec<Arc<dyn Backend>>> {
        let ids = match options.backends.is_empty() {
            true => &self.pick(options).await?.backends,
            false => &options.backends,
        };
        let mut backends = Vec::with_capacity(ids.len());
        for id in ids {
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

    /// See [`load`](crate::load).
    pub async fn load(
        &self,
        source: impl Into<ModelSource>,
        mut options: LoadOptions,
    ) -> Result<Session> {
        let session = &mut options.session;
        let seconds = Some(session.limits.load_seconds);
        // The seconds of a load count from here on, for the file and for what is made of it.
        session.interrupt = std::mem::take(&mut session.interrupt).within(seconds, session.clock);
        if options.backends.is_empty() {
            options.backends = self.pick(&options).await?.backends;
        }
        let mut graph = self.parse(source, &options).await?;
        if let Some(change) = &options.change {
            graph = change(graph)?;
        }
        self.session(graph, options).await
    }

    /// Reads a model, for [`Runtime::session`].
    ///
    /// # Errors
    /// Those of [`load`](crate::load) that concern the file.
    pub async fn parse(
        &self,
        source: impl Into<ModelSource>,
        options: &LoadOptions,
    ) -> Result<Graph> {
        let mut operators = CustomOperators::default();
        for backend in self.backends(options).await? {
            backend
                .operators()
                .iter()
                .for_each(|o| operators.add(o.clone()));
        }
        operators.extend(&options.operators);
        let more = || self.importers_of_libraries(options);
        let source = source.into();
        source.parse(&self.importers, &more, &operators, options)
    }

    /// A session of a graph that was built or parsed before.
    ///
    /// # Errors
    /// Those of [`Runtime::backend`], and of [`Session::new`].
    pub async fn session(&self, graph: Graph, options: LoadOptions) -> Result<Session> {
        let backends = self.backends(&options).await?;
        let evaluator = self.evaluator(&backends).await?;
        let mut options = options.session;
        options.configs.rename(|id| self.resolve(id));
        for pin in &mut options.pins {
            pin.backend = self.resolve(&pin.backend);
        }
        options.tuning = self.tuning.clone();
        options.cache_ignored.clone_from(&self.cache_ignored());
        if options.calibration.is_empty() {
            options.calibration = kept_calibration();
        }
        Session::new(graph, backends, evaluator, options).await
    }
}

/// Nobody is called `id`. `searched` says where its library would lie, if libraries were looked for.
fn no_backend(id: &BackendId, searched: &str, known: &[BackendId]) -> Error {
    let message = match searched {
        "" => format!("there is no backend `{id}`"),
        files => format!("there is no backend `{id}`: it is not built in, and there is no {files}"),
    };
    let known: Vec<&str> = known.iter().map(BackendId::as_str).collect();
    Error::new(ErrorCode::NoBackend, message).with_known(id.as_str(), &known)
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
