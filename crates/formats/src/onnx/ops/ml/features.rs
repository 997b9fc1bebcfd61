//! Preparation of features.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Gather, Pad, PadMode, ReduceKind, UnaryKind};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable, floats, numbers};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("ArrayFeatureExtractor", extractor),
    ("Binarizer", binarizer),
    ("FeatureVectorizer", vectorizer),
    ("Imputer", imputer),
    ("Normalizer", normalizer),
    ("Scaler", scaler),
]);

/// `(x - offset) * scale`, `float32`.
fn scaler(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let mut y = b.cast(x, DType::F32)?;
    for (name, kind) in [("offset", BinaryKind::Sub), ("scale", BinaryKind::Mul)] {
        let list = b.floats(name)?.unwrap_or_default();
        if !list.is_empty() {
            let tensor = Tensor::from_slice(&[list.len()], &list)?;
            let list = b.tensor_value(tensor);
            y = b.binary(kind, y, list)?;
        }
    }
    b.bind(0, y)
}

/// Each row divided by its norm, `float32`.
fn normalizer(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let x = b.cast(x, DType::F32)?;
    let size = b.unary(UnaryKind::Abs, x)?;
    let axes = [-1];
    let norm = match b.text_or("norm", "MAX")? {
        "MAX" => b.reduce(ReduceKind::Max, size, &axes, true)?,
        "L1" => b.reduce(ReduceKind::Sum, size, &axes, true)?,
        "L2" => b.reduce(ReduceKind::L2, x, &axes, true)?,
        other => return Err(unknown("norm", other)),
    };
    let least = b.number(1e-30, norm)?;
    let norm = b.binary(BinaryKind::Max, norm, least)?;
    let y = b.div(x, norm)?;
    b.bind(0, y)
}

/// Other values in place of missing ones.
fn imputer(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let integers = b.ints("imputed_value_int64s")?.unwrap_or_default();
    let reals = floats(b, "imputed_value_floats")?;
    let (values, missing) = if reals.is_empty() {
        let missing = b.int_or("replaced_value_int64", 0)?;
        let values: Vec<f64> = integers.iter().map(|&v| v as f64).collect();
        (values, missing as f64)
    } else {
        (reals, f64::from(b.float_or("replaced_value_float", 0.0)?))
    };
    if values.is_empty() {
        return Err(invalid("no values to put in"));
    }
    let values = numbers(b, &[values.len()], &values)?;
    let values = b.cast_like(values, x)?;
    let is_missing = if missing.is_nan() {
        b.unary(UnaryKind::IsNaN, x)?
    } else {
        let missing = b.number(missing, x)?;
        b.binary(BinaryKind::Equal, x, missing)?
    };
    let y = b.choose(is_missing, values, x)?;
    b.bind(0, y)
}

fn binarizer(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let threshold = b.float_or("threshold", 0.0)?;
    let threshold = b.number(threshold.into(), x)?;
    let above = b.binary(BinaryKind::Greater, x, threshold)?;
    let y = b.cast_like(above, x)?;
    b.bind(0, y)
}

/// Columns by number.
fn extractor(b: &mut NodeBuilder) -> Result<()> {
    let (x, columns) = (b.input(0)?, b.input(1)?);
    let columns = b.reshape(columns, &[-1])?;
    let mut y = b.op(Gather { axis: -1 }, &[x, columns])?;
    if b.rank(x)? == 1 {
        y = b.unsqueeze(y, &[0])?;
    }
    b.bind(0, y)
}

/// The inputs' columns one beside the other, as many of each as `inputdimensions` says.
fn vectorizer(b: &mut NodeBuilder) -> Result<()> {
    let inputs = b.required_from(0)?;
    let widths = b.counts("inputdimensions")?;
    let mut parts = Vec::with_capacity(inputs.len());
    for (i, &x) in inputs.iter().enumerate() {
        let x = b.cast(x, DType::F32)?;
        let x = match b.rank(x)? {
            1 => b.unsqueeze(x, &[1])?,
            _ => x,
        };
        let width = widths.as_ref().and_then(|w| w.get(i)).copied();
        parts.push(match width {
            Some(width) => widened(b, x, width)?,
            None => x,
        });
    }
    let y = b.concat(&parts, 1)?;
    b.bind(0, y)
}

/// The first `width` columns of `[rows, n]`, with columns of zeros behind the last where `n` is smaller.
fn widened(b: &mut NodeBuilder, x: ValueId, width: usize) -> Result<ValueId> {
    let known = b.fact(x).shape.and_then(|s| s.0.get(1)?.known());
    match known {
        Some(n) if n == width => Ok(x),
        Some(n) if n > width => b.slice(x, 1, 0, width as i64),
        Some(n) => {
            let pads = b.i64s(&[0, 0, 0, (width - n) as i64])?;
            let mode = PadMode::Constant;
            b.op(Pad { mode }, &[x, pads])
        }
        None => Err(kilim_core::error::unsupported(
            "a width that is known only at run time",
        )),
    }
}
