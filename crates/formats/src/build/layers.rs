//! What the layers of networks for pictures have in common, whatever their format. Dimension 0 of data is the batch, dimension 1 the
//! channels.

use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, BatchNorm, Fact, MatMul, UnaryKind};
use kilim_core::tensor::Tensor;

use super::GraphBuilder;

impl GraphBuilder {
    /// A constant of one `float32` number.
    pub fn float(&mut self, number: f32) -> Result<ValueId> {
        let tensor = Tensor::scalar(number)?;
        Ok(self.tensor_value(tensor))
    }

    /// `x * by`; `x` itself for 1.
    pub fn scaled(&mut self, x: ValueId, by: f32) -> Result<ValueId> {
        match by {
            1.0 => Ok(x),
            by => {
                let by = self.float(by)?;
                self.mul(x, by)
            }
        }
    }

    /// `x + by`; `x` itself for 0.
    pub fn shifted(&mut self, x: ValueId, by: f32) -> Result<ValueId> {
        match by {
            0.0 => Ok(x),
            by => {
                let by = self.float(by)?;
                self.add(x, by)
            }
        }
    }

    /// `min(max(x, min), max)`.
    pub fn clipped(&mut self, x: ValueId, min: f32, max: f32) -> Result<ValueId> {
        let range = UnaryKind::Clip {
            min: min.into(),
            max: max.into(),
        };
        self.unary(range, x)
    }

    /// `x * max(0, min(1, alpha * x + beta))`. Files write 1/6 with the digits of a float.
    pub fn hard_swish(&mut self, x: ValueId, alpha: f32, beta: f32) -> Result<ValueId> {
        if (alpha - 1.0 / 6.0).abs() < 1e-6 && beta == 0.5 {
            return self.unary(UnaryKind::HardSwish, x);
        }
        let gate = self.unary(UnaryKind::HardSigmoid { alpha, beta }, x)?;
        self.mul(x, gate)
    }

    /// The function of a number that ncnn, Tengine and MNN have for the same, 0 to 15; `None` for others.
    pub fn numbered(&mut self, x: ValueId, number: i64) -> Result<Option<ValueId>> {
        let kind = match number {
            0 => UnaryKind::Abs,
            1 => UnaryKind::Neg,
            2 => UnaryKind::Floor,
            3 => UnaryKind::Ceil,
            4 => return self.mul(x, x).map(Some),
            5 => UnaryKind::Sqrt,
            6 => {
                let root = self.unary(UnaryKind::Sqrt, x)?;
                return self.unary(UnaryKind::Reciprocal, root).map(Some);
            }
            7 => UnaryKind::Exp,
            8 => UnaryKind::Log,
            9 => UnaryKind::Sin,
            10 => UnaryKind::Cos,
            11 => UnaryKind::Tan,
            12 => UnaryKind::Asin,
            13 => UnaryKind::Acos,
            14 => UnaryKind::Atan,
            15 => UnaryKind::Reciprocal,
            _ => return Ok(None),
        };
        self.unary(kind, x).map(Some)
    }

    /// Two halves along an axis: the first times the sigmoid of the second.
    pub fn gated(&mut self, x: ValueId, axis: i64) -> Result<ValueId> {
        let [first, second] = self.halves(x, axis)?;
        let gate = self.unary(UnaryKind::Sigmoid, second)?;
        self.mul(first, gate)
    }

    /// A list `[n]` in a shape that broadcasts along the channels of `x`.
    pub fn per_channel(&mut self, list: ValueId, x: ValueId) -> Result<ValueId> {
        let inner = self.rank(x)?.saturating_sub(2);
        let first = self.rank(list)? as i64;
        let axes: Vec<i64> = (first..first + inner as i64).collect();
        self.unsqueeze(list, &axes)
    }

    /// `x * scale + bias`, lists `[channels]`: a batch norm, which convolutions before take in.
    pub fn channel_affine(
        &mut self,
        x: ValueId,
        scale: ValueId,
        bias: Option<ValueId>,
        channels: usize,
    ) -> Result<ValueId> {
        let (zero, one) = (self.filled(channels, 0.0)?, self.filled(channels, 1.0)?);
        let norm = BatchNorm {
            epsilon: 0.0,
            channels_last: false,
        };
        self.op(norm, &[x, scale, bias.unwrap_or(zero), zero, one])
    }

    /// A constant list of `n` equal `float32` numbers.
    pub fn filled(&mut self, n: usize, number: f32) -> Result<ValueId> {
        let tensor = Tensor::filled(&[n], &Tensor::scalar(number)?)?;
        Ok(self.tensor_value(tensor))
    }

    /// Rows of `x` times the transposed weights `[outputs, inputs]`, plus a bias `[outputs]`.
    pub fn linear(
        &mut self,
        x: ValueId,
        weights: ValueId,
        bias: Option<ValueId>,
    ) -> Result<ValueId> {
        let product = MatMul {
            transpose_b: true,
            alpha: None,
            activation: Activation::None,
        };
        self.step(product, &[Some(x), Some(weights), bias])
    }

    /// `groups * each` channels: the first of all groups, then the second of all groups, and so on.
    pub fn shuffled(&mut self, x: ValueId, groups: usize, each: usize) -> Result<ValueId> {
        let rank = self.rank(x)?;
        let known = self.known_shape(x).cloned().unwrap_or_default().0;
        let batch = self.dim(x, 0)?;
        let rest = (2..rank as i64)
            .map(|axis| self.dim(x, axis))
            .collect::<Result<Vec<_>>>()?;
        let parted = self.i64s(&[groups as i64, each as i64])?;
        let all = groups.saturating_mul(each);
        let whole = self.i64s(&[all as i64])?;
        let dims = |channels: &[usize]| {
            let channels = channels.iter().map(|&n| Dim::Known(n));
            let rest = known.iter().skip(2).cloned();
            known
                .iter()
                .take(1)
                .cloned()
                .chain(channels)
                .chain(rest)
                .collect()
        };
        let y = self.reshape_as(
            x,
            &[&[batch, parted], &rest[..]].concat(),
            dims(&[groups, each]),
        )?;
        let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..rank + 1).collect();
        let y = self.transpose(y, &perm)?;
        self.reshape_as(y, &[&[batch, whole], &rest[..]].concat(), dims(&[all]))
    }

    /// `x` in the shape of these `int64` vectors, one after the other. `dims` is what is known of it: a shape that is put together when
    /// the network runs says nothing of those of its numbers that are known.
    pub fn reshape_as(&mut self, x: ValueId, parts: &[ValueId], dims: Vec<Dim>) -> Result<ValueId> {
        let shape = self.vector(parts)?;
        let y = self.reshape_to(x, shape)?;
        let known = Fact {
            dtype: self.dtype(y),
            shape: Some(Shape(dims)),
            ..Fact::default()
        };
        self.declare(y, known);
        Ok(y)
    }
}
