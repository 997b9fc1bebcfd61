//! From a subgraph of the file to a graph.

mod complex;
mod op;
mod operands;
mod variables;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Attribute, Attributes, Custom, CustomOperators};
use kilim_core::tensor::{Tensor, element_count};

use super::ops::{self, Mapping, OnQuantized};
use super::schema::{Model, OperatorInfo, Quantization, Subgraph, TensorInfo};
use crate::build::{GraphBuilder, Refusals, shortened, stands_for_builder, unknown_operator};

pub use op::Op;
use variables::Variables;

/// What a mapping writes to.
pub struct Import<'a> {
    model: &'a Model<'a>,
    subgraph: &'a Subgraph<'a>,
    custom_operators: &'a CustomOperators,
    builder: GraphBuilder,
    /// The value of each tensor that was used so far.
    values: Vec<Option<ValueId>>,
    /// Constants that the importer computed instead of reading them as they are, one for each tensor.
    computed: Vec<Option<Tensor>>,
    /// Real and imaginary parts of complex tensors, one for each tensor.
    complex: Vec<Option<[ValueId; 2]>>,
    /// The variables of the model; bodies have none.
    variables: Option<Variables>,
}

/// Maps a subgraph; one error lists everything in it that Kilim cannot run.
pub fn graph<'a>(
    model: &'a Model<'a>,
    subgraph: &'a Subgraph<'a>,
    operators: &'a CustomOperators,
) -> Result<Graph> {
    let builder = GraphBuilder::new(&subgraph.name, false, model.interrupt);
    let mut main = Import::new(model, subgraph, operators, builder);
    main.variables = Some(Variables::of(model, subgraph)?);
    main.whole()
}

impl<'a> Import<'a> {
    fn new(
        model: &'a Model<'a>,
        subgraph: &'a Subgraph<'a>,
        custom_operators: &'a CustomOperators,
        builder: GraphBuilder,
    ) -> Import<'a> {
        Import {
            model,
            subgraph,
            custom_operators,
            builder,
            values: vec![None; subgraph.tensors.len()],
            computed: empty_constants(subgraph),
            complex: vec![None; subgraph.tensors.len()],
            variables: None,
        }
    }

    /// An importer of subgraph `index`, for a body that may never run.
    pub fn nested(&self, index: i32, name: &str) -> Result<Import<'a>> {
        let subgraph = self.model.body(index)?;
        let builder = GraphBuilder::new(name, true, self.model.interrupt);
        Ok(Import::new(
            self.model,
            subgraph,
            self.custom_operators,
            builder,
        ))
    }

    /// The whole subgraph, its inputs those of the graph.
    pub fn whole(mut self) -> Result<Graph> {
        self.graph_inputs()?;
        let outputs = self.operators()?;
        for (&t, value) in self.subgraph.outputs.iter().zip(outputs) {
            let name = &self.subgraph.tensors[t].name;
            self.builder.add_output(name, value)?;
        }
        self.variable_outputs();
        self.builder.finish()
    }

    /// The graph with these outputs.
    pub fn with_outputs(mut self, outputs: Vec<ValueId>) -> Result<Graph> {
        self.builder.graph().outputs = outputs;
        self.builder.finish()
    }

    /// The subgraph's inputs as further ones of the graph.
    pub fn graph_inputs(&mut self) -> Result<()> {
        let inputs = &self.subgraph.inputs;
        inputs.iter().try_for_each(|&t| self.graph_input(t))
    }

    /// The outputs of subgraph `index`, its nodes put in here.
    pub fn inlined(&mut self, index: i32, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        let mut inner = self.nested(index, "")?;
        if inner.subgraph.inputs.len() != inputs.len() {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                format!("subgraph {index} has another number of inputs"),
            ));
        }
        for (&t, &value) in inner.subgraph.inputs.iter().zip(inputs) {
            inner.values[t] = Some(value);
        }
        std::mem::swap(&mut self.builder, &mut inner.builder);
        let outputs = inner.operators();
        std::mem::swap(&mut self.builder, &mut inner.builder);
        outputs
    }

    /// Maps the operators; the values of the subgraph's outputs.
    pub fn operators(&mut self) -> Result<Vec<ValueId>> {
        let mut refused = Refusals::default();
        for info in &self.subgraph.operators {
            self.model.count_node()?;
            let (op, result) = self.operator(info)?;
            refused.settle(result, &self.operator_name(&op)?, &op.node)?;
        }
        refused.check()?;
        let outputs = &self.subgraph.outputs;
        if outputs.iter().any(|&t| self.complex[t].is_some()) {
            return Err(unsupported("a complex output of the model"));
        }
        outputs.iter().map(|&t| self.value(t)).collect()
    }

    /// What refusals call an operator.
    fn operator_name(&self, op: &Op<'a>) -> Result<String> {
        let code = self.model.code(op.info.code)?;
        Ok(match ops::find(code.builtin) {
            Some(mapping) => mapping.name.to_string(),
            None if code.builtin == ops::CUSTOM => format!("custom operator `{}`", code.custom),
            None => format!("builtin operator number {}", code.builtin),
        })
    }

    fn operator(&mut self, info: &'a OperatorInfo<'a>) -> Result<(Op<'a>, Result<()>)> {
        let code = self.model.code(info.code)?;
        let mapping = ops::find(code.builtin);
        let first = info.outputs.first();
        let op = Op {
            name: mapping.map_or("operator", |m| m.name),
            node: first.map_or_else(String::new, |&t| shortened(&self.subgraph.tensors[t].name)),
            info,
        };
        let outside = self.builder.enter(&op.node);
        let result = match mapping {
            Some(mapping) => self.map(&op, mapping),
            None if code.builtin == ops::CUSTOM => self.custom(&op, &code.custom),
            None => Err(unknown_operator()),
        };
        self.builder.leave(outside);
        Ok((op, result))
    }

    /// A node of an operator that the session brings.
    fn custom(&mut self, op: &Op<'a>, name: &str) -> Result<()> {
        let Some(operator) = self.custom_operators.get("tflite", name) else {
            return Err(unknown_operator());
        };
        let tensors = &self.subgraph.tensors;
        let mut used = op.info.inputs.iter().flatten().chain(&op.info.outputs);
        if used.any(|&t| tensors[t].is_quantized() || tensors[t].sparse) {
            return Err(unsupported("quantised or sparse tensors"));
        }
        let mut attributes = Attributes::default();
        let options = op.info.custom_options.to_vec();
        attributes.set("custom_options", Attribute::Bytes(options));
        let operator = Custom::new(operator.clone(), attributes);
        let inputs = (0..op.input_count()).map(|i| self.optional(op, i));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        self.emit_all(op, operator, &inputs)
    }

    fn map(&mut self, op: &Op<'a>, mapping: &Mapping) -> Result<()> {
        let map = match self.quantized(op)? {
            None => mapping.map,
            Some(tensor) => match mapping.quantized {
                OnQuantized::Same => mapping.map,
                OnQuantized::Integers(map) => map,
                OnQuantized::Nothing => return Err(quantized(tensor)),
            },
        };
        self.with_complex(op, map, mapping.complex)
    }

    /// A tensor that makes `op` one of quantised data. Quantised weights of an operator that
    /// computes in floating point are widened here.
    fn quantized(&mut self, op: &Op<'a>) -> Result<Option<&'a TensorInfo>> {
        let tensors = &self.subgraph.tensors;
        let (mut quantized, mut constants) = (None, Vec::new());
        for t in op.info.inputs.iter().copied().flatten() {
            if tensors[t].sparse {
                return Err(unsupported("sparse tensors"));
            }
            if tensors[t].is_quantized() {
                match self.data(t)? {
                    Some(tensor) => constants.push((t, tensor)),
                    None => quantized = Some(&tensors[t]),
                }
            }
        }
        let output = op.info.outputs.iter().find(|&&t| tensors[t].is_quantized());
        let computes_float = |&t: &usize| matches!(tensors[t].kind, 0 | 1 | 10 | 18);
        if let Some(tensor) = quantized.or(output.map(|&t| &tensors[t])) {
            return Ok(Some(tensor));
        }
        if op.name == "DEQUANTIZE" || !op.info.outputs.iter().all(computes_float) {
            return Ok(constants.first().map(|&(t, _)| &tensors[t]));
        }
        for (t, tensor) in constants {
            if let (Some(q), true) = (&tensors[t].quantization, tensor.dtype() != DType::F32) {
                self.computed[t] = Some(dequantized(&tensor, q)?);
                self.values[t] = None;
            }
        }
        Ok(None)
    }
}

