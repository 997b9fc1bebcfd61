//! What names mean while a graph is built: one frame for the model's graph and for each subgraph
//! and function that is being read.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::datum::{Form, Kind};
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Fact, SequenceConstruct, check_rank};

use super::proto::{
    AttributeProto, GraphProto, Holder, SparseTensorProto, TensorProto, TypeProto, invalid,
};
use super::tensor::{Tensors, dtype};
use crate::build::GraphBuilder;

/// What a name stands for.
#[derive(Clone)]
pub enum Binding<'a> {
    Value(ValueId),
    /// An initializer that no node has used yet.
    Tensor(&'a TensorProto<'a>),
    Sparse(&'a SparseTensorProto<'a>),
    /// Used before the node that writes it.
    Forward(ValueId),
    /// A sequence of tensors that is followed while the graph is built.
    Sequence(Rc<Vec<ValueId>>),
    /// An input of a function that the caller leaves out.
    Absent,
}

impl<'a> Binding<'a> {
    /// The initialisers of a graph by their names. Exporters write those that several nodes share twice.
    ///
    /// # Errors
    /// `InvalidModel` where two of one name differ.
    pub fn initializers(proto: &'a GraphProto<'a>) -> Result<HashMap<&'a str, Binding<'a>>> {
        let dense = proto.initializers.iter();
        let dense = dense.map(|t| (t.name, Binding::Tensor(t)));
        let sparse = proto.sparse_initializers.iter();
        let sparse = sparse.map(|t| (t.values.name, Binding::Sparse(t)));
        let mut all = HashMap::new();
        for (name, tensor) in dense.chain(sparse) {
            let same = match (&tensor, all.get(name)) {
                (_, None) => true,
                // Nothing refers to those without a name.
                _ if name.is_empty() => true,
                (Binding::Tensor(new), Some(Binding::Tensor(old))) => new == old,
                (Binding::Sparse(new), Some(Binding::Sparse(old))) => new == old,
                _ => false,
            };
            if !same {
                let message = format!("two different initialisers are called `{name}`");
                return Err(invalid(message).with_input(name));
            }
            all.insert(name, tensor);
        }
        Ok(all)
    }
}

pub type Attributes<'a> = Rc<HashMap<&'a str, &'a AttributeProto<'a>>>;

/// The names of one graph or function.
#[derive(Default)]
pub struct Frame<'a> {
    /// The graph that nodes are added to, see [`Scope::graphs`].
    pub graph: usize,
    /// The frame around a subgraph, whose names it sees. Functions see none.
    pub parent: Option<usize>,
    pub bindings: HashMap<&'a str, Binding<'a>>,
    pub declared: HashMap<&'a str, &'a TypeProto<'a>>,
    /// What the nodes of the frame write.
    pub written: HashSet<&'a str>,
    /// Versions of the operator sets by domain.
    pub opsets: Rc<HashMap<&'a str, i64>>,
    /// What attribute references of a function stand for.
    pub attributes: Attributes<'a>,
    /// Begins the names of the frame's nodes.
    pub prefix: String,
    pub captures: Captures,
}

/// Values of the graph around that a body uses.
#[derive(Default)]
pub struct Captures {
    /// In the order of the inputs that stand for them in the body.
    outer: Vec<ValueId>,
    /// The input that stands for each.
    inner: HashMap<ValueId, ValueId>,
}

/// The frames and graphs that are open, innermost last.
pub struct Scope<'a> {
    pub frames: Vec<Frame<'a>>,
    pub graphs: Vec<GraphBuilder>,
    pub tensors: Tensors<'a>,
    /// Elements of sequences that were copied.
    pub copied: usize,
}

impl<'a> Scope<'a> {
    /// The graph that a frame builds, to be changed.
    pub fn graph(&mut self, frame: usize) -> &mut GraphBuilder {
        &mut self.graphs[self.frames[frame].graph]
    }

    /// The graph that a frame builds.
    pub fn open_graph(&self, frame: usize) -> &GraphBuilder {
        &self.graphs[self.frames[frame].graph]
    }

    /// Begins a graph inside that of `frame`, whose nodes may never run where those around it or it may not.
    pub fn begin(&mut self, around: Option<usize>, name: &str, conditional: bool) -> usize {
        let around = around.is_some_and(|frame| self.open_graph(frame).is_conditional());
        let interrupt = &self.tensors.source.interrupt;
        let graph = GraphBuilder::new(name, conditional || around, interrupt);
        self.graphs.push(graph);
        self.graphs.len() - 1
    }

