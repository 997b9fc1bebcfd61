//! What a mapping of one node reads and writes.

mod steps;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Fact, Operator, PictureReader, normalize_axis};
use kilim_core::tensor::Tensor;

use super::import::{Body, Importer};
use super::proto::{AttributeProto, GraphProto, NodeProto, TensorProto, invalid};
use super::scope::{Binding, fact};

/// Goes with the refusal of a node whose form depends on a rank that is not known.
pub const RANK_HINT: &str = "run ONNX shape inference on the model and load the result";

/// The newest operator set whose meaning is known. Models of later ones are read as of this.
pub const NEWEST: i64 = 28;

/// Attributes that a mapping may leave unread: hints, the precision of a stage that is computed in `float32` at least, what says of
/// outputs only which are wanted, and what counts in training, in another mode or for another element type alone.
const MAY_GO_UNREAD: [&str; 19] = [
    "accuracy_level",
    "broadcast",
    "chunk_size",
    "consumed_inputs",
    "cubic_coeff_a",
    "default_float",
    "default_int64",
    "default_string",
    "is_test",
    "momentum",
    "multi_class",
    "nodes_hitrates",
    "nodes_hitrates_as_tensor",
    "output_sequence",
    "ratio",
    "replaced_value_float",
    "replaced_value_int64",
    "seed",
    "stash_type",
];

/// Brings one node into the graph.
pub struct NodeBuilder<'i, 'a> {
    importer: &'i mut Importer<'a>,
    frame: usize,
    node: &'a NodeProto<'a>,
    attributes: Vec<(&'a str, &'a AttributeProto<'a>)>,
    /// Which of them the mapping has asked for.
    read: Vec<Cell<bool>>,
    version: i64,
    name: &'i str,
    /// How many nodes the graph had before.
    mark: usize,
}

impl<'i, 'a> NodeBuilder<'i, 'a> {
    pub fn new(
        importer: &'i mut Importer<'a>,
        frame: usize,
        node: &'a NodeProto<'a>,
        attributes: Vec<(&'a str, &'a AttributeProto<'a>)>,
        version: i64,
        name: &'i str,
    ) -> Self {
        let mark = importer.scope.graph(frame).nodes.len();
        NodeBuilder {
            importer,
            frame,
            node,
            read: vec![Cell::new(false); attributes.len()],
            attributes,
            version: version.min(NEWEST),
            name,
            mark,
        }
    }

    /// Fails where a mapping has left an output without a value, or an attribute unread.
    pub fn finish(self) -> Result<()> {
        let attributes = self.attributes.iter().zip(&self.read);
        for ((name, _), _) in attributes.filter(|(_, read)| !read.get()) {
            if !MAY_GO_UNREAD.contains(name) {
                return Err(unsupported(format!("the attribute `{name}`")));
            }
        }
        for output in self.node.outputs.iter().filter(|o| !o.is_empty()) {
            let bound = self.importer.scope.binding(self.frame, output);
            if !matches!(bound, Some(Binding::Value(_) | Binding::Sequence(_))) {
                return Err(unsupported(format!("the output `{output}`")));
            }
        }
        Ok(())
    }

    /// The version of the node's operator set.
    pub fn version(&self) -> i64 {
        self.version
    }

    // Attributes.

    pub fn attribute(&self, name: &str) -> Option<&'a AttributeProto<'a>> {
        let at = self.attributes.iter().position(|(n, _)| *n == name)?;
        self.read[at].set(true);
        Some(self.attributes[at].1)
    }

    /// All attributes, as the file has them.
    pub fn stored_attributes(&self) -> Vec<(&'a str, &'a AttributeProto<'a>)> {
        self.read.iter().for_each(|read| read.set(true));
        self.attributes.clone()
    }

    pub fn read_tensor(&self, proto: &TensorProto) -> Result<Tensor> {
        self.importer.scope.tensors.read(proto)
    }

    /// What decodes pictures in this session.
    pub fn pictures(&self) -> Option<PictureReader> {
        self.importer.scope.tensors.source.pictures
    }

    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        let attribute = self.attribute(name);
        attribute
            .map(|a| {
                a.i.ok_or_else(|| invalid(format!("the attribute `{name}` is no integer")))
            })
            .transpose()
    }

