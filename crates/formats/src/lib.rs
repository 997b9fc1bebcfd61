//! Model importers: file formats to graphs. A format is an [`Importer`], found by the content
//! of the file through the [`ImporterRegistry`].

pub mod build;
mod external;
mod flatbuffer;
mod fourier;
pub mod onnx;
pub mod ort;
mod source;
mod strangers;
pub mod tflite;

use kilim_core::Limits;
use kilim_core::error::Result;
use kilim_core::graph::Graph;

pub use external::{ExternalFiles, GivenFiles};
pub use source::{FileParts, ModelFile};

/// A parser of one file format.
pub trait Importer: Send + Sync {
    /// The format's id, `onnx` for instance.
    fn format(&self) -> &'static str;

    /// True where the file looks like one of this format. Magic bytes decide; the file's name may
    /// only help formats that have none.
    fn probe(&self, bytes: &[u8], name: &str) -> bool;

    /// Reads the model. Constants share `source.bytes` where their alignment allows it.
    ///
    /// # Errors
    /// `InvalidModel` and `InvalidGraph` where the file is garbled, `Unsupported` with the list of
    /// everything in it that Kilim cannot run, `Limit` where it passes one of the limits.
    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph>;
}

/// The formats that can be read, by id.
pub struct ImporterRegistry {
    importers: Vec<Box<dyn Importer>>,
}

impl Default for ImporterRegistry {
    /// All formats of this crate.
    fn default() -> Self {
        let mut registry = ImporterRegistry::empty();
        registry.register(onnx::Onnx);
        registry.register(ort::Ort);
        registry.register(tflite::TfLite);
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
        self.importers.retain(|i| i.format() != importer.format());
        self.importers.push(Box::new(importer));
    }

    /// The importer of a format, by its id.
    pub fn get(&self, format: &str) -> Option<&dyn Importer> {
        self.importers
            .iter()
            .map(Box::as_ref)
            .find(|i| i.format() == format)
    }

    /// The ids of the formats.
    pub fn formats(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.importers.iter().map(|i| i.format())
    }

    /// The importer that knows the file.
    pub fn probe(&self, bytes: &[u8], name: &str) -> Option<&dyn Importer> {
        self.importers
            .iter()
            .map(Box::as_ref)
            .find(|i| i.probe(bytes, name))
    }

    /// Finds the format and reads the model.
    ///
    /// # Errors
    /// `UnknownFormat` where no importer knows the file; else those of [`Importer::load`].
    pub fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        limits.check_file(source.bytes.len())?;
        let Some(importer) = self.probe(source.bytes.as_slice(), source.name) else {
            let known = self.formats().collect::<Vec<_>>().join(", ");
            return Err(strangers::refuse(
                source.bytes.as_slice(),
                source.name,
                &known,
            ));
        };
        importer.load(source, limits)
    }
}

/// Reads a model of any format of this crate, see [`ImporterRegistry::load`].
pub fn load_model(source: &ModelFile, limits: &Limits) -> Result<Graph> {
    ImporterRegistry::default().load(source, limits)
}

/// The samples of `docs/formats.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/formats.md")]
struct Samples;
