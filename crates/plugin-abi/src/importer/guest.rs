//! An importer in Rust: implement [`Importer`] and name it in [`crate::export_importer`].
//!
//! Panics do not leave the library: they become errors.

use std::ffi::c_void;
use std::ptr;

use super::{self as raw, glue};
use crate as abi;
pub use crate::guest::{Failure, NewTensor as Tensor, NewValues as Values, Result};

/// What reads models of one format.
pub trait Importer: 'static {
    /// Whether a file is of this format, by its first bytes, at most 65536, and its name.
    fn probe(head: &[u8], name: &str) -> bool;

    /// Reads a file, and gives its model to `graph`.
    ///
    /// # Errors
    /// [`Failure::invalid`] where the file is garbled, [`Failure::unsupported`] where it needs what the importer does not have.
    fn load(file: &File, graph: &mut Graph) -> Result;
}

/// A model file.
pub struct File<'a> {
    /// The path or address of the file, or what the program calls it.
    pub name: &'a str,
    pub bytes: &'a [u8],
    pub(super) raw: &'a raw::File,
}

impl<'a> File<'a> {
    /// The bytes of a file beside the model, by its path relative to the model's folder, with `/` between its parts.
    ///
    /// # Errors
    /// What Kilim says where there is no such file, or the path leads out of the folder.
    pub fn beside(&self, path: &str) -> Result<&'a [u8]> {
        let beside = self.raw.beside.ok_or_else(missing)?;
        let path = glue::c_text(path);
        let (mut bytes, mut count) = (ptr::null::<c_void>(), 0);
        glue::told(|message| {
            // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
            unsafe {
                beside(
                    self.raw.this,
                    path.as_ptr(),
                    &raw mut bytes,
                    &raw mut count,
                    message,
                )
            }
        })?;
        // SAFETY: Kilim gave as many bytes as it says, which stay until `load` returns.
        Ok(unsafe { crate::glue::list(bytes.cast(), count) })
    }
}

/// A dimension of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim<'a> {
    Size(usize),
    /// An open size, which is the same wherever this name stands.
    Symbol(&'a str),
    Open,
}

/// A node of a model: an operator of the newest operator sets of ONNX, or one that the session or a backend brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Empty for the name of its first output.
    pub name: String,
    /// Empty for the standard domain.
    pub domain: String,
    pub op: String,
    /// Under the names that ONNX gives them; a single value is a list of one, and integers will do where numbers are wanted.
    pub attributes: Vec<(String, Values)>,
    /// The names of values; empty for an optional input that is left out.
    pub inputs: Vec<String>,
    /// New names; empty for an output that is left out.
    pub outputs: Vec<String>,
}

impl Operation {
    /// A node of the standard domain without attributes.
    pub fn new(op: &str, inputs: &[&str], outputs: &[&str]) -> Operation {
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        Operation {
            op: op.to_string(),
            inputs: names(inputs),
            outputs: names(outputs),
            ..Operation::default()
        }
    }

    /// The node with an attribute more.
    #[must_use]
    pub fn with(mut self, name: &str, values: Values) -> Operation {
        self.attributes.push((name.to_string(), values));
        self
    }
}

/// What a model says of itself. Texts are empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub name: String,
    pub description: String,
    /// The program that wrote the file.
    pub producer: String,
    /// The version of that program.
    pub producer_version: String,
    /// Whose model it is, as a domain in the reverse order: `org.example`.
    pub domain: String,
    /// The version of the model.
    pub version: String,
    /// Everything else: keys, none of them empty, each with its text.
    pub entries: Vec<(String, String)>,
}

/// Takes a model. The first call that fails decides: whatever [`Importer::load`] returns, that is the error of the load.
pub struct Graph<'a> {
    pub(super) raw: &'a raw::Graph,
}

/// Where a function of the host is not there.
fn missing() -> Failure {
    Failure::unsupported("this Kilim does not have the function")
}

