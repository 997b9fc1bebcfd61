//! Graphs in the operators of ONNX that no ONNX file has: importers outside of this crate give them.

mod messages;

use std::collections::HashSet;
use std::sync::Arc;

use kilim_core::dim::Shape;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{Attributes, check_rank};
use kilim_core::tensor::Tensor;
use kilim_core::{Limits, Metadata};

use super::import;
use super::proto::invalid;
use crate::ModelFile;

/// Bodies in each other at most: whoever walks a draft goes as deep.
const MOST_LEVELS: usize = 64;

/// A node of a [`Draft`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftNode {
    /// What errors and reports call it; empty for the name of its first output.
    pub name: String,
    /// Empty for the standard domain, `com.microsoft`, `ai.onnx.ml`, or that of an operator which the session or a backend brings.
    pub domain: String,
    /// The name in its domain.
    pub op: String,
    /// Under the names that ONNX gives them. Where the operator wants a single value a list of one will do, and an integer where it
    /// wants a number.
    pub attributes: Attributes,
    /// Graphs in the node, by the names of their attributes: the branches of If, the body of Loop and of Scan. Each sees the values around the
    /// node, and what it names itself goes before. [`Draft::body`] begins one.
    pub bodies: Vec<(String, Draft)>,
    /// The names of values, in any order of nodes; empty for an optional input that is left out.
    pub inputs: Vec<String>,
    /// New names; empty for an output that is left out.
    pub outputs: Vec<String>,
}

/// A model that an importer makes call by call, of operators as the newest operator sets of ONNX define them. [`Draft::graph`] brings them into a
/// graph of Kilim's operators, by the table that reads ONNX files. A body of control flow is a draft, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    importer: String,
    /// Inputs of bodies may say nothing of their type.
    inputs: Vec<(String, Option<(DType, Shape)>)>,
    constants: Vec<(String, Tensor)>,
    nodes: Vec<DraftNode>,
    outputs: Vec<String>,
    metadata: Arc<Metadata>,
    /// Names that have a meaning.
    known: HashSet<String>,
    /// Nodes, those of bodies included.
    node_count: usize,
    /// How many bodies stand in each other.
    levels: usize,
}

impl Draft {
    /// An empty model of the importer with this id, which is the name of the graph and stands in errors.
    pub fn new(importer: impl Into<String>) -> Draft {
        Draft {
            importer: importer.into(),
            ..Draft::default()
        }
    }

    /// An empty body for a node of this model, or of one of its bodies. Its outputs are those of the attribute's graph in ONNX, in their order.
    pub fn body(&self) -> Draft {
        Draft::new(self.importer.as_str())
    }

    /// The next input of the model or body; dimensions may be symbols.
    ///
    /// # Errors
    /// `InvalidModel` where the name is empty or has a meaning already, `Limit` where there are too many dimensions.
    pub fn input(&mut self, name: &str, dtype: DType, shape: Shape) -> Result<()> {
        self.define("an input", name)?;
        check_rank(shape.0.len()).map_err(|e| self.own(e.with_input(name)))?;
        self.inputs.push((name.to_string(), Some((dtype, shape))));
        Ok(())
    }

    /// The next input of a body, whose element type and shape are those of what its node gives it.
    ///
    /// # Errors
    /// `InvalidModel` where the name is empty or has a meaning already. [`Draft::graph`] refuses such an input of the model itself.
    pub fn untyped_input(&mut self, name: &str) -> Result<()> {
        self.define("an input", name)?;
        self.inputs.push((name.to_string(), None));
        Ok(())
    }

    /// A value whose elements are known; see [`super::raw`] for those that are bytes of a file.
    ///
    /// # Errors
    /// `InvalidModel` where the name is empty or has a meaning already.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> Result<()> {
        self.define("a constant", name)?;
        self.constants.push((name.to_string(), tensor));
        Ok(())
    }

    /// The next node.
    ///
    /// # Errors
    /// `InvalidModel` where it has no operator, the name of an output has a meaning already, or an attribute stands twice; `Limit` where more
    /// than 64 bodies stand in each other.
    pub fn node(&mut self, node: DraftNode) -> Result<()> {
        let label = match (node.name.as_str(), node.outputs.first()) {
            ("", first) => first.map_or("", String::as_str),
            (name, _) => name,
        };
        let at = |e: Error| e.at(label, &node.op);
        if node.op.is_empty() {
            return Err(at(self.own(invalid("a node has no operator"))));
        }
        let mut bodies = HashSet::new();
        for (of, _) in &node.bodies {
            if node.attributes.get(of).is_some() || !bodies.insert(of) {
                let twice = invalid(format!("the attribute `{of}` stands twice"));
                return Err(at(self.own(twice)));
            }
        }
        let levels = node.bodies.iter().map(|(_, body)| 1 + body.levels);
        let levels = levels.max().unwrap_or(0);
        if levels > MOST_LEVELS {
            let message = "the model has too many graphs in each other";
            let deep = Error::new(ErrorCode::Limit, message)
                .with_expected(format!("at most {MOST_LEVELS}"))
                .with_got(levels);
            return Err(at(self.own(deep)));
        }
        for output in node.outputs.iter().filter(|name| !name.is_empty()) {
            self.define("an output of a node", output).map_err(at)?;
        }
        let inside = node.bodies.iter().map(|(_, body)| body.node_count);
        self.node_count += 1 + inside.sum::<usize>();
        self.levels = self.levels.max(levels);
        self.nodes.push(node);
        Ok(())
    }

    /// The next output of the model or body: a value by its name.
    ///
    /// # Errors
    /// `InvalidModel` where the name is empty.
    pub fn output(&mut self, name: &str) -> Result<()> {
        if name.is_empty() {
            return Err(self.own(invalid("an output has no name")));
        }
        self.outputs.push(name.to_string());
        Ok(())
    }

    /// What the model says of itself, in place of what it said before. That of a body is not read.
    pub fn set_metadata(&mut self, metadata: Metadata) {
        self.metadata = Arc::new(metadata);
    }

    /// How many nodes there are, those of bodies included.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// The graph of Kilim's operators. Of `file` its operators, its decoder of pictures and its interrupt count.
    ///
    /// # Errors
    /// `Unsupported` with the list of everything that Kilim cannot run, `InvalidGraph` on a value that nothing produces and on a cycle,
    /// `InvalidModel` where an attribute does not fit, `Limit` where the model passes one of the limits. Each names the importer.
    pub fn graph(&self, file: &ModelFile, limits: &Limits) -> Result<Graph> {
        if let Some((name, None)) = self.inputs.iter().find(|(_, kind)| kind.is_none()) {
            let untyped = invalid("an input of the model has no element type");
            return Err(self.own(untyped.with_input(name)));
        }
        import::model(&messages::model(self)?, file, limits).map_err(|e| self.own(e))
    }

    /// Gives a name a meaning.
    fn define(&mut self, what: &str, name: &str) -> Result<()> {
        if name.is_empty() {
            return Err(self.own(invalid(format!("{what} has no name"))));
        }
        match self.known.insert(name.to_string()) {
            true => Ok(()),
            false => Err(self.own(invalid(format!("two values are called `{name}`")))),
        }
    }

    /// An error of this model.
    fn own(&self, error: Error) -> Error {
        error.of(&format!("the importer `{}`", self.importer))
    }
}
