//! ONNX files from graphs.

mod attributes;
mod form;
mod graph;
mod metadata;
mod names;
mod node;
mod ops;
mod tensor;
mod value;

use std::io::Write;
use std::ops::RangeInclusive;

use kilim_core::Tensor;
use kilim_core::error::{Result, unsupported, value_error};
use kilim_core::graph::Graph;

use crate::proto::{Message, write_elements};
use graph::{GraphWriter, Model};

/// The operator sets that can be asked for.
pub const OPSETS: RangeInclusive<i64> = 17..=26;

/// The oldest operator set that is chosen where none is asked for: onnxruntime 1.18 reads it.
const USUAL_OPSET: i64 = 21;

/// The version of the format by the operator set that came with it (onnx/docs/Versioning.md).
const IR_VERSIONS: [(i64, i64); 10] = [
    (17, 8),
    (18, 8),
    (19, 9),
    (20, 9),
    (21, 10),
    (22, 10),
    (23, 11),
    (24, 12),
    (25, 13),
    (26, 13),
];

/// The version of the operators of onnxruntime, and of those of classical machine learning.
const MICROSOFT_VERSION: i64 = 1;
const ML_VERSION: i64 = 4;

/// A message of protobuf has no more bytes: a file with its weights inside may not be larger.
pub const MOST_INSIDE: u64 = (1 << 31) - 1;

/// Where the weights of a file are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    #[default]
    Inside,
    /// In another file of the same folder, of this name.
    Beside(String),
    /// Inside, and in a file of this name where they are more than protobuf allows.
    InsideOrBeside(String),
}

/// How a graph becomes an ONNX file.
#[derive(Clone, Debug, Default)]
pub struct OnnxOptions {
    /// The operator set, one of [`OPSETS`]; without one 21, or a later one that an operator needs.
    pub opset: Option<i64>,
    pub weights: Weights,
}

/// An ONNX model that is ready to be written.
pub struct OnnxModel {
    model: Message,
    opset: i64,
    beside: Vec<(u64, Tensor)>,
    beside_bytes: u64,
}

impl OnnxModel {
    /// The model of a graph whose operators ONNX has, see [`lower`](crate::lower()). Names of inputs, outputs and open dimensions stay; a value
    /// or a node whose name another one has gets a number behind it. So does what the graph says of itself: Kilim is the producer of the file, and
    /// the one before it is an entry, `original_producer`.
    ///
    /// # Errors
    /// `InvalidValue` for an operator set that is not known; `Unsupported`, with the operator's name, for what that operator set cannot say;
    /// `Unsupported` for weights inside that are more than protobuf allows.
    pub fn new(graph: &Graph, options: &OnnxOptions) -> Result<OnnxModel> {
        let inside = OnnxModel::with(graph, options)?;
        match &options.weights {
            Weights::InsideOrBeside(file) if inside.model.len() > MOST_INSIDE => {
                let weights = Weights::Beside(file.clone());
                let options = OnnxOptions {
                    weights,
                    ..options.clone()
                };
                OnnxModel::new(graph, &options)
            }
            _ if inside.model.len() > MOST_INSIDE => Err(unsupported("a file of more than 2 GB")
                .with_expected(format!("at most {MOST_INSIDE} bytes"))
                .with_got(inside.model.len())
                .with_hint("have the weights in a file beside it")),
            _ => Ok(inside),
        }
    }

    fn with(graph: &Graph, options: &OnnxOptions) -> Result<OnnxModel> {
        if let Some(opset) = options.opset
            && !OPSETS.contains(&opset)
        {
            let (first, last) = (OPSETS.start(), OPSETS.end());
            return Err(value_error(format!("operator set {opset} is not written"))
                .with_expected(format!("{first} to {last}")));
        }
        if let Some(variable) = graph.variables.first() {
            let message = format!(
                "the model keeps `{}` from run to run, which ONNX cannot say",
                variable.name
            );
            return Err(unsupported(message));
        }
        // What is written depends on the operator set, and which one is needed shows when everything is.
        let mut opset = options.opset.unwrap_or(USUAL_OPSET);
        let written = loop {
            let mut written = Model::new(opset, options);
            let graph = GraphWriter::new(&mut written, graph, None)?.finish()?;
            match (written.needed > opset, options.opset) {
                (true, None) => opset = written.needed,
                _ => break written.with_graph(graph),
            }
        };
        let mut model = Message::default();
        let ir = IR_VERSIONS.iter().find(|(of, _)| *of == opset);
        model.int(1, ir.map_or(10, |(_, ir)| *ir));
        metadata::write(&graph.metadata, &mut model);
        model.message(7, written.graph);
        let domains = [
            (true, "", opset),
            (written.microsoft, form::MICROSOFT, MICROSOFT_VERSION),
            (written.ml, form::ML, ML_VERSION),
        ];
        for (_, domain, version) in domains.iter().filter(|(used, ..)| *used) {
            let mut set = Message::default();
            set.text(1, domain);
            set.int(2, *version);
            model.message(8, set);
        }
        Ok(OnnxModel {
            model,
            opset,
            beside: written.beside,
            beside_bytes: written.beside_bytes,
        })
    }

    /// The operator set.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Bytes of the file, and of the weights beside it.
    pub fn bytes(&self) -> [u64; 2] {
        [self.model.len(), self.beside_bytes]
    }

    /// Writes the file.
    ///
    /// # Errors
    /// `Io` where that fails, and what reading the weights says.
    pub fn write(&self, to: &mut dyn Write) -> Result<()> {
        self.model.write(to)
    }

    /// Writes the weights beside the file; nothing where they are inside.
    ///
    /// # Errors
    /// `Io` where that fails, and what reading the weights says.
    pub fn write_beside(&self, to: &mut dyn Write) -> Result<()> {
        for (padding, tensor) in &self.beside {
            let zeros = vec![0; *padding as usize];
            to.write_all(&zeros).map_err(crate::proto::not_written)?;
            write_elements(tensor, to)?;
        }
        Ok(())
    }
}
