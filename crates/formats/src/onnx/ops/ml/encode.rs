//! Categories to numbers and back.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Cast, DictVectorizer, Lookup, MapValues, OneHot, ZipMap};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("CastMap", cast_map),
    ("CategoryMapper", category_mapper),
    ("DictVectorizer", dict_vectorizer),
    ("LabelEncoder", label_encoder),
    ("OneHotEncoder", one_hot),
    ("ZipMap", zip_map),
]);

/// The list that stands in one of the attributes `{what}_floats`, `{what}_int64s`, `{what}_strings`,
/// `{what}_tensor`.
fn list(b: &NodeBuilder, what: &str) -> Result<Tensor> {
    if let Some(list) = b.tensor(&format!("{what}_tensor"))? {
        let len = list.len();
        return list.reshaped(&[len]);
    }
    if let Some(list) = b.ints(&format!("{what}_int64s"))?.filter(|l| !l.is_empty()) {
        return Tensor::from_slice(&[list.len()], &list);
    }
    if let Some(list) = b
        .floats(&format!("{what}_floats"))?
        .filter(|l| !l.is_empty())
    {
        return Tensor::from_slice(&[list.len()], &list);
    }
    b.text_list(&format!("{what}_strings"))
}

/// What stands for keys that are not there, for values of this element type.
fn default(b: &mut NodeBuilder, values: DType) -> Result<ValueId> {
    if let Some(tensor) = b.tensor("default_tensor")? {
        let tensor = tensor.reshaped(&[])?;
        return Ok(b.tensor_value(tensor));
    }
    let tensor = match values {
        DType::F32 => Tensor::scalar(b.float_or("default_float", -0.0)?)?,
        DType::I64 => Tensor::scalar(b.int_or("default_int64", -1)?)?,
        DType::String => text(b.text_or("default_string", "_Unused")?)?,
        other => crate::onnx::builder::number(0.0, other)?,
    };
    Ok(b.tensor_value(tensor))
}

fn text(text: &str) -> Result<Tensor> {
    Tensor::from_texts(&[], vec![Arc::from(text)])
}

fn label_encoder(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    if b.version() < 2 {
        return places(b, x);
    }
    let (keys, values) = (list(b, "keys")?, list(b, "values")?);
    if keys.len() != values.len() {
        return Err(invalid("not as many keys as values"));
    }
    let default = default(b, values.dtype())?;
    look_up(b, x, keys, values, default)
}

fn look_up(
    b: &mut NodeBuilder,
    x: ValueId,
    keys: Tensor,
    values: Tensor,
    default: ValueId,
) -> Result<()> {
    let (keys, values) = (b.tensor_value(keys), b.tensor_value(values));
    let y = b.op(Lookup, &[x, keys, values, default])?;
    b.bind(0, y)
}

/// The first form of LabelEncoder: strings and their places in a list.
fn places(b: &mut NodeBuilder, x: ValueId) -> Result<()> {
    let texts = b.text_list("classes_strings")?;
    let places: Vec<i64> = (0..texts.len() as i64).collect();
    let places = Tensor::from_slice(&[texts.len()], &places)?;
    either_way(b, x, texts, places)
}

/// Strings and the integers of the same places.
fn category_mapper(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let texts = b.text_list("cats_strings")?;
    let numbers = list(b, "cats")?;
    if numbers.len() != texts.len() {
        return Err(invalid("not as many integers as strings"));
    }
    either_way(b, x, texts, numbers)
}

/// Maps strings to integers, or back where `x` holds integers.
fn either_way(b: &mut NodeBuilder, x: ValueId, texts: Tensor, numbers: Tensor) -> Result<()> {
    match b.dtype(x) {
        Some(DType::String) => {
            let default = default(b, DType::I64)?;
            look_up(b, x, texts, numbers, default)
        }
        Some(_) => {
            let default = default(b, DType::String)?;
            look_up(b, x, numbers, texts, default)
        }
        None => Err(unsupported("an input that may be strings or integers")),
    }
}

/// A new last axis with a one where the category stands in the list.
fn one_hot(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let keys = match b.ints("cats_int64s")?.filter(|l| !l.is_empty()) {
        Some(list) => Tensor::from_slice(&[list.len()], &list)?,
        None => b.text_list("cats_strings")?,
    };
    let n = keys.len();
    let x = match keys.dtype() {
        DType::String => x,
        integers => b.cast(x, integers)?,
    };
    let places: Vec<i64> = (0..n as i64).collect();
    let places = Tensor::from_slice(&[n], &places)?;
    let (keys, places) = (b.tensor_value(keys), b.tensor_value(places));
    let mut inputs = vec![x, keys, places];
    if b.int_or("zeros", 1)? != 0 {
        // Behind the last place, which is hot nowhere.
        inputs.push(b.i64(n as i64)?);
    }
    let places = b.op(Lookup, &inputs)?;
    let depth = b.i64(n as i64)?;
    let values = b.tensor_value(Tensor::from_slice(&[2], &[0f32, 1.0])?);
    let y = b.op(OneHot { axis: -1 }, &[places, depth, values])?;
    b.bind(0, y)
}

/// The list in the one of two attributes that is there.
fn keys(b: &NodeBuilder, integers: &str, strings: &str) -> Result<Tensor> {
    match b.ints(integers)?.filter(|l| !l.is_empty()) {
        Some(list) => Tensor::from_slice(&[list.len()], &list),
        None => b.text_list(strings),
    }
}

fn zip_map(b: &mut NodeBuilder) -> Result<()> {
    let keys = keys(b, "classlabels_int64s", "classlabels_strings")?;
    b.emit_same(ZipMap { keys })
}

fn cast_map(b: &mut NodeBuilder) -> Result<()> {
    let length = b.count("max_map", Some(1))?;
    let length = match b.text_or("map_form", "DENSE")? {
        "DENSE" => None,
        "SPARSE" => Some(length),
        other => return Err(unknown("map_form", other)),
    };
    let to = match b.text_or("cast_to", "TO_FLOAT")? {
        "TO_FLOAT" => DType::F32,
        "TO_STRING" => DType::String,
        "TO_INT64" => DType::I64,
        other => return Err(unknown("cast_to", other)),
    };
    let map = b.input(0)?;
    let row = b.op(MapValues { length }, &[map])?;
    b.emit(Cast::new(to), &[Some(row)])
}

fn dict_vectorizer(b: &mut NodeBuilder) -> Result<()> {
    let keys = keys(b, "int64_vocabulary", "string_vocabulary")?;
    b.emit_same(DictVectorizer { keys })
}
