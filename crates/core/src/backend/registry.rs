//! The backends that a program was built with.

use std::sync::Arc;

use super::{API_VERSION, Backend, BackendId, DeviceOptions, LocalFuture};
use crate::error::{Error, ErrorCode, Result};

/// Makes a backend on the device that the options ask for; it may have to wait for it. The options are as the user gave
/// them: a factory that reads some checks them by [`DeviceOptions::check`].
pub type BackendFactory =
    for<'a> fn(&'a DeviceOptions) -> LocalFuture<'a, Result<Arc<dyn Backend>>>;

/// An explicit list, so that a build holds only the backends that it names.
#[derive(Clone, Default)]
pub struct BackendRegistry {
    factories: Vec<(BackendId, BackendFactory)>,
    aliases: Vec<(&'static str, BackendId)>,
}

impl BackendRegistry {
    /// A registry without backends.
    pub fn new() -> BackendRegistry {
        BackendRegistry::default()
    }

    /// Adds a backend, or replaces the one of that id.
    pub fn register(&mut self, id: BackendId, factory: BackendFactory) {
        self.factories.retain(|(i, _)| *i != id);
        self.factories.push((id, factory));
    }

    /// Has a backend answer to another name, too, as long as no backend is registered under that name.
    pub fn alias(&mut self, name: &'static str, id: BackendId) {
        self.aliases.push((name, id));
    }

    /// The id of the backend that `id` is an alias of; `id` itself where it is none.
    pub fn resolve(&self, id: &BackendId) -> BackendId {
        let registered = self.ids().any(|known| known == id);
        let mut aliases = self.aliases.iter();
        match aliases.find(|(name, _)| *name == id.as_str()) {
            Some((_, to)) if !registered => to.clone(),
            _ => id.clone(),
        }
    }

    /// The ids of the backends, in the order in which they were registered.
    pub fn ids(&self) -> impl Iterator<Item = &BackendId> {
        self.factories.iter().map(|(id, _)| id)
    }

    /// Makes the backend `id` on the device that the options ask for.
    ///
    /// # Errors
    /// `NoBackend` where there is none of that id or it was built for another API; `Device` where
    /// its device cannot be opened; `InvalidValue` where it does not have such an option.
    pub async fn create(
        &self,
        id: &BackendId,
        options: &DeviceOptions,
    ) -> Result<Arc<dyn Backend>> {
        let id = &self.resolve(id);
        let Some((_, factory)) = self.factories.iter().find(|(i, _)| i == id) else {
            let known: Vec<_> = self.ids().map(BackendId::as_str).collect();
            let message = format!("there is no backend `{id}`");
            return Err(Error::new(ErrorCode::NoBackend, message).with_known(id.as_str(), &known));
        };
        let backend = factory(options).await?;
        check_version(&*backend)?;
        options.check(id, backend.options())?;
        Ok(backend)
    }
}

/// # Errors
/// `NoBackend` where a backend was built for another version of this API than [`API_VERSION`].
pub fn check_version(backend: &dyn Backend) -> Result<()> {
    if backend.api_version() == API_VERSION {
        return Ok(());
    }
    let id = &backend.describe().id;
    let message = format!("the backend `{id}` was built for another version of the backend API");
    Err(Error::new(ErrorCode::NoBackend, message)
        .with_expected(API_VERSION)
        .with_got(backend.api_version()))
}
