//! From `ModelProto` to a graph.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::Fact;

use super::builder::NodeBuilder;
use super::ops::{self, custom};
use super::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetId, TypeProto, invalid,
};
use super::scope::{Binding, Frame, Scope, fact};
use super::tensor::Tensors;
use crate::build::{RANK_HINT, Refusals, reason, shortened, unify, unknown_operator};
use kilim_core::Limits;

use crate::ModelFile;
use crate::source::NODES_PER_CHECK;

/// What is being imported, and what could not be.
pub struct Import<'a> {
    pub scope: Scope<'a>,
    limits: &'a Limits,
    functions: HashMap<(&'a str, &'a str, &'a str), &'a FunctionProto<'a>>,
    refused: Refusals,
    /// Nodes read so far, functions written out.
    nodes: usize,
    /// Names that these nodes and the graphs and functions around them have, functions written out.
    names: usize,
}

/// Names that a model may have for each of the nodes that the limits allow, functions written out.
const NAMES_PER_NODE: usize = 8;

/// Elements of sequences that may be copied: each change of one that is followed makes another list.
const MAX_COPIED: usize = 1 << 24;

/// The body of a control-flow operator, and the values around it that it uses: its last inputs.
pub struct Body {
    pub graph: Graph,
    pub captures: Vec<ValueId>,
}

/// The domain of the standard operators has two names.
pub fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

/// The version of each domain; the standard one has the empty name.
pub fn opsets<'a>(imports: &[OperatorSetId<'a>]) -> Rc<HashMap<&'a str, i64>> {
    Rc::new(
        imports
            .iter()
            .map(|o| (domain(o.domain), o.version))
            .collect(),
    )
}

/// Brings a model into a graph.
pub fn model<'a>(
    model: &'a ModelProto<'a>,
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
) -> Result<Graph> {
    let graph = model
        .graph
        .as_ref()
        .ok_or_else(|| invalid("the model has no graph"))?;
    // Callers find outputs by their names; those of bodies have places alone.
    distinct("output", graph.outputs.iter().map(|o| o.name))?;
    // Files of before version 3 of the format have none.
    if model.ir_version >= 3 && model.opset_import.is_empty() {
        return Err(invalid(
            "the model does not say which operator sets it uses",
        ));
    }
    let functions = model
        .functions
        .iter()
        .map(|f| ((domain(f.domain), f.name, f.overload), f));
    let mut importer = Import {
        scope: Scope {
            frames: Vec::new(),
            graphs: Vec::new(),
            tensors: Tensors { source, limits },
            copied: 0,
        },
        limits,
        functions: functions.collect(),
        refused: Refusals::default(),
        nodes: 0,
        names: 0,
    };
    let setting = Frame {
        opsets: opsets(&model.opset_import),
        ..Frame::default()
    };
    let mut built = importer.graph(graph, setting, false, &[])?;
    importer.refused.check()?;
    built.graph.metadata = Arc::new(model.metadata.clone());
    Ok(built.graph)
}

impl<'a> Import<'a> {
    /// Reads a graph, which may be `conditional`: it may never run. Of the inputs that the file does not describe, `inputs` says
    /// what is known.
    fn graph(
        &mut self,
        proto: &'a GraphProto<'a>,
        setting: Frame<'a>,
        conditional: bool,
        inputs: &[Fact],
    ) -> Result<Body> {
        self.check_depth()?;
        self.spend_on(proto)?;
        let graph = self.scope.begin(setting.parent, proto.name, conditional);
        let frame = self.scope.frames.len();
        self.scope.frames.push(Frame {
            graph,
            declared: declared(proto),
            written: written(&proto.nodes),
            ..setting
        });
        for (name, tensor) in Binding::initializers(proto)? {
            self.scope.bind(frame, name, tensor);
        }
        distinct("input", proto.inputs.iter().map(|i| i.name))?;
        for (i, input) in proto.inputs.iter().enumerate() {
            if self.scope.binding(frame, input.name).is_some() {
                continue;
            }
            let known = input.kind.as_ref().map_or(Ok(Fact::default()), fact);
            let declared = match known {
                Err(error) if error.code() == ErrorCode::Unsupported => {
                    self.refused
                        .add(format!("an input that is {}", reason(&error)), input.name);
                    Fact::default()
                }
                known => known.map_err(|error| error.with_input(input.name))?,
            };
            let given = inputs.get(i).cloned().unwrap_or_default();
            let fact = unify(declared, given);
            let value = self.scope.graph(frame).add_input(input.name, fact)?;
            self.scope.bind(frame, input.name, Binding::Value(value));
        }
        self.nodes(frame, &proto.nodes)?;
        for output in &proto.outputs {
            let value = match self.scope.optional(frame, output.name) {
                Ok(Some(value)) => value,
                Ok(None) => return Err(invalid("an output of the graph has no name")),
                Err(e) if e.code() == ErrorCode::Unsupported => {
                    self.refused
                        .add(format!("an output that is {}", reason(&e)), output.name);
                    let graph = self.scope.graph(frame);
                    graph.add_value(output.name, Fact::default())
                }
                Err(e) => return Err(e),
            };
            self.scope.graph(frame).add_output(output.name, value)?;
        }
        let (mut graph, captures) = self.scope.close()?;
        if self.refused.is_empty() {
            graph.sort()?;
        }
        Ok(Body { graph, captures })
    }

