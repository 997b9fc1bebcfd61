//! Tensors, ports and errors as plain JavaScript objects.

use js_sys::{Array, Object, Reflect, Uint8Array};
use kilim_core::memory::{shared_text, try_collect};
use kilim_core::session::Port;
use kilim_core::{DType, Datum, Dim, Error, ErrorCode, Kind, Map, Result, Shape, Tensor};
use wasm_bindgen::{JsCast, JsValue};

/// An object of the given fields; those that are `None` are left out.
pub fn object<const N: usize>(fields: [(&str, Option<JsValue>); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields {
        if let Some(value) = value {
            // Setting a field of a fresh plain object cannot fail.
            let _ = Reflect::set(&object, &name.into(), &value);
        }
    }
    object.into()
}

/// An error as the package's TypeScript expects it: its code, message and context.
pub fn error(error: &Error) -> JsValue {
    let text = |text: Option<&str>| text.map(JsValue::from);
    object([
        ("code", text(Some(error.code().as_str()))),
        ("message", text(Some(error.message()))),
        ("node", text(error.node())),
        ("op", text(error.op())),
        ("input", text(error.input())),
        ("expected", text(error.expected())),
        ("got", text(error.got())),
        ("hint", text(error.hint())),
    ])
}

/// What a caller gave is not of the form that the bindings take.
pub fn malformed(what: &str, expected: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("{what} is malformed")).with_expected(expected)
}

/// What a value is, as `typeof` says.
fn type_of(value: &JsValue) -> String {
    value.js_typeof().as_string().unwrap_or_default()
}

/// The field `name` of an options object; `None` where it is missing or undefined.
pub fn field(object: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(object, &name.into())
        .ok()
        .filter(|value| !value.is_undefined() && !value.is_null())
}

/// A whole number that is a size; `what` is what it is called in errors.
///
/// # Errors
/// `InvalidValue` where it is none.
pub fn size(value: &JsValue, what: &str) -> Result<usize> {
    value
        .as_f64()
        .filter(|n| *n >= 0.0 && *n <= f64::from(u32::MAX) && n.fract() == 0.0)
        .map(|n| n as usize)
        .ok_or_else(|| {
            let got = value
                .as_f64()
                .map_or_else(|| type_of(value), |n| n.to_string());
            malformed(what, "a whole number of at least 0").with_got(got)
        })
}

/// An axis, counted from the last one where it is negative; `what` is what it is called in errors.
///
/// # Errors
/// `InvalidValue` where it is none.
pub fn axis(value: &JsValue, what: &str) -> Result<i64> {
    let number = value.as_f64().map(|n| (n, n as i32));
    let whole = number.filter(|(n, whole)| *n == f64::from(*whole));
    whole
        .map(|(_, whole)| whole.into())
        .ok_or_else(|| malformed(what, "a whole number"))
}

/// Strings of an array; `what` is what it is called in errors.
///
/// # Errors
/// `InvalidValue` where it is none.
pub fn strings(value: &JsValue, what: &str) -> Result<Vec<String>> {
    value
        .dyn_ref::<Array>()
        .and_then(|array| array.iter().map(|item| item.as_string()).collect())
        .ok_or_else(|| malformed(what, "an array of strings").with_got(type_of(value)))
}

/// A tensor with its name, from `{name, type, dims, bytes}`: bytes as files hold them, where types of
/// less than a byte are packed. Strings have a list of them, `texts`, instead.
///
/// # Errors
/// `DType` for an unknown type, `Shape` where the bytes do not fill the dimensions.
pub fn tensor(value: &JsValue) -> Result<(String, Tensor)> {
    let get = |name: &str| {
        let missing = || malformed(&format!("the tensor's `{name}`"), "a value");
        field(value, name).ok_or_else(missing)
    };
    let name = get("name")?
        .as_string()
        .ok_or_else(|| malformed("a tensor's name", "a string"))?;
    let typed = get("type")?.as_string().unwrap_or_default();
    let dtype = DType::from_name(&typed).ok_or_else(|| {
        Error::new(ErrorCode::DType, "there is no such element type")
            .with_input(&name)
            .with_got(&typed)
    })?;
    let dims = get("dims")?
        .dyn_into::<Array>()
        .map_err(|_| malformed("a tensor's dims", "an array").with_input(&name))?
        .iter()
        .map(|dim| size(&dim, "a tensor's dimension").map_err(|e| e.with_input(&name)))
        .collect::<Result<Vec<_>>>()?;
    let tensor = if dtype == DType::String {
        let texts = strings(&get("texts")?, "a tensor's texts")?;
        let texts = texts.iter().map(|text| shared_text(text));
        Tensor::from_texts(&dims, try_collect(texts)?)
    } else {
        let bytes = get("bytes")?
            .dyn_into::<Uint8Array>()
            .map_err(|_| malformed("a tensor's bytes", "a Uint8Array").with_input(&name))?;
        Tensor::from_packed(dtype, &dims, &bytes.to_vec())
    };
    Ok((
        name.clone(),
        tensor.map_err(|error| error.with_input(name))?,
    ))
}

