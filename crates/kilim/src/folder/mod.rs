//! The file of a model, and those in its folder: only what is needed is read.
//!
//! Large parts are read when a kernel packs them, and again where another size needs another packing, so that weights
//! are not in memory twice. Nothing is mapped: a mapped file that is cut while a session uses it would end the process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kilim_core::{Error, ErrorCode, Result, Tensor};
use kilim_formats::{ExternalFiles, FileParts, Parted, nnpackage};

/// Files that a session may keep open; a process may have few.
const HELD: usize = 32;

/// The folder that a model lies in.
pub struct Folder {
    path: PathBuf,
    /// Whether files may lie outside of the folder, behind links.
    follow_links: bool,
    files: RefCell<Files>,
}

/// The files that were opened.
#[derive(Default)]
struct Files {
    /// Files by the paths that the model uses.
    named: HashMap<String, Rc<Parted>>,
    /// Files by the path behind all links.
    resolved: HashMap<PathBuf, Rc<Parted>>,
}

impl Folder {
    /// The folder of the model `model`.
    pub fn of(model: &Path, follow_links: bool) -> Folder {
        let path = match model.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Folder {
            path,
            follow_links,
            files: RefCell::default(),
        }
    }

    fn open(&self, name: &str) -> Result<Rc<Parted>> {
        let mut files = self.files.borrow_mut();
        if let Some(file) = files.named.get(name) {
            return Ok(file.clone());
        }
        let path = self.resolve(name)?;
        let file = match files.resolved.get(&path) {
            Some(file) => file.clone(),
            None => {
                let on_demand = files.resolved.len() < HELD;
                let label = format!("the external file `{name}`");
                Rc::new(Parted::new(
                    Arc::new(Stored::open(&path, label)?),
                    on_demand,
                ))
            }
        };
        files.named.insert(name.to_string(), file.clone());
        files.resolved.insert(path, file.clone());
        Ok(file)
    }

    /// The path of a file behind all links.
    fn resolve(&self, name: &str) -> Result<PathBuf> {
        let failed = |e| cannot_read(&format!("the external file `{name}`"), &e);
        let path = self.path.join(name).canonicalize().map_err(failed)?;
        if self.follow_links || path.starts_with(self.path.canonicalize().map_err(failed)?) {
            return Ok(path);
        }
        let message = format!("the external file `{name}` lies outside of the model's folder");
        Err(Error::new(ErrorCode::InvalidModel, message)
            .with_got(format!("a link to `{}`", path.display()))
            .with_hint(
                "the option `follow_links`, on the command line `--follow-links`, allows it",
            ))
    }
}

impl ExternalFiles for Folder {
    fn size(&self, path: &str) -> Result<u64> {
        Ok(self.open(path)?.file().size())
    }

    fn part(&self, path: &str, offset: u64, len: usize) -> Result<Tensor> {
        self.open(path)?.part(offset, len)
    }
}

/// Bytes of a manifest at most.
const MANIFEST_BYTES: u64 = 1 << 20;

/// The model's file, where `path` is a folder that is a package of onert.
///
/// # Errors
/// `Io` where its manifest cannot be read, those of [`nnpackage::model_of`], and `InvalidModel` where the model lies outside of the
/// folder, behind links that are not to be followed.
pub fn package_model(path: &Path, follow_links: bool) -> Result<Option<PathBuf>> {
    let manifest = path.join(nnpackage::MANIFEST);
    if !path.is_dir() || !manifest.is_file() {
        return Ok(None);
    }
    let stored = Stored::open(&manifest, format!("`{}`", manifest.display()))?;
    if stored.size > MANIFEST_BYTES {
        let e = Error::new(ErrorCode::Limit, "the manifest of a package is too large");
        let most = format!("at most {MANIFEST_BYTES} bytes");
        return Err(e.with_expected(most).with_got(stored.size));
    }
    let mut bytes = vec![0; stored.size as usize];
    stored.read(0, &mut bytes)?;
    let model = nnpackage::model_of(&bytes)?;
    let folder = Folder {
        path: path.to_path_buf(),
        follow_links,
        files: RefCell::default(),
    };
    folder.resolve(&model).map(Some)
}

/// Opens a model file.
///
/// # Errors
/// `Io` where it is no regular file, or cannot be read.
pub fn open(path: &Path) -> Result<Parted> {
    let stored = Stored::open(path, format!("`{}`", path.display()))?;
    Ok(Parted::new(Arc::new(stored), true))
}

/// A file, open as long as a tensor may read it.
struct Stored {
    /// What errors call the file.
    label: String,
    file: Mutex<File>,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stored {
    /// Opens a regular file. Others are not opened: a pipe would wait for its other end.
    fn open(path: &Path, label: String) -> Result<Stored> {
        let failed = |e| cannot_read(&label, &e);
        let regular = |is_file: bool| match is_file {
            true => Ok(()),
            false => {
                let message = format!("{label} is no regular file");
                Err(Error::new(ErrorCode::Io, message))
            }
        };
        regular(path.metadata().map_err(failed)?.is_file())?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        regular(metadata.is_file())?;
        Ok(Stored {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            label,
            file: Mutex::new(file),
        })
    }
}

impl FileParts for Stored {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let failed = |e| cannot_read(&self.label, &e);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.len() != self.size || metadata.modified().ok() != self.modified {
            let message = format!("{} changed since the model was loaded", self.label);
            return Err(Error::new(ErrorCode::Io, message).with_hint("load the model anew"));
        }
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(to))
            .map_err(failed)
    }
}

fn cannot_read(label: &str, error: &std::io::Error) -> Error {
    let message = format!("{label} cannot be read: {error}");
    Error::new(ErrorCode::Io, message)
}

#[cfg(test)]
mod tests;