    /// The body of a control-flow node that stands in `frame`.
    pub fn body(
        &mut self,
        frame: usize,
        proto: &'a GraphProto<'a>,
        inputs: &[Fact],
        conditional: bool,
    ) -> Result<Body> {
        let setting = self.scope.inside(frame);
        self.graph(proto, setting, conditional, inputs)
    }

    /// Writes a body out into the graph of `frame`, where it runs once whatever happens.
    pub fn inline_body(
        &mut self,
        frame: usize,
        proto: &'a GraphProto<'a>,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        self.check_depth()?;
        if inputs.len() != proto.inputs.len() {
            return Err(invalid("a body has a wrong number of inputs"));
        }
        self.spend_on(proto)?;
        distinct("input", proto.inputs.iter().map(|i| i.name))?;
        let inner = self.scope.frames.len();
        let formals = proto.inputs.iter().zip(inputs);
        let mut bindings: HashMap<_, _> = formals
            .map(|(formal, &v)| (formal.name, Binding::Value(v)))
            .collect();
        bindings.extend(Binding::initializers(proto)?);
        let setting = self.scope.inside(frame);
        self.scope.frames.push(Frame {
            bindings,
            declared: declared(proto),
            written: written(&proto.nodes),
            ..setting
        });
        self.nodes(inner, &proto.nodes)?;
        let mut outputs = Vec::new();
        for output in &proto.outputs {
            let value = self.scope.optional(inner, output.name)?;
            outputs.push(value.ok_or_else(|| invalid("an output of a body has no name"))?);
        }
        self.scope.frames.pop();
        Ok(outputs)
    }

    /// `Limit` where subgraphs or functions are nested too deeply.
    pub fn check_depth(&self) -> Result<()> {
        if self.scope.frames.len() >= self.limits.depth {
            return Err(Limits::exceeded(
                "depth",
                "the model has too many graphs in each other",
                self.limits.depth,
                self.scope.frames.len() + 1,
            ));
        }
        Ok(())
    }

    /// Counts names; `Limit` where a model that is small as a file has too many of them.
    pub fn spend(&mut self, names: usize) -> Result<()> {
        self.names = self.names.saturating_add(names);
        let most = self.limits.nodes.saturating_mul(NAMES_PER_NODE);
        match self.names > most {
            true => Err(Limits::exceeded(
                "nodes",
                "the nodes of the model have too many names",
                most,
                self.names,
            )),
            false => Ok(()),
        }
    }

    fn spend_on(&mut self, proto: &GraphProto) -> Result<()> {
        let ports = proto.inputs.len() + proto.outputs.len() + proto.value_info.len();
        self.spend(ports + proto.initializers.len() + proto.sparse_initializers.len())
    }

