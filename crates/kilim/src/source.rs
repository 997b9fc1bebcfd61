//! Where a model comes from.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::ops::{CustomOperators, PictureReader};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Error, ErrorCode, Graph, Result};
use kilim_formats::{InterpreterRegistry, Limits};

/// A model file, or its bytes.
#[derive(Clone)]
pub enum ModelSource {
    Bytes {
        model: Arc<AlignedBytes>,
        /// Files that the model refers to, by the names it uses.
        external: HashMap<String, Arc<AlignedBytes>>,
    },
    /// Files that the model refers to are looked for beside it.
    #[cfg(not(target_arch = "wasm32"))]
    Path(std::path::PathBuf),
}

impl ModelSource {
    pub(crate) fn parse(
        self,
        registry: &InterpreterRegistry,
        operators: &CustomOperators,
        pictures: Option<PictureReader>,
        limits: &Limits,
    ) -> Result<Graph> {
        match self {
            ModelSource::Bytes { model, external } => {
                let find = |name: &str| {
                    external.get(name).cloned().ok_or_else(|| {
                        Error::new(
                            ErrorCode::Io,
                            format!("the model refers to the file `{name}`, which was not given"),
                        )
                    })
                };
                let source = kilim_formats::ModelSource::new(model, "the model");
                let source = source.with_external(&find).with_operators(operators);
                registry.load(&source.with_pictures(pictures), limits)
            }
            #[cfg(not(target_arch = "wasm32"))]
            ModelSource::Path(path) => {
                let folder = path
                    .parent()
                    .map(std::path::Path::to_path_buf)
                    .unwrap_or_default();
                let find = |name: &str| read(&folder.join(name));
                let name = path.to_string_lossy();
                let source = kilim_formats::ModelSource::new(read(&path)?, &name);
                let source = source.with_external(&find).with_operators(operators);
                registry.load(&source.with_pictures(pictures), limits)
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn read(path: &std::path::Path) -> Result<Arc<AlignedBytes>> {
    use std::io::Read;
    let error = |e: std::io::Error| {
        Error::new(
            ErrorCode::Io,
            format!("`{}` cannot be read: {e}", path.display()),
        )
    };
    let mut file = std::fs::File::open(path).map_err(error)?;
    let length = file.metadata().map_err(error)?.len();
    let length = usize::try_from(length)
        .map_err(|_| Error::new(ErrorCode::Limit, "the file does not fit into memory"))?;
    let mut bytes = AlignedBytes::zeroed(length)?;
    file.read_exact(bytes.as_mut_slice()).map_err(error)?;
    Ok(Arc::new(bytes))
}

impl From<Vec<u8>> for ModelSource {
    fn from(bytes: Vec<u8>) -> Self {
        ModelSource::from(bytes.as_slice())
    }
}

impl From<&[u8]> for ModelSource {
    /// Copies the bytes. An empty model takes their place where there is no memory for them.
    fn from(bytes: &[u8]) -> Self {
        ModelSource::Bytes {
            model: Arc::new(AlignedBytes::copy_of(bytes).unwrap_or_default()),
            external: HashMap::new(),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl From<&std::path::Path> for ModelSource {
    fn from(path: &std::path::Path) -> Self {
        ModelSource::Path(path.to_path_buf())
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl From<&str> for ModelSource {
    /// A path.
    fn from(path: &str) -> Self {
        ModelSource::Path(path.into())
    }
}
