//! Tensors of parts, and parts of tensors.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Expand, Gather, GatherElements, GatherNd, ScatterElements, ScatterReduction, Slice, Split,
};

use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::{Value, open};
use crate::pnnx::{expression, numbers};

fn alike(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let parts: Vec<Value> = layer.tensors()?.into_iter().map(Value::Tensor).collect();
    imp.alike(&parts.iter().collect::<Vec<_>>())
}

pub fn cat(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let parts = alike(imp, layer)?;
    imp.concat(&parts, layer.int("dim", 0)?)
}

/// Tensors side by side along an axis of its own.
pub fn stack(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let axis = layer.int("dim", 0)?;
    let parts = alike(imp, layer)?;
    let parts = parts.into_iter().map(|part| imp.unsqueeze(part, &[axis]));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    imp.concat(&parts, axis)
}

/// What is divided, along which axis, and how long that is where it is known.
fn divided(imp: &Import, layer: &Layer) -> Result<(ValueId, i64, Option<usize>)> {
    let x = match layer.arg("tensor") {
        Some(_) => layer.tensor("tensor", 0)?,
        None => layer.x()?,
    };
    let axis = imp.axis_of(x, layer.int("dim", 0)?)?;
    let length = imp.known_shape(x).and_then(|shape| shape.0[axis].known());
    Ok((x, axis as i64, length))
}

fn parts(imp: &mut Import, x: ValueId, axis: i64, sizes: &[i64]) -> Result<Vec<ValueId>> {
    let list = imp.i64s(sizes)?;
    imp.apply(Split { axis }, &[Some(x), Some(list)], sizes.len())
}

fn known(length: Option<usize>) -> Result<i64> {
    let length = length.and_then(|n| i64::try_from(n).ok());
    length.ok_or_else(|| unsupported("parts of an axis of an open size"))
}

/// Sizes of parts of `size` elements; the last may be smaller.
fn equal(length: i64, size: i64) -> Result<Vec<i64>> {
    if size <= 0 || length / size > MOST_PARTS {
        return Err(invalid("the size of parts does not fit").with_got(size));
    }
    let begins = (0..length.max(1)).step_by(size as usize);
    Ok(begins.map(|begin| size.min(length - begin)).collect())
}

/// Parts that an operator may have.
const MOST_PARTS: i64 = 1 << 16;

pub fn split(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let (x, axis, length) = divided(imp, layer)?;
    let given = ["split_size_or_sections", "split_size", "split_sizes"];
    let given = given.into_iter().find_map(|key| layer.arg(key));
    let sizes = match given.ok_or_else(|| invalid("the sizes of parts are missing"))? {
        list @ Value::List(_) => list.ints()?,
        one => equal(known(length)?, one.int()?)?,
    };
    parts(imp, x, axis, &sizes)
}

pub fn chunk(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let (x, axis, length) = divided(imp, layer)?;
    let (length, count) = (known(length)?, layer.positive("chunks", 0)? as i64);
    let size = length / count + i64::from(length % count != 0);
    parts(imp, x, axis, &equal(length, size.max(1))?)
}

pub fn tensor_split(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let (x, axis, length) = divided(imp, layer)?;
    if let Some(sections) = layer.arg("sections") {
        let (length, count) = (known(length)?, sections.int()?);
        if !(1..=MOST_PARTS).contains(&count) {
            return Err(invalid("the number of parts does not fit").with_got(count));
        }
        // The first ones are larger where there is a rest.
        let size = |i| length / count + i64::from(i < length % count);
        return parts(imp, x, axis, &(0..count).map(size).collect::<Vec<_>>());
    }
    let ends = layer.need("indices")?.ints()?;
    let mut made = Vec::new();
    let mut begin = 0;
    for end in ends.into_iter().map(open).chain([i64::MAX]) {
        made.push(imp.slice(x, axis, begin, end)?);
        begin = end;
    }
    Ok(made)
}

