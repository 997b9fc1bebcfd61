//! From a network to a graph.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::normalize_axis;
use kilim_core::passes::KnownDims;
use kilim_core::tensor::Tensor;
use kilim_core::{Dim, Limits};

use super::blob::Numbers;
use super::layout::{Layout, permutation};
use super::op::Op;
use super::schema::{Net, OpInfo};
use super::{inputs, ops};
use crate::ModelFile;
use crate::build::{GraphBuilder, Refusals, stands_for_builder};
use crate::source::NODES_PER_CHECK;

/// The number of the operator Input.
const INPUT: i32 = 34;

/// The number of the operator Const. MNN reads constants before all other operators.
const CONST: i32 = 11;

/// Brings a network into a graph, with inputs and outputs under the names of their tensors.
///
/// # Errors
/// Those of [`crate::Importer::load`].
pub fn graph(net: &Net, source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let numbers = Numbers { source, limits };
    let builder = GraphBuilder::new("mnn", false, &source.interrupt);
    let mapped = Cell::new(0);
    let mut main = Import::new(net, &net.tensors, &numbers, &mapped, builder);
    main.inputs(&net.ops)?;
    main.ops(&net.ops)?;
    for tensor in outputs(net)? {
        main.output(tensor)?;
    }
    main.builder.graph().metadata = Arc::new(net.metadata.clone());
    main.builder.finish()
}

/// The outputs by number: those that the file names, else the tensors that no operator reads.
fn outputs(net: &Net) -> Result<Vec<usize>> {
    if !net.outputs.is_empty() {
        let named = net.outputs.iter().map(|&name| {
            let number = net.tensors.iter().position(|&tensor| tensor == name);
            number.ok_or_else(|| {
                let message = "the network has no tensor of the name of an output";
                Error::new(ErrorCode::InvalidGraph, message).with_input(name)
            })
        });
        return named.collect();
    }
    let mut read = vec![false; net.tensors.len()];
    for &tensor in net.ops.iter().flat_map(|op| &op.inputs).flatten() {
        read[tensor] = true;
    }
    let written = net.ops.iter().filter(|op| op.kind != INPUT);
    let written = written.flat_map(|op| op.outputs.iter().copied());
    Ok(written.filter(|&tensor| !read[tensor]).collect())
}

/// What operators are brought into.
pub struct Import<'a> {
    pub net: &'a Net<'a>,
    /// The names of tensors here: in the network, or in a body.
    tensors: &'a [&'a str],
    pub numbers: &'a Numbers<'a>,
    /// How many operators were mapped, those of bodies as often as these are called.
    mapped: &'a Cell<usize>,
    builder: GraphBuilder,
    /// The value of each tensor that was written so far, and its layout.
    values: Vec<Option<(ValueId, Layout)>>,
    /// The layouts of what the operator at hand gives, where they are not that of its first input: of each output, the last of all that
    /// follow.
    gives: Vec<Layout>,
    /// How many bodies this one is in.
    depth: usize,
    /// The elements of integers that follow from shapes.
    dims: KnownDims,
    /// How many nodes were followed for these.
    followed: usize,
    /// The truth values that integers were made of.
    truths: HashMap<ValueId, ValueId>,
}

