//! Where a model comes from.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::ops::CustomOperators;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Error, Graph, Result};
use kilim_formats::{
    Draft, ExternalFiles, GivenFile, GivenFiles, Importer, ImporterRegistry, ModelFile, Parted,
    head,
};

use crate::LoadOptions;
#[cfg(not(target_arch = "wasm32"))]
use crate::folder::{Folder, open, package_model};

/// A model file, or its bytes.
#[derive(Clone)]
pub enum ModelSource {
    Bytes {
        model: Arc<AlignedBytes>,
        /// Files that the model refers to, by the names it uses.
        external: HashMap<String, Arc<AlignedBytes>>,
    },
    /// Files in memory, and such as are read where they lie, part by part. What is not in memory has to stay as it is while the session
    /// may plan anew.
    Given {
        model: GivenFile,
        /// Files that the model refers to, by the names it uses.
        external: HashMap<String, GivenFile>,
    },
    /// Files that the model refers to are looked for in its folder and those below. Links that lead out
    /// of it are refused unless [`LoadOptions::follow_links`] says otherwise. The path may be that of a package of onert, a folder whose
    /// `metadata/MANIFEST` names the model.
    #[cfg(not(target_arch = "wasm32"))]
    Path(std::path::PathBuf),
    /// A model that the program has made itself.
    Draft(Draft),
}

/// Importers that are looked for where no format of a runtime knows a file, and why the first of the others cannot be had.
pub(crate) type More = (Vec<Arc<dyn Importer>>, Option<Error>);

/// The formats of `registry`; where none of them knows a file by its first bytes or its name, those of `more` as well.
///
/// # Errors
/// That of `more` where nobody knows the file.
fn knowing(
    registry: &ImporterRegistry,
    more: &dyn Fn() -> More,
    head: &[u8],
    name: &str,
) -> Result<ImporterRegistry> {
    let mut registry = registry.clone();
    if registry.probe(head, name).is_some() {
        return Ok(registry);
    }
    let (found, failed) = more();
    found
        .into_iter()
        .for_each(|importer| registry.share(importer));
    match failed {
        Some(error) if registry.probe(head, name).is_none() => Err(error),
        _ => Ok(registry),
    }
}

/// A model file with what the options say of the load.
fn told<'a>(
    file: ModelFile<'a>,
    operators: &CustomOperators,
    options: &LoadOptions,
) -> ModelFile<'a> {
    let seconds = Some(options.limits.load_seconds);
    let interrupt = options.interrupt.clone();
    file.with_operators(operators)
        .with_pictures(options.pictures)
        .with_structure_only(options.structure_only)
        .with_interrupt(&interrupt.within(seconds, options.clock))
}

impl ModelSource {
    /// Reads the model with the importer that knows it: one of `registry`, else one of `more`.
    pub(crate) fn parse(
        self,
        registry: &ImporterRegistry,
        more: &dyn Fn() -> More,
        operators: &CustomOperators,
        options: &LoadOptions,
    ) -> Result<Graph> {
        let load = |registry: &ImporterRegistry, file: ModelFile, external: &dyn ExternalFiles| {
            let source = told(file, operators, options).with_external(external);
            registry.load(&source, &options.limits)
        };
        let load_bytes = |model: Arc<AlignedBytes>, name: &str, external: &dyn ExternalFiles| {
            let registry = knowing(registry, more, model.as_slice(), name)?;
            load(&registry, ModelFile::new(model, name), external)
        };
        let load_parts = |parts: &Parted, name: &str, external: &dyn ExternalFiles| {
            options.limits.check_file(parts.file().size())?;
            let registry = knowing(registry, more, &head(parts.file())?, name)?;
            let outline = registry.read(parts.file(), name)?;
            load(&registry, ModelFile::parted(parts, outline, name), external)
        };
        let name = options.model_name.as_deref();
        match self {
            ModelSource::Bytes { model, external } => {
                let external = GivenFiles::new(external);
                load_bytes(model, name.unwrap_or("the model"), &external)
            }
            ModelSource::Given { model, external } => {
                let (name, external) = (name.unwrap_or("the model"), GivenFiles::new(external));
                match model {
                    GivenFile::Bytes(model) => load_bytes(model, name, &external),
                    GivenFile::Parts(file) => load_parts(&Parted::new(file, true), name, &external),
                }
            }
            ModelSource::Draft(draft) => {
                let file = ModelFile::new(Arc::default(), name.unwrap_or("the model"));
                draft.graph(&told(file, operators, options), &options.limits)
            }
            #[cfg(not(target_arch = "wasm32"))]
            ModelSource::Path(path) => {
                let path = package_model(&path, options.follow_links)?.unwrap_or(path);
                let folder = Folder::of(&path, options.follow_links);
                let shown = path.to_string_lossy();
                load_parts(&open(&path)?, name.unwrap_or(&shown), &folder)
            }
        }
    }
}

impl From<Draft> for ModelSource {
    fn from(draft: Draft) -> Self {
        ModelSource::Draft(draft)
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
