//! Model importers: file formats to graphs. A format is an [`Importer`], found by the content
//! of the file through the [`ImporterRegistry`].

mod beside;
pub mod build;
#[cfg(test)]
mod counted;
mod external;
mod flatbuffer;
mod fourier;
#[cfg(test)]
mod garbage;
pub mod ggml;
pub mod gguf;
#[cfg(test)]
mod given;
mod language;
pub mod mnn;
pub mod ncnn;
pub mod nnpackage;
pub mod onnx;
pub mod ort;
mod parts;
pub mod pnnx;
pub mod safetensors;
#[cfg(test)]
mod shown;
mod source;
mod strangers;
pub mod tengine;
pub mod tflite;
pub mod tnn;
mod zip;

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::Result;
use kilim_core::graph::Graph;

pub use external::{ExternalFiles, GivenFile, GivenFiles};
pub use onnx::{Draft, DraftNode};
pub use parts::{FileParts, LARGE, Outline, Parted, Replaced, SharedParts};
pub use source::ModelFile;

/// Bytes that tell the format of a file.
pub const HEAD: usize = 64 << 10;

/// A parser of one file format.
pub trait Importer: Send + Sync {
    /// The format's id, `onnx` for instance.
    fn format(&self) -> &str;

    /// True where the file looks like one of this format. Magic bytes decide; the file's name may
    /// only help formats that have none.
    fn probe(&self, bytes: &[u8], name: &str) -> bool;

    /// What [`Importer::load`] reads in the place of data that it takes by [`ModelFile::part`] alone, in the order of the file. That data
    /// need not be in memory to read the model.
    fn outline(&self, file: &dyn FileParts) -> Vec<Replaced> {
        let _ = file;
        Vec::new()
    }

    /// Reads the model. Constants share `source.bytes` where their alignment allows it.
    ///
    /// # Errors
    /// `InvalidModel` and `InvalidGraph` where the file is garbled, `Unsupported` with the list of
    /// everything in it that Kilim cannot run, `Limit` where it passes one of the limits.
    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph>;
}

/// The formats that can be read, by id.
#[derive(Clone)]
pub struct ImporterRegistry {
    importers: Vec<Arc<dyn Importer>>,
}

impl Default for ImporterRegistry {
    /// All formats of this crate.
    fn default() -> Self {
        let mut registry = ImporterRegistry::empty();
        registry.register(ggml::Ggml);
        registry.register(gguf::Gguf);
        // Networks of both begin with the same number, which is all that ncnn's have.
        registry.register(pnnx::Pnnx);
        registry.register(ncnn::Ncnn);
        registry.register(nnpackage::NnPackage);
        registry.register(onnx::Onnx);
        registry.register(ort::Ort);
        registry.register(safetensors::Safetensors);
        registry.register(tengine::Tengine);
        registry.register(tflite::Circle);
        registry.register(tflite::TfLite);
        registry.register(tnn::Tnn);
        // Recognised by its structure alone: after all that have a signature.
        registry.register(mnn::Mnn);
        registry
    }
}

impl ImporterRegistry {
    /// A registry without any format.
    pub fn empty() -> ImporterRegistry {
        ImporterRegistry {
            importers: Vec::new(),
        }
    }

    /// Adds a format; one of the same id is replaced.
    pub fn register(&mut self, importer: impl Importer + 'static) {
        self.share(Arc::new(importer));
    }

    /// Adds a format whose importer others have, too; one of the same id is replaced.
    pub fn share(&mut self, importer: Arc<dyn Importer>) {
        self.importers.retain(|i| i.format() != importer.format());
        self.importers.push(importer);
    }

    /// The importer of a format, by its id.
    pub fn get(&self, format: &str) -> Option<&dyn Importer> {
        self.importers
            .iter()
            .map(Arc::as_ref)
            .find(|i| i.format() == format)
    }

    /// The ids of the formats.
    pub fn formats(&self) -> impl Iterator<Item = &str> + '_ {
        self.importers.iter().map(|i| i.format())
    }

    /// The importer that knows the file.
    pub fn probe(&self, bytes: &[u8], name: &str) -> Option<&dyn Importer> {
        self.importers
            .iter()
            .map(Arc::as_ref)
            .find(|i| i.probe(bytes, name))
    }

    /// The outline of a model file, for [`ModelFile::parted`]; the whole file where no importer knows what may be left out. `name` as of
    /// [`Importer::probe`].
    ///
    /// # Errors
    /// `Io` where the file cannot be read, `Limit` where memory is short.
    pub fn read(&self, file: &dyn FileParts, name: &str) -> Result<Outline> {
        let importer = self.probe(&head(file)?, name);
        let replaced = importer.map_or_else(Vec::new, |importer| importer.outline(file));
        Outline::read(file, &replaced)
    }

    /// Finds the format and reads the model.
    ///
    /// # Errors
    /// `UnknownFormat` where no importer knows the file; else those of [`Importer::load`].
    pub fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        limits.check_file(source.size())?;
        let bytes = source.bytes.as_slice();
        // An outline may be another beginning.
        let importer = match source.lying() {
            Some(file) => self.probe(&head(file)?, source.name),
            None => self.probe(bytes, source.name),
        };
        let Some(importer) = importer else {
            let known = self.formats().collect::<Vec<_>>().join(", ");
            return Err(strangers::refuse(bytes, source.name, &known));
        };
        importer.load(source, limits)
    }
}

/// The bytes that tell the format of a file.
///
/// # Errors
/// `Io` where the file cannot be read.
pub fn head(file: &dyn FileParts) -> Result<Vec<u8>> {
    let mut head = vec![0; file.size().min(HEAD as u64) as usize];
    file.read(0, &mut head)?;
    Ok(head)
}

/// Reads a model of any format of this crate, see [`ImporterRegistry::load`].
pub fn load_model(source: &ModelFile, limits: &Limits) -> Result<Graph> {
    ImporterRegistry::default().load(source, limits)
}

/// The samples of `docs/formats.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/formats.md")]
struct Samples;
