//! The files in a model's folder, of which only what is needed is read.
//!
//! Parts are read into memory of their own and not mapped: a mapped file that is cut while a session
//! uses it would end the process, and memory of their own goes with each tensor once it is packed.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::tensor::AlignedBytes;
use kilim_core::{Error, ErrorCode, Result};
use kilim_formats::ExternalFiles;

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
    /// By the paths that the model uses.
    named: HashMap<String, Rc<OpenFile>>,
    /// By the path behind all links.
    resolved: HashMap<PathBuf, Rc<OpenFile>>,
}

struct OpenFile {
    name: String,
    file: File,
    size: usize,
    state: RefCell<Parts>,
    /// The whole file, where parts overlap.
    whole: OnceCell<Arc<AlignedBytes>>,
}

/// What was read of a file.
#[derive(Default)]
struct Parts {
    /// By offset and length: several tensors may have the same data.
    read: HashMap<(usize, usize), Arc<AlignedBytes>>,
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
            None => Rc::new(OpenFile::open(&path, name)?),
        };
        files.named.insert(name.to_string(), file.clone());
        files.resolved.insert(path, file.clone());
        Ok(file)
    }

    /// The path of a file behind all links.
    fn resolve(&self, name: &str) -> Result<PathBuf> {
        let failed = |e| cannot_read(name, &e);
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
        Ok(self.open(path)?.size)
    }

    fn part(&self, path: &str, offset: usize, len: usize) -> Result<(Arc<AlignedBytes>, usize)> {
        self.open(path)?.part(offset, len)
    }
}

impl OpenFile {
    /// Opens a regular file. Others are not opened: a pipe would wait for its other end.
    fn open(path: &Path, name: &str) -> Result<OpenFile> {
        let failed = |e| cannot_read(name, &e);
        let regular = |is_file: bool| match is_file {
            true => Ok(()),
            false => {
                let message = format!("the external file `{name}` is no regular file");
                Err(Error::new(ErrorCode::Io, message))
            }
        };
        regular(path.metadata().map_err(failed)?.is_file())?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        regular(metadata.is_file())?;
        Ok(OpenFile {
            name: name.to_string(),
            file,
            size: usize::try_from(metadata.len()).unwrap_or(usize::MAX),
            state: RefCell::default(),
            whole: OnceCell::new(),
        })
    }

    fn part(&self, offset: usize, len: usize) -> Result<(Arc<AlignedBytes>, usize)> {
        if let Some(whole) = self.whole.get() {
            return Ok((whole.clone(), offset));
        }
        let mut parts = self.state.borrow_mut();
        if let Some(known) = parts.read.get(&(offset, len)) {
            return Ok((known.clone(), 0));
        }
        parts.bytes = parts.bytes.saturating_add(len);
        if parts.bytes > self.size {
            let whole = Arc::new(self.read(0, self.size)?);
            return Ok((self.whole.get_or_init(|| whole).clone(), offset));
        }
        let bytes = Arc::new(self.read(offset, len)?);
        parts.read.insert((offset, len), bytes.clone());
        Ok((bytes, 0))
    }

    fn read(&self, offset: usize, len: usize) -> Result<AlignedBytes> {
        let mut bytes = AlignedBytes::zeroed(len)?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset as u64))
            .and_then(|_| file.read_exact(bytes.as_mut_slice()))
            .map_err(|e| cannot_read(&self.name, &e))?;
        Ok(bytes)
    }
}

fn cannot_read(name: &str, error: &std::io::Error) -> Error {
    let message = format!("the external file `{name}` cannot be read: {error}");
    Error::new(ErrorCode::Io, message)
}

#[cfg(test)]
mod tests;
