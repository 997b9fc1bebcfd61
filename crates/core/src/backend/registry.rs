//! The backends that a program was built with.

use std::sync::Arc;

use super::{API_VERSION, Backend, BackendId, LocalFuture};
use crate::error::{Error, ErrorCode, Result};

/// Makes a backend; it may have to wait for a device.
pub type BackendFactory = fn() -> LocalFuture<'static, Result<Arc<dyn Backend>>>;

/// An explicit list, so that a build holds only the backends that it names.
#[derive(Clone, Default)]
pub struct BackendRegistry {
    factories: Vec<(BackendId, BackendFactory)>,
}

impl BackendRegistry {
    /// Without backends.
    pub fn new() -> BackendRegistry {
        BackendRegistry::default()
    }

    /// Adds a backend, or replaces the one of that id.
    pub fn register(&mut self, id: BackendId, factory: BackendFactory) {
        self.factories.retain(|(i, _)| *i != id);
        self.factories.push((id, factory));
    }

    /// In the order in which they were registered.
    pub fn ids(&self) -> impl Iterator<Item = &BackendId> {
        self.factories.iter().map(|(id, _)| id)
    }

    /// Makes the backend `id`.
    ///
    /// # Errors
    /// `NoBackend` where there is none of that id or it was built for another API; `Device` where
    /// its device cannot be opened.
    pub async fn create(&self, id: &BackendId) -> Result<Arc<dyn Backend>> {
        let Some((_, factory)) = self.factories.iter().find(|(i, _)| i == id) else {
            let known: Vec<_> = self.ids().map(BackendId::as_str).collect();
            return Err(
                Error::new(ErrorCode::NoBackend, format!("there is no backend `{id}`"))
                    .with_hint(format!("this build has {}", known.join(", "))),
            );
        };
        let backend = factory().await?;
        if backend.api_version() != API_VERSION {
            return Err(Error::new(
                ErrorCode::NoBackend,
                format!("the backend `{id}` was built for another version of the backend API"),
            )
            .with_expected(API_VERSION)
            .with_got(backend.api_version()));
        }
        Ok(backend)
    }
}
