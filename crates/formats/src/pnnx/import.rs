//! From a network to a graph.

use std::collections::HashMap;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::{Fact, Limits};

use super::invalid;
use super::layer::Layer;
use super::ops::{self, Row};
use super::text::{Network, OperatorInfo};
use super::value::Value;
use super::weights::Weights;
use crate::ModelFile;
use crate::build::{GraphBuilder, Refusals, shortened, stands_for_builder};
use crate::source::NODES_PER_CHECK;

const INPUT: &str = "pnnx.Input";
const OUTPUT: &str = "pnnx.Output";

/// Brings a network into a graph.
///
/// # Errors
/// Those of [`crate::Importer::load`].
pub fn graph(network: &Network, source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let import = Import {
        network,
        source,
        builder: GraphBuilder::new("pnnx", false, &source.interrupt),
        weights: Weights::of(source, limits)?,
        values: HashMap::new(),
        outputs: outputs(network),
    };
    import.whole()
}

/// Operands that are outputs of the network, by their names; the first of those that are the same.
fn outputs<'a>(network: &'a Network) -> HashMap<&'a str, String> {
    let mut outputs = HashMap::new();
    for info in network.operators.iter().filter(|info| info.kind == OUTPUT) {
        for (i, operand) in info.inputs.iter().enumerate() {
            let name = || port(info, i, info.inputs.len());
            outputs.entry(*operand).or_insert_with(name);
        }
    }
    outputs
}

/// What an input or output is called: as its operator, or numbered where that has several.
fn port(info: &OperatorInfo, i: usize, all: usize) -> String {
    match all {
        1 => info.name.to_string(),
        _ => format!("{}.{i}", info.name),
    }
}

/// What operators are brought into.
pub struct Import<'a> {
    network: &'a Network<'a>,
    source: &'a ModelFile<'a>,
    builder: GraphBuilder,
    weights: Weights<'a>,
    /// The value of each operand that was written so far; `None` where a refused operator should have written it.
    values: HashMap<&'a str, Option<Value>>,
    /// The names of operands that are outputs.
    outputs: HashMap<&'a str, String>,
}

impl<'a> Import<'a> {
    fn whole(mut self) -> Result<Graph> {
        let network = self.network;
        let mut refused = Refusals::default();
        for (i, info) in network.operators.iter().enumerate() {
            if i % NODES_PER_CHECK == 0 {
                self.source.interrupt.check()?;
            }
            match info.kind {
                INPUT => self.input(info)?,
                OUTPUT => (),
                _ => {
                    let around = self.builder.enter(info.name);
                    let made = self.operator(info);
                    self.builder.leave(around);
                    let made = refused.settle(made, info.kind, info.name)?.flatten();
                    for (i, operand) in info.outputs.iter().enumerate() {
                        let value = made.as_ref().and_then(|made| made.get(i).cloned());
                        self.write(operand, value)?;
                    }
                }
            }
        }
        refused.check()?;
        self.weights.check()?;
        for info in network.operators.iter().filter(|info| info.kind == OUTPUT) {
            for (i, operand) in info.inputs.iter().enumerate() {
                self.output(&port(info, i, info.inputs.len()), operand)?;
            }
        }
        self.builder.finish()
    }

    /// An input. PyTorch's numbers are of 32 bits where the file does not say more.
    fn input(&mut self, info: &'a OperatorInfo) -> Result<()> {
        for (i, operand) in info.outputs.iter().enumerate() {
            let name = port(info, i, info.outputs.len());
            let known = info.known.get(operand).cloned().unwrap_or_default();
            let fact = Fact {
                dtype: known.dtype.or(Some(DType::F32)),
                ..known
            };
            let value = self.builder.add_input(&name, fact)?;
            self.write(operand, Some(value.into()))?;
        }
        Ok(())
    }

