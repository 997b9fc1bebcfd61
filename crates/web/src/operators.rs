//! Operators whose functions are JavaScript's.

use js_sys::{Array, Function, Object, Reflect, Uint8Array};
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::value_error;
use kilim_core::ops::{
    Attribute, Attributes, CustomOperator, CustomOperators, Fact, InferContext, ShaderKernel,
    ShaderNumber, ShaderTensor,
};
use kilim_core::{DType, Dim, Error, Result, Shape, Tensor};
use wasm_bindgen::{JsCast, JsValue};

use crate::callback::Callback;
use crate::convert;

/// Calls a function of an operator.
///
/// # Errors
/// `InvalidValue` where the function throws.
fn call(callback: &Callback, arguments: &[JsValue; 3]) -> Result<JsValue> {
    let function = callback.function().ok_or_else(|| {
        value_error("an operator's function was called by another thread than its own")
    })?;
    let [a, b, c] = arguments;
    function.call3(&JsValue::NULL, a, b, c).map_err(|thrown| {
        let message = convert::field(&thrown, "message").unwrap_or(thrown);
        let text = message
            .as_string()
            .unwrap_or_else(|| format!("{message:?}"));
        value_error(format!("the operator threw: {text}"))
    })
}

/// The operators of `[{domain, name, random, infer, run?, shader?}]`.
///
/// # Errors
/// `InvalidValue` where they are not of that form.
pub fn operators(given: &JsValue) -> Result<CustomOperators> {
    let list = given
        .dyn_ref::<Array>()
        .ok_or_else(|| malformed("operators"))?;
    let mut operators = CustomOperators::default();
    for item in list.iter() {
        operators.add(operator(&item)?);
    }
    Ok(operators)
}

fn malformed(what: &str) -> Error {
    value_error(format!("{what} of a custom operator are malformed"))
}

/// The operator of `{domain, name, random, infer, run?, shader?}`.
///
/// # Errors
/// `InvalidValue` where it is not of that form.
pub fn operator(given: &JsValue) -> Result<CustomOperator> {
    let text = |name| convert::field(given, name).and_then(|v| v.as_string());
    let function = |name| {
        let value = convert::field(given, name)?;
        value.dyn_into::<Function>().ok().map(Callback::new)
    };
    let (domain, name) = (text("domain"), text("name"));
    let (Some(domain), Some(name), Some(infer)) = (domain, name, function("infer")) else {
        return Err(malformed("domain, name or `infer`"));
    };
    let mut operator = CustomOperator::new(domain, name, move |attributes, ctx| {
        self::infer(&infer, attributes, ctx)
    });
    if let Some(run) = function("run") {
        operator = operator.host(move |attributes, inputs, outputs| {
            let object = |spec: &TensorSpec, bytes: &[u8]| {
                Tensor::from_raw(spec.dtype, &spec.shape, bytes)
                    .and_then(|t| convert::tensor_object("", &t))
            };
            let tensors = Array::new();
            for input in inputs {
                tensors.push(&match input {
                    Some(input) => object(input.spec, input.bytes)?,
                    None => JsValue::NULL,
                });
            }
            let results = Array::new();
            for output in outputs.iter() {
                results.push(&object(output.spec, output.bytes)?);
            }
            call(
                &run,
                &[
                    attributes_object(attributes)?,
                    tensors.into(),
                    results.clone().into(),
                ],
            )?;
            for (output, result) in outputs.iter_mut().zip(results.iter()) {
                let bytes = convert::field(&result, "bytes");
                let bytes = bytes.and_then(|b| b.dyn_into::<Uint8Array>().ok());
                match bytes.filter(|b| b.length() as usize == output.bytes.len()) {
                    Some(bytes) => bytes.copy_to(output.bytes),
                    None => return Err(malformed("the outputs")),
                }
            }
            Ok(())
        });
    }
    if let Some(shader) = function("shader") {
        operator = operator.shader(move |attributes, node| {
            self::shader(&shader, attributes, node).map_err(|e| Refusal::new(e.message()))
        });
    }
    let random = convert::field(given, "random").is_some_and(|r| r.is_truthy());
    Ok(if random { operator.random() } else { operator })
}

fn set(object: &Object, name: &str, value: &JsValue) {
    // Setting a field of a fresh plain object cannot fail.
    let _ = Reflect::set(object, &name.into(), value);
}

