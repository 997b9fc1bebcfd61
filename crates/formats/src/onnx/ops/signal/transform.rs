//! The transform that DFT and STFT are made of: a product with a matrix of cosines and sines.

use std::f64::consts::TAU;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, MatMul, ShapeOf, UnaryKind};

use crate::fourier;
use crate::onnx::builder::{NodeBuilder, number};
use crate::onnx::proto::invalid;

/// How many values a transform is of.
#[derive(Clone, Copy)]
pub enum Length {
    Known(usize),
    /// A vector of one element.
    Computed(ValueId),
}

impl Length {
    pub fn value(self, b: &mut NodeBuilder) -> Result<ValueId> {
        match self {
            Length::Known(n) => b.i64s(&[n as i64]),
            Length::Computed(n) => Ok(n),
        }
    }

    /// The bins of half a spectrum: half the length, and one.
    fn bins(self, b: &mut NodeBuilder) -> Result<Length> {
        Ok(match self {
            Length::Known(n) => Length::Known(n / 2 + 1),
            Length::Computed(n) => {
                let (one, two) = (b.i64s(&[1])?, b.i64s(&[2])?);
                let half = b.div(n, two)?;
                Length::Computed(b.add(half, one)?)
            }
        })
    }
}

/// What a transform of the last axis but one does.
pub struct Transform {
    pub length: Length,
    pub inverse: bool,
    /// Half of the spectrum: the output's, or when inverse the input's.
    pub onesided: bool,
}

impl Transform {
    /// How many values of the axis are read.
    pub fn taken(&self, b: &mut NodeBuilder) -> Result<Length> {
        match self.inverse && self.onesided {
            true => self.length.bins(b),
            false => Ok(self.length),
        }
    }

    /// The matrices `[taken, given]` that take real (or imaginary) parts to the cosine and sine
    /// sums, scale included.
    fn matrices(&self, b: &mut NodeBuilder) -> Result<[ValueId; 2]> {
        match self.length {
            Length::Known(n) => {
                let [cos, sin] = fourier::matrices(n, self.inverse, self.onesided)?;
                Ok([b.tensor_value(cos), b.tensor_value(sin)])
            }
            Length::Computed(n) => self.computed_matrices(b, n),
        }
    }

    /// The cosine and sine matrices `[taken, given]` for a length `n` that is known at run time only.
    fn computed_matrices(&self, b: &mut NodeBuilder, n: ValueId) -> Result<[ValueId; 2]> {
        let bins = self.length.bins(b)?.value(b)?;
        let (rows, columns) = match (self.inverse, self.onesided) {
            (false, true) => (n, bins),
            (true, true) => (bins, n),
            _ => (n, n),
        };
        let rows = b.iota(rows)?;
        let rows = b.unsqueeze(rows, &[1])?;
        let columns = b.iota(columns)?;
        let turns = b.mul(rows, columns)?;
        let turns = b.binary(BinaryKind::Mod, turns, n)?;
        let turns = b.cast(turns, DType::F64)?;
        let full = b.tensor_value(number(TAU, DType::F64)?);
        let angle = b.mul(turns, full)?;
        let whole = b.cast(n, DType::F64)?;
        let angle = b.div(angle, whole)?;
        let mut cos = b.unary(UnaryKind::Cos, angle)?;
        let mut sin = b.unary(UnaryKind::Sin, angle)?;
        if !self.inverse {
            return Ok([cos, b.unary(UnaryKind::Neg, sin)?]);
        }
        if self.onesided {
            let weight = bin_weights(b, rows, n)?;
            cos = b.mul(cos, weight)?;
            sin = b.mul(sin, weight)?;
        }
        Ok([b.div(cos, whole)?, b.div(sin, whole)?])
    }

    /// `x` is `[.., length, 1 or 2]`.
    pub fn apply(&self, b: &mut NodeBuilder, mut x: ValueId) -> Result<ValueId> {
        let like = x;
        let mut parts = b.fact(x).shape.and_then(|s| s.0.last()?.known());
        if parts.is_none() {
            x = with_imaginary(b, x)?;
            parts = Some(2);
        }
        let wide = b.cast(x, DType::F64)?;
        let [cos, sin] = self.matrices(b)?;
        // Real parts, and imaginary ones if there are, as rows.
        let part = |b: &mut NodeBuilder, i: i64| -> Result<ValueId> {
            let part = b.slice(wide, -1, i, i + 1)?;
            b.squeeze(part, &[-1])
        };
        let product = |b: &mut NodeBuilder, x, m| b.op(MatMul::default(), &[x, m]);
        let re = part(b, 0)?;
        let mut real = product(b, re, cos)?;
        let mut imaginary = product(b, re, sin)?;
        match parts {
            Some(1) => {}
            Some(2) => {
                let im = part(b, 1)?;
                let x = product(b, im, sin)?;
                real = b.sub(real, x)?;
                let x = product(b, im, cos)?;
                imaginary = b.add(imaginary, x)?;
            }
            _ => return Err(invalid("a signal that is neither real nor complex")),
        }
        let real = b.unsqueeze(real, &[-1])?;
        let y = if self.inverse && self.onesided {
            real
        } else {
            let imaginary = b.unsqueeze(imaginary, &[-1])?;
            b.concat(&[real, imaginary], -1)?
        };
        b.cast_like(y, like)
    }
}

/// For the bins of half a spectrum how many each stands for: two, but one for the first and, of an
/// even length, the middle one.
fn bin_weights(b: &mut NodeBuilder, bins: ValueId, length: ValueId) -> Result<ValueId> {
    let (zero, two) = (b.i64s(&[0])?, b.i64s(&[2])?);
    let first = b.binary(BinaryKind::Equal, bins, zero)?;
    let twice = b.mul(bins, two)?;
    let middle = b.binary(BinaryKind::Equal, twice, length)?;
    let single = b.binary(BinaryKind::Or, first, middle)?;
    let (one, two) = (number(1.0, DType::F64)?, number(2.0, DType::F64)?);
    let (one, two) = (b.tensor_value(one), b.tensor_value(two));
    b.choose(single, one, two)
}

/// A signal that may be real as a complex one. One of more parts than two is refused when it comes, its
/// zeros being of a negative shape.
fn with_imaginary(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let rest = ShapeOf {
        start: 0,
        end: Some(-1),
    };
    let (rest, parts, two) = (b.op(rest, &[x])?, b.dim(x, -1)?, b.i64s(&[2])?);
    let missing = b.sub(two, parts)?;
    let shape = b.vector(&[rest, missing])?;
    let zero = b.number(0.0, x)?;
    let zeros = b.expand(zero, shape)?;
    b.concat(&[x, zeros], -1)
}
