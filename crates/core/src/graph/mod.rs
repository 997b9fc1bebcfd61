//! The graph: values, and nodes that compute them.

mod activation;
mod bodies;
mod flow;
mod metadata;
mod names;
mod operator;
mod renumbered;
#[macro_use]
mod signature;
mod spatial;
mod spec;
mod view;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::dim::Dim;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{Fact, InputFact};
use crate::tensor::Tensor;

pub use activation::Activation;
pub use bodies::Bodies;
pub use flow::{Axes, Elements, Flow, Precision};
pub use metadata::Metadata;
pub use names::Names;
pub use operator::{InferContext, Operator};
pub use renumbered::Renumbered;
pub use signature::{Presence, Signature, Slot};
pub use spatial::Spatial;
pub use spec::{NodeSpec, Refusal};
pub use view::NodeView;

/// The index of a value in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// The index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// Something that a node reads or writes: an input of the graph, a constant, or a node's output.
#[derive(Clone, Debug, Default)]
pub struct Value {
    pub name: String,
    /// What is known of element type and shape.
    pub fact: Fact,
    /// The data of a constant.
    pub constant: Option<Tensor>,
}

/// One application of an operator.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub op: Arc<dyn Operator>,
    /// `None` where an optional input is left out; trailing ones are dropped.
    pub inputs: Vec<Option<ValueId>>,
    pub outputs: Vec<ValueId>,
}

impl Node {
    /// The inputs that are there.
    pub fn present_inputs(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.inputs.iter().copied().flatten()
    }

    /// Input `i` if it is there.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }
}

/// A graph, or the body of a control-flow operator. Bodies see nothing of the graph around them:
/// what they capture is passed to them as additional inputs.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub name: String,
    pub values: Vec<Value>,
    /// In an order in which every value is written before it is read (see [`Graph::sort`]).
    pub nodes: Vec<Node>,
    pub inputs: Vec<ValueId>,
    pub outputs: Vec<ValueId>,
    /// What a session keeps from run to run. The last inputs and the last outputs, as many as there are variables and in their
    /// order, are their values before and after a run. Bodies have none.
    pub variables: Vec<Variable>,
    /// What the file says of its model. Bodies have nothing.
    pub metadata: Arc<Metadata>,
}