    /// Brings nodes into the graph of a frame; `Limit` where the model has too many.
    pub fn nodes(&mut self, frame: usize, nodes: &'a [NodeProto<'a>]) -> Result<()> {
        for node in nodes {
            self.nodes += 1;
            self.limits.check_nodes(self.nodes)?;
            if self.nodes.is_multiple_of(NODES_PER_CHECK) {
                self.scope.tensors.source.interrupt.check()?;
            }
            self.spend(node.inputs.len() + node.outputs.len() + node.attributes.len())?;
            if self.scope.copied > MAX_COPIED {
                let message = "the model changes too long sequences too often";
                return Err(Error::new(ErrorCode::Limit, message)
                    .with_expected(format!("at most {MAX_COPIED} elements of sequences copied")));
            }
            self.node(frame, node)?;
        }
        Ok(())
    }

    fn node(&mut self, frame: usize, node: &'a NodeProto<'a>) -> Result<()> {
        let around = &self.scope.frames[frame];
        let label = [node.name, node.outputs.first().unwrap_or(&""), node.op_type]
            .into_iter()
            .find(|n| !n.is_empty())
            .unwrap_or_default();
        let name = shortened(&format!("{}{label}", around.prefix));
        let space = domain(node.domain);
        let version = around.opsets.get(space).copied().unwrap_or(1);
        let mut attributes = Vec::with_capacity(node.attributes.len());
        for a in &node.attributes {
            if attributes.iter().any(|(known, _)| *known == a.name) {
                let message = format!("the attribute `{}` stands twice", a.name);
                return Err(invalid(message).with_node(&name));
            }
            if a.ref_attr_name.is_empty() {
                attributes.push((a.name, a));
            } else if let Some(given) = around.attributes.get(a.ref_attr_name) {
                attributes.push((a.name, *given));
            }
        }
        let function = self
            .functions
            .get(&(space, node.op_type, node.overload))
            .copied();
        let outside = self.scope.graph(frame).enter(&name);
        let source = self.scope.tensors.source;
        let result = if let Some(operator) = source.operators.get(space, node.op_type) {
            let mut builder = NodeBuilder::new(self, frame, node, attributes, version);
            custom::map(operator, &mut builder).and_then(|()| builder.finish())
        } else if let Some(function) = function {
            self.inline(frame, node, function, attributes)
        } else if let Some(map) = ops::find(space, node.op_type) {
            let mut builder = NodeBuilder::new(self, frame, node, attributes, version);
            map(&mut builder).and_then(|()| builder.finish())
        } else {
            Err(unknown_operator())
        };
        self.scope.graph(frame).leave(outside);
        match result {
            Err(error) if error.code() == ErrorCode::Unsupported => {
                // What follows from an operator that was refused is not worth telling.
                let follows = error.hint() == Some(RANK_HINT) && !self.refused.is_empty();
                if !follows {
                    let space = if space.is_empty() { "ai.onnx" } else { space };
                    let operator = format!("{space}::{} (opset {version})", node.op_type);
                    self.refused.add_operator(&operator, &name, &error);
                }
                self.stand_in(frame, node);
                Ok(())
            }
            other => other.map_err(|e| e.at(&name, node.op_type)),
        }
    }

    /// Gives the outputs of a refused node values, so that the nodes after it can be looked at.
    fn stand_in(&mut self, frame: usize, node: &'a NodeProto<'a>) {
        for &output in node.outputs.iter().filter(|o| !o.is_empty()) {
            let bound = self.scope.binding(frame, output);
            if matches!(bound, None | Some(Binding::Tensor(_) | Binding::Sparse(_))) {
                let fact = self.scope.declared(frame, output);
                let value = self.scope.graph(frame).add_value(output, fact);
                self.scope.bind(frame, output, Binding::Value(value));
            }
        }
    }
}

/// `InvalidModel` where a name that values are found by stands twice in a list of ports.
pub fn distinct<'a>(port: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut known = HashSet::new();
    let mut named = names.filter(|name| !name.is_empty());
    match named.find(|name| !known.insert(*name)) {
        Some(name) => Err(invalid(format!("the {port} `{name}` stands twice"))),
        None => Ok(()),
    }
}

/// The types that a graph declares.
fn declared<'a>(proto: &'a GraphProto<'a>) -> HashMap<&'a str, &'a TypeProto<'a>> {
    let infos = proto.value_info.iter().chain(&proto.outputs);
    infos
        .chain(&proto.inputs)
        .filter_map(|info| Some((info.name, info.kind.as_ref()?)))
        .collect()
}

/// The names that nodes write.
pub fn written<'a>(nodes: &[NodeProto<'a>]) -> HashSet<&'a str> {
    let outputs = nodes.iter().flat_map(|n| n.outputs.iter().copied());
    outputs.filter(|o| !o.is_empty()).collect()
}
