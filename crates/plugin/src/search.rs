//! Where the libraries of backends and importers may lie.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kilim_core::{Backend, BackendId, Result};

use crate::backend::PluginBackend;
use crate::library::Library;

/// The environment variable with folders to look in, separated as in `PATH`.
pub const PATH_VARIABLE: &str = "KILIM_BACKEND_PATH";

/// What the names of libraries begin with.
const BACKEND: &str = "backend_";
const IMPORTER: &str = "importer_";

/// The names that the library of a backend may have on this system.
pub fn file_names(id: &BackendId) -> Vec<String> {
    names(BACKEND, id.as_str())
}

fn names(kind: &str, id: &str) -> Vec<String> {
    let extension = env::consts::DLL_EXTENSION;
    let mut names = vec![format!("lib{kind}{id}.{extension}")];
    if cfg!(windows) {
        names.push(format!("{kind}{id}.{extension}"));
    }
    names
}

/// Looks for the backend `id` in `folders` and then in those of [`PATH_VARIABLE`], and opens the
/// first library that is there. `None` where no folder has it.
///
/// # Errors
/// `NoBackend` where the library is not one of a backend or for another version of the interface;
/// `Device` where the backend cannot be opened.
pub fn find(id: &BackendId, folders: &[PathBuf]) -> Result<Option<Arc<dyn Backend>>> {
    if !is_plain(id.as_str()) {
        return Ok(None);
    }
    let folders = all(folders);
    let names = file_names(id);
    let files = folders.iter().flat_map(|f| names.iter().map(|n| f.join(n)));
    match files.into_iter().find(|f| f.is_file()) {
        Some(file) => {
            let backend = PluginBackend::new(id.clone(), Library::open(&file)?)?;
            Ok(Some(Arc::new(backend)))
        }
        None => Ok(None),
    }
}

/// The files that [`find`] looks for, in words; `None` where it has no folder to look in.
pub fn searched(id: &BackendId, folders: &[PathBuf]) -> Option<String> {
    let folders = all(folders).into_iter();
    let folders: Vec<_> = folders.map(|f| f.display().to_string()).collect();
    let looked = is_plain(id.as_str()) && !folders.is_empty();
    looked.then(|| format!("{} in {}", file_names(id).join(" or "), folders.join(", ")))
}

/// The libraries that [`find`] would open, with the ids of their backends, in the order of the folders
/// and of the names in each. A folder that cannot be read has none.
pub fn list(folders: &[PathBuf]) -> Vec<(BackendId, PathBuf)> {
    let found = libraries(BACKEND, folders).into_iter();
    found
        .map(|(id, file)| (BackendId::from(id.as_str()), file))
        .collect()
}

/// The libraries of importers in `folders` and in those of [`PATH_VARIABLE`], with their ids, in the order of [`list`].
pub fn importers(folders: &[PathBuf]) -> Vec<(String, PathBuf)> {
    libraries(IMPORTER, folders)
}

fn libraries(kind: &str, folders: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for folder in all(folders) {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
        files.sort_unstable();
        for file in files.into_iter().filter(|f| f.is_file()) {
            if let Some(id) = id_of(kind, &file)
                && found.iter().all(|(known, _)| *known != id)
            {
                found.push((id, file));
            }
        }
    }
    found
}

/// The id in the name of a library of this kind.
fn id_of(kind: &str, file: &Path) -> Option<String> {
    let stem = file.file_stem()?.to_str()?;
    let id = stem
        .strip_prefix("lib")
        .unwrap_or(stem)
        .strip_prefix(kind)?;
    let named = names(kind, id).iter().any(|name| file.ends_with(name));
    (named && is_plain(id)).then(|| id.to_string())
}

/// An id is part of a file's name, and must not lead out of the folders.
fn is_plain(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !id.is_empty() && id.chars().all(plain)
}

/// `folders`, then the folders of [`PATH_VARIABLE`].
fn all(folders: &[PathBuf]) -> Vec<PathBuf> {
    let variable = env::var_os(PATH_VARIABLE).unwrap_or_default();
    let named = env::split_paths(&variable).filter(|f| !f.as_os_str().is_empty());
    folders.iter().cloned().chain(named).collect()
}
