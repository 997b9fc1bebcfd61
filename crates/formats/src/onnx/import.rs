//! From `ModelProto` to a graph.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, Node, ValueId};
use kilim_core::ops::{Fact, InferContext, InputFact, Operator, Unary, UnaryKind};

use super::builder::{NodeBuilder, RANK_HINT};
use super::ops::{OpTable, custom};
use super::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetId, TypeProto, invalid,
};
use super::scope::{Binding, Frame, Scope, fact, unify};
use super::tensor::Tensors;
use crate::{Limits, ModelSource};

/// What is being imported, and what could not be.
pub struct Importer<'a> {
    pub scope: Scope<'a>,
    table: OpTable,
    limits: &'a Limits,
    functions: HashMap<(&'a str, &'a str, &'a str), &'a FunctionProto<'a>>,
    refused: Vec<Refusal>,
    /// Nodes read so far, functions written out.
    nodes: usize,
}

/// Something that Kilim cannot run, with the nodes where it stands.
struct Refusal {
    what: String,
    nodes: Vec<String>,
}

/// The body of a control-flow operator, and the values around it that it uses: its last inputs.
pub struct Body {
    pub graph: Graph,
    pub captures: Vec<ValueId>,
}

/// The domain of the standard operators has two names.
pub fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

fn opsets<'a>(imports: &[OperatorSetId<'a>]) -> Rc<HashMap<&'a str, i64>> {
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
    source: &'a ModelSource<'a>,
    limits: &'a Limits,
) -> Result<Graph> {
    let graph = model
        .graph
        .as_ref()
        .ok_or_else(|| invalid("the model has no graph"))?;
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
    let mut importer = Importer {
        scope: Scope {
            frames: Vec::new(),
            graphs: Vec::new(),
            tensors: Tensors { source, limits },
        },
        table: OpTable::standard(),
        limits,
        functions: functions.collect(),
        refused: Vec::new(),
        nodes: 0,
    };
    let setting = Frame {
        opsets: opsets(&model.opset_import),
        ..Frame::default()
    };
    let built = importer.graph(graph, setting, &[])?;
    importer.refusals()?;
    Ok(built.graph)
}

