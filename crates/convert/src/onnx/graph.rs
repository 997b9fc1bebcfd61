//! A graph, or the body of a control-flow operator, as a file has it.

use kilim_core::Tensor;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, Node, ValueId};

use super::attributes::Stored;
use super::form::{MICROSOFT, ML};
use super::names::Names;
use super::node::NodeForm;
use super::tensor::{self, Place};
use super::{OnnxOptions, Weights, ops, value};
use crate::proto::{Message, stored_bytes};

/// Weights of this many bytes and more go beside the model; smaller ones, such as shapes, stay where readers need them.
const BESIDE: u64 = 1 << 10;
/// Where weights begin in a file, so that it can be mapped into memory: multiples of this many bytes.
const ALIGNMENT: u64 = 64;

/// What is known of the whole file while it is put together.
pub struct Model<'a> {
    opset: i64,
    asked: bool,
    file: Option<&'a str>,
    names: Names,
    nodes: Names,
    /// The operator set that is needed.
    pub needed: i64,
    pub microsoft: bool,
    pub ml: bool,
    /// Weights beside the model, each behind so many bytes that are empty.
    pub beside: Vec<(u64, Tensor)>,
    pub beside_bytes: u64,
    pub graph: Message,
}

impl<'a> Model<'a> {
    pub fn new(opset: i64, options: &'a OnnxOptions) -> Model<'a> {
        Model {
            opset,
            asked: options.opset.is_some(),
            file: match &options.weights {
                Weights::Beside(file) => Some(file),
                Weights::Inside | Weights::InsideOrBeside(_) => None,
            },
            names: Names::default(),
            nodes: Names::default(),
            needed: opset,
            microsoft: false,
            ml: false,
            beside: Vec::new(),
            beside_bytes: 0,
            graph: Message::default(),
        }
    }

    pub fn with_graph(mut self, graph: Message) -> Model<'a> {
        self.graph = graph;
        self
    }

    /// Notes that something is only in operator set `since` and later ones.
    fn need(&mut self, since: i64) -> Result<()> {
        if since > self.opset && self.asked {
            return Err(
                unsupported(format!("operator set {} cannot say this", self.opset))
                    .with_expected(format!("operator set {since}")),
            );
        }
        self.needed = self.needed.max(since);
        Ok(())
    }

    fn initializer(&mut self, name: &str, tensor: &Tensor) -> Result<Message> {
        self.need(tensor::needed(tensor.dtype()))?;
        let bytes = stored_bytes(tensor)?;
        let Some(file) = self
            .file
            .filter(|_| bytes >= BESIDE && tensor.texts().is_err())
        else {
            return tensor::message(name, tensor, None);
        };
        let padding = self.beside_bytes.next_multiple_of(ALIGNMENT) - self.beside_bytes;
        let offset = self.beside_bytes + padding;
        self.beside.push((padding, tensor.clone()));
        self.beside_bytes = offset + bytes;
        let place = Place {
            file,
            offset,
            bytes,
        };
        tensor::message(name, tensor, Some(place))
    }
}

/// What the inputs of a body are called: those of the node and, for captures, the values around it.
pub struct Around<'a> {
    /// How many of the body's inputs it is given; the others are captures.
    pub given: usize,
    pub captures: &'a [String],
}

/// Writes one graph.
pub struct GraphWriter<'m, 'a, 'g> {
    model: &'m mut Model<'a>,
    graph: &'g Graph,
    /// The name of each value; empty where it has none yet.
    names: Vec<String>,
    /// Which values are constants that are in the file.
    stored: Vec<bool>,
    nodes: Vec<Message>,
    initializers: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<String>,
    is_body: bool,
}