impl<'a> Import<'a> {
    /// An empty graph for the operators of these tensors.
    fn new(
        net: &'a Net<'a>,
        tensors: &'a [&'a str],
        numbers: &'a Numbers<'a>,
        mapped: &'a Cell<usize>,
        builder: GraphBuilder,
    ) -> Import<'a> {
        Import {
            net,
            tensors,
            numbers,
            mapped,
            builder,
            values: vec![None; tensors.len()],
            gives: Vec::new(),
            depth: 0,
            dims: KnownDims::default(),
            followed: 0,
            truths: HashMap::new(),
        }
    }

    /// Makes what Input operators give the inputs of the graph.
    fn inputs(&mut self, ops: &[OpInfo]) -> Result<()> {
        let inputs: Vec<_> = ops.iter().filter(|op| op.kind == INPUT).collect();
        for info in &inputs {
            let Some(&tensor) = info.outputs.first() else {
                continue;
            };
            let name = self.tensors[tensor];
            let prefix = match inputs.len() {
                1 => String::new(),
                _ => format!("{name}."),
            };
            let op = self.op(info);
            let (fact, layout) = inputs::fact(&op, &prefix).map_err(|e| e.at(name, "Input"))?;
            let value = self.builder.add_input(name, fact)?;
            self.values[tensor] = Some((value, layout));
        }
        Ok(())
    }

    /// Maps operators in their order, constants first.
    pub fn ops(&mut self, ops: &[OpInfo]) -> Result<()> {
        let mut refused = Refusals::default();
        let (constants, others): (Vec<_>, Vec<_>) = ops.iter().partition(|op| op.kind == CONST);
        for (i, info) in constants.into_iter().chain(others).enumerate() {
            if i % NODES_PER_CHECK == 0 {
                self.numbers.source.interrupt.check()?;
            }
            if info.kind == INPUT {
                continue;
            }
            self.mapped.set(self.mapped.get() + 1);
            self.numbers.limits.check_nodes(self.mapped.get())?;
            let name = info.called(self.tensors);
            let around = self.builder.enter(name);
            let made = self.map(info, refused.is_empty());
            self.builder.leave(around);
            refused.settle(made, &ops::name(info.kind), name)?;
        }
        refused.check()
    }

    /// Makes a tensor an output of the graph. What has another name by now is passed through Identity.
    fn output(&mut self, tensor: usize) -> Result<()> {
        let name = self.tensors[tensor];
        let Some((value, _)) = self.values[tensor] else {
            let message = "no operator gives an output of the network";
            return Err(Error::new(ErrorCode::InvalidGraph, message).with_input(name));
        };
        let graph = self.builder.graph();
        let own = graph.value(value);
        let taken = graph.inputs.contains(&value) || graph.outputs.contains(&value);
        let is_named = own.name == name && own.constant.is_none() && !taken;
        if is_named {
            return self.builder.add_output(name, value);
        }
        let around = self.builder.enter(name);
        let value = self.builder.name(value, name);
        self.builder.leave(around);
        self.builder.add_output(name, value)
    }

    fn op<'b>(&self, info: &'b OpInfo<'b>) -> Op<'b> {
        let read = |tensor: &Option<usize>| tensor.and_then(|tensor| self.values[tensor]);
        let inputs: Vec<_> = info.inputs.iter().map(read).collect();
        Op {
            info,
            inputs: inputs.iter().map(|input| Some(input.as_ref()?.0)).collect(),
            layouts: inputs
                .iter()
                .map(|input| input.map_or(Layout::Nchw, |(_, layout)| layout))
                .collect(),
        }
    }

    /// Maps an operator. Nothing comes of one that reads what a refused operator should have written, where not all were mapped.
    fn map(&mut self, info: &OpInfo, all: bool) -> Result<()> {
        let row = ops::find(info.kind).ok_or_else(|| ops::refusal(info.kind, self.net.version))?;
        let mut read = info.inputs.iter().flatten();
        if let Some(&missing) = read.find(|&&tensor| self.values[tensor].is_none()) {
            let message = "no operator before writes a tensor that one reads";
            let error = Error::new(ErrorCode::InvalidGraph, message);
            return match all {
                true => Err(error.with_input(self.tensors[missing])),
                false => Ok(()),
            };
        }
        let op = self.op(info);
        self.gives.clear();
        let made = (row.map)(self, &op)?;
        if made.len() < info.outputs.len() {
            return Err(
                super::invalid("the operator has more outputs than it gives")
                    .with_expected(made.len())
                    .with_got(info.outputs.len()),
            );
        }
        for (i, (&tensor, value)) in info.outputs.iter().zip(made).enumerate() {
            let layout = self.gives.get(i).or(self.gives.last()).copied();
            let layout = layout.unwrap_or_else(|| op.layout());
            let passed_on = op.inputs.contains(&Some(value));
            let value = match passed_on || self.constant(value).is_some() {
                true => value,
                false => self.builder.name(value, self.tensors[tensor]),
            };
            self.values[tensor] = Some((value, layout));
        }
        Ok(())
    }

    /// Gives a tensor its value.
    pub fn set(&mut self, tensor: usize, value: ValueId, layout: Layout) {
        self.values[tensor] = Some((value, layout));
    }

    /// The value of a tensor, and its layout.
    pub fn get(&self, tensor: usize) -> Option<(ValueId, Layout)> {
        self.values[tensor]
    }

    /// Says which layout the outputs of the operator at hand are in.
    pub fn gives(&mut self, layout: Layout) {
        self.gives = vec![layout];
    }

    /// Says which layout each output of the operator at hand is in.
    pub fn gives_each(&mut self, layouts: Vec<Layout>) {
        self.gives = layouts;
    }

    /// An empty graph for a body.
    ///
    /// # Errors
    /// `Limit` where bodies are too deep in each other: one may call itself.
    pub fn nested(&self, tensors: &'a [&'a str], builder: GraphBuilder) -> Result<Import<'a>> {
        let (depth, most) = (self.depth + 1, self.numbers.limits.depth);
        if depth > most {
            let message = "the model has too many graphs in each other";
            return Err(Limits::exceeded("depth", message, most, depth));
        }
        let mut inner = Import::new(self.net, tensors, self.numbers, self.mapped, builder);
        inner.depth = depth;
        Ok(inner)
    }

    /// The elements of integers, as far as shapes and constants tell them.
    pub fn elements(&mut self, x: ValueId) -> Option<Vec<Dim>> {
        let graph = self.builder.graph();
        for node in &graph.nodes[self.followed..] {
            self.dims.follow(graph, node);
        }
        self.followed = graph.nodes.len();
        self.dims.get(graph, x)
    }

    /// What is known of the dimension `axis` of `x`.
    pub fn length(&self, x: ValueId, axis: i64) -> Dim {
        let dims = self.known_shape(x).map(|shape| &shape.0[..]);
        let place = |dims: &[Dim]| normalize_axis(axis, dims.len()).ok();
        let length = dims.and_then(|dims| dims.get(place(dims)?));
        length.cloned().unwrap_or(Dim::Unknown)
    }

    /// `x` with its dimensions in the order of another layout.
    pub fn laid_out(&mut self, x: ValueId, from: Layout, to: Layout) -> Result<ValueId> {
        if from.channels_last() == to.channels_last() {
            return Ok(x);
        }
        match permutation(from, to, self.rank(x)?) {
            Some(order) => self.transpose(x, &order),
            None => Ok(x),
        }
    }

    /// Truth values as MNN has them, integers of 0 and 1.
    pub fn as_ints(&mut self, truths: ValueId) -> Result<ValueId> {
        let ints = self.cast(truths, DType::I32)?;
        self.truths.insert(ints, truths);
        Ok(ints)
    }

    /// Where the numbers of `x` are not 0.
    pub fn truths(&mut self, x: ValueId) -> Result<ValueId> {
        match self.truths.get(&x) {
            Some(&truths) => Ok(truths),
            None => self.cast(x, DType::Bool),
        }
    }

    /// A constant of one number.
    pub fn float(&mut self, number: f32) -> Result<ValueId> {
        let tensor = Tensor::scalar(number)?;
        Ok(self.tensor_value(tensor))
    }

    /// The builder, when all operators are brought in.
    pub fn into_builder(self) -> GraphBuilder {
        self.builder
    }
}

stands_for_builder!(Import);
