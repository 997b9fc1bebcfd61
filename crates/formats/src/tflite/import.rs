//! From a subgraph of the file to a graph.

use std::collections::HashMap;
use std::fmt::Write;

use kilim_core::dim::{Dim, Shape};
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{
    Activation, Attribute, Attributes, Cast, Custom, CustomOperators, Fact, Operator, Reshape,
    Transpose, Unary, UnaryKind,
};
use kilim_core::tensor::Tensor;

use super::flatbuffer::Table;
use super::ops::{self, Mapping, OnQuantized};
use super::schema::{Model, OperatorInfo, Quantization, Subgraph, TensorInfo};

/// What a mapping writes to.
pub struct Importer<'a> {
    model: &'a Model<'a>,
    subgraph: &'a Subgraph<'a>,
    custom_operators: &'a CustomOperators,
    pub graph: Graph,
    /// The value of each tensor that was used so far.
    values: Vec<Option<ValueId>>,
    /// Constants that the importer computed instead of reading them as they are.
    computed: HashMap<usize, Tensor>,
}

/// An operator of the file.
pub struct Op<'a> {
    pub name: &'static str,
    /// The node's name: that of its first output, since TFLite names tensors alone.
    pub node: String,
    info: &'a OperatorInfo<'a>,
}

impl<'a> Op<'a> {
    /// The tensor number of input `i`, if it is there.
    pub fn tensor(&self, i: usize) -> Option<usize> {
        self.info.inputs.get(i).copied().flatten()
    }

    pub fn input_count(&self) -> usize {
        self.info.inputs.len()
    }

    pub fn output_count(&self) -> usize {
        self.info.outputs.len()
    }

    fn option<T>(&self, read: impl FnOnce(&Table<'a>) -> Result<T>, default: T) -> Result<T> {
        self.info.options.as_ref().map_or(Ok(default), read)
    }

    pub fn int(&self, slot: usize) -> Result<i32> {
        self.option(|t| t.i32(slot), 0)
    }

    pub fn int_or(&self, slot: usize, default: i32) -> Result<i32> {
        self.option(|t| t.i32_or(slot, default), default)
    }

    /// A count that must be positive: strides, kernels, blocks.
    pub fn positive(&self, slot: usize, default: i32) -> Result<usize> {
        let n = self.int_or(slot, default)?;
        usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidModel,
                format!("the option in slot {slot} is {n}"),
            )
        })
    }

    pub fn enumeration(&self, slot: usize) -> Result<i8> {
        self.option(|t| t.i8(slot), 0)
    }

    pub fn flag(&self, slot: usize) -> Result<bool> {
        self.option(|t| t.bool(slot), false)
    }

    pub fn float(&self, slot: usize) -> Result<f32> {
        self.option(|t| t.f32(slot), 0.0)
    }

    pub fn ints(&self, slot: usize) -> Result<Vec<i32>> {
        self.option(|t| t.i32s(slot), Vec::new())
    }

    /// The fused activation in `slot`.
    pub fn activation(&self, slot: usize) -> Result<Activation> {
        Ok(match self.enumeration(slot)? {
            0 => Activation::None,
            1 => Activation::Relu,
            2 => Activation::Clip {
                min: -1.0,
                max: 1.0,
            },
            3 => Activation::Clip { min: 0.0, max: 6.0 },
            4 => Activation::Tanh,
            other => return Err(unsupported(format!("fused activation number {other}"))),
        })
    }
}

/// Maps a subgraph; one error lists everything in it that Kilim cannot run.
pub fn graph<'a>(
    model: &'a Model<'a>,
    subgraph: &'a Subgraph<'a>,
    operators: &'a CustomOperators,
) -> Result<Graph> {
    let graph = Graph::new(subgraph.name.clone());
    Importer::new(model, subgraph, operators, graph).whole()
}

