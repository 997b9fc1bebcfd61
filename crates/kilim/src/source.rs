//! Where a model comes from.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::ops::CustomOperators;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Graph, Result};
#[cfg(not(target_arch = "wasm32"))]
use kilim_formats::FileParts;
use kilim_formats::{ExternalFiles, GivenFiles, ImporterRegistry, ModelFile};

use crate::LoadOptions;
#[cfg(not(target_arch = "wasm32"))]
use crate::folder::{Folder, Own, package_model};

/// A model file, or its bytes.
#[derive(Clone)]
pub enum ModelSource {
    Bytes {
        model: Arc<AlignedBytes>,
        /// Files that the model refers to, by the names it uses.
        external: HashMap<String, Arc<AlignedBytes>>,
    },
    /// Files that the model refers to are looked for in its folder and those below. Links that lead out
    /// of it are refused unless [`LoadOptions::follow_links`] says otherwise. The path may be that of a package of onert, a folder whose
    /// `metadata/MANIFEST` names the model.
    #[cfg(not(target_arch = "wasm32"))]
    Path(std::path::PathBuf),
}

impl ModelSource {
    /// Reads the model with the importer that knows it.
    pub(crate) fn parse(
        self,
        registry: &ImporterRegistry,
        operators: &CustomOperators,
        options: &LoadOptions,
    ) -> Result<Graph> {
        let load = |file: ModelFile, external: &dyn ExternalFiles| {
            let source = file.with_external(external).with_operators(operators);
            let source = source.with_pictures(options.pictures);
            let source = source.with_structure_only(options.structure_only);
            let seconds = Some(options.limits.load_seconds);
            let interrupt = options.interrupt.clone();
            let interrupt = interrupt.within(seconds, options.clock);
            registry.load(&source.with_interrupt(&interrupt), &options.limits)
        };
        let name = options.model_name.as_deref();
        match self {
            ModelSource::Bytes { model, external } => load(
                ModelFile::new(model, name.unwrap_or("the model")),
                &GivenFiles::new(external),
            ),
            #[cfg(not(target_arch = "wasm32"))]
            ModelSource::Path(path) => {
                let path = package_model(&path, options.follow_links)?.unwrap_or(path);
                let folder = Folder::of(&path, options.follow_links);
                let own = Own::open(&path)?;
                let shown = path.to_string_lossy();
                let shown = name.unwrap_or(&shown);
                options.limits.check_file(own.size())?;
                let file = ModelFile::new(Arc::new(registry.read(&own, shown)?), shown);
                load(file.with_parts(&own), &folder)
            }
        }
    }
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
