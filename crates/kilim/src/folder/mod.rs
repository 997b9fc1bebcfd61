//! The file of a model, and those in its folder: only what is needed is read.
//!
//! Large parts are read when a kernel packs them, and again where another size needs another packing, so that weights
//! are not in memory twice. Nothing is mapped: a mapped file that is cut while a session uses it would end the process.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};
use kilim_formats::{ExternalFiles, FileParts, LARGE, nnpackage};

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
    named: HashMap<String, Rc<OpenFile>>,
    /// Files by the path behind all links.
    resolved: HashMap<PathBuf, Rc<OpenFile>>,
}

/// A file of the folder, and what was asked of it.
struct OpenFile {
    stored: Arc<Stored>,
    /// Whether parts are read when they are needed.
    on_demand: bool,
    state: RefCell<Parts>,
    /// The whole file, where parts overlap.
    whole: OnceCell<Arc<AlignedBytes>>,
}

#[derive(Default)]
struct Parts {
    /// Tensors by offset and length: several tensors may have the same data.
    known: HashMap<(usize, usize), Tensor>,
    bytes: usize,
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

    fn open(&self, name: &str) -> Result<Rc<OpenFile>> {
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
                Rc::new(OpenFile::of(Stored::open(&path, label)?, on_demand))
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
    fn size(&self, path: &str) -> Result<usize> {
        Ok(self.open(path)?.stored.size)
    }

    fn part(&self, path: &str, offset: usize, len: usize) -> Result<Tensor> {
        self.open(path)?.part(offset, len)
    }
}

/// Bytes of a manifest at most.
const MANIFEST_BYTES: usize = 1 << 20;

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
    let bytes = stored.part(0, stored.size)?;
    let model = nnpackage::model_of(bytes.as_slice())?;
    let folder = Folder {
        path: path.to_path_buf(),
        follow_links,
        files: RefCell::default(),
    };
    folder.resolve(&model).map(Some)
}

/// The file of a model.
pub struct Own {
    file: OpenFile,
}

impl Own {
    /// Opens a model file.
    ///
    /// # Errors
    /// `Io` where it is no regular file, or cannot be read.
    pub fn open(path: &Path) -> Result<Own> {
        let stored = Stored::open(path, format!("`{}`", path.display()))?;
        Ok(Own {
            file: OpenFile::of(stored, true),
        })
    }
}

impl FileParts for Own {
    fn size(&self) -> usize {
        self.file.stored.size
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        self.file.stored.read(offset, to)
    }

    fn part(&self, offset: usize, len: usize) -> Result<Option<Tensor>> {
        match len >= LARGE {
            true => self.file.part(offset, len).map(Some),
            false => Ok(None),
        }
    }
}

impl OpenFile {
    fn of(stored: Stored, on_demand: bool) -> OpenFile {
        OpenFile {
            stored: Arc::new(stored),
            on_demand,
            state: RefCell::default(),
            whole: OnceCell::new(),
        }
    }

    fn part(&self, offset: usize, len: usize) -> Result<Tensor> {
        let view =
            |whole: &Arc<AlignedBytes>| Tensor::view(DType::U8, &[len], whole.clone(), offset, len);
        if let Some(whole) = self.whole.get() {
            return view(whole);
        }
        let mut parts = self.state.borrow_mut();
        if let Some(known) = parts.known.get(&(offset, len)) {
            return Ok(known.clone());
        }
        let stored = self.stored.clone();
        parts.bytes = parts.bytes.saturating_add(len);
        if parts.bytes > stored.size {
            let whole = Arc::new(stored.part(0, stored.size)?);
            return view(self.whole.get_or_init(|| whole));
        }
        let part = match self.on_demand && len >= LARGE {
            true => Tensor::on_demand(len, move |from, to| stored.read(offset + from, to))?,
            false => Tensor::from_bytes(DType::U8, &[len], Arc::new(stored.part(offset, len)?))?,
        };
        parts.known.insert((offset, len), part.clone());
        Ok(part)
    }
}

/// A file, open as long as a tensor may read it.
struct Stored {
    /// What errors call the file.
    label: String,
    file: Mutex<File>,
    size: usize,
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
            size: usize::try_from(metadata.len()).unwrap_or(usize::MAX),
            modified: metadata.modified().ok(),
            label,
            file: Mutex::new(file),
        })
    }

    fn part(&self, offset: usize, len: usize) -> Result<AlignedBytes> {
        let mut bytes = AlignedBytes::zeroed(len)?;
        self.read(offset, bytes.as_mut_slice())?;
        Ok(bytes)
    }

    /// Fills `to` from the byte `offset` on.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        let failed = |e| cannot_read(&self.label, &e);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.len() != self.size as u64 || metadata.modified().ok() != self.modified {
            let message = format!("{} changed since the model was loaded", self.label);
            return Err(Error::new(ErrorCode::Io, message).with_hint("load the model anew"));
        }
        file.seek(SeekFrom::Start(offset as u64))
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