pub fn unbind(imp: &mut Import, layer: &Layer) -> Result<Vec<ValueId>> {
    let (x, axis, _) = divided(imp, layer)?;
    let one = |i: usize| {
        let (begin, end) = (i as i64, i as i64 + 1);
        let part = imp.slice(x, axis, begin, end)?;
        imp.squeeze(part, &[axis])
    };
    (0..layer.info.outputs.len()).map(one).collect()
}

/// The list `pnnx.SliceIndexes`: operands by their numbers, and numbers.
pub fn slice_indexes(_: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    let Value::List(list) = layer.need("indexes")? else {
        return Err(invalid("the argument `indexes` is no list"));
    };
    let of_word = |value: Value| match value {
        Value::Text(word) => {
            let number = word.strip_prefix('@').and_then(|n| n.parse::<usize>().ok());
            let input = number.and_then(|i| layer.inputs.get(i)).cloned();
            input.ok_or_else(|| invalid("a list has no such operand").with_got(word))
        }
        number => Ok(number),
    };
    Ok(vec![Value::list(
        list.into_iter().map(of_word).collect::<Result<_>>()?,
    )?])
}

/// An argument that is one for each axis, in a list where there may be several.
fn of_axes(layer: &Layer, one: &str, list: &str, axes: usize) -> Result<Option<Vec<Value>>> {
    let values = match (layer.arg(one), layer.arg(list)) {
        (Some(one), _) => vec![one],
        (None, Some(Value::List(list))) => list,
        (None, Some(other)) => return Err(other.no("a list")),
        (None, None) => return Ok(None),
    };
    match values.len() == axes {
        true => Ok(Some(values)),
        false => Err(invalid(format!("`{list}` is for another number of axes"))
            .with_expected(axes)
            .with_got(values.len())),
    }
}

/// What stands for a part from its begin, or to its end.
fn bound(value: Value) -> Value {
    match value {
        Value::Int(n) => Value::Int(open(n)),
        other => other,
    }
}

/// Parts along several axes; some keep one element and go (`make_slice_expression` in `ir.cpp`).
pub fn slice(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let mut x = layer.x()?;
    let axes = layer
        .ints("dims")?
        .or(layer.ints("dim")?)
        .unwrap_or_else(|| vec![0]);
    let axes = axes.iter().map(|&axis| Ok(imp.axis_of(x, axis)? as i64));
    let axes = axes.collect::<Result<Vec<i64>>>()?;
    let n = axes.len();
    let or = |values: Option<Vec<Value>>, n: usize, default| {
        values.unwrap_or_else(|| vec![Value::Int(default); n])
    };
    let starts = or(of_axes(layer, "start", "starts", n)?, n, 0);
    let ends = or(of_axes(layer, "end", "ends", n)?, n, i64::MAX);
    let steps = or(of_axes(layer, "step", "steps", n)?, n, 1);
    let selects = or(of_axes(layer, "select", "selects", n)?, n, i64::MAX);
    let is_none = |value: &Value| matches!(value, Value::Int(n) if open(*n) == i64::MAX);
    let (mut kept, mut lists) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for i in (0..n).filter(|&i| is_none(&selects[i])) {
        kept.push(axes[i]);
        lists[0].push(bound(starts[i].clone()));
        lists[1].push(bound(ends[i].clone()));
        lists[2].push(steps[i].clone());
    }
    if !kept.is_empty() {
        let [starts, ends, steps] = lists.map(|list| imp.sizes(&Value::List(list)));
        let axes = imp.i64s(&kept)?;
        x = imp.op(Slice, &[x, starts?, ends?, axes, steps?])?;
    }
    let mut taken: Vec<_> = (0..n).filter(|&i| !is_none(&selects[i])).collect();
    // From behind, so that axes keep their numbers.
    taken.sort_by_key(|&i| -axes[i]);
    for i in taken {
        let index = imp.in_type(&selects[i], DType::I64)?;
        x = imp.op(Gather { axis: axes[i] }, &[x, index])?;
    }
    Ok(x)
}

pub fn select(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let axis = layer.need("dim")?.int()?;
    let index = imp.in_type(&layer.need("index")?, DType::I64)?;
    imp.op(Gather { axis }, &[layer.x()?, index])
}