    /// What a name means in a frame itself, not in those around it.
    pub fn binding(&self, frame: usize, name: &str) -> Option<&Binding<'a>> {
        self.frames[frame].bindings.get(name)
    }

    /// Gives a name its meaning in a frame.
    pub fn bind(&mut self, frame: usize, name: &'a str, binding: Binding<'a>) {
        self.frames[frame].bindings.insert(name, binding);
    }

    /// A frame for a body of the node that `frame` brings in, without the body's own names.
    pub fn inside(&self, frame: usize) -> Frame<'a> {
        let around = &self.frames[frame];
        Frame {
            graph: around.graph,
            parent: Some(frame),
            opsets: around.opsets.clone(),
            attributes: around.attributes.clone(),
            prefix: format!("{}/", self.open_graph(frame).node_name()),
            ..Frame::default()
        }
    }

    /// Begins a body that no file has, and that may never run.
    pub fn open(&mut self, around: usize) -> usize {
        let node = self.open_graph(around).node_name().to_string();
        let setting = self.inside(around);
        let graph = self.begin(Some(around), &node, true);
        self.graphs[graph].enter(&node);
        self.frames.push(Frame { graph, ..setting });
        self.frames.len() - 1
    }

    /// Ends the innermost graph: with it, the values around it that it captures.
    pub fn close(&mut self) -> Result<(Graph, Vec<ValueId>)> {
        let (Some(frame), Some(graph)) = (self.frames.pop(), self.graphs.pop()) else {
            return Err(Error::new(ErrorCode::State, "the importer lost its graph"));
        };
        Ok((graph.into_graph(), frame.captures.outer))
    }

    /// The value `name` stands for, or `None` where it is left out.
    pub fn optional(&mut self, frame: usize, name: &'a str) -> Result<Option<ValueId>> {
        if name.is_empty() {
            return Ok(None);
        }
        let value = match self.binding(frame, name).cloned() {
            Some(Binding::Absent) => return Ok(None),
            Some(Binding::Value(v) | Binding::Forward(v)) => return Ok(Some(v)),
            Some(Binding::Sequence(values)) => {
                return self.construct(frame, name, &values).map(Some);
            }
            Some(Binding::Tensor(t)) => {
                let tensor = self.tensors.read(t)?;
                self.graph(frame).add_constant(name, tensor)
            }
            Some(Binding::Sparse(t)) => {
                let tensor = self.tensors.read_sparse(t)?;
                self.graph(frame).add_constant(name, tensor)
            }
            None if self.frames[frame].written.contains(name) => {
                let fact = self.declared(frame, name);
                let value = self.graph(frame).add_value(name, fact);
                self.bind(frame, name, Binding::Forward(value));
                return Ok(Some(value));
            }
            None => match self.frames[frame].parent {
                Some(parent) => {
                    if let Some(values) = self.sequence(frame, name) {
                        return self.construct(frame, name, &values).map(Some);
                    }
                    match self.optional(parent, name)? {
                        Some(outer) => self.capture(frame, parent, outer),
                        None => return Ok(None),
                    }
                }
                None => {
                    return Err(Error::new(
                        ErrorCode::InvalidGraph,
                        format!("nothing produces the value `{name}`"),
                    ));
                }
            },
        };
        self.bind(frame, name, Binding::Value(value));
        Ok(Some(value))
    }

    /// Gives `name`, which a node writes, the meaning `value`.
    ///
    /// # Errors
    /// `InvalidGraph` where another node has written it.
    pub fn write(&mut self, frame: usize, name: &'a str, value: ValueId) -> Result<()> {
        let target = match self.binding(frame, name) {
            Some(Binding::Forward(target)) => Some(*target),
            None => None,
            Some(_) => {
                return Err(Error::new(
                    ErrorCode::InvalidGraph,
                    format!("the value `{name}` is written twice"),
                ));
            }
        };
        let declared = self.declared(frame, name);
        let graph = self.graph(frame);
        let value = match target {
            Some(target) => {
                graph.copy(value, target);
                target
            }
            None => graph.name(value, name),
        };
        graph.declare(value, declared);
        self.bind(frame, name, Binding::Value(value));
        Ok(())
    }

    /// Brings a value of the graph around into the graph of `frame`.
    fn capture(&mut self, frame: usize, parent: usize, outer: ValueId) -> ValueId {
        if self.frames[parent].graph == self.frames[frame].graph {
            return outer;
        }
        if let Some(&inner) = self.frames[frame].captures.inner.get(&outer) {
            return inner;
        }
        let value = self.graph(parent).graph().value(outer).clone();
        let graph = self.graph(frame).graph();
        if let Some(tensor) = value.constant {
            return graph.add_constant(value.name, tensor);
        }
        let inner = graph.add_input(value.name, value.fact);
        let captures = &mut self.frames[frame].captures;
        captures.outer.push(outer);
        captures.inner.insert(outer, inner);
        inner
    }

    /// The tensors of the sequence that `name` stands for, in this frame or around it; `None` where
    /// they are not followed.
    pub fn sequence(&mut self, frame: usize, name: &'a str) -> Option<Rc<Vec<ValueId>>> {
        match self.binding(frame, name) {
            Some(Binding::Sequence(values)) => return Some(values.clone()),
            Some(_) => return None,
            None if self.frames[frame].written.contains(name) => return None,
            None => {}
        }
        let parent = self.frames[frame].parent?;
        let outer = self.sequence(parent, name)?;
        self.copied = self.copied.saturating_add(outer.len());
        let inner = outer.iter().map(|&v| self.capture(frame, parent, v));
        let values: Rc<Vec<ValueId>> = Rc::new(inner.collect());
        self.bind(frame, name, Binding::Sequence(values.clone()));
        Some(values)
    }

    /// A copy of a sequence that is followed. A model may not copy without end: see [`Scope::copied`].
    pub fn copy_sequence(&mut self, values: &[ValueId]) -> Vec<ValueId> {
        self.copied = self.copied.saturating_add(values.len());
        values.to_vec()
    }

    /// A sequence that was followed, as a value of the graph.
    fn construct(&mut self, frame: usize, name: &str, values: &[ValueId]) -> Result<ValueId> {
        let inputs: Vec<_> = values.iter().copied().map(Some).collect();
        let graph = self.graph(frame);
        let around = graph.enter(name);
        let made = graph.push(Arc::new(SequenceConstruct), &inputs, 1);
        let value = made.map(|made| graph.name(made[0], name));
        graph.leave(around);
        value
    }

    /// What the file says of a value; nothing where it says something Kilim has no type for.
    pub fn declared(&self, frame: usize, name: &str) -> Fact {
        self.frames[frame]
            .declared
            .get(name)
            .and_then(|t| fact(t).ok())
            .unwrap_or_default()
    }
}

