//! What a fuzzer's bytes mean to an importer: a model, perhaps with a file beside it, which is read with limits that are low.

use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Limits, Tensor};
use kilim_formats::{ExternalFiles, FileParts, Importer, ImporterRegistry, LARGE, ModelFile};

/// Formats by their ids, with the name that a model has.
pub const FORMATS: [(&str, &str); 12] = [
    ("circle", "m.circle"),
    ("ggml", "m.bin"),
    ("gguf", "m.gguf"),
    ("mnn", "m.mnn"),
    ("ncnn", "m.param"),
    ("nnpackage", "m.zip"),
    ("onnx", "m.onnx"),
    ("ort", "m.ort"),
    ("safetensors", "model.safetensors"),
    ("tengine", "m.tmfile"),
    ("tflite", "m.tflite"),
    ("tnn", "m.tnnproto"),
];

/// Stands between the model and the file beside it: seldom in a model, and one piece to whoever cuts and joins inputs.
const APART: &[u8] = b"\xffbeside\xff";

/// Bytes that all memory of one import may take. [`limits`] are for a model of a few kilobytes.
pub const MEMORY: usize = 32 << 20;

/// What the caller of an importer allows.
pub fn limits() -> Limits {
    Limits {
        file_bytes: 128 << 10,
        nodes: 1 << 12,
        depth: 8,
        folded_bytes: 1 << 20,
        tensor_bytes: 1 << 20,
        load_seconds: 2.0,
        ..Limits::strict()
    }
}

/// One input of a fuzzer.
pub struct Input<'a> {
    /// Whether the model is only looked at, so that the file beside it may be missing.
    pub structure: bool,
    pub model: &'a [u8],
    pub beside: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// The input that `bytes` say: a letter, the model, and the file beside it behind a mark.
    pub fn read(bytes: &'a [u8]) -> Input<'a> {
        let (first, rest) = bytes.split_first().unwrap_or((&b'w', &[]));
        let mut windows = rest.windows(APART.len());
        let apart = windows.position(|part| part == APART);
        Input {
            structure: *first == b's',
            model: &rest[..apart.unwrap_or(rest.len())],
            beside: apart.map(|at| &rest[at + APART.len()..]),
        }
    }

    /// The bytes that [`Input::read`] takes for this input.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![if self.structure { b's' } else { b'w' }];
        bytes.extend(self.model);
        for beside in self.beside {
            bytes.extend(APART);
            bytes.extend(beside);
        }
        bytes
    }
}

/// The one file beside a model, whatever path it is asked by.
struct Beside(Option<Arc<AlignedBytes>>);

impl Beside {
    fn file(&self) -> Result<&Arc<AlignedBytes>> {
        let none = || Error::new(ErrorCode::Io, "no file is there");
        self.0.as_ref().ok_or_else(none)
    }
}

impl ExternalFiles for Beside {
    fn size(&self, _: &str) -> Result<usize> {
        Ok(self.file()?.len())
    }

    fn part(&self, _: &str, offset: usize, len: usize) -> Result<Tensor> {
        Tensor::view(DType::U8, &[len], self.file()?.clone(), offset, len)
    }

    fn names(&self) -> Vec<String> {
        Vec::from_iter(self.0.as_ref().map(|_| "beside".to_string()))
    }
}

/// A model file that is read in parts, as native programs read theirs.
struct Parts<'a>(&'a [u8]);

impl Parts<'_> {
    fn range(&self, offset: usize, len: usize) -> Result<&[u8]> {
        let end = offset.checked_add(len);
        let part = end.and_then(|end| self.0.get(offset..end));
        part.ok_or_else(|| Error::new(ErrorCode::Io, "the file ends before"))
    }
}

impl FileParts for Parts<'_> {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(self.range(offset, to.len())?);
        Ok(())
    }

    fn part(&self, offset: usize, len: usize) -> Result<Option<Tensor>> {
        if len < LARGE {
            return Ok(None);
        }
        Tensor::from_raw(DType::U8, &[len], self.range(offset, len)?).map(Some)
    }
}

/// Reads an input as the registry would that finds it to be of this format.
///
/// # Errors
/// Those of [`Importer::load`].
pub fn import(
    registry: &ImporterRegistry,
    (format, name): (&str, &str),
    input: &Input,
) -> Result<Graph> {
    let limits = limits();
    limits.check_file(input.model.len())?;
    let parts = Parts(input.model);
    let bytes = Arc::new(registry.read(&parts, name)?);
    let beside = match input.beside {
        Some(beside) => Some(Arc::new(AlignedBytes::copy_of(beside)?)),
        None => None,
    };
    let beside = Beside(beside);
    let source = ModelFile::new(bytes, name)
        .with_parts(&parts)
        .with_external(&beside)
        .with_structure_only(input.structure);
    let probed = registry.probe(input.model, name).map(Importer::format);
    if probed == Some(format) {
        return registry.load(&source, &limits);
    }
    // What names the format of a stranger's file, and the importer behind its signature.
    let _ = registry.load(&source, &limits);
    let importer = registry.get(format).expect("a format of the registry");
    importer.load(&source, &limits)
}