pub fn narrow(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (axis, start) = (layer.need("dim")?.int()?, layer.need("start")?);
    let end = numbers::call(imp, "add", &[start.clone(), layer.need("length")?])?;
    let [start, end] = [start, end].map(|bound| imp.sizes(&bound));
    let axes = imp.i64s(&[axis])?;
    imp.op(Slice, &[layer.x()?, start?, end?, axes])
}

pub fn index_select(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let axis = layer.need("dim")?.int()?;
    imp.op(Gather { axis }, &[layer.x()?, layer.tensor("index", 1)?])
}

pub fn gather(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let axis = layer.need("dim")?.int()?;
    imp.op(
        GatherElements { axis },
        &[layer.x()?, layer.tensor("index", 1)?],
    )
}

pub fn scatter_add(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let op = ScatterElements {
        axis: layer.need("dim")?.int()?,
        reduction: ScatterReduction::Add,
    };
    let inputs = [
        layer.x()?,
        layer.tensor("index", 1)?,
        layer.tensor("src", 2)?,
    ];
    imp.op(op, &inputs)
}

/// Elements at the places of index tensors: along one axis, or along the first ones together.
pub fn index(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let list = match layer.inputs.get(1) {
        Some(given) => given.clone(),
        None => expression::evaluate(imp, layer, "expr")?,
    };
    let list = match list {
        Value::List(list) => list,
        one => vec![one],
    };
    let free = list
        .iter()
        .take_while(|value| **value == Value::None)
        .count();
    let mut places = Vec::new();
    for value in &list[free..] {
        let place = match value {
            Value::List(flags) if flags.iter().any(|v| matches!(v, Value::Bool(_))) => {
                let set = flags
                    .iter()
                    .enumerate()
                    .filter(|(_, v)| **v == Value::Bool(true));
                let set: Vec<i64> = set.map(|(i, _)| i as i64).collect();
                imp.i64s(&set)?
            }
            Value::None => return Err(unsupported("places along axes apart from each other")),
            value => imp.number_or_tensor(value)?,
        };
        if imp.dtype(place) == Some(DType::Bool) {
            return Err(unsupported("places that depend on the data"));
        }
        places.push(imp.cast(place, DType::I64)?);
    }
    let x = layer.x()?;
    match places[..] {
        [] => Ok(x),
        [place] => imp.op(Gather { axis: free as i64 }, &[x, place]),
        _ if free > 0 => Err(unsupported("places along several axes behind the first")),
        _ => {
            let mut whole = places[0];
            for &place in &places[1..] {
                whole = imp.add(whole, place)?;
            }
            let shape = imp.shape_of(whole)?;
            let parts = places.into_iter().map(|place| {
                let place = imp.op(Expand, &[place, shape])?;
                imp.unsqueeze(place, &[-1])
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            let places = imp.concat(&parts, -1)?;
            imp.op(GatherNd { batch_dims: 0 }, &[x, places])
        }
    }
}

/// `condition ? input : other`.
pub fn choose(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let condition = layer.tensor("condition", 0)?;
    let (a, b) = match (layer.operand("input", 1), layer.operand("other", 2)) {
        (Some(a), Some(b)) => (a, b),
        _ => return Err(unsupported("places that depend on the data")),
    };
    let both = imp.alike(&[&a, &b])?;
    imp.choose(condition, both[0], both[1])
}

pub fn masked_fill(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let mask = layer.tensor("mask", 1)?;
    let value = layer.operand("value", 2);
    let value = match value.ok_or_else(|| invalid("the argument `value` is missing"))? {
        Value::Tensor(value) => imp.cast_like(value, x)?,
        number => imp.number(number.float()?, x)?,
    };
    imp.choose(mask, value, x)
}

pub fn flip(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let axes = layer.need("dims")?.ints()?;
    let n = axes.len();
    let (starts, ends) = (imp.i64s(&vec![-1; n])?, imp.i64s(&vec![i64::MIN; n])?);
    let (axes, steps) = (imp.i64s(&axes)?, imp.i64s(&vec![-1; n])?);
    imp.op(Slice, &[x, starts, ends, axes, steps])
}