/// A tensor that outlives the runs of a session.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// The value before the first run. Its element type and shape stay.
    pub initial: Tensor,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            name: name.into(),
            ..Graph::default()
        }
    }

    /// A value; panics where it is not of this graph.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// A value, to be changed; panics where it is not of this graph.
    pub fn value_mut(&mut self, id: ValueId) -> &mut Value {
        &mut self.values[id.0]
    }

    /// What is known of the inputs of a node.
    pub fn input_facts(&self, inputs: &[Option<ValueId>]) -> Vec<Option<InputFact>> {
        let known = |id: ValueId| {
            let value = self.value(id);
            InputFact {
                fact: value.fact.clone(),
                value: value.constant.clone(),
            }
        };
        inputs.iter().map(|id| id.map(known)).collect()
    }

    /// A new value that nothing produces yet.
    pub fn add_value(&mut self, name: impl Into<String>, fact: Fact) -> ValueId {
        self.values.push(Value {
            name: name.into(),
            fact,
            constant: None,
        });
        ValueId(self.values.len() - 1)
    }

    /// A new input of the graph.
    pub fn add_input(&mut self, name: impl Into<String>, fact: Fact) -> ValueId {
        let id = self.add_value(name, fact);
        self.inputs.push(id);
        id
    }

    /// A new variable: its value before a run. Inputs of runs stand before it, and [`Graph::set_variables`] gives the values
    /// after a run.
    pub fn add_variable(&mut self, name: impl Into<String>, initial: Tensor) -> ValueId {
        let name = name.into();
        let id = self.add_input(name.clone(), Fact::of(&initial));
        self.variables.push(Variable { name, initial });
        id
    }

    /// Makes `after` the values of all variables after a run. Outputs of runs stand before them.
    pub fn set_variables(&mut self, after: &[ValueId]) {
        self.outputs.extend(after);
    }

    /// The inputs that a run is given.
    pub fn given_inputs(&self) -> &[ValueId] {
        let given = self.inputs.len().saturating_sub(self.variables.len());
        &self.inputs[..given]
    }

    /// The outputs that a run gives.
    pub fn given_outputs(&self) -> &[ValueId] {
        let given = self.outputs.len().saturating_sub(self.variables.len());
        &self.outputs[..given]
    }

    /// Adds a value whose elements are known.
    pub fn add_constant(&mut self, name: impl Into<String>, tensor: Tensor) -> ValueId {
        let id = self.add_value(name, Fact::of(&tensor));
        self.values[id.0].constant = Some(tensor);
        id
    }

    /// Appends a node whose outputs are already there.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        op: impl Operator,
        inputs: &[Option<ValueId>],
        outputs: &[ValueId],
    ) -> NodeId {
        self.push_shared(name.into(), Arc::new(op), inputs, outputs)
    }

    /// Appends a node whose outputs are already there. Not generic, so that it is compiled once and not for
    /// every operator type.
    pub fn push_shared(
        &mut self,
        name: String,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: &[ValueId],
    ) -> NodeId {
        self.nodes.push(Node {
            name,
            op,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
        });
        NodeId(self.nodes.len() - 1)
    }

    /// Appends a node with one new output, named after the node.
    pub fn apply(
        &mut self,
        name: impl Into<String>,
        op: impl Operator,
        inputs: &[ValueId],
    ) -> ValueId {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.apply_shared(name.into(), Arc::new(op), &inputs)
    }

    /// Appends a node with one new output, named after the node; `None` stands for an optional input that is
    /// left out.
    pub fn apply_shared(
        &mut self,
        name: String,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
    ) -> ValueId {
        let out = self.add_value(format!("{name}:0"), Fact::default());
        self.push_shared(name, op, inputs, &[out]);
        out
    }

    /// The node that writes each value.
    pub fn producers(&self) -> Vec<Option<NodeId>> {
        let mut producers = vec![None; self.values.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            for out in &node.outputs {
                producers[out.0] = Some(NodeId(i));
            }
        }
        producers
    }

    /// Gives symbolic dimensions of the inputs their sizes, by name.
    ///
    /// # Errors
    /// `InvalidValue` for a name that no dimension has.
    pub fn fix_dims(&mut self, sizes: &HashMap<String, usize>) -> Result<()> {
        let mut names = BTreeSet::new();
        for v in &self.inputs {
            let shape = self.values[v.0].fact.shape.as_mut();
            for d in shape.into_iter().flat_map(|s| &mut s.0) {
                if let Dim::Symbol(s) = d {
                    names.insert(s.to_string());
                    if let Some(&n) = sizes.get(s.as_ref()) {
                        *d = Dim::Known(n);
                    }
                }
            }
        }
        let unknown = sizes.keys().filter(|name| !names.contains(*name)).min();
        let Some(name) = unknown else {
            return Ok(());
        };
        let message = format!("no input has the dimension `{name}`");
        let error = Error::new(ErrorCode::InvalidValue, message);
        if names.is_empty() {
            return Err(error.with_hint("every dimension of the inputs is fixed in the model"));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Err(error.with_known(name, &names))
    }

    /// How often each value is read, by nodes and as an output of the graph.
    pub fn use_counts(&self) -> Vec<usize> {
        let mut uses = vec![0; self.values.len()];
        for node in &self.nodes {
            for v in node.present_inputs() {
                uses[v.0] += 1;
            }
        }
        for v in &self.outputs {
            uses[v.0] += 1;
        }
        uses
    }

    /// Brings the nodes into an order in which every value is written before it is read, keeping
    /// the given order where it can. `InvalidGraph` on a cycle, on a value that is written twice
    /// and on one that nothing produces.
    pub fn sort(&mut self) -> Result<()> {
        let order = self.order()?;
        let nodes = std::mem::take(&mut self.nodes);
        let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        self.nodes = order.iter().filter_map(|&i| nodes[i].take()).collect();
        Ok(())
    }

    /// The indices of the nodes in the order of [`Graph::sort`].
    fn order(&self) -> Result<Vec<usize>> {
        let mut given = vec![false; self.values.len()];
        for (given, value) in given.iter_mut().zip(&self.values) {
            *given = value.constant.is_some();
        }
        for v in &self.inputs {
            given[v.0] = true;
        }
        let writer = self.writers(&given)?;
        let wrong = |what: &str, v: ValueId| {
            let message = format!("nothing produces the {what} `{}`", self.value(v).name);
            Error::new(ErrorCode::InvalidGraph, message)
        };
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut waiting = vec![0usize; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            for v in node.present_inputs() {
                if let Some(w) = writer[v.0] {
                    readers[w].push(i);
                    waiting[i] += 1;
                } else if !given[v.0] {
                    return Err(wrong("value", v).at(&node.name, node.op.name()));
                }
            }
        }
        let missing = |v: &&ValueId| writer[v.0].is_none() && !given[v.0];
        if let Some(&v) = self.outputs.iter().find(missing) {
            return Err(wrong("output", v));
        }
        let mut ready = BTreeSet::new();
        ready.extend((0..self.nodes.len()).filter(|&i| waiting[i] == 0));
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(i) = ready.pop_first() {
            order.push(i);
            for &r in &readers[i] {
                waiting[r] -= 1;
                if waiting[r] == 0 {
                    ready.insert(r);
                }
            }
        }
        match self.nodes.iter().zip(&waiting).find(|(_, w)| **w > 0) {
            Some((node, _)) => Err(Error::new(ErrorCode::InvalidGraph, "the graph has a cycle")
                .at(&node.name, node.op.name())),
            None => Ok(order),
        }
    }

    /// The node that writes each value. `InvalidGraph` where a second one does, or where a value is
    /// `given` without one.
    fn writers(&self, given: &[bool]) -> Result<Vec<Option<usize>>> {
        let mut writer: Vec<Option<usize>> = vec![None; self.values.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            for out in &node.outputs {
                if writer[out.0].replace(i).is_some() || given[out.0] {
                    return Err(Error::new(
                        ErrorCode::InvalidGraph,
                        format!("the value `{}` is written twice", self.value(*out).name),
                    )
                    .at(&node.name, node.op.name()));
                }
            }
        }
        Ok(writer)
    }
}
