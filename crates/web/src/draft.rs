//! Models that an importer of the page has made: what JavaScript gives is a `WireDraft` of `www/package/src/importer.ts`.

use js_sys::{Array, BigInt64Array, Float64Array, Object, Uint8Array};
use kilim::formats::onnx::raw;
use kilim::formats::{Draft, DraftNode, ExternalFiles, GivenFile, GivenFiles};
use kilim_core::ops::{Attribute, Attributes};
use kilim_core::{DType, Dim, Error, Result, Shape, Tensor};
use wasm_bindgen::{JsCast, JsValue};

use crate::convert;
use crate::metadata;

fn malformed(what: &str, expected: &str) -> Error {
    convert::malformed(&format!("{what} of an importer"), expected)
}

fn text(object: &JsValue, name: &str) -> Result<String> {
    let text = convert::field(object, name).and_then(|v| v.as_string());
    text.ok_or_else(|| malformed(&format!("`{name}`"), "a text"))
}

fn list(object: &JsValue, name: &str) -> Result<Array> {
    let list = convert::field(object, name).and_then(|v| v.dyn_into().ok());
    list.ok_or_else(|| malformed(&format!("`{name}`"), "an array"))
}

fn texts(object: &JsValue, name: &str) -> Result<Vec<String>> {
    let texts = convert::field(object, name).unwrap_or_default();
    convert::strings(&texts, &format!("`{name}` of an importer"))
}

/// The model that JavaScript gives; `files` are those whose bytes it may share, the model first.
///
/// # Errors
/// `InvalidValue` where it is not of its form, and those of [`Draft`].
pub fn draft(given: &JsValue, files: Vec<GivenFile>) -> Result<Draft> {
    // The names are places in the list.
    let files = (0..)
        .zip(files)
        .map(|(i, file): (u32, _)| (i.to_string(), file));
    let files = GivenFiles::new(files.collect());
    let mut draft = Draft::new(text(given, "id")?);
    fill(&mut draft, given, &files)?;
    if let Some(said) = convert::field(given, "metadata") {
        draft.set_metadata(metadata::read(&said)?);
    }
    Ok(draft)
}

/// Gives a model or body what it is made of.
fn fill(draft: &mut Draft, given: &JsValue, files: &GivenFiles) -> Result<()> {
    for input in list(given, "inputs")?.iter() {
        let name = text(&input, "name")?;
        if convert::field(&input, "type").is_none() {
            draft.untyped_input(&name)?;
            continue;
        }
        let dims = list(&input, "dims")?;
        let dims = dims.iter().map(|d| dim(&d)).collect::<Result<_>>()?;
        draft.input(&name, dtype(&input)?, Shape(dims))?;
    }
    for constant in list(given, "constants")?.iter() {
        let (name, tensor) = match convert::field(&constant, "file") {
            None => convert::tensor(&constant)?,
            Some(file) => part(&constant, &file, files)?,
        };
        draft.constant(&name, tensor)?;
    }
    for node in list(given, "nodes")?.iter() {
        let mut bodies = Vec::new();
        for given in list(&node, "bodies")?.iter() {
            let mut body = draft.body();
            fill(&mut body, &given, files)?;
            bodies.push((text(&given, "attribute")?, body));
        }
        draft.node(DraftNode {
            name: text(&node, "name")?,
            domain: text(&node, "domain")?,
            op: text(&node, "op")?,
            attributes: attributes(&node)?,
            bodies,
            inputs: texts(&node, "inputs")?,
            outputs: texts(&node, "outputs")?,
        })?;
    }
    for output in texts(given, "outputs")? {
        draft.output(&output)?;
    }
    Ok(())
}

fn dtype(object: &JsValue) -> Result<DType> {
    let name = text(object, "type")?;
    let unknown = || malformed("an element type", "one of Kilim's").with_got(&name);
    DType::from_name(&name).ok_or_else(unknown)
}

fn dim(given: &JsValue) -> Result<Dim> {
    if let Some(symbol) = given.as_string().filter(|symbol| !symbol.is_empty()) {
        return Ok(Dim::Symbol(symbol.into()));
    }
    match given.is_null() {
        true => Ok(Dim::Unknown),
        false => convert::size(given, "a dimension of an importer").map(Dim::Known),
    }
}

/// `{name, type, dims, file, offset, length}`: a constant that shares the bytes of a file.
fn part(constant: &JsValue, file: &JsValue, files: &GivenFiles) -> Result<(String, Tensor)> {
    let name = text(constant, "name")?;
    let number = |field| {
        let value = convert::field(constant, field).unwrap_or_default();
        convert::size(&value, field)
    };
    let (offset, length) = (number("offset")?, number("length")?);
    let file = convert::size(file, "a file")?.to_string();
    let end = offset as u64 + length as u64;
    if files.size(&file).ok().is_none_or(|size| end > size) {
        return Err(malformed("a constant", "a part of a file"));
    }
    let dims = list(constant, "dims")?;
    let dims = dims.iter().map(|d| convert::size(&d, "a dimension"));
    let shape: Vec<usize> = dims.collect::<Result<_>>()?;
    let bytes = files.part(&file, offset as u64, length)?;
    let tensor = raw(dtype(constant)?, &shape, &bytes);
    Ok((name.clone(), tensor.map_err(|e| e.with_input(&name))?))
}

fn attributes(node: &JsValue) -> Result<Attributes> {
    let given = convert::field(node, "attributes");
    let given = given.and_then(|object| object.dyn_into::<Object>().ok());
    let given = given.ok_or_else(|| malformed("`attributes`", "an object"))?;
    let mut attributes = Attributes::default();
    for entry in Object::entries(&given).iter() {
        let entry: Array = entry.unchecked_into();
        let name = entry.get(0).as_string().unwrap_or_default();
        attributes.set(name, attribute(entry.get(1))?);
    }
    Ok(attributes)
}

fn attribute(value: JsValue) -> Result<Attribute> {
    if let Some(x) = value.as_f64() {
        return Ok(Attribute::Float(x));
    }
    if let Some(text) = value.as_string() {
        return Ok(Attribute::Text(text));
    }
    if value.is_bigint() {
        let whole = i64::try_from(value);
        let whole = whole.map_err(|_| malformed("an attribute", "an integer of 64 bits"))?;
        return Ok(Attribute::Int(whole));
    }
    if let Some(list) = value.dyn_ref::<BigInt64Array>() {
        return Ok(Attribute::Ints(list.to_vec()));
    }
    if let Some(list) = value.dyn_ref::<Float64Array>() {
        return Ok(Attribute::Floats(list.to_vec()));
    }
    if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
        return Ok(Attribute::Bytes(bytes.to_vec()));
    }
    if value.is_instance_of::<Array>() {
        return convert::strings(&value, "an attribute").map(Attribute::Texts);
    }
    convert::tensor(&value).map(|(_, tensor)| Attribute::Tensor(tensor))
}
