//! What a fuzzer's bytes mean to an importer: a model, perhaps with a file beside it, which is read with limits that are low.

use std::sync::Arc;

use kilim_core::backend::DataLayout;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::passes::{Evaluator, Layout, Passes, optimise};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Interrupt, Limits, Tensor};
use kilim_formats::{ExternalFiles, FileParts, ImporterRegistry, ModelFile, Parted};

/// Formats by their ids, with the name that a model has.
pub const FORMATS: [(&str, &str); 13] = [
    ("circle", "m.circle"),
    ("ggml", "m.bin"),
    ("gguf", "m.gguf"),
    ("mnn", "m.mnn"),
    ("ncnn", "m.param"),
    ("nnpackage", "m.zip"),
    ("onnx", "m.onnx"),
    ("ort", "m.ort"),
    ("pnnx", "m.pnnx.param"),
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
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// Whether the model is only looked at, so that the file beside it may be missing.
    pub structure: bool,
    /// Whether the graph goes through the passes, too, which take longer than most importers.
    pub passes: bool,
    pub model: &'a [u8],
    pub beside: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// The input that `bytes` say: a letter, the model, and the file beside it behind a mark.
    pub fn read(bytes: &'a [u8]) -> Input<'a> {
        let (first, rest) = bytes.split_first().unwrap_or((&b'w', &[]));
        let mut marks = (0..rest.len()).filter(|&at| rest[at] == APART[0]);
        let apart = marks.find(|&at| rest[at..].starts_with(APART));
        Input {
            structure: first.eq_ignore_ascii_case(&b's'),
            passes: first.is_ascii_uppercase(),
            model: &rest[..apart.unwrap_or(rest.len())],
            beside: apart.map(|at| &rest[at + APART.len()..]),
        }
    }

    /// The bytes that [`Input::read`] takes for this input.
    pub fn write(&self) -> Vec<u8> {
        let mut letter = if self.structure { b's' } else { b'w' };
        if self.passes {
            letter.make_ascii_uppercase();
        }
        let mut bytes = [&[letter], self.model].concat();
        if let Some(beside) = self.beside {
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
    fn size(&self, _: &str) -> Result<u64> {
        Ok(self.file()?.len() as u64)
    }

    fn part(&self, _: &str, offset: u64, len: usize) -> Result<Tensor> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        Tensor::view(DType::U8, &[len], self.file()?.clone(), offset, len)
    }

    fn names(&self) -> Vec<String> {
        Vec::from_iter(self.0.as_ref().map(|_| "beside".to_string()))
    }
}

/// A model file that is read in parts, as native programs read theirs.
struct Parts(AlignedBytes);

impl FileParts for Parts {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.checked_add(to.len());
        let part = end.and_then(|end| self.0.as_slice().get(offset..end));
        let part = part.ok_or_else(|| Error::new(ErrorCode::Io, "the file ends before"))?;
        to.copy_from_slice(part);
        Ok(())
    }
}

/// Reads an input as the registry does, with the importer of this format first.
///
/// # Errors
/// Those of the importer, and of the passes where the input asks for them.
pub fn import(
    registry: &ImporterRegistry,
    (format, name): (&str, &str),
    input: &Input,
) -> Result<Graph> {
    let limits = limits();
    limits.check_file(input.model.len() as u64)?;
    let file = Arc::new(Parts(AlignedBytes::copy_of(input.model)?));
    let outline = registry.read(&*file, name)?;
    let parts = Parted::new(file, true);
    let beside = match input.beside {
        Some(beside) => Some(Arc::new(AlignedBytes::copy_of(beside)?)),
        None => None,
    };
    let beside = Beside(beside);
    let source = ModelFile::parted(&parts, outline, name)
        .with_external(&beside)
        .with_structure_only(input.structure);
    // All formats together take longer to say that none knows the file than one takes to read it.
    let importer = registry.get(format);
    let importer = importer.filter(|i| i.probe(source.bytes.as_slice(), name));
    let mut graph = match importer {
        Some(importer) => importer.load(&source, &limits)?,
        None => registry.load(&source, &limits)?,
    };
    if input.passes {
        let passes = Passes {
            evaluate: Evaluator {
                compute: &|_| None,
                interrupt: &Interrupt::NEVER,
            },
            narrow: &|_| false,
            layout: Layout::Every(DataLayout::ChannelsLast),
            without: &[],
            observer: None,
        };
        optimise(&mut graph, &passes)?;
    }
    Ok(graph)
}
