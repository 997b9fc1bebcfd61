//! Model interpreters: file formats to graphs. A format is an [`Interpreter`], found by the content
//! of the file through the [`InterpreterRegistry`].

mod build;
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
pub use source::ModelSource;

/// A parser of one file format.
pub trait Interpreter: Send + Sync {
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
    fn load(&self, source: &ModelSource, limits: &Limits) -> Result<Graph>;
}

/// The formats that can be read, by id.
pub struct InterpreterRegistry {
    interpreters: Vec<Box<dyn Interpreter>>,
}

impl Default for InterpreterRegistry {
    /// All formats of this crate.
    fn default() -> Self {
        let mut registry = InterpreterRegistry::empty();
        registry.register(onnx::Onnx);
        registry.register(ort::Ort);
        registry.register(tflite::TfLite);
        registry
    }
}

impl InterpreterRegistry {
    /// Without any format.
    pub fn empty() -> InterpreterRegistry {
        InterpreterRegistry {
            interpreters: Vec::new(),
        }
    }

    /// Adds a format; one of the same id is replaced.
    pub fn register(&mut self, interpreter: impl Interpreter + 'static) {
        self.interpreters
            .retain(|i| i.format() != interpreter.format());
        self.interpreters.push(Box::new(interpreter));
    }

    /// The interpreter of a format, by its id.
    pub fn get(&self, format: &str) -> Option<&dyn Interpreter> {
        self.interpreters
            .iter()
            .map(Box::as_ref)
            .find(|i| i.format() == format)
    }

    /// The ids of the formats.
    pub fn formats(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interpreters.iter().map(|i| i.format())
    }

    /// The interpreter that knows the file.
    pub fn probe(&self, bytes: &[u8], name: &str) -> Option<&dyn Interpreter> {
        self.interpreters
            .iter()
            .map(Box::as_ref)
            .find(|i| i.probe(bytes, name))
    }

    /// Finds the format and reads the model.
    ///
    /// # Errors
    /// `UnknownFormat` where no interpreter knows the file; else those of [`Interpreter::load`].
    pub fn load(&self, source: &ModelSource, limits: &Limits) -> Result<Graph> {
        limits.check_file(source.bytes.len())?;
        let Some(interpreter) = self.probe(source.bytes.as_slice(), source.name) else {
            let known = self.formats().collect::<Vec<_>>().join(", ");
            return Err(strangers::refuse(
                source.bytes.as_slice(),
                source.name,
                &known,
            ));
        };
        interpreter.load(source, limits)
    }
}

/// Reads a model of any format of this crate, see [`InterpreterRegistry::load`].
pub fn load_model(source: &ModelSource, limits: &Limits) -> Result<Graph> {
    InterpreterRegistry::default().load(source, limits)
}
