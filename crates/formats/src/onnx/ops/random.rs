//! Random numbers, and what is drawn with them, written out.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, Cumulative, Distribution, Dropout, Random, ReduceKind, Softmax, SoftmaxKind, Tile,
    UnaryKind,
};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("Bernoulli", bernoulli),
    ("Dropout", dropout),
    ("Multinomial", multinomial),
    ("RandomNormal", |b| shaped(b, normal(b)?)),
    ("RandomNormalLike", |b| like(b, normal(b)?)),
    ("RandomUniform", |b| shaped(b, uniform(b)?)),
    ("RandomUniformLike", |b| like(b, uniform(b)?)),
]);

fn uniform(b: &NodeBuilder) -> Result<Distribution> {
    Ok(Distribution::Uniform {
        low: b.float_or("low", 0.0)?,
        high: b.float_or("high", 1.0)?,
    })
}

fn normal(b: &NodeBuilder) -> Result<Distribution> {
    Ok(Distribution::Normal {
        mean: b.float_or("mean", 0.0)?,
        deviation: b.float_or("scale", 1.0)?,
    })
}

/// The seed is a number with a fraction, or an integer in Dropout.
fn seed(b: &NodeBuilder) -> Result<Option<u64>> {
    let Some(attribute) = b.attribute("seed") else {
        return Ok(None);
    };
    Ok(match attribute.i {
        Some(seed) => Some(seed as u64),
        None => b.float("seed")?.map(|seed| f64::from(seed).to_bits()),
    })
}

fn chosen_type(b: &NodeBuilder) -> Result<Option<DType>> {
    b.int("dtype")?.filter(|&n| n != 0).map(dtype).transpose()
}

fn shaped(b: &mut NodeBuilder, distribution: Distribution) -> Result<()> {
    let shape = b.counts("shape")?;
    let op = Random {
        distribution,
        dtype: Some(chosen_type(b)?.unwrap_or(DType::F32)),
        shape: Some(shape.ok_or_else(|| invalid("the attribute `shape` is missing"))?),
        seed: seed(b)?,
    };
    b.emit(op, &[])
}

fn like(b: &mut NodeBuilder, distribution: Distribution) -> Result<()> {
    b.emit_same(Random {
        distribution,
        dtype: chosen_type(b)?,
        shape: None,
        seed: seed(b)?,
    })
}

/// Uniform in `0..1`, of the shape of `x`. Half precision would round some of them up to 1.
fn units(b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
    let op = Random {
        distribution: Distribution::Uniform {
            low: 0.0,
            high: 1.0,
        },
        dtype: Some(DType::F32),
        shape: None,
        seed: seed(b)?,
    };
    b.op(op, &[x])
}

fn bernoulli(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let units = units(b, x)?;
    let chance = b.cast(x, DType::F32)?;
    let hit = b.binary(BinaryKind::Less, units, chance)?;
    let y = match chosen_type(b)? {
        Some(to) => b.cast(hit, to)?,
        None => b.cast_like(hit, x)?,
    };
    b.bind(0, y)
}

/// Draws `sample_size` classes for each row of the logarithms of weights `[batch, classes]`. The class is the
/// number of classes whose cumulative weight a random number reaches.
fn multinomial(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let samples = b.count("sample_size", Some(1))?;
    let to = chosen_type(b)?.unwrap_or(DType::I32);
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: 1,
        beta: 1.0,
    };
    let weights = b.op(softmax, &[x])?;
    let axis = b.i64(1)?;
    let up_to = Cumulative {
        product: false,
        exclusive: false,
        reverse: false,
    };
    let weights = b.cast(weights, DType::F32)?;
    let sums = b.op(up_to, &[weights, axis])?;
    // The last sum may be a little less than 1.
    let sums = b.slice(sums, 1, 0, -1)?;
    let sums = b.unsqueeze(sums, &[1])?;
    let column = b.slice(x, 1, 0, 1)?;
    let repeats = b.i64s(&[1, samples as i64])?;
    let column = b.op(Tile, &[column, repeats])?;
    let units = units(b, column)?;
    let units = b.unsqueeze(units, &[2])?;
    let passed = b.binary(BinaryKind::LessOrEqual, sums, units)?;
    let passed = b.cast(passed, to)?;
    let y = b.reduce(ReduceKind::Sum, passed, &[2], false)?;
    b.bind(0, y)
}

fn dropout(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let mode = match b.version() {
        12.. => b.optional(2)?,
        _ => None,
    };
    let known = match mode {
        Some(mode) => b.constant(mode).map(|mode| mode.to_i64s()).transpose()?,
        None => Some(vec![0]),
    };
    if known.is_some_and(|mode| mode == [0]) {
        return keep_all(b, x);
    }
    let (data, narrow) = (x, b.dtype(x).is_some_and(DType::is_narrow_float));
    let x = if narrow { b.cast(x, DType::F32)? } else { x };
    let ratio = match b.optional(1)? {
        Some(ratio) => b.cast_like(ratio, x)?,
        None => b.number(0.5, x)?,
    };
    let units = units(b, x)?;
    let chance = b.cast(ratio, DType::F32)?;
    let mut mask = b.binary(BinaryKind::GreaterOrEqual, units, chance)?;
    let one = b.number(1.0, x)?;
    let kept = b.sub(one, ratio)?;
    let mut scale = b.div(one, kept)?;
    if let Some(mode) = mode {
        let idle = b.unary(UnaryKind::Not, mode)?;
        mask = b.binary(BinaryKind::Or, mask, idle)?;
        scale = b.choose(mode, scale, one)?;
    }
    let scaled = b.mul(x, scale)?;
    let zero = b.number(0.0, x)?;
    let y = b.choose(mask, scaled, zero)?;
    let y = b.cast_like(y, data)?;
    b.bind(0, y)?;
    b.bind(1, mask)
}

/// Dropout at inference.
fn keep_all(b: &mut NodeBuilder, x: ValueId) -> Result<()> {
    if !b.has_output(1) {
        let y = b.unary(UnaryKind::Identity, x)?;
        return b.bind(0, y);
    }
    let outputs = b.apply(Dropout, &[Some(x)], 2)?;
    b.bind(0, outputs[0])?;
    // Before operator set 10 the mask has the element type of the data.
    let mask = match b.version() {
        ..10 => b.cast_like(outputs[1], x)?,
        _ => outputs[1],
    };
    b.bind(1, mask)
}
