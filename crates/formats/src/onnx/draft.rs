//! Graphs in the operators of ONNX that no ONNX file has: importers outside of this crate give them.

use std::collections::HashSet;

use kilim_core::dim::{Dim, Shape};
use kilim_core::dtype::DType;
use kilim_core::error::{Error, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{Attribute, Attributes, check_rank};
use kilim_core::tensor::Tensor;

use super::builder::NEWEST;
use super::import;
use super::ops::ML_DOMAIN;
use super::proto::{
    AttributeProto, DimensionProto, Field, GraphProto, ModelProto, NodeProto, Numbers,
    OperatorSetId, ShapeProto, TensorProto, TensorType, TypeProto, ValueInfo, invalid,
};
use super::tensor::type_number;
use crate::ModelFile;
use kilim_core::Limits;

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
    /// The names of values, in any order of nodes; empty for an optional input that is left out.
    pub inputs: Vec<String>,
    /// New names; empty for an output that is left out.
    pub outputs: Vec<String>,
}

/// A model that an importer makes call by call, of operators as the newest operator sets of ONNX define them. [`Draft::graph`] brings them into a
/// graph of Kilim's operators, by the table that reads ONNX files. No attribute is a graph: control flow cannot be drafted.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    importer: String,
    inputs: Vec<(String, DType, Shape)>,
    constants: Vec<(String, Tensor)>,
    nodes: Vec<DraftNode>,
    outputs: Vec<String>,
    /// Names that have a meaning.
    known: HashSet<String>,
}

impl Draft {
    /// An empty model of the importer with this id, which is the name of the graph and stands in errors.
    pub fn new(importer: impl Into<String>) -> Draft {
        Draft {
            importer: importer.into(),
            ..Draft::default()
        }
    }

    /// The next input of the model; dimensions may be symbols.
    ///
    /// # Errors
    /// `InvalidModel` where the name is empty or has a meaning already, `Limit` where there are too many dimensions.
    pub fn input(&mut self, name: &str, dtype: DType, shape: Shape) -> Result<()> {
        self.define("an input", name)?;
        check_rank(shape.0.len()).map_err(|e| self.own(e.with_input(name)))?;
        self.inputs.push((name.to_string(), dtype, shape));
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
    /// `InvalidModel` where it has no operator, or the name of an output has a meaning already.
    pub fn node(&mut self, node: DraftNode) -> Result<()> {
        let label = match (node.name.as_str(), node.outputs.first()) {
            ("", first) => first.map_or("", String::as_str),
            (name, _) => name,
        };
        let at = |e: Error| e.at(label, &node.op);
        if node.op.is_empty() {
            return Err(at(self.own(invalid("a node has no operator"))));
        }
        for output in node.outputs.iter().filter(|name| !name.is_empty()) {
            self.define("an output of a node", output).map_err(at)?;
        }
        self.nodes.push(node);
        Ok(())
    }

    /// The next output of the model: a value by its name.
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

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The graph of Kilim's operators. Of `file` its operators, its decoder of pictures and its interrupt count.
    ///
    /// # Errors
    /// `Unsupported` with the list of everything that Kilim cannot run, `InvalidGraph` on a value that nothing produces and on a cycle,
    /// `InvalidModel` where an attribute does not fit, `Limit` where the model passes one of the limits. Each names the importer.
    pub fn graph(&self, file: &ModelFile, limits: &Limits) -> Result<Graph> {
        let attributes: Vec<Vec<AttributeProto>> = self
            .nodes
            .iter()
            .map(|node| node.attributes.0.iter().map(attribute).collect())
            .collect();
        let model = ModelProto {
            // The first in which initialisers are no inputs.
            ir_version: 4,
            graph: Some(self.proto(attributes)?),
            // Others have one version.
            opset_import: ["", ML_DOMAIN].map(newest).into(),
            functions: Vec::new(),
        };
        import::model(&model, file, limits).map_err(|e| self.own(e))
    }

    fn proto<'a>(&'a self, attributes: Vec<Vec<AttributeProto<'a>>>) -> Result<GraphProto<'a>> {
        let nodes = self.nodes.iter().zip(attributes);
        let nodes = nodes.map(|(node, attributes)| NodeProto {
            inputs: node.inputs.iter().map(String::as_str).collect(),
            outputs: node.outputs.iter().map(String::as_str).collect(),
            name: &node.name,
            op_type: &node.op,
            domain: &node.domain,
            overload: "",
            attributes,
        });
        let constants = self.constants.iter();
        let constants = constants.map(|(name, tensor)| made(name, tensor));
        let inputs = self.inputs.iter().map(|(name, dtype, shape)| {
            let kind = kind(*dtype, shape).map_err(|e| self.own(e.with_input(name)))?;
            Ok(ValueInfo {
                name,
                kind: Some(kind),
            })
        });
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|name| ValueInfo { name, kind: None });
        Ok(GraphProto {
            name: &self.importer,
            nodes: nodes.collect(),
            initializers: constants.collect(),
            inputs: inputs.collect::<Result<_>>()?,
            outputs: outputs.collect(),
            ..GraphProto::default()
        })
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

fn newest(domain: &str) -> OperatorSetId<'_> {
    OperatorSetId {
        domain,
        version: NEWEST,
    }
}

fn made<'a>(name: &'a str, tensor: &Tensor) -> TensorProto<'a> {
    TensorProto {
        name,
        made: Some(tensor.clone()),
        ..TensorProto::default()
    }
}