/// The attributes of a node by their names; see `Attributes` of `www/package/src/operators.ts`.
///
/// # Errors
/// `Limit` where memory is short.
pub fn attributes_object(attributes: &Attributes) -> Result<JsValue> {
    let object = Object::new();
    for (name, value) in &attributes.0 {
        let value: JsValue = match value {
            Attribute::Int(n) => JsValue::from_f64(*n as f64),
            Attribute::Float(x) => JsValue::from_f64(*x),
            Attribute::Text(text) => text.as_str().into(),
            Attribute::Bytes(bytes) => Uint8Array::from(bytes.as_slice()).into(),
            Attribute::Ints(list) => {
                let numbers = list.iter().map(|n| JsValue::from_f64(*n as f64));
                numbers.collect::<Array>().into()
            }
            Attribute::Floats(list) => {
                let numbers = list.iter().map(|x| JsValue::from_f64(*x));
                numbers.collect::<Array>().into()
            }
            Attribute::Texts(list) => {
                let texts = list.iter().map(|t| JsValue::from_str(t));
                texts.collect::<Array>().into()
            }
            Attribute::Tensor(tensor) => convert::tensor_object(name, tensor)?,
        };
        set(&object, name, &value);
    }
    Ok(object.into())
}

/// The attributes that [`attributes_object`] gives. Whole numbers are integers, and lists of them are lists of integers; `true` is 1.
///
/// # Errors
/// `InvalidValue` where a value is of no kind that attributes have, and those of [`convert::tensor`].
pub fn attributes(given: &JsValue) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    let entries = given.dyn_ref::<Object>().map(Object::entries);
    for entry in entries.unwrap_or_default().iter() {
        let entry: Array = entry.unchecked_into();
        let name = entry.get(0).as_string().unwrap_or_default();
        let value = attribute(&entry.get(1), &name)?;
        attributes.set(name, value);
    }
    Ok(attributes)
}

fn attribute(value: &JsValue, name: &str) -> Result<Attribute> {
    if let Some(text) = value.as_string() {
        return Ok(Attribute::Text(text));
    }
    if let Some(on) = value.as_bool() {
        return Ok(Attribute::Int(on.into()));
    }
    if let Some(x) = value.as_f64() {
        return Ok(whole(x).map_or(Attribute::Float(x), Attribute::Int));
    }
    if let Some(bytes) = value.dyn_ref::<Uint8Array>() {
        return Ok(Attribute::Bytes(bytes.to_vec()));
    }
    let Some(list) = value.dyn_ref::<Array>() else {
        return Ok(Attribute::Tensor(convert::tensor(value)?.1));
    };
    let numbers: Option<Vec<f64>> = list.iter().map(|item| item.as_f64()).collect();
    if let Some(numbers) = numbers {
        let integers: Option<Vec<i64>> = numbers.iter().map(|&x| whole(x)).collect();
        return Ok(integers.map_or(Attribute::Floats(numbers), Attribute::Ints));
    }
    let what = format!("the attribute `{name}`");
    convert::strings(value, &what).map(Attribute::Texts)
}

/// The number as an integer, if it is one that a number of JavaScript tells from its neighbours.
fn whole(x: f64) -> Option<i64> {
    let exact = x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_991.0;
    exact.then_some(x as i64)
}

/// `{type, dims}`.
fn info(dtype: Option<DType>, dims: JsValue) -> JsValue {
    let object = Object::new();
    set(
        &object,
        "type",
        &dtype.map_or(JsValue::NULL, |d| d.name().into()),
    );
    set(&object, "dims", &dims);
    object.into()
}

fn infer(infer: &Callback, attributes: &Attributes, ctx: &InferContext) -> Result<Vec<Fact>> {
    let dim = |d: &Dim| {
        d.known()
            .map_or(JsValue::NULL, |n| JsValue::from_f64(n as f64))
    };
    let input = |fact: &Fact| {
        let dims = fact.shape.as_ref();
        let dims = dims.map(|s| s.0.iter().map(dim).collect::<Array>().into());
        info(fact.dtype, dims.unwrap_or(JsValue::NULL))
    };
    let inputs = ctx.inputs.iter();
    let inputs: Array = inputs
        .map(|i| i.as_ref().map_or(JsValue::NULL, |i| input(&i.fact)))
        .collect();
    let told = call(
        infer,
        &[attributes_object(attributes)?, inputs.into(), JsValue::NULL],
    )?;
    let told = told
        .dyn_into::<Array>()
        .map_err(|_| malformed("the results of `infer`"))?;
    told.iter().map(|output| fact(&output)).collect()
}

