//! Where the library of a backend may lie.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use kilim_core::{Backend, BackendId, Error, ErrorCode, Result};

use crate::backend::PluginBackend;
use crate::library::Library;

/// The environment variable with folders to look in, separated as in `PATH`.
pub const PATH_VARIABLE: &str = "KILIM_BACKEND_PATH";

/// The names that the library of a backend may have on this system.
pub fn file_names(id: &BackendId) -> Vec<String> {
    let extension = env::consts::DLL_EXTENSION;
    let mut names = vec![format!("libbackend_{id}.{extension}")];
    if cfg!(windows) {
        names.push(format!("backend_{id}.{extension}"));
    }
    names
}

/// Looks for the backend `id` in `folders` and then in those of [`PATH_VARIABLE`], and opens the
/// first library that is there. `None` where no folder is named and none of them could have it.
///
/// # Errors
/// `NoBackend` where folders were searched in vain, or the library is not one of a backend or for
/// another version of the interface; `Device` where the backend cannot be opened.
pub fn find(id: &BackendId, folders: &[PathBuf]) -> Result<Option<Arc<dyn Backend>>> {
    // An id is part of a file's name, and must not lead out of the folders.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.as_str().is_empty() || !id.as_str().chars().all(plain) {
        return Ok(None);
    }
    let variable = env::var_os(PATH_VARIABLE).unwrap_or_default();
    let mut folders = folders.to_vec();
    folders.extend(env::split_paths(&variable).filter(|f| !f.as_os_str().is_empty()));
    if folders.is_empty() {
        return Ok(None);
    }
    let names = file_names(id);
    let files = folders.iter().flat_map(|f| names.iter().map(|n| f.join(n)));
    match files.into_iter().find(|f| f.is_file()) {
        Some(file) => {
            let backend = PluginBackend::new(id.clone(), Library::open(&file)?)?;
            Ok(Some(Arc::new(backend)))
        }
        None => {
            let folders: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
            Err(
                Error::new(ErrorCode::NoBackend, format!("there is no backend `{id}`"))
                    .with_expected(format!("{} in {}", names.join(" or "), folders.join(", "))),
            )
        }
    }
}