impl<'a> Importer<'a> {
    /// Reads a graph. Of the inputs that the file does not describe, `inputs` says what is known.
    fn graph(
        &mut self,
        proto: &'a GraphProto<'a>,
        setting: Frame<'a>,
        inputs: &[Fact],
    ) -> Result<Body> {
        self.check_depth()?;
        self.scope.graphs.push(Graph::new(proto.name));
        let frame = self.scope.frames.len();
        self.scope.frames.push(Frame {
            graph: self.scope.graphs.len() - 1,
            declared: declared(proto),
            written: written(&proto.nodes),
            ..setting
        });
        for t in &proto.initializers {
            self.scope.bind(frame, t.name, Binding::Tensor(t));
        }
        for t in &proto.sparse_initializers {
            self.scope.bind(frame, t.values.name, Binding::Sparse(t));
        }
        let mut formals = HashSet::new();
        for (i, input) in proto.inputs.iter().enumerate() {
            if !formals.insert(input.name) {
                return Err(invalid(format!("the input `{}` stands twice", input.name)));
            }
            if self.scope.binding(frame, input.name).is_some() {
                continue;
            }
            let known = input.kind.as_ref().map_or(Ok(Fact::default()), fact);
            let declared = known.unwrap_or_else(|error| {
                self.refuse(format!("an input that is {}", of(&error)), input.name);
                Fact::default()
            });
            let given = inputs.get(i).cloned().unwrap_or_default();
            let fact = unify(declared, given);
            let value = self.scope.graph(frame).add_input(input.name, fact);
            self.scope.bind(frame, input.name, Binding::Value(value));
        }
        self.nodes(frame, &proto.nodes)?;
        for output in &proto.outputs {
            match self.scope.optional(frame, output.name) {
                Ok(Some(value)) => self.scope.graph(frame).outputs.push(value),
                Ok(None) => return Err(invalid("an output of the graph has no name")),
                Err(e) if e.code() == ErrorCode::Unsupported => {
                    self.refuse(format!("an output that is {}", of(&e)), output.name);
                    let graph = self.scope.graph(frame);
                    let stand_in = graph.add_value(output.name, Fact::default());
                    graph.outputs.push(stand_in);
                }
                Err(e) => return Err(e),
            }
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
        node: &str,
        proto: &'a GraphProto<'a>,
        inputs: &[Fact],
        conditional: bool,
    ) -> Result<Body> {
        let setting = self.scope.inside(frame, node, conditional);
        self.graph(proto, setting, inputs)
    }

    /// Writes a body out into the graph of `frame`, where it runs once whatever happens.
    pub fn inline_body(
        &mut self,
        frame: usize,
        node: &str,
        proto: &'a GraphProto<'a>,
        inputs: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        self.check_depth()?;
        if inputs.len() != proto.inputs.len() {
            return Err(invalid("a body has a wrong number of inputs"));
        }
        let inner = self.scope.frames.len();
        let formals = proto.inputs.iter().zip(inputs);
        let mut bindings: HashMap<_, _> = formals
            .map(|(formal, &v)| (formal.name, Binding::Value(v)))
            .collect();
        for t in &proto.initializers {
            bindings.insert(t.name, Binding::Tensor(t));
        }
        let setting = self.scope.inside(frame, node, false);
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

    fn check_depth(&self) -> Result<()> {
        if self.scope.frames.len() >= self.limits.depth {
            return Err(Error::new(
                ErrorCode::Limit,
                format!("more than {} graphs in each other", self.limits.depth),
            ));
        }
        Ok(())
    }

    fn nodes(&mut self, frame: usize, nodes: &'a [NodeProto<'a>]) -> Result<()> {
        for node in nodes {
            self.nodes += 1;
            if self.nodes > self.limits.nodes {
                return Err(Error::new(
                    ErrorCode::Limit,
                    format!("the model has more than {} nodes", self.limits.nodes),
                ));
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
        let name = format!("{}{label}", around.prefix);
        let space = domain(node.domain);
        let version = around.opsets.get(space).copied().unwrap_or(1);
        let mut attributes = Vec::with_capacity(node.attributes.len());
        for a in &node.attributes {
            if a.ref_attr_name.is_empty() {
                attributes.push((a.name, a));
            } else if let Some(given) =
                (around.attributes.iter()).find(|(n, _)| *n == a.ref_attr_name)
            {
                attributes.push((a.name, given.1));
            }
        }
        let function = self.functions.get(&(space, node.op_type, node.overload));
        let source = self.scope.tensors.source;
        let result = if let Some(operator) = source.operators.get(space, node.op_type) {
            let mut builder = NodeBuilder::new(self, frame, node, attributes, version, &name);
            custom::map(operator, &mut builder).and_then(|()| builder.finish())
        } else if let Some(function) = function.copied() {
            self.inline(frame, node, function, attributes, &name)
        } else if let Some(map) = self.table.get(space, node.op_type) {
            let mut builder = NodeBuilder::new(self, frame, node, attributes, version, &name);
            map(&mut builder).and_then(|()| builder.finish())
        } else {
            Err(unsupported("unknown operator"))
        };
        match result {
            Err(error) if error.code() == ErrorCode::Unsupported => {
                // What follows from an operator that was refused is not worth telling.
                let follows = error.hint() == Some(RANK_HINT) && !self.refused.is_empty();
                if !follows {
                    let space = if space.is_empty() { "ai.onnx" } else { space };
                    let what = format!(
                        "{space}::{} (opset {version}): {}",
                        node.op_type,
                        of(&error)
                    );
                    self.refuse(what, &name);
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

    fn refuse(&mut self, what: String, node: &str) {
        match self.refused.iter_mut().find(|r| r.what == what) {
            Some(refusal) => refusal.nodes.push(node.to_string()),
            None => self.refused.push(Refusal {
                what,
                nodes: vec![node.to_string()],
            }),
        }
    }

    /// One error for everything that was refused.
    fn refusals(&self) -> Result<()> {
        if self.refused.is_empty() {
            return Ok(());
        }
        let mut message = String::from("the model needs what Kilim does not have");
        for (i, refusal) in self.refused.iter().enumerate() {
            let lead = if i == 0 { ':' } else { ';' };
            let (shown, more) = refusal.nodes.split_at(refusal.nodes.len().min(8));
            let shown = shown.join("`, `");
            // Writing to a string cannot fail.
            let _ = write!(message, "{lead} {} at `{shown}`", refusal.what);
            if !more.is_empty() {
                let _ = write!(message, " and {} more", more.len());
            }
        }
        Err(unsupported(message))
    }

    /// Writes a function of the model out into the graph of `frame`.
    fn inline(
        &mut self,
        frame: usize,
        node: &'a NodeProto<'a>,
        function: &'a FunctionProto<'a>,
        mut attributes: Vec<(&'a str, &'a super::proto::AttributeProto<'a>)>,
        name: &str,
    ) -> Result<()> {
        self.check_depth()?;
        for default in &function.attribute_protos {
            if !attributes.iter().any(|(n, _)| *n == default.name) {
                attributes.push((default.name, default));
            }
        }
        if node.inputs.len() > function.inputs.len() || node.outputs.len() > function.outputs.len()
        {
            return Err(invalid(format!(
                "the function `{}` has {} inputs and {} outputs",
                function.name,
                function.inputs.len(),
                function.outputs.len()
            )));
        }
        let mut bindings = HashMap::new();
        for (i, &formal) in function.inputs.iter().enumerate() {
            let actual = node.inputs.get(i).copied().unwrap_or("");
            let binding = match self.scope.sequence(frame, actual) {
                Some(values) => Binding::Sequence(values),
                None => match self.scope.optional(frame, actual)? {
                    Some(value) => Binding::Value(value),
                    None => Binding::Absent,
                },
            };
            bindings.insert(formal, binding);
        }
        let infos = function.value_info.iter();
        let inner = self.scope.frames.len();
        let Frame {
            graph, conditional, ..
        } = self.scope.frames[frame];
        self.scope.frames.push(Frame {
            graph,
            parent: None,
            conditional,
            bindings,
            declared: infos
                .filter_map(|i| Some((i.name, i.kind.as_ref()?)))
                .collect(),
            written: written(&function.nodes),
            opsets: opsets(&function.opset_import),
            attributes: Rc::new(attributes),
            prefix: format!("{name}/"),
            captures: Vec::new(),
        });
        let mark = self.scope.graphs[graph].nodes.len();
        self.nodes(inner, &function.nodes)?;
        let mut results = Vec::new();
        for (&formal, &actual) in function.outputs.iter().zip(&node.outputs) {
            if actual.is_empty() {
                continue;
            }
            if let Some(values) = self.scope.sequence(inner, formal) {
                results.push((actual, Binding::Sequence(values)));
            } else if let Some(value) = self.scope.optional(inner, formal)? {
                results.push((actual, Binding::Value(value)));
            }
        }
        self.scope.frames.pop();
        for (actual, binding) in results {
            match binding {
                Binding::Value(value) => self.bind(frame, actual, value, mark, node, name)?,
                other => self.scope.bind(frame, actual, other),
            }
        }
        Ok(())
    }

    /// Gives `value` the name `name`. A value that is not written by the nodes from `mark` on, or
    /// has been given a name since, is passed through Identity: outputs are found by their names.
    pub fn bind(
        &mut self,
        frame: usize,
        name: &'a str,
        value: ValueId,
        mark: usize,
        node: &NodeProto<'a>,
        label: &str,
    ) -> Result<()> {
        let target = match self.scope.binding(frame, name) {
            Some(Binding::Forward(target)) => Some(*target),
            None => None,
            Some(_) => {
                return Err(Error::new(
                    ErrorCode::InvalidGraph,
                    format!("the value `{name}` is written twice"),
                ));
            }
        };
        let bindings = node
            .outputs
            .iter()
            .filter_map(|o| self.scope.binding(frame, o));
        let taken = bindings
            .into_iter()
            .any(|b| matches!(b, Binding::Value(v) if *v == value));
        let graph = self.scope.graph(frame);
        let fresh = graph.nodes[mark..]
            .iter()
            .any(|n| n.outputs.contains(&value));
        let value = match target {
            Some(target) => {
                let fact = graph.value(value).fact.clone();
                graph.value_mut(target).fact = fact;
                graph.push(label, Unary(UnaryKind::Identity), &[Some(value)], &[target]);
                target
            }
            None if fresh && !taken => {
                graph.value_mut(value).name = name.to_string();
                value
            }
            None => {
                let fact = graph.value(value).fact.clone();
                let renamed = graph.add_value(name, fact);
                graph.push(
                    label,
                    Unary(UnaryKind::Identity),
                    &[Some(value)],
                    &[renamed],
                );
                renamed
            }
        };
        let declared = self.scope.declared(frame, name);
        let known = &mut self.scope.graph(frame).value_mut(value).fact;
        *known = unify(std::mem::take(known), declared);
        self.scope.bind(frame, name, Binding::Value(value));
        Ok(())
    }

    /// Adds a node with new outputs to the graph of `frame`, and infers what they are.
    pub fn push(
        &mut self,
        frame: usize,
        name: &str,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let conditional = self.scope.frames[frame].conditional;
        let graph = self.scope.graph(frame);
        let present = inputs
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |i| i + 1);
        let inputs = &inputs[..present];
        let known: Vec<_> = inputs
            .iter()
            .map(|v| {
                v.map(|v| InputFact {
                    fact: graph.value(v).fact.clone(),
                    value: graph.value(v).constant.clone(),
                })
            })
            .collect();
        let inferred = op.infer(&InferContext {
            inputs: &known,
            outputs,
        });
        let mut facts = match inferred {
            Err(_) if conditional => Vec::new(),
            inferred => inferred?,
        }
        .into_iter();
        let values: Vec<_> = (0..outputs)
            .map(|i| graph.add_value(format!("{name}:{i}"), facts.next().unwrap_or_default()))
            .collect();
        graph.nodes.push(Node {
            name: name.to_string(),
            op,
            inputs: inputs.to_vec(),
            outputs: values.clone(),
        });
        Ok(values)
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

fn written<'a>(nodes: &[NodeProto<'a>]) -> HashSet<&'a str> {
    let outputs = nodes.iter().flat_map(|n| n.outputs.iter().copied());
    outputs.filter(|o| !o.is_empty()).collect()
}

/// The reason of a refusal with the value it is about.
fn of(error: &Error) -> String {
    match error.input() {
        Some(input) => format!("{} in `{input}`", error.message()),
        None => error.message().to_string(),
    }
}
