//! The files that lie beside a model, with the weights that are not in it.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Tensor};

use crate::parts::{Parted, SharedParts};

/// Gives parts of the files beside a model. Paths are relative to the model's folder, with `/` between
/// their parts, and do not lead out of it by `..`; one file may be named in several ways.
pub trait ExternalFiles {
    /// The size of a file in bytes.
    ///
    /// # Errors
    /// `Io` where there is no such file.
    fn size(&self, path: &str) -> Result<u64>;

    /// `len` bytes of a file from `offset` on, which does not end before: a tensor of `uint8`, which may share its
    /// buffer with other parts, or read the file when it is needed ([`Tensor::on_demand`]).
    ///
    /// # Errors
    /// `Io` where they cannot be read, `Limit` where memory is short.
    fn part(&self, path: &str, offset: u64, len: usize) -> Result<Tensor>;

    /// The paths of all files, for models that do not name the one that they need. Nothing where they cannot be listed.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A file that a caller gives.
#[derive(Clone)]
pub enum GivenFile {
    Bytes(Arc<AlignedBytes>),
    /// A file that is read where it lies, part by part.
    Parts(SharedParts),
}

impl From<Arc<AlignedBytes>> for GivenFile {
    fn from(bytes: Arc<AlignedBytes>) -> GivenFile {
        GivenFile::Bytes(bytes)
    }
}

/// Files that a caller gives.
pub struct GivenFiles {
    /// Files by their paths, without the parts of a path that mean nothing.
    files: HashMap<String, Given>,
}

enum Given {
    Bytes(Arc<AlignedBytes>),
    Parts(Parted),
}

impl GivenFiles {
    /// Files by the paths that the model names them with.
    pub fn new<F: Into<GivenFile>>(files: HashMap<String, F>) -> GivenFiles {
        let files = files.into_iter().map(|(path, file)| {
            let given = match file.into() {
                GivenFile::Bytes(bytes) => Given::Bytes(bytes),
                GivenFile::Parts(file) => Given::Parts(Parted::new(file, true)),
            };
            (normalized(&path), given)
        });
        GivenFiles {
            files: files.collect(),
        }
    }

    fn find(&self, path: &str) -> Result<&Given> {
        self.files.get(&normalized(path)).ok_or_else(|| {
            let message = format!("the model refers to the file `{path}`, which was not given");
            let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
            Error::new(ErrorCode::Io, message).with_got(match names.is_empty() {
                true => "no files beside the model".to_string(),
                false => names.join(", "),
            })
        })
    }
}

impl ExternalFiles for GivenFiles {
    fn size(&self, path: &str) -> Result<u64> {
        Ok(match self.find(path)? {
            Given::Bytes(bytes) => bytes.len() as u64,
            Given::Parts(parts) => parts.file().size(),
        })
    }

    fn part(&self, path: &str, offset: u64, len: usize) -> Result<Tensor> {
        match self.find(path)? {
            Given::Bytes(bytes) => {
                // What does not fit lies behind the end of any bytes.
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                Tensor::view(DType::U8, &[len], bytes.clone(), offset, len)
            }
            Given::Parts(parts) => parts.part(offset, len),
        }
    }

    fn names(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}

/// A path without what means nothing in it.
fn normalized(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// What a model that stands alone refers to.
pub(crate) struct NoFiles;

impl ExternalFiles for NoFiles {
    fn size(&self, path: &str) -> Result<u64> {
        let message = format!("the model needs the external file `{path}`");
        Err(Error::new(ErrorCode::Io, message)
            .with_hint("give the files that belong to the model along with it"))
    }

    fn part(&self, path: &str, _: u64, _: usize) -> Result<Tensor> {
        self.size(path)?;
        Tensor::from_raw(DType::U8, &[0], &[])
    }
}

/// `InvalidModel` where a path leads out of the model's folder on its own, links aside.
pub(crate) fn check_path(path: &str) -> Result<()> {
    let inside = !path.is_empty()
        && !path.contains(['\\', ':', '\0'])
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..");
    match inside {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidModel,
            format!("the external file `{path}` is not in the model's folder"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_folder() {
        for path in ["w.bin", "data/w.bin", "./w.bin", "a..b"] {
            assert!(check_path(path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/etc/passwd",
            "../w.bin",
            "data/../../w",
            "..",
            "C:\\w",
            "a\\..\\b",
            "c:w",
        ] {
            let error = check_path(path).err().map(|e| e.code());
            assert_eq!(error, Some(ErrorCode::InvalidModel), "{path}");
        }
    }

    #[test]
    fn given_files_are_shared_and_found_by_every_spelling() -> Result<()> {
        let bytes = Arc::new(AlignedBytes::copy_of(&[1, 2, 3, 4])?);
        let files = HashMap::from([("./data/w.bin".to_string(), bytes.clone())]);
        let files = GivenFiles::new(files);
        for path in ["data/w.bin", "./data/w.bin", "data//./w.bin"] {
            assert_eq!(files.size(path)?, 4);
            let part = files.part(path, 2, 1)?;
            assert!(
                std::ptr::eq(part.read()?, &bytes.as_slice()[2..3]),
                "{path}"
            );
        }
        let error = files.size("w.bin").err();
        assert_eq!(error.as_ref().map(Error::code), Some(ErrorCode::Io));
        assert_eq!(error.as_ref().and_then(Error::got), Some("data/w.bin"));
        let error = NoFiles.size("w.bin").err().map(|e| e.code());
        assert_eq!(error, Some(ErrorCode::Io));
        Ok(())
    }
}