fn kind(dtype: DType, shape: &Shape) -> Result<TypeProto<'_>> {
    let dims = shape.0.iter().map(|dim| {
        let value = dim.known().map(i64::try_from).transpose();
        Ok(DimensionProto {
            value: value.map_err(|_| invalid("a dimension is too large"))?,
            param: match dim {
                Dim::Symbol(name) => name,
                _ => "",
            },
        })
    });
    let shape = ShapeProto {
        dims: dims.collect::<Result<_>>()?,
    };
    let number = type_number(dtype);
    Ok(TypeProto {
        tensor: Some(TensorType {
            elem_type: number.ok_or_else(|| invalid("an element type that ONNX has not"))?,
            shape: Some(shape),
        }),
        ..TypeProto::default()
    })
}

/// An attribute in all forms in which an operator may ask for it.
fn attribute<'a>((name, value): (&'a String, &'a Attribute)) -> AttributeProto<'a> {
    let int = |n: &i64| Field::Varint(*n as u64);
    let float = |x: f64| Field::Fixed32((x as f32).to_bits());
    let mut proto = AttributeProto {
        name,
        ..AttributeProto::default()
    };
    match value {
        Attribute::Int(n) => {
            proto.i = Some(*n);
            proto.f = Some(*n as f32);
        }
        Attribute::Float(x) => proto.f = Some(*x as f32),
        Attribute::Text(text) => proto.s = Some(text.as_bytes()),
        Attribute::Bytes(bytes) => proto.s = Some(bytes),
        Attribute::Ints(list) => {
            if let [n] = list[..] {
                proto.i = Some(n);
                proto.f = Some(n as f32);
            }
            proto.ints = Numbers::of(list.iter().map(int));
            proto.floats = Numbers::of(list.iter().map(|&n| float(n as f64)));
        }
        Attribute::Floats(list) => {
            if let [x] = list[..] {
                proto.f = Some(x as f32);
            }
            proto.floats = Numbers::of(list.iter().map(|&x| float(x)));
        }
        Attribute::Texts(list) => {
            if let [text] = &list[..] {
                proto.s = Some(text.as_bytes());
            }
            proto.strings = list.iter().map(String::as_bytes).collect();
        }
        Attribute::Tensor(tensor) => proto.t = Some(made("", tensor)),
    }
    proto
}
