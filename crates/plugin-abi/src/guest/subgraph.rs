//! Connected nodes, and what a backend makes of them.

use super::{Node, TensorInfo, Values};

/// Nodes of one stage that are connected and were placed on the backend.
pub struct Subgraph<'a> {
    pub tensors: Vec<SubgraphTensor<'a>>,
    /// In an order in which every tensor is written before it is read.
    pub steps: Vec<SubgraphStep<'a>>,
}

/// A tensor of a [`Subgraph`].
pub struct SubgraphTensor<'a> {
    pub info: TensorInfo<'a>,
    /// Whether something outside of the subgraph reads it: it must still be written.
    pub escapes: bool,
}

/// A node of a [`Subgraph`], with the tensors of the subgraph that it reads and writes.
pub struct SubgraphStep<'a> {
    pub node: Node<'a>,
    /// `None` for an input that is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
}

/// What a backend does to a [`Subgraph`].
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Gives a step back: another backend gets it.
    GiveBack { step: usize, reason: String },
    /// Has one node take the place of steps.
    Replace { steps: Vec<usize>, with: NewNode },
}

/// A node of one of the backend's own operators, on tensors of a [`Subgraph`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewNode {
    pub name: String,
    pub domain: String,
    pub op: String,
    pub attributes: Vec<(String, NewValues)>,
    /// `None` for an input that is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
}

/// The values of an attribute of a [`NewNode`]; a single one is a list of one.
#[derive(Clone, Debug, PartialEq)]
pub enum NewValues {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
    Bytes(Vec<u8>),
    Tensor(NewTensor),
}

/// A tensor of an attribute. Importers give some; a [`NewNode`] of a rewrite has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTensor {
    /// A number of ONNX's `TensorProto.DataType`.
    pub dtype: i32,
    pub shape: Vec<i64>,
    /// Row-major, the low byte first.
    pub data: Vec<u8>,
}

impl NewValues {
    /// The values of a node's attribute, for a new node; `None` for those that this crate does not read.
    pub fn of(values: &Values) -> Option<NewValues> {
        match values {
            Values::Ints(list) => Some(NewValues::Ints(list.to_vec())),
            Values::Floats(list) => Some(NewValues::Floats(list.to_vec())),
            Values::Texts(list) => Some(NewValues::Texts(
                list.iter().map(ToString::to_string).collect(),
            )),
            Values::Bytes(list) => Some(NewValues::Bytes(list.to_vec())),
            Values::Other => None,
        }
    }
}