/// `{name, type, dims, bytes}` or `{name, type, dims, texts}`, as [`tensor`] takes them, with bytes of
/// its own.
///
/// # Errors
/// `Limit` where memory is short.
pub fn tensor_object(name: &str, tensor: &Tensor) -> Result<JsValue> {
    let texts = tensor.texts().ok().map(|texts| {
        let texts = texts.iter().map(|text| JsValue::from_str(text));
        texts.collect::<Array>().into()
    });
    let bytes = match texts {
        Some(_) => None,
        None => Some(Uint8Array::from(&*tensor.to_packed()?).into()),
    };
    Ok(object([
        ("name", Some(name.into())),
        ("type", Some(tensor.dtype().name().into())),
        ("dims", Some(sizes(tensor.shape()))),
        ("bytes", bytes),
        ("texts", texts),
    ]))
}

/// `{name, kept, type, dims}` of a tensor that stays in the runtime under a number.
pub fn kept_object(name: &str, number: u32, dtype: DType, shape: &[usize]) -> JsValue {
    object([
        ("name", Some(name.into())),
        ("kept", Some(number.into())),
        ("type", Some(dtype.name().into())),
        ("dims", Some(sizes(shape))),
    ])
}

/// An array of numbers.
pub fn sizes(shape: &[usize]) -> JsValue {
    let sizes = shape.iter().map(|&size| JsValue::from_f64(size as f64));
    sizes.collect::<Array>().into()
}

/// What a value is called.
///
/// # Errors
/// `InvalidValue` where it has no name.
pub fn name(value: &JsValue) -> Result<String> {
    let name = field(value, "name").and_then(|name| name.as_string());
    name.ok_or_else(|| malformed("a value's name", "a string"))
}

/// A value with its name: `{name, sequence}` of tensors, `{name, absent}`, or a tensor, see
/// [`tensor`].
pub fn datum(value: &JsValue) -> Result<(String, Datum)> {
    let name = name(value)?;
    if field(value, "absent").is_some() {
        return Ok((name, Datum::Absent));
    }
    let Some(list) = field(value, "sequence") else {
        return Ok((name, tensor(value)?.1.into()));
    };
    let list = list
        .dyn_into::<Array>()
        .map_err(|_| malformed("a sequence", "an array"))?;
    let tensors = list.iter().map(|item| Ok(tensor(&item)?.1));
    Ok((name, Datum::Sequence(tensors.collect::<Result<_>>()?)))
}

/// An output as an object: a tensor or a sequence as [`datum`] takes it, a map as `{name, maps: [[keys,
/// values]], single: true}`, several maps as `{name, maps}`.
///
/// # Errors
/// `Limit` where memory is short.
pub fn datum_object(name: &str, datum: &Datum) -> Result<JsValue> {
    let all = |tensors: &[Tensor]| -> Result<JsValue> {
        let objects = tensors.iter().map(|tensor| tensor_object(name, tensor));
        Ok(objects.collect::<Result<Array>>()?.into())
    };
    let maps = |maps: &[Map], single: bool| {
        let pairs = maps
            .iter()
            .map(|map| all(&[map.keys.clone(), map.values.clone()]));
        Ok(object([
            ("name", Some(name.into())),
            ("maps", Some(pairs.collect::<Result<Array>>()?.into())),
            ("single", Some(single.into())),
        ]))
    };
    Ok(match datum {
        Datum::Tensor(tensor) => tensor_object(name, tensor)?,
        Datum::Sequence(tensors) => object([
            ("name", Some(name.into())),
            ("sequence", Some(all(tensors)?)),
        ]),
        Datum::Map(map) => maps(std::slice::from_ref(map), true)?,
        Datum::MapSequence(list) => maps(list, false)?,
        Datum::Absent => object([("name", Some(name.into())), ("absent", Some(true.into()))]),
        Datum::Device(_) => {
            let message = "a kept tensor has no elements in JavaScript";
            return Err(Error::new(ErrorCode::State, message));
        }
    })
}

/// `{name, type, dims, kind, optional}`: a dimension is a number, a name or null; no dims where the
/// rank is unknown.
pub fn port(port: &Port) -> JsValue {
    let dtype = port.fact.dtype.map(|dtype| dtype.name().into());
    let form = Kind::from(port.fact.kind.form);
    object([
        ("name", Some(port.name.as_str().into())),
        ("type", Some(dtype.unwrap_or(JsValue::NULL))),
        (
            "dims",
            Some(port.fact.shape.as_ref().map_or(JsValue::NULL, dims)),
        ),
        ("kind", Some(form.to_string().into())),
        ("optional", Some(port.fact.kind.optional.into())),
    ])
}

fn dims(shape: &Shape) -> JsValue {
    let dim = |dim: &Dim| match dim {
        Dim::Known(n) => JsValue::from_f64(*n as f64),
        Dim::Symbol(name) => JsValue::from_str(name),
        Dim::Sum(sum) => JsValue::from_str(&sum.to_string()),
        Dim::Unknown => JsValue::NULL,
    };
    shape.0.iter().map(dim).collect::<Array>().into()
}
