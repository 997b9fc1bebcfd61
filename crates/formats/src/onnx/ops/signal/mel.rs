//! MelWeightMatrix.

use std::f64::consts::LN_10;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use crate::onnx::builder::{NodeBuilder, number};
use crate::onnx::tensor::dtype;

/// Triangles over the bins of a spectrum, `[bins, triangles]`: their corners stand at equal distances
/// on the mel scale, rounded down to bins.
pub fn weights(b: &mut NodeBuilder) -> Result<()> {
    let to = dtype(b.int_or("output_datatype", 1)?)?;
    let mut inputs = Vec::with_capacity(5);
    for i in 0..5 {
        let x = b.input(i)?;
        let x = b.reshape(x, &[1])?;
        inputs.push(b.cast(x, DType::F64)?);
    }
    let [count, length, rate, low, high] = inputs[..] else {
        return Ok(());
    };
    let mut b = Numbers(b);
    let corners = b.corners(count, length, rate, low, high)?;
    let (first, last) = (b.range(corners, 0, -2)?, b.range(corners, 2, i64::MAX)?);
    let middle = b.range(corners, 1, -1)?;
    let two = b.number(2.0)?;
    let half = b.0.div(length, two)?;
    let half = b.0.unary(UnaryKind::Floor, half)?;
    let one = b.number(1.0)?;
    let bins = b.0.add(half, one)?;
    let bins = b.count(bins)?;
    let bins = b.0.unsqueeze(bins, &[1])?;
    // Up to the middle corner, which counts even where nothing leads to it.
    let zero = b.number(0.0)?;
    let rise = b.0.sub(middle, first)?;
    let flat = b.0.binary(BinaryKind::Equal, rise, zero)?;
    let above = b.0.sub(bins, first)?;
    let rising = b.0.div(above, rise)?;
    let rising = b.0.choose(flat, one, rising)?;
    let begun = b.0.binary(BinaryKind::GreaterOrEqual, bins, first)?;
    let risen = b.0.binary(BinaryKind::LessOrEqual, bins, middle)?;
    let on_rise = b.0.binary(BinaryKind::And, begun, risen)?;
    let y = b.0.choose(on_rise, rising, zero)?;
    // And down from it.
    let fall = b.0.sub(last, middle)?;
    let below = b.0.sub(last, bins)?;
    let falling = b.0.div(below, fall)?;
    let from = b.0.binary(BinaryKind::GreaterOrEqual, bins, middle)?;
    let until = b.0.binary(BinaryKind::Less, bins, last)?;
    let on_fall = b.0.binary(BinaryKind::And, from, until)?;
    let y = b.0.choose(on_fall, falling, y)?;
    let y = b.0.cast(y, to)?;
    b.0.bind(0, y)
}

/// A builder of arithmetic in double precision.
struct Numbers<'b, 'i, 'a>(&'b mut NodeBuilder<'i, 'a>);

impl Numbers<'_, '_, '_> {
    fn number(&mut self, n: f64) -> Result<ValueId> {
        Ok(self.0.tensor_value(number(n, DType::F64)?))
    }

    /// `0..n`.
    fn count(&mut self, n: ValueId) -> Result<ValueId> {
        let n = self.0.cast(n, DType::I64)?;
        let count = self.0.iota(n)?;
        self.0.cast(count, DType::F64)
    }

    fn range(&mut self, x: ValueId, start: i64, end: i64) -> Result<ValueId> {
        self.0.slice(x, 0, start, end)
    }

    /// `2595 log10(1 + x / 700)`.
    fn mel(&mut self, x: ValueId) -> Result<ValueId> {
        let (scale, one) = (self.number(700.0)?, self.number(1.0)?);
        let x = self.0.div(x, scale)?;
        let x = self.0.add(x, one)?;
        let x = self.0.unary(UnaryKind::Log, x)?;
        let scale = self.number(2595.0 / LN_10)?;
        self.0.mul(x, scale)
    }

    /// The bins of all corners, two more than triangles.
    fn corners(
        &mut self,
        count: ValueId,
        length: ValueId,
        rate: ValueId,
        low: ValueId,
        high: ValueId,
    ) -> Result<ValueId> {
        let two = self.number(2.0)?;
        let all = self.0.add(count, two)?;
        let (low, high) = (self.mel(low)?, self.mel(high)?);
        let span = self.0.sub(high, low)?;
        let step = self.0.div(span, all)?;
        let mel = self.count(all)?;
        let mel = self.0.mul(mel, step)?;
        let mel = self.0.add(mel, low)?;
        let scale = self.number(LN_10 / 2595.0)?;
        let power = self.0.mul(mel, scale)?;
        let power = self.0.unary(UnaryKind::Exp, power)?;
        let one = self.number(1.0)?;
        let power = self.0.sub(power, one)?;
        let scale = self.number(700.0)?;
        let hertz = self.0.mul(power, scale)?;
        let length = self.0.add(length, one)?;
        let bins = self.0.mul(hertz, length)?;
        let bins = self.0.div(bins, rate)?;
        self.0.unary(UnaryKind::Floor, bins)
    }
}