    fn output(&mut self, name: &str, operand: &str) -> Result<()> {
        let value = self.values.get(operand).cloned().flatten();
        let value = value.ok_or_else(|| dangling(operand))?;
        let value = match value {
            Value::Tensor(value) if self.builder.graph().value(value).name == shortened(name) => {
                value
            }
            value => {
                let around = self.builder.enter(name);
                let named = self
                    .number_or_tensor(&value)
                    .map(|value| self.builder.name(value, name));
                self.builder.leave(around);
                named.map_err(|error| error.with_input(name))?
            }
        };
        self.builder.add_output(name, value)
    }

    fn write(&mut self, operand: &'a str, value: Option<Value>) -> Result<()> {
        match self.values.insert(operand, value) {
            None => Ok(()),
            Some(_) => {
                let message = "two operators write the same operand";
                Err(Error::new(ErrorCode::InvalidGraph, message).with_input(operand))
            }
        }
    }

    /// Maps an operator. Nothing comes of one that reads what a refused operator should have written.
    fn operator(&mut self, info: &'a OperatorInfo) -> Result<Option<Vec<Value>>> {
        let row = ops::find(info.kind).ok_or_else(|| ops::refusal(info.kind))?;
        let mut inputs = Vec::new();
        for operand in &info.inputs {
            match self.values.get(operand) {
                Some(Some(value)) => inputs.push(value.clone()),
                Some(None) => return Ok(None),
                None => return Err(dangling(operand)),
            }
        }
        let layer = Layer { info, inputs };
        let mut made = match row {
            Row::One(map) => vec![map(self, &layer)?.into()],
            Row::Many(map) => map(self, &layer)?.into_iter().map(Value::Tensor).collect(),
            Row::Values(map) => map(self, &layer)?,
        };
        if made.len() < info.outputs.len() {
            return Err(unsupported("outputs beside the first"));
        }
        for (value, operand) in made.iter_mut().zip(&info.outputs) {
            let Value::Tensor(value) = value else {
                continue;
            };
            // What an operator passes on keeps its name.
            if !layer.inputs.contains(&Value::Tensor(*value)) {
                let name = self.outputs.get(operand).map_or(*operand, String::as_str);
                *value = self.builder.name(*value, name);
                if let Some(known) = info.known.get(operand) {
                    self.builder.declare(*value, known.clone());
                }
            }
        }
        Ok(Some(made))
    }

    /// Weights of an operator; `None` where its line does not name them.
    ///
    /// # Errors
    /// `InvalidModel` where the archive does not have them as the line says.
    pub fn stored(&mut self, layer: &Layer, name: &str) -> Result<Option<ValueId>> {
        let tensor = self.weights.get(layer.info, name)?;
        Ok(tensor.map(|tensor| self.builder.node_constant(name, tensor)))
    }

    /// Weights of a module, or the operand of a function that is called so.
    ///
    /// # Errors
    /// `InvalidModel` where there are none.
    pub fn weights(&mut self, layer: &Layer, name: &str, place: usize) -> Result<ValueId> {
        let weights = self.optional_weights(layer, name, place)?;
        weights.ok_or_else(|| invalid(format!("the weights `{name}` are missing")))
    }

    /// Weights that may be left out, see [`Import::weights`].
    ///
    /// # Errors
    /// `InvalidModel` where they are no tensor.
    pub fn optional_weights(
        &mut self,
        layer: &Layer,
        name: &str,
        place: usize,
    ) -> Result<Option<ValueId>> {
        if layer.info.weights.contains_key(name) {
            return self.stored(layer, name);
        }
        // A parameter `bias=True` says that there are weights of this name, but is none.
        match layer.info.params.contains_key(name) {
            true => Ok(None),
            false => layer.optional_tensor(name, place),
        }
    }
}

fn dangling(operand: &str) -> Error {
    let message = "no operator before writes an operand that one reads";
    Error::new(ErrorCode::InvalidGraph, message).with_input(operand)
}

stands_for_builder!(Import);