fn fact(output: &JsValue) -> Result<Fact> {
    let dtype = match convert::field(output, "type").and_then(|t| t.as_string()) {
        Some(name) => Some(DType::from_name(&name).ok_or_else(|| malformed("the types"))?),
        None => None,
    };
    let Some(dims) = convert::field(output, "dims") else {
        return Ok(Fact {
            dtype,
            ..Fact::default()
        });
    };
    let dims = dims
        .dyn_into::<Array>()
        .map_err(|_| malformed("the dims"))?;
    let dim = |d: JsValue| match d.is_null() || d.is_undefined() {
        true => Ok(Dim::Unknown),
        false => convert::size(&d, "a dimension that `infer` gives").map(Dim::Known),
    };
    let shape = Shape(dims.iter().map(dim).collect::<Result<_>>()?);
    Ok(Fact {
        dtype,
        shape: Some(shape),
        ..Fact::default()
    })
}

fn shader(shader: &Callback, attributes: &Attributes, node: &NodeSpec) -> Result<ShaderKernel> {
    let spec = |s: &TensorSpec| {
        let dims = s.shape.iter().map(|&d| JsValue::from_f64(d as f64));
        info(Some(s.dtype), dims.collect::<Array>().into())
    };
    let inputs = node.inputs.iter();
    let inputs: Array = inputs
        .map(|i| i.as_ref().map_or(JsValue::NULL, spec))
        .collect();
    let outputs: Array = node.outputs.iter().map(spec).collect();
    let told = call(
        shader,
        &[
            attributes_object(attributes)?,
            inputs.into(),
            outputs.into(),
        ],
    )?;
    let source = convert::field(&told, "source").and_then(|s| s.as_string());
    let source = source.ok_or_else(|| malformed("the source"))?;
    let bindings = pairs(&told, "bindings")?
        .into_iter()
        .map(|(name, kind, value)| {
            let index = convert::size(&value, "a binding of a custom operator")?;
            let tensor = match kind.as_str() {
                "input" => ShaderTensor::Input(index),
                "output" => ShaderTensor::Output(index),
                _ => return Err(malformed("the bindings")),
            };
            Ok((name, tensor))
        });
    let parameters = pairs(&told, "parameters")?
        .into_iter()
        .map(|(name, kind, value)| {
            let x = value.as_f64().ok_or_else(|| malformed("the parameters"))?;
            let number = match kind.as_str() {
                "u32" => ShaderNumber::U32(x as u32),
                "i32" => ShaderNumber::I32(x as i32),
                "f32" => ShaderNumber::F32(x as f32),
                _ => return Err(malformed("the parameters")),
            };
            Ok((name, number))
        });
    let groups = convert::field(&told, "workgroups").and_then(|g| g.dyn_into::<Array>().ok());
    let groups = groups.ok_or_else(|| malformed("the workgroups"))?;
    let mut workgroups = [1; 3];
    for (group, given) in workgroups.iter_mut().zip(groups.iter()) {
        *group = convert::size(&given, "a number of workgroups")? as u32;
    }
    Ok(ShaderKernel {
        source: source.into(),
        bindings: bindings.collect::<Result<_>>()?,
        parameters: parameters.collect::<Result<_>>()?,
        workgroups,
    })
}

/// The entries of an object whose values are `[kind, value]`.
fn pairs(object: &JsValue, name: &str) -> Result<Vec<(String, String, JsValue)>> {
    let Some(field) = convert::field(object, name) else {
        return Ok(Vec::new());
    };
    let entries = field.dyn_ref::<Object>().map(Object::entries);
    let entries = entries.ok_or_else(|| malformed(name))?;
    let pair = |entry: JsValue| {
        let entry: Array = entry.dyn_into().ok()?;
        let value: Array = entry.get(1).dyn_into().ok()?;
        Some((
            entry.get(0).as_string()?,
            value.get(0).as_string()?,
            value.get(1),
        ))
    };
    entries
        .iter()
        .map(|entry| pair(entry).ok_or_else(|| malformed(name)))
        .collect()
}