impl<'m, 'a, 'g> GraphWriter<'m, 'a, 'g> {
    /// Names the values of a graph, or of a body.
    ///
    /// # Errors
    /// `Unsupported` for types that ONNX does not have.
    pub fn new(
        model: &'m mut Model<'a>,
        graph: &'g Graph,
        around: Option<Around>,
    ) -> Result<GraphWriter<'m, 'a, 'g>> {
        let mut writer = GraphWriter {
            names: vec![String::new(); graph.values.len()],
            stored: vec![false; graph.values.len()],
            nodes: Vec::new(),
            initializers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            is_body: around.is_some(),
            model,
            graph,
        };
        let given = around.as_ref().map_or(graph.inputs.len(), |a| a.given);
        for (i, &input) in graph.inputs.iter().enumerate() {
            let declared = graph.value(input);
            if let Some(around) = around.as_ref().filter(|_| i >= given) {
                let missing = || unsupported("a body that is given too little");
                let capture = around.captures.get(i - given).ok_or_else(missing)?;
                writer.names[input.0].clone_from(capture);
                continue;
            }
            writer.names[input.0] = match writer.is_body {
                true => writer.model.names.fresh(&declared.name, "input"),
                false => {
                    writer.model.names.keep(&declared.name);
                    declared.name.clone()
                }
            };
            if let Some(dtype) = declared.fact.dtype {
                writer.model.need(tensor::needed(dtype))?;
            }
            let info = value::info(&writer.names[input.0], &declared.fact);
            let info = info.map_err(|e| e.with_input(&declared.name))?;
            writer.inputs.push(info);
        }
        for &output in &graph.outputs {
            let name = &graph.value(output).name;
            // An input that is given as it is has one name as both; other outputs have names of their own.
            let passed = !writer.is_body && graph.inputs.contains(&output);
            let name = match passed && !writer.outputs.contains(name) {
                true => name.clone(),
                false => writer.model.names.fresh(name, "output"),
            };
            writer.outputs.push(name);
        }
        Ok(writer)
    }

    /// The `GraphProto`.
    ///
    /// # Errors
    /// `Unsupported` for operators that ONNX does not have.
    pub fn finish(mut self) -> Result<Message> {
        let graph = self.graph;
        let producers = graph.producers();
        let mut copies = Vec::new();
        for (&output, name) in graph.outputs.iter().zip(&self.outputs) {
            let own = &mut self.names[output.0];
            if own.is_empty() && producers[output.0].is_some() {
                own.clone_from(name);
            } else if own != name {
                copies.push((output, name.clone()));
            }
        }
        for node in &graph.nodes {
            self.node(node)
                .map_err(|e| e.at(&node.name, node.op.name()))?;
        }
        for (value, name) in copies {
            let from = self.copied_from(value, &name)?;
            let mut copy = Message::default();
            copy.bytes(1, from.as_bytes());
            copy.bytes(2, name.as_bytes());
            copy.text(4, "Identity");
            self.nodes.push(copy);
        }
        let mut message = Message::default();
        for node in self.nodes {
            message.message(1, node);
        }
        let names = [&graph.metadata.name, &graph.name].into_iter();
        let name = names.map(String::as_str).find(|name| !name.is_empty());
        message.text(2, name.unwrap_or("graph"));
        for initializer in self.initializers {
            message.message(5, initializer);
        }
        for input in self.inputs {
            message.message(11, input);
        }
        for (&output, name) in graph.outputs.iter().zip(&self.outputs) {
            let fact = &graph.value(output).fact;
            let info = value::info(name, fact).map_err(|e| e.with_node(name))?;
            message.message(12, info);
        }
        Ok(message)
    }

    /// What a value is called that an output only passes on: an input, a constant or what another output is.
    fn copied_from(&mut self, value: ValueId, output: &str) -> Result<String> {
        if self.names[value.0].is_empty() {
            let name = format!("{output}/constant");
            self.names[value.0] = self.model.names.fresh(&name, "constant");
        }
        self.store(value)?;
        Ok(self.names[value.0].clone())
    }

    /// What an input or output of a node is called.
    fn name(&mut self, v: Option<ValueId>) -> String {
        let Some(v) = v else {
            return String::new();
        };
        if self.names[v.0].is_empty() {
            let name = &self.graph.value(v).name;
            self.names[v.0] = self.model.names.fresh(name, "value");
        }
        self.names[v.0].clone()
    }

    /// Brings a value into the file that is a constant.
    fn store(&mut self, v: ValueId) -> Result<()> {
        let Some(tensor) = &self.graph.value(v).constant else {
            return Ok(());
        };
        if !std::mem::replace(&mut self.stored[v.0], true) {
            let initializer = self.model.initializer(&self.names[v.0], tensor)?;
            self.initializers.push(initializer);
        }
        Ok(())
    }

    fn node(&mut self, node: &'g Node) -> Result<()> {
        let form = ops::find(&node.op)?;
        self.model.microsoft |= form.domain == MICROSOFT;
        self.model.ml |= form.domain == ML;
        let inputs: Vec<String> = node.inputs.iter().map(|&v| self.name(v)).collect();
        let outputs: Vec<String> = node.outputs.iter().map(|&v| self.name(Some(v))).collect();
        let bodies = self.bodies(node, &inputs)?;
        let opset = self.model.opset;
        let mut built = NodeForm::new(form, self.graph, node, [inputs, outputs], opset)?;
        if !bodies.is_empty() {
            let names = ops::control::body_names(bodies.len());
            let named = names.iter().zip(bodies);
            built
                .attributes
                .extend(named.map(|(name, body)| ((*name).to_string(), Stored::Graph(body))));
            built.inputs.truncate(ops::control::own_inputs(node));
        }
        self.model.need(built.since)?;
        // Some constants are attributes; bodies read others by their names.
        for v in node.present_inputs() {
            let read = node.op.bodies().is_some() || built.inputs.contains(&self.names[v.0]);
            if read {
                self.store(v)?;
            }
        }
        let name = self.model.nodes.fresh(&node.name, "node");
        self.nodes.push(built.message(&name)?);
        Ok(())
    }

    /// The bodies of a node that is control flow. What they are given of the graph around them they read by its name.
    fn bodies(&mut self, node: &'g Node, inputs: &[String]) -> Result<Vec<Message>> {
        let Some(bodies) = node.op.bodies() else {
            return Ok(Vec::new());
        };
        let captures = ops::control::own_inputs(node);
        let mut written = Vec::new();
        for body in bodies.graphs {
            let around = Around {
                given: bodies_inputs(captures, bodies.steering, bodies.counted),
                captures: &inputs[captures.min(inputs.len())..],
            };
            let writer = GraphWriter::new(self.model, body, Some(around))?;
            written.push(writer.finish()?);
        }
        Ok(written)
    }
}

/// The inputs of a body that are no captures, where the node has `own` inputs that are none.
fn bodies_inputs(own: usize, steering: usize, counted: bool) -> usize {
    own - steering.min(own) + if counted { 2 } else { 0 }
}