/// Element type and shape as a file declares them.
///
/// # Errors
/// `Unsupported` where the value is no tensor or of an element type that Kilim does not have.
pub fn fact(kind: &TypeProto) -> Result<Fact> {
    let Some(tensor) = &kind.tensor else {
        return match (&kind.holder, kind.other) {
            (Some((holder, element)), _) => held(*holder, fact(element)?),
            (None, Some(other)) => Err(unsupported(format!("a {other}"))),
            (None, None) => Ok(Fact::default()),
        };
    };
    let shape = tensor.shape.as_ref().map(|shape| {
        check_rank(shape.dims.len())?;
        let dims = shape.dims.iter().map(|d| match d.value {
            Some(..0) => Ok(Dim::Unknown),
            Some(n) => usize::try_from(n).map(Dim::Known).map_err(|_| {
                Error::new(ErrorCode::Limit, format!("the dimension {n} is too large"))
            }),
            None if d.param.is_empty() => Ok(Dim::Unknown),
            None => Ok(Dim::Symbol(d.param.into())),
        });
        Ok(Shape(dims.collect::<Result<_>>()?))
    });
    let shape = shape.transpose()?;
    let dtype = match tensor.elem_type {
        0 => None,
        n => Some(dtype(n)?),
    };
    Ok(Fact {
        dtype,
        shape,
        kind: Kind::default(),
    })
}

/// The fact of what holds elements of this fact.
fn held(holder: Holder, element: Fact) -> Result<Fact> {
    let form = match (holder, element.kind.form) {
        (Holder::Optional, form) => {
            let kind = Kind {
                form,
                optional: true,
            };
            return Ok(Fact { kind, ..element });
        }
        (Holder::Sequence, Form::Tensor) => Form::Sequence,
        (Holder::Sequence, Form::Map) => Form::MapSequence,
        (Holder::Map, Form::Tensor) => Form::Map,
        (_, form) => {
            let form = Kind::from(form);
            return Err(unsupported(format!("a sequence or map of a {form}")));
        }
    };
    if element.kind.optional {
        return Err(unsupported("a sequence or map of optional values"));
    }
    Ok(Fact {
        kind: form.into(),
        ..element
    })
}