stands_for_builder!(Import);

/// Constants without elements, for which the file has no data; one for each tensor.
fn empty_constants(subgraph: &Subgraph) -> Vec<Option<Tensor>> {
    let empty = |info: &TensorInfo| match info.shape.contains(&0) {
        true => Tensor::zeros(info.dtype().ok()?, &info.shape).ok(),
        false => None,
    };
    let mut constants: Vec<_> = subgraph.tensors.iter().map(empty).collect();
    let made = subgraph.operators.iter().flat_map(|o| &o.outputs);
    for &t in made.chain(&subgraph.inputs) {
        constants[t] = None;
    }
    constants
}

fn quantized(info: &TensorInfo) -> Error {
    let dtype = info.dtype().map_or("int4", DType::name);
    unsupported(format!("quantised {dtype} tensors"))
}

/// The real numbers that a quantised constant stands for.
fn dequantized(tensor: &Tensor, q: &Quantization) -> Result<Tensor> {
    let shape = tensor.shape();
    let channels = q.scale.len();
    let inner: usize = match channels {
        1 => 1,
        _ if shape.get(q.axis) == Some(&channels) => element_count(&shape[q.axis + 1..])?,
        _ => {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                "the scales of a quantised tensor do not fit its shape",
            ));
        }
    };
    let zero = |c: usize| q.zero_point.get(c).or(q.zero_point.first()).copied();
    let stored = tensor.to_i64s()?.into_iter().enumerate();
    let real: Vec<f32> = stored
        .map(|(i, v)| {
            let c = i / inner.max(1) % channels;
            (v as f64 - zero(c).unwrap_or(0) as f64) as f32 * q.scale[c]
        })
        .collect();
    Tensor::from_slice(shape, &real)
}