impl Graph<'_> {
    /// The next input; the element type is a number of ONNX's `TensorProto.DataType`.
    ///
    /// # Errors
    /// What Kilim says: a name that stands twice, a type that it does not have. So do the other functions.
    pub fn input(&mut self, name: &str, dtype: i32, dims: &[Dim]) -> Result {
        let input = self.raw.input.ok_or_else(missing)?;
        let name = glue::c_text(name);
        let symbols = dims.iter().map(|dim| match dim {
            Dim::Symbol(symbol) => Some(glue::c_text(symbol)),
            _ => None,
        });
        let symbols: Vec<_> = symbols.collect();
        let dims = dims.iter().zip(&symbols).map(|(dim, symbol)| raw::Dim {
            size: match dim {
                // Kilim refuses sizes that are too large.
                Dim::Size(size) => i64::try_from(*size).unwrap_or(i64::MAX),
                _ => -1,
            },
            symbol: symbol.as_ref().map_or(ptr::null(), |s| s.as_ptr()),
        });
        let dims: Vec<_> = dims.collect();
        let told = raw::Input {
            name: name.as_ptr(),
            dtype,
            rank: i32::try_from(dims.len()).unwrap_or(i32::MAX),
            dims: dims.as_ptr(),
        };
        // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
        glue::told(|message| unsafe { input(self.raw.this, &raw const told, message) })
    }

    /// A value with its elements, row-major, the low byte first. They are not copied where they are a part of [`File::bytes`] or of
    /// what [`File::beside`] gave.
    ///
    /// # Errors
    /// What Kilim says, where the shape needs another number of bytes for instance.
    pub fn constant(&mut self, name: &str, dtype: i32, shape: &[i64], data: &[u8]) -> Result {
        let constant = self.raw.constant.ok_or_else(missing)?;
        let name = glue::c_text(name);
        let told = abi::Tensor {
            name: name.as_ptr(),
            dtype,
            rank: i32::try_from(shape.len()).unwrap_or(i32::MAX),
            shape: shape.as_ptr(),
            data: data.as_ptr().cast(),
            bytes: data.len(),
        };
        // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
        glue::told(|message| unsafe { constant(self.raw.this, &raw const told, message) })
    }

    /// The next input of a body, whose element type and shape are those of what its node gives it.
    ///
    /// # Errors
    /// What Kilim says of its name.
    pub fn untyped_input(&mut self, name: &str) -> Result {
        self.input(name, raw::UNTYPED, &[])
    }

    /// A graph in the attribute `of` of the next node: a branch of If, the body of Loop or Scan. What `make` gives to the graph becomes
    /// the body, which sees the values of the graphs around it.
    ///
    /// # Errors
    /// What `make` fails with, and what Kilim says, of too many bodies in each other for instance; `KILIM_UNSUPPORTED` where the Kilim is
    /// older than bodies.
    pub fn body(&mut self, of: &str, make: impl FnOnce(&mut Graph) -> Result) -> Result {
        let begin = self.raw.begin_body.ok_or_else(missing)?;
        let end = self.raw.end_body.ok_or_else(missing)?;
        let of = glue::c_text(of);
        // SAFETY: a function of Kilim's with its own `this`; the name lives during the call.
        glue::told(|message| unsafe { begin(self.raw.this, of.as_ptr(), message) })?;
        make(self)?;
        // SAFETY: a function of Kilim's with its own `this`.
        glue::told(|message| unsafe { end(self.raw.this, message) })
    }

    /// The next node, with the bodies that were made before it.
    ///
    /// # Errors
    /// What Kilim says of its names. Operators and attributes are looked at when the whole model is there.
    pub fn node(&mut self, node: &Operation) -> Result {
        let add = self.raw.node.ok_or_else(missing)?;
        glue::operation(node, |told| {
            // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
            glue::told(|message| unsafe { add(self.raw.this, told, message) })
        })
    }

    /// The next output: a value by its name.
    ///
    /// # Errors
    /// What Kilim says of an empty name.
    pub fn output(&mut self, name: &str) -> Result {
        let output = self.raw.output.ok_or_else(missing)?;
        let name = glue::c_text(name);
        // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
        glue::told(|message| unsafe { output(self.raw.this, name.as_ptr(), message) })
    }

    /// What the model says of itself, in place of what was said before.
    ///
    /// # Errors
    /// What Kilim says, of a key that is empty for instance; `KILIM_UNSUPPORTED` where the Kilim is older than metadata.
    pub fn metadata(&mut self, metadata: &Metadata) -> Result {
        let tell = self.raw.metadata.ok_or_else(missing)?;
        glue::metadata(metadata, |told| {
            // SAFETY: a function of Kilim's with its own `this`; everything it gets lives during the call.
            glue::told(|message| unsafe { tell(self.raw.this, told, message) })
        })
    }

    /// In the place of all others, once: the file of a model in a format that Kilim has.
    ///
    /// # Errors
    /// What Kilim says, where memory is short for instance. The file is read when `load` has returned.
    pub fn model(&mut self, bytes: &[u8]) -> Result {
        let model = self.raw.model.ok_or_else(missing)?;
        let (start, count) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: a function of Kilim's with its own `this`; the bytes live during the call.
        glue::told(|message| unsafe { model(self.raw.this, start, count, message) })
    }
}

/// Defines the function that a library of an importer has.
#[macro_export]
macro_rules! export_importer {
    ($importer:ty) => {
        /// # Safety
        /// The caller is Kilim: the pointer is the one that `kilim_importer.h` speaks of.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn kilim_importer(
            _host: *const $crate::Host,
        ) -> *const $crate::importer::Importer {
            static TABLE: $crate::importer::Importer = $crate::importer::glue::table::<$importer>();
            &raw const TABLE
        }
    };
}