    pub fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int_or(name, 0)? != 0)
    }

    /// Refuses the node where an attribute says something else than `only`, its default.
    pub fn fixed(&self, name: &str, only: i64) -> Result<()> {
        match self.int_or(name, only)? {
            n if n == only => Ok(()),
            n => Err(unknown(name, &n.to_string())),
        }
    }

    /// A count that the node must or, with a default, may have.
    pub fn count(&self, name: &str, default: Option<usize>) -> Result<usize> {
        match (self.int(name)?, default) {
            (Some(n), _) => count(name, n),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(invalid(format!("the attribute `{name}` is missing"))),
        }
    }

    pub fn float_or(&self, name: &str, default: f32) -> Result<f32> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    pub fn float(&self, name: &str) -> Result<Option<f32>> {
        let attribute = self.attribute(name);
        attribute
            .map(|a| {
                a.f.ok_or_else(|| invalid(format!("the attribute `{name}` is no number")))
            })
            .transpose()
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let bytes = attribute
            .s
            .ok_or_else(|| invalid(format!("the attribute `{name}` is no string")))?;
        std::str::from_utf8(bytes)
            .map(Some)
            .map_err(|_| invalid(format!("the attribute `{name}` is not valid UTF-8")))
    }

    pub fn text_or(&self, name: &str, default: &'static str) -> Result<&'a str> {
        Ok(self.text(name)?.unwrap_or(default))
    }

    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        let attribute = self.attribute(name);
        attribute.map(|a| a.ints.ints()).transpose()
    }

    /// Integers that are sizes.
    pub fn counts(&self, name: &str) -> Result<Option<Vec<usize>>> {
        let Some(ints) = self.ints(name)? else {
            return Ok(None);
        };
        let counts = ints.into_iter().map(|n| count(name, n));
        counts.collect::<Result<_>>().map(Some)
    }

    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let attribute = self.attribute(name);
        attribute.map(|a| a.floats.floats()).transpose()
    }

    pub fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let texts = attribute.strings.iter().map(|s| {
            String::from_utf8(s.to_vec())
                .map_err(|_| invalid(format!("the attribute `{name}` is not valid UTF-8")))
        });
        texts.collect::<Result<_>>().map(Some)
    }

    /// The strings of attribute `name` as a vector.
    pub fn text_list(&self, name: &str) -> Result<Tensor> {
        let texts = self.texts(name)?.filter(|list| !list.is_empty());
        let texts = texts.ok_or_else(|| invalid(format!("the attribute `{name}` is missing")))?;
        let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
        Tensor::from_texts(&[texts.len()], texts)
    }

    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let Some(attribute) = self.attribute(name) else {
            return Ok(None);
        };
        let proto = attribute
            .t
            .as_ref()
            .ok_or_else(|| invalid(format!("the attribute `{name}` is no tensor")))?;
        self.importer.scope.tensors.read(proto).map(Some)
    }

    pub fn sparse_tensor(&self, name: &str) -> Result<Option<Tensor>> {
        let proto = self.attribute(name).and_then(|a| a.sparse_tensor.as_ref());
        let tensors = &self.importer.scope.tensors;
        proto.map(|p| tensors.read_sparse(p)).transpose()
    }

    fn graph_attribute(&self, name: &str) -> Result<&'a GraphProto<'a>> {
        let graph = self.attribute(name).and_then(|a| a.g.as_ref());
        graph.ok_or_else(|| invalid(format!("the attribute `{name}` is no graph")))
    }

    /// The subgraph in attribute `name`; `inputs` is what is known of its inputs.
    pub fn body(&mut self, name: &str, inputs: &[Fact]) -> Result<Body> {
        let proto = self.graph_attribute(name)?;
        (self.importer).body(self.frame, self.name, proto, inputs, false)
    }

    /// A subgraph without inputs that may never run.
    pub fn branch(&mut self, name: &str) -> Result<Body> {
        let proto = self.graph_attribute(name)?;
        self.importer.body(self.frame, self.name, proto, &[], true)
    }

    /// A body that takes `inputs`, made by `build` of what stands for them inside.
    pub fn new_body(
        &mut self,
        inputs: &[ValueId],
        build: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Body> {
        let facts: Vec<Fact> = inputs.iter().map(|&v| self.fact(v)).collect();
        self.new_body_of(&facts, build)
    }

    /// A body of which this is known of its inputs.
    pub fn new_body_of(
        &mut self,
        inputs: &[Fact],
        build: impl FnOnce(&mut Self, &[ValueId]) -> Result<Vec<ValueId>>,
    ) -> Result<Body> {
        let around = self.frame;
        let mut graph = Graph::new(self.name);
        let named = inputs.iter().enumerate();
        let inner: Vec<ValueId> = named
            .map(|(i, fact)| graph.add_input(format!("{}/input_{i}", self.name), fact.clone()))
            .collect();
        self.frame = self.importer.scope.open(around, self.name, graph);
        let outputs = build(self, &inner);
        self.frame = around;
        let (mut graph, captures) = self.importer.scope.close()?;
        graph.outputs = outputs?;
        Ok(Body { graph, captures })
    }

    /// Writes the subgraph in attribute `name` out into the graph, and gives its outputs.
    pub fn inline(&mut self, name: &str, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        let proto = self.graph_attribute(name)?;
        self.importer
            .inline_body(self.frame, self.name, proto, inputs)
    }

    // Inputs.

    pub fn input_count(&self) -> usize {
        self.node.inputs.len()
    }

    pub fn has_input(&self, i: usize) -> bool {
        self.node.inputs.get(i).is_some_and(|n| !n.is_empty())
    }

    pub fn optional(&mut self, i: usize) -> Result<Option<ValueId>> {
        let name = self.node.inputs.get(i).copied().unwrap_or("");
        self.importer.scope.optional(self.frame, name)
    }

    pub fn input(&mut self, i: usize) -> Result<ValueId> {
        self.optional(i)?
            .ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// All inputs from `first` on, as they stand.
    pub fn inputs_from(&mut self, first: usize) -> Result<Vec<Option<ValueId>>> {
        (first..self.input_count())
            .map(|i| self.optional(i))
            .collect()
    }

    /// Inputs of which none may be left out.
    pub fn required_from(&mut self, first: usize) -> Result<Vec<ValueId>> {
        (first..self.input_count()).map(|i| self.input(i)).collect()
    }

    /// The tensors of input `i` where it is a sequence that is followed while the graph is built.
    pub fn sequence(&mut self, i: usize) -> Option<Rc<Vec<ValueId>>> {
        let name = self.node.inputs.get(i).copied().unwrap_or("");
        self.importer.scope.sequence(self.frame, name)
    }

    /// The type in attribute `name`.
    pub fn kind(&self, name: &str) -> Result<Option<Fact>> {
        let kind = self.attribute(name).and_then(|a| a.kind.as_ref());
        kind.map(fact).transpose()
    }

    pub fn graph(&mut self) -> &mut Graph {
        self.importer.scope.graph(self.frame)
    }

    pub fn fact(&mut self, v: ValueId) -> Fact {
        self.graph().value(v).fact.clone()
    }

    pub fn dtype(&mut self, v: ValueId) -> Option<DType> {
        self.graph().value(v).fact.dtype
    }

    /// The dimensions of `v` where all are known.
    pub fn shape(&mut self, v: ValueId) -> Option<Vec<usize>> {
        self.graph().value(v).fact.concrete()
    }

    pub fn rank(&mut self, v: ValueId) -> Result<usize> {
        let value = self.graph().value(v);
        value.fact.rank().ok_or_else(|| {
            unsupported(format!("the rank of `{}` is not known", value.name)).with_hint(RANK_HINT)
        })
    }

    /// `axis`, brought into `0..rank` of `v`.
    pub fn axis_of(&mut self, v: ValueId, axis: i64) -> Result<usize> {
        let rank = self.rank(v)?;
        normalize_axis(axis, rank)
    }

    pub fn constant(&mut self, v: ValueId) -> Option<Tensor> {
        self.graph().value(v).constant.clone()
    }

    // Outputs.

    pub fn output_count(&self) -> usize {
        self.node.outputs.len()
    }

    pub fn has_output(&self, i: usize) -> bool {
        self.node.outputs.get(i).is_some_and(|n| !n.is_empty())
    }

    /// Refuses the node where it has more than the first `n` outputs.
    pub fn only_outputs(&self, n: usize) -> Result<()> {
        match (n..self.output_count()).find(|&i| self.has_output(i)) {
            Some(i) => Err(unsupported(format!("output {i}"))),
            None => Ok(()),
        }
    }

    /// Makes `value` output `i`.
    pub fn bind(&mut self, i: usize, value: ValueId) -> Result<()> {
        match self.node.outputs.get(i) {
            Some(&name) if !name.is_empty() => {
                (self.importer).bind(self.frame, name, value, self.mark, self.node, self.name)
            }
            _ => Ok(()),
        }
    }

    /// Makes the first output a constant.
    pub fn bind_constant(&mut self, tensor: Tensor) -> Result<()> {
        let Some(&name) = self.node.outputs.first() else {
            return Ok(());
        };
        let scope = &mut self.importer.scope;
        if scope.binding(self.frame, name).is_some() {
            let value = scope.graph(self.frame).add_constant(self.name, tensor);
            return self.bind(0, value);
        }
        let value = scope.graph(self.frame).add_constant(name, tensor);
        scope.bind(self.frame, name, Binding::Value(value));
        Ok(())
    }

    pub fn bind_sequence(&mut self, i: usize, values: Vec<ValueId>) {
        if let Some(&name) = self.node.outputs.get(i) {
            let binding = Binding::Sequence(Rc::new(values));
            self.importer.scope.bind(self.frame, name, binding);
        }
    }

    /// A node that gives all outputs.
    pub fn emit(&mut self, op: impl Operator, inputs: &[Option<ValueId>]) -> Result<()> {
        self.emit_shared(Arc::new(op), inputs)
    }

    /// As [`NodeBuilder::emit`], of the node's own inputs.
    pub fn emit_same(&mut self, op: impl Operator) -> Result<()> {
        self.emit_own(Arc::new(op))
    }

    // The same for any operator: there is code for one, not for each type.

    fn emit_own(&mut self, op: Arc<dyn Operator>) -> Result<()> {
        let inputs = self.inputs_from(0)?;
        self.emit_shared(op, &inputs)
    }

    pub fn emit_shared(&mut self, op: Arc<dyn Operator>, inputs: &[Option<ValueId>]) -> Result<()> {
        let count = self.output_count();
        let name = self.name;
        let values = self.importer.push(self.frame, name, op, inputs, count)?;
        for (i, value) in values.into_iter().enumerate() {
            self.bind(i, value)?;
        }
        Ok(())
    }
}

/// A scalar of element type `dtype`.
pub fn number(n: f64, dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::F32 => Tensor::scalar(n as f32),
        DType::F64 => Tensor::scalar(n),
        DType::F16 => Tensor::scalar(half::f16::from_f64(n)),
        DType::BF16 => Tensor::scalar(half::bf16::from_f64(n)),
        DType::I8 => Tensor::scalar(n as i8),
        DType::I16 => Tensor::scalar(n as i16),
        DType::I32 => Tensor::scalar(n as i32),
        DType::I64 => Tensor::scalar(n as i64),
        DType::U8 => Tensor::scalar(n as u8),
        DType::U16 => Tensor::scalar(n as u16),
        DType::U32 => Tensor::scalar(n as u32),
        DType::U64 => Tensor::scalar(n as u64),
        DType::Bool => Tensor::from_bools(&[], &[n != 0.0]),
        _ => Err(unsupported(format!("a number as {dtype}"))),
    }
}

fn count(name: &str, n: i64) -> Result<usize> {
    usize::try_from(n).map_err(|_| invalid(format!("the attribute `{name}` has the value {n}")))
}

/// An attribute that has a name Kilim does not know.
pub fn unknown(name: &str, value: &str) -> Error {
    unsupported(format!("the attribute {name} = `{value}`"))
}
