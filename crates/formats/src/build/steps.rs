//! Nodes and constants on the way to a node's outputs.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Binary, BinaryKind, Cast, CastLike, Concat, Expand, Operator, Range, Reduce, ReduceKind,
    Reshape, ShapeOf, Slice, Split, Squeeze, Transpose, Unary, UnaryKind, Unsqueeze, Where,
    normalize_axis,
};
use kilim_core::tensor::Tensor;

use super::GraphBuilder;

/// Counts up to this are written out when a model is read.
const MAX_IOTA: i64 = 1 << 16;

impl GraphBuilder {
    /// A node with several outputs.
    pub fn apply(
        &mut self,
        op: impl Operator,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        self.apply_shared(Arc::new(op), inputs, outputs)
    }

    /// A node with one output.
    pub fn op(&mut self, op: impl Operator, inputs: &[ValueId]) -> Result<ValueId> {
        self.op_shared(Arc::new(op), inputs)
    }

    fn op_shared(&mut self, op: Arc<dyn Operator>, inputs: &[ValueId]) -> Result<ValueId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.step_shared(op, &inputs)
    }

    /// Pushes a node with one output; `None` stands for an optional input that is left out.
    pub fn step(&mut self, op: impl Operator, inputs: &[Option<ValueId>]) -> Result<ValueId> {
        self.step_shared(Arc::new(op), inputs)
    }

    fn step_shared(
        &mut self,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
    ) -> Result<ValueId> {
        let values = self.apply_shared(op, inputs, 1)?;
        Ok(values[0])
    }

    /// `kind` of every element.
    pub fn unary(&mut self, kind: UnaryKind, x: ValueId) -> Result<ValueId> {
        self.op(Unary(kind), &[x])
    }

    /// `kind` of every two elements; the two are broadcast.
    pub fn binary(&mut self, kind: BinaryKind, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.op(Binary::new(kind), &[a, b])
    }

    /// `a + b`, broadcast.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.binary(BinaryKind::Add, a, b)
    }

    /// `a - b`, broadcast.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.binary(BinaryKind::Sub, a, b)
    }

    /// `a * b`, broadcast.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.binary(BinaryKind::Mul, a, b)
    }

    /// `a / b`, broadcast.
    pub fn div(&mut self, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.binary(BinaryKind::Div, a, b)
    }

    /// `kind` over `axes`; over none `x` itself.
    pub fn reduce(
        &mut self,
        kind: ReduceKind,
        x: ValueId,
        axes: &[i64],
        keep_dims: bool,
    ) -> Result<ValueId> {
        let axes = self.i64s(axes)?;
        let op = Reduce {
            kind,
            keep_dims,
            noop_with_empty_axes: true,
        };
        self.op(op, &[x, axes])
    }

    /// `x` as `to`; nothing where it is known to be of that type.
    pub fn cast(&mut self, x: ValueId, to: DType) -> Result<ValueId> {
        if self.dtype(x) == Some(to) {
            return Ok(x);
        }
        self.op(Cast::new(to), &[x])
    }

    /// `x` in the element type of `like`.
    pub fn cast_like(&mut self, x: ValueId, like: ValueId) -> Result<ValueId> {
        match self.dtype(like) {
            Some(to) => self.cast(x, to),
            None => self.op(CastLike::default(), &[x, like]),
        }
    }

    /// Dimension `i` of the result is dimension `perm[i]` of `x`.
    pub fn transpose(&mut self, x: ValueId, perm: &[usize]) -> Result<ValueId> {
        let perm = perm.to_vec();
        self.op(Transpose { perm }, &[x])
    }

    /// `x` in another shape: 0 keeps a dimension, -1 is what is left.
    pub fn reshape(&mut self, x: ValueId, shape: &[i64]) -> Result<ValueId> {
        let shape = self.i64s(shape)?;
        self.reshape_to(x, shape)
    }

    /// `x` in another shape, an `int64` vector.
    pub fn reshape_to(&mut self, x: ValueId, shape: ValueId) -> Result<ValueId> {
        self.op(Reshape { allow_zero: false }, &[x, shape])
    }

    /// `x` with dimensions of 1 at `axes` of the result.
    pub fn unsqueeze(&mut self, x: ValueId, axes: &[i64]) -> Result<ValueId> {
        if axes.is_empty() {
            return Ok(x);
        }
        let axes = self.i64s(axes)?;
        self.op(Unsqueeze, &[x, axes])
    }

    /// `x` without the dimensions `axes`, which are 1.
    pub fn squeeze(&mut self, x: ValueId, axes: &[i64]) -> Result<ValueId> {
        let axes = self.i64s(axes)?;
        self.op(Squeeze, &[x, axes])
    }

    /// `x[start..end]` along one axis.
    pub fn slice(&mut self, x: ValueId, axis: i64, start: i64, end: i64) -> Result<ValueId> {
        let starts = self.i64s(&[start])?;
        let ends = self.i64s(&[end])?;
        let axes = self.i64s(&[axis])?;
        self.op(Slice, &[x, starts, ends, axes])
    }

    /// The parts one behind the other along `axis`.
    pub fn concat(&mut self, parts: &[ValueId], axis: i64) -> Result<ValueId> {
        match parts {
            [one] => Ok(*one),
            _ => self.op(Concat { axis }, parts),
        }
    }

    /// `x` broadcast with `shape`, an `int64` vector.
    pub fn expand(&mut self, x: ValueId, shape: ValueId) -> Result<ValueId> {
        self.op(Expand, &[x, shape])
    }

    /// The shape of `x` as an `int64` vector, a constant where it is known.
    pub fn shape_of(&mut self, x: ValueId) -> Result<ValueId> {
        if let Some(dims) = self.shape(x) {
            let dims: Vec<i64> = dims.into_iter().map(|d| d as i64).collect();
            return self.i64s(&dims);
        }
        self.op(
            ShapeOf {
                start: 0,
                end: None,
            },
            &[x],
        )
    }

    /// Dimension `axis` of `x` as an `int64` vector of one element.
    pub fn dim(&mut self, x: ValueId, axis: i64) -> Result<ValueId> {
        if let Some(dims) = self.fact(x).shape {
            let at = normalize_axis(axis, dims.rank())?;
            if let Some(n) = dims.0[at].known() {
                return self.i64s(&[n as i64]);
            }
            let (start, end) = (at as i64, Some(at as i64 + 1));
            return self.op(ShapeOf { start, end }, &[x]);
        }
        let end = (axis != -1).then_some(axis + 1);
        self.op(ShapeOf { start: axis, end }, &[x])
    }

    /// Several `int64` vectors, one after the other, a constant where all of them are.
    pub fn vector(&mut self, parts: &[ValueId]) -> Result<ValueId> {
        let mut all = Vec::new();
        for &part in parts {
            match self.constant(part) {
                Some(tensor) => all.extend(tensor.to_i64s()?),
                None => return self.concat(parts, 0),
            }
        }
        self.i64s(&all)
    }

    /// `0..n` as `int64`, where `n` is a vector of one element.
    pub fn iota(&mut self, n: ValueId) -> Result<ValueId> {
        if let Some(n) = self.constant(n) {
            let n = n.to_i64s()?.first().copied().unwrap_or(0);
            if n <= MAX_IOTA {
                let all: Vec<i64> = (0..n).collect();
                return self.i64s(&all);
            }
        }
        let limit = self.squeeze(n, &[0])?;
        let start = self.i64(0)?;
        let delta = self.i64(1)?;
        self.op(Range, &[start, limit, delta])
    }

    /// Two equal parts along an axis.
    pub fn halves(&mut self, x: ValueId, axis: i64) -> Result<[ValueId; 2]> {
        let parts = self.apply(Split { axis }, &[Some(x)], 2)?;
        Ok([parts[0], parts[1]])
    }

    /// `condition ? a : b`.
    pub fn choose(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> Result<ValueId> {
        self.op(Where, &[condition, a, b])
    }

    /// A constant.
    pub fn tensor_value(&mut self, tensor: Tensor) -> ValueId {
        self.node_constant("constant", tensor)
    }

    /// A constant `int64` vector.
    pub fn i64s(&mut self, ints: &[i64]) -> Result<ValueId> {
        let tensor = Tensor::from_slice(&[ints.len()], ints)?;
        Ok(self.tensor_value(tensor))
    }

    /// A constant `int64` scalar.
    pub fn i64(&mut self, n: i64) -> Result<ValueId> {
        let tensor = Tensor::scalar(n)?;
        Ok(self.tensor_value(tensor))
    }

    /// The scalar `n` in the element type of `like`.
    pub fn number(&mut self, n: f64, like: ValueId) -> Result<ValueId> {
        match self.dtype(like) {
            Some(dtype) => {
                let tensor = number(n, dtype)?;
                Ok(self.tensor_value(tensor))
            }
            None => {
                let tensor = number(n, DType::F32)?;
                let value = self.tensor_value(tensor);
                self.op(CastLike::default(), &[value, like])
            }
        }
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