impl<'a> Importer<'a> {
    fn new(
        model: &'a Model<'a>,
        subgraph: &'a Subgraph<'a>,
        custom_operators: &'a CustomOperators,
        graph: Graph,
    ) -> Importer<'a> {
        Importer {
            model,
            subgraph,
            custom_operators,
            graph,
            values: vec![None; subgraph.tensors.len()],
            computed: HashMap::new(),
        }
    }

    /// An importer of subgraph `index`, for a body.
    pub fn nested(&self, index: i32, graph: Graph) -> Result<Importer<'a>> {
        let subgraph = self.model.body(index)?;
        Ok(Importer::new(
            self.model,
            subgraph,
            self.custom_operators,
            graph,
        ))
    }

    /// The whole subgraph, its inputs those of the graph.
    pub fn whole(mut self) -> Result<Graph> {
        self.graph_inputs()?;
        self.graph.outputs = self.operators()?;
        self.graph.sort()?;
        Ok(self.graph)
    }

    /// The subgraph's inputs as further ones of the graph.
    pub fn graph_inputs(&mut self) -> Result<()> {
        let inputs = &self.subgraph.inputs;
        inputs.iter().try_for_each(|&t| self.graph_input(t))
    }

    /// The outputs of subgraph `index`, its nodes put in here.
    pub fn inlined(&mut self, index: i32, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        let mut inner = self.nested(index, Graph::default())?;
        if inner.subgraph.inputs.len() != inputs.len() {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                format!("subgraph {index} has another number of inputs"),
            ));
        }
        for (&t, &value) in inner.subgraph.inputs.iter().zip(inputs) {
            inner.values[t] = Some(value);
        }
        std::mem::swap(&mut self.graph, &mut inner.graph);
        let outputs = inner.operators();
        std::mem::swap(&mut self.graph, &mut inner.graph);
        outputs
    }

    /// Maps the operators; the values of the subgraph's outputs.
    pub fn operators(&mut self) -> Result<Vec<ValueId>> {
        // Reasons in order of appearance, each with the nodes it holds for.
        let mut refused: Vec<(String, Vec<String>)> = Vec::new();
        for info in &self.subgraph.operators {
            let (op, result) = self.operator(info)?;
            let Err(error) = result else { continue };
            if error.code() != ErrorCode::Unsupported {
                return Err(error.at(&op.node, op.name));
            }
            let reason = format!("{}: {}", op.name, error.message());
            match refused.iter_mut().find(|(r, _)| *r == reason) {
                Some((_, nodes)) => nodes.push(op.node),
                None => refused.push((reason, vec![op.node])),
            }
        }
        if !refused.is_empty() {
            let mut message = String::from("the model needs what Kilim does not have");
            for (i, (reason, nodes)) in refused.iter().enumerate() {
                let lead = if i == 0 { ':' } else { ';' };
                // Writing to a string cannot fail.
                let _ = write!(message, "{lead} {reason} (at {})", nodes.join(", "));
            }
            return Err(unsupported(message));
        }
        let outputs = &self.subgraph.outputs;
        outputs.iter().map(|&t| self.value(t)).collect()
    }

    fn operator(&mut self, info: &'a OperatorInfo<'a>) -> Result<(Op<'a>, Result<()>)> {
        let code = self.model.code(info.code)?;
        let mapping = ops::find(code.builtin);
        let mut op = Op {
            name: mapping.map_or("operator", |m| m.name),
            node: info
                .outputs
                .first()
                .map_or_else(String::new, |&t| self.subgraph.tensors[t].name.clone()),
            info,
        };
        let result = match mapping {
            Some(mapping) => self.map(&op, mapping),
            None if code.builtin == ops::CUSTOM => {
                op.name = "CUSTOM";
                self.custom(&op, &code.custom)
            }
            None => Err(unsupported(format!(
                "builtin operator number {}",
                code.builtin
            ))),
        };
        Ok((op, result))
    }

    /// A node of an operator that the session brings.
    fn custom(&mut self, op: &Op<'a>, name: &str) -> Result<()> {
        let Some(operator) = self.custom_operators.get("tflite", name) else {
            return Err(unsupported(format!("custom operator `{name}`")));
        };
        let tensors = &self.subgraph.tensors;
        let mut used = op.info.inputs.iter().flatten().chain(&op.info.outputs);
        if used.any(|&t| tensors[t].is_quantized() || tensors[t].sparse) {
            return Err(unsupported(format!(
                "quantised or sparse tensors of the custom operator `{name}`"
            )));
        }
        let mut attributes = Attributes::default();
        let options = op.info.custom_options.to_vec();
        attributes.set("custom_options", Attribute::Bytes(options));
        let operator = Custom::new(operator.clone(), attributes);
        let inputs = (0..op.input_count()).map(|i| self.optional(op, i));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let outputs = (0..op.output_count()).map(|i| self.output(op, i));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        self.graph
            .push(op.node.clone(), operator, &inputs, &outputs);
        Ok(())
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
        map(self, op)
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
                match self.constant(t)? {
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
                self.computed.insert(t, dequantized(&tensor, q)?);
                self.values[t] = None;
            }
        }
        Ok(None)
    }

    pub fn info(&self, op: &Op, i: usize) -> Result<&'a TensorInfo> {
        op.tensor(i)
            .map(|t| &self.subgraph.tensors[t])
            .ok_or_else(|| missing(i))
    }

    pub fn output_info(&self, op: &Op, i: usize) -> Result<&'a TensorInfo> {
        let t =
            op.info.outputs.get(i).ok_or_else(|| {
                Error::new(ErrorCode::InvalidModel, format!("output {i} is missing"))
            })?;
        Ok(&self.subgraph.tensors[*t])
    }

    /// The tensor that says how intermediate result `i` is quantised.
    pub fn intermediate(&self, op: &Op, i: usize) -> Result<&'a TensorInfo> {
        let t = op.info.intermediates.get(i).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidModel,
                format!("intermediate tensor {i} is missing"),
            )
        })?;
        Ok(&self.subgraph.tensors[*t])
    }

    pub fn rank(&self, op: &Op, i: usize) -> Result<usize> {
        Ok(self.info(op, i)?.shape.len())
    }

    /// The constant that tensor `t` holds, if it holds one.
    fn constant(&self, t: usize) -> Result<Option<Tensor>> {
        if let Some(tensor) = self.computed.get(&t) {
            return Ok(Some(tensor.clone()));
        }
        self.model.constant(&self.subgraph.tensors[t])
    }

    /// The constant of input `i`, if it is there and is one.
    pub fn constant_input(&self, op: &Op, i: usize) -> Result<Option<Tensor>> {
        op.tensor(i).map_or(Ok(None), |t| self.constant(t))
    }

    /// The integers of input `i`; `Unsupported` where they are computed at run time.
    pub fn constant_ints(&self, op: &Op, i: usize) -> Result<Vec<i64>> {
        let info = self.info(op, i)?;
        match self.constant_input(op, i)? {
            Some(tensor) => tensor.to_i64s(),
            None if info.shape.contains(&0) => Ok(Vec::new()),
            None => Err(unsupported(format!("input {i} computed at run time"))),
        }
    }

    /// Makes the output of `op` a constant.
    pub fn set_constant(&mut self, op: &Op, tensor: Tensor) {
        if let Some(&t) = op.info.outputs.first() {
            self.computed.insert(t, tensor);
        }
    }

    fn graph_input(&mut self, t: usize) -> Result<()> {
        let info = &self.subgraph.tensors[t];
        let dims = info.shape.iter().zip(&info.dynamic).enumerate();
        let shape = dims
            .map(|(i, (&d, &dynamic))| {
                if dynamic {
                    Dim::Symbol(format!("{}[{i}]", info.name).into())
                } else {
                    Dim::Known(d)
                }
            })
            .collect();
        let fact = Fact::new(info.dtype()?, Shape(shape));
        self.values[t] = Some(self.graph.add_input(info.name.clone(), fact));
        Ok(())
    }

    /// The value of tensor `t`.
    fn value(&mut self, t: usize) -> Result<ValueId> {
        if let Some(value) = self.values[t] {
            return Ok(value);
        }
        let info = &self.subgraph.tensors[t];
        let value = match self.constant(t)? {
            Some(tensor) => self.graph.add_constant(info.name.clone(), tensor),
            None => {
                let fact = Fact {
                    dtype: Some(info.dtype()?),
                    ..Fact::default()
                };
                self.graph.add_value(info.name.clone(), fact)
            }
        };
        self.values[t] = Some(value);
        Ok(value)
    }

    pub fn input(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        let t = op.tensor(i).ok_or_else(|| missing(i))?;
        self.value(t)
    }

    pub fn optional(&mut self, op: &Op, i: usize) -> Result<Option<ValueId>> {
        op.tensor(i).map(|t| self.value(t)).transpose()
    }

    pub fn output(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        let t =
            op.info.outputs.get(i).ok_or_else(|| {
                Error::new(ErrorCode::InvalidModel, format!("output {i} is missing"))
            })?;
        self.value(*t)
    }

    /// True where the state tensor of input `i` starts as zeros: a variable without data.
    pub fn is_zero_state(&self, op: &Op, i: usize) -> bool {
        op.tensor(i).is_none_or(|t| {
            let info = &self.subgraph.tensors[t];
            info.variable && !self.model.has_data(info)
        })
    }

    /// Writes the first output of `op`.
    pub fn emit(
        &mut self,
        op: &Op,
        operator: impl Operator,
        inputs: &[Option<ValueId>],
    ) -> Result<()> {
        let out = self.output(op, 0)?;
        self.graph.push(op.node.clone(), operator, inputs, &[out]);
        Ok(())
    }

    /// A node before the last one of a mapping.
    pub fn step(
        &mut self,
        op: &Op,
        operator: impl Operator,
        inputs: &[Option<ValueId>],
    ) -> ValueId {
        let name = format!("{}/{}", op.node, operator.name());
        let out = self.graph.add_value(format!("{name}:0"), Fact::default());
        self.graph.push(name, operator, inputs, &[out]);
        out
    }

    /// As [`Importer::emit`], with a fused activation that `operator` cannot take itself.
    pub fn emit_activated(
        &mut self,
        op: &Op,
        operator: impl Operator,
        inputs: &[Option<ValueId>],
        activation: Activation,
    ) -> Result<()> {
        let kind = match activation {
            Activation::None => return self.emit(op, operator, inputs),
            Activation::Clip { min, max } => UnaryKind::Clip {
                min: min.into(),
                max: max.into(),
            },
            Activation::Tanh => UnaryKind::Tanh,
            _ => UnaryKind::Relu,
        };
        let value = self.step(op, operator, inputs);
        self.emit(op, Unary(kind), &[Some(value)])
    }

    /// An `int64` vector.
    pub fn ints(&mut self, op: &Op, ints: &[i64]) -> Result<ValueId> {
        let tensor = Tensor::from_slice(&[ints.len()], ints)?;
        Ok(self.graph.add_constant(format!("{}/ints", op.node), tensor))
    }

    /// Input `i` with its dimensions in another order, at once where it is a constant.
    pub fn permuted(&mut self, op: &Op, i: usize, perm: &[usize]) -> Result<ValueId> {
        if let Some(tensor) = self.constant_input(op, i)? {
            let name = format!("{}/{perm:?}", self.info(op, i)?.name);
            let tensor = tensor.permuted(perm)?;
            return Ok(self.graph.add_constant(name, tensor));
        }
        let value = self.input(op, i)?;
        let perm = perm.to_vec();
        Ok(self.step(op, Transpose { perm }, &[Some(value)]))
    }

    /// Input `i` as an `int64` vector of one element, for axes and counts that TFLite has as scalars.
    pub fn as_vector(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        if self.constant_input(op, i)?.is_some() {
            let ints = self.constant_ints(op, i)?;
            return self.ints(op, &ints);
        }
        let value = self.input(op, i)?;
        let shape = self.ints(op, &[-1])?;
        let value = self.step(
            op,
            Reshape { allow_zero: false },
            &[Some(value), Some(shape)],
        );
        Ok(self.step(op, Cast::new(DType::I64), &[Some(value)]))
    }
}

fn missing(i: usize) -> Error {
    Error::new(ErrorCode::InvalidModel, format!("input {i} is missing"))
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
        _ if shape.get(q.axis) == Some(&channels) => shape[q.axis + 1..].iter().product(),
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
