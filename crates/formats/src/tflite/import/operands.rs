//! What the mapping of an operator reads and writes.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::dim::{Dim, Shape};
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Fact, Operator, Unary, UnaryKind};
use kilim_core::tensor::Tensor;

use super::{Import, Op};
use crate::tflite::schema::TensorInfo;

impl<'a> Import<'a> {
    /// Shape, element type and quantisation of input `i`; `InvalidModel` where it is missing.
    pub fn info(&self, op: &Op, i: usize) -> Result<&'a TensorInfo> {
        op.tensor(i)
            .map(|t| &self.subgraph.tensors[t])
            .ok_or_else(|| missing(i))
    }

    /// Shape, element type and quantisation of output `i`; `InvalidModel` where it is missing.
    pub fn output_info(&self, op: &Op, i: usize) -> Result<&'a TensorInfo> {
        Ok(&self.subgraph.tensors[op.output_tensor(i)?])
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

    /// The number of dimensions of input `i`: what is inferred, since files leave out shapes that depend on data, else what the
    /// file says.
    pub fn input_rank(&self, op: &Op, i: usize) -> Result<usize> {
        let inferred = self.inferred_shape(op, i).map(|shape| shape.rank());
        Ok(inferred.unwrap_or(self.info(op, i)?.shape.len()))
    }

    /// Dimension `axis` of input `i`, inferred or what the file says; `InvalidModel` where it has none.
    pub fn input_dim(&self, op: &Op, i: usize, axis: usize) -> Result<usize> {
        let inferred = self.inferred_shape(op, i);
        let inferred = inferred.and_then(|shape| shape.0.get(axis)?.known());
        let said = self.info(op, i)?.shape.get(axis).copied();
        inferred.or(said).ok_or_else(|| {
            let message = format!("input {i} has no dimension {axis}");
            Error::new(ErrorCode::InvalidModel, message)
        })
    }

    fn inferred_shape(&self, op: &Op, i: usize) -> Option<&Shape> {
        let value = op.tensor(i).and_then(|t| self.values[t])?;
        self.builder.known_shape(value)
    }

    /// The constant that tensor `t` holds, if it holds one.
    pub(super) fn data(&self, t: usize) -> Result<Option<Tensor>> {
        if let Some(tensor) = &self.computed[t] {
            return Ok(Some(tensor.clone()));
        }
        self.model.constant(&self.subgraph.tensors[t])
    }

    /// The constant of input `i`, if it is there and is one.
    pub fn constant_input(&self, op: &Op, i: usize) -> Result<Option<Tensor>> {
        op.tensor(i).map_or(Ok(None), |t| self.data(t))
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
            self.computed[t] = Some(tensor);
        }
    }

    /// Makes tensor `t` an input of the graph; each dynamic dimension is a symbol of its own.
    pub(super) fn graph_input(&mut self, t: usize) -> Result<()> {
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
        self.values[t] = Some(self.builder.add_input(&info.name, fact)?);
        Ok(())
    }

    /// The value of tensor `t`.
    pub(super) fn value(&mut self, t: usize) -> Result<ValueId> {
        if let Some(value) = self.values[t] {
            return Ok(value);
        }
        let info = &self.subgraph.tensors[t];
        let value = match self.data(t)? {
            Some(tensor) => self.builder.add_constant(&info.name, tensor),
            None => {
                let dtype = match info.is_complex() {
                    true => DType::F32,
                    false => info.dtype()?,
                };
                let fact = Fact {
                    dtype: Some(dtype),
                    ..Fact::default()
                };
                self.builder.add_value(&info.name, fact)
            }
        };
        self.values[t] = Some(value);
        Ok(value)
    }

    /// The value of input `i`; `InvalidModel` where it is missing.
    pub fn input(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        let t = op.tensor(i).ok_or_else(|| missing(i))?;
        self.value(t)
    }

    /// The value of input `i`, if it is there.
    pub fn optional(&mut self, op: &Op, i: usize) -> Result<Option<ValueId>> {
        op.tensor(i).map(|t| self.value(t)).transpose()
    }

    /// The value of output `i`; `InvalidModel` where it is missing.
    pub fn output(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        self.value(op.output_tensor(i)?)
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
        self.emit_shared(op, 0..1, Arc::new(operator), inputs)
    }

    /// Writes output `i` of `op`.
    pub fn emit_output(
        &mut self,
        op: &Op,
        i: usize,
        operator: impl Operator,
        inputs: &[Option<ValueId>],
    ) -> Result<()> {
        self.emit_shared(op, i..i + 1, Arc::new(operator), inputs)
    }

    /// Writes all outputs of `op`.
    pub fn emit_all(
        &mut self,
        op: &Op,
        operator: impl Operator,
        inputs: &[Option<ValueId>],
    ) -> Result<()> {
        self.emit_shared(op, 0..op.output_count(), Arc::new(operator), inputs)
    }

    fn emit_shared(
        &mut self,
        op: &Op,
        outputs: Range<usize>,
        operator: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
    ) -> Result<()> {
        let outputs = outputs.map(|i| self.output(op, i));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        self.builder.push_into(operator, inputs, &outputs)
    }

    /// Emits `operator`, and a node of its own for a fused activation that `operator` cannot take.
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
        let value = self.step(operator, inputs)?;
        self.emit(op, Unary(kind), &[Some(value)])
    }

    /// Input `i` with its dimensions in another order, at once where it is a constant.
    pub fn permuted(&mut self, op: &Op, i: usize, perm: &[usize]) -> Result<ValueId> {
        if let Some(tensor) = self.constant_input(op, i)? {
            let name = format!("{}/{perm:?}", self.info(op, i)?.name);
            let tensor = tensor.permuted(perm)?;
            return Ok(self.add_constant(&name, tensor));
        }
        let value = self.input(op, i)?;
        self.transpose(value, perm)
    }

    /// Input `i` as an `int64` vector of one element, for axes and counts that TFLite has as scalars.
    pub fn as_vector(&mut self, op: &Op, i: usize) -> Result<ValueId> {
        if self.constant_input(op, i)?.is_some() {
            let ints = self.constant_ints(op, i)?;
            return self.i64s(&ints);
        }
        let value = self.input(op, i)?;
        let value = self.reshape(value, &[-1])?;
        self.cast(value, DType::I64)
    }
}

fn missing(i: usize) -> Error {
    Error::new(ErrorCode::InvalidModel, format!("input {i} is missing"))
}
