//! Elements in other shapes and orders.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DepthToSpace, Tile};

use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// Another shape: 0 keeps a dimension, as in pnnx, -1 is what is left.
pub fn reshape(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let shape = layer.operand("shape", 1).or_else(|| layer.arg("size"));
    let shape = shape.ok_or_else(|| invalid("the argument `shape` is missing"))?;
    let shape = imp.sizes(&shape)?;
    imp.reshape_to(layer.x()?, shape)
}

pub fn reshape_as(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let like = layer.tensor("other", 1)?;
    let shape = imp.shape_of(like)?;
    imp.reshape_to(layer.x()?, shape)
}

/// `x` with `parts`, `int64` vectors, in the place of the dimensions `from..to`.
fn replaced(
    imp: &mut Import,
    x: ValueId,
    (from, to): (usize, usize),
    middle: ValueId,
) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    let mut parts = vec![imp.i64s(&vec![0; from])?, middle];
    for axis in to..rank {
        parts.push(imp.dim(x, axis as i64)?);
    }
    let shape = imp.vector(&parts)?;
    imp.reshape_to(x, shape)
}

pub fn flatten(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let default = i64::from(layer.info.kind == "nn.Flatten");
    if imp.rank(x)? == 0 {
        return imp.reshape(x, &[1]);
    }
    let from = imp.axis_of(x, layer.int("start_dim", default)?)?;
    let to = imp.axis_of(x, layer.int("end_dim", -1)?)?;
    if from > to {
        return Err(invalid("`start_dim` is behind `end_dim`"));
    }
    if from == to {
        return Ok(x);
    }
    let left = imp.i64s(&[-1])?;
    replaced(imp, x, (from, to + 1), left)
}

pub fn unflatten(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let axis = imp.axis_of(x, layer.need("dim")?.int()?)?;
    let sizes = layer.arg("sizes").or_else(|| layer.arg("unflattened_size"));
    let sizes = sizes.ok_or_else(|| invalid("the argument `sizes` is missing"))?;
    let sizes = imp.sizes(&sizes)?;
    replaced(imp, x, (axis, axis + 1), sizes)
}

pub fn permute(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let dims = layer.need("dims")?.ints()?;
    let perm = dims.iter().map(|&axis| imp.axis_of(x, axis));
    let perm = perm.collect::<Result<Vec<_>>>()?;
    imp.transpose(x, &perm)
}

fn swapped(imp: &mut Import, x: ValueId, a: i64, b: i64) -> Result<ValueId> {
    let mut perm: Vec<usize> = (0..imp.rank(x)?).collect();
    let (a, b) = (imp.axis_of(x, a)?, imp.axis_of(x, b)?);
    perm.swap(a, b);
    imp.transpose(x, &perm)
}

pub fn transpose(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (a, b) = (layer.need("dim0")?.int()?, layer.need("dim1")?.int()?);
    swapped(imp, layer.x()?, a, b)
}

/// The transpose of a matrix; a list stays as it is.
pub fn t(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    match imp.rank(x)? {
        2 => swapped(imp, x, 0, 1),
        _ => Ok(x),
    }
}

/// Dimensions that are not 1 stay.
pub fn squeeze(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let rank = imp.rank(x)?;
    let axes = match layer.ints("dim")? {
        Some(axes) => axes,
        None => (0..rank as i64).collect(),
    };
    let mut gone = Vec::new();
    for axis in axes {
        let axis = imp.axis_of(x, axis)?;
        match imp.known_shape(x).and_then(|shape| shape.0[axis].known()) {
            Some(1) => gone.push(axis as i64),
            Some(_) => (),
            None => return Err(unsupported("a dimension that may be 1, or not")),
        }
    }
    if gone.is_empty() {
        Ok(x)
    } else {
        imp.squeeze(x, &gone)
    }
}

pub fn unsqueeze(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    imp.unsqueeze(layer.x()?, &layer.need("dim")?.ints()?)
}

/// Sizes of -1 keep a dimension, which a size of 1 does here.
pub fn expand(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let sizes = layer.operand("sizes", 1).or_else(|| layer.arg("size"));
    let mut sizes = sizes.ok_or_else(|| invalid("the argument `sizes` is missing"))?;
    if let Value::List(list) = &mut sizes {
        for size in list.iter_mut().filter(|size| **size == Value::Int(-1)) {
            *size = Value::Int(1);
        }
    }
    let shape = imp.sizes(&sizes)?;
    imp.expand(layer.x()?, shape)
}

pub fn expand_as(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let like = layer.tensor("other", 1)?;
    let shape = imp.shape_of(like)?;
    imp.expand(layer.x()?, shape)
}

/// Copies along axes, those of the innermost last. Where either has fewer dimensions, ones stand in front.
pub fn repeat(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let sizes = layer.operand("sizes", 1).or_else(|| layer.arg("dims"));
    let sizes = sizes.ok_or_else(|| invalid("the argument `sizes` is missing"))?;
    let Value::List(mut list) = sizes else {
        return Err(sizes.no("a list"));
    };
    let mut x = layer.x()?;
    let rank = imp.rank(x)?;
    let more = list.len().saturating_sub(rank) as i64;
    x = imp.unsqueeze(x, &(0..more).collect::<Vec<_>>())?;
    while list.len() < rank {
        list.insert(0, Value::Int(1));
    }
    let repeats = imp.sizes(&Value::List(list))?;
    imp.op(Tile, &[x, repeats])
}

/// Each element as often as `repeats` says, side by side.
pub fn repeat_interleave(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let repeats = layer.need("repeats")?.int()?;
    let mut x = layer.x()?;
    let axis = match layer.arg("dim") {
        Some(axis) => imp.axis_of(x, axis.int()?)?,
        None => {
            x = imp.reshape(x, &[-1])?;
            0
        }
    };
    let rank = imp.rank(x)?;
    let more = imp.unsqueeze(x, &[axis as i64 + 1])?;
    let mut tiles = vec![1; rank + 1];
    tiles[axis + 1] = repeats;
    let tiles = imp.i64s(&tiles)?;
    let y = imp.op(Tile, &[more, tiles])?;
    let left = imp.i64s(&[-1])?;
    replaced(imp, y, (axis, axis + 2), left)
}

pub fn roll(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let shifts = layer.need("shifts")?.ints()?;
    let Some(axes) = layer.ints("dims")? else {
        return Err(unsupported("a shift of elements across rows"));
    };
    if axes.len() != shifts.len() {
        return Err(invalid("there are other numbers of shifts and axes"));
    }
    let mut y = x;
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let axis = imp.axis_of(x, axis)?;
        let known = imp.known_shape(x).and_then(|shape| shape.0[axis].known());
        let n = known.ok_or_else(|| unsupported("a shift along an axis of an open size"))? as i64;
        let shift = if n == 0 { 0 } else { shift.rem_euclid(n) };
        if shift != 0 {
            let end = imp.slice(y, axis as i64, n - shift, n)?;
            let begin = imp.slice(y, axis as i64, 0, n - shift)?;
            y = imp.concat(&[end, begin], axis as i64)?;
        }
    }
    Ok(y)
}

pub fn pixel_shuffle(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    if imp.rank(x)? != 4 {
        return Err(unsupported("pictures without a batch"));
    }
    let op = DepthToSpace {
        block: layer.positive("upscale_factor", 0)?,
        crd: true,
        channels_last: false,
    };
    imp.op(op, &[x])
}

/// Blocks of pixels as channels, those of one channel side by side.
pub fn pixel_unshuffle(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let r = layer.positive("downscale_factor", 0)? as i64;
    let shape = imp.shape(x).filter(|shape| shape.len() == 4);
    let Some([n, c, h, w]) = shape.map(|s| [s[0], s[1], s[2], s[3]].map(|n| n as i64)) else {
        return Err(unsupported("pictures of an open size"));
    };
    if h % r != 0 || w % r != 0 {
        return Err(invalid("the picture does not divide into blocks").with_got(r));
    }
    let y = imp.reshape(x, &[n, c, h / r, r, w / r, r])?;
    let y = imp.transpose(y, &[0, 1, 3, 5, 2, 4])?;
    let channels = r.checked_mul(r).and_then(|pixels| pixels.checked_mul(c));
    let channels = channels.ok_or_else(|| invalid("too many channels"))?;
    imp.reshape(y, &[n, channels, h / r, w / r])
}

pub fn channel_shuffle(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let groups = layer.positive("groups", 0)?;
    let known = imp.known_shape(x).and_then(|shape| shape.0.get(1)?.known());
    let channels = known.ok_or_else(|| unsupported("an open number of channels"))?;
    match channels.is_multiple_of(groups) {
        true => imp.shuffled(x, groups, channels / groups),
        false => Err(invalid("the channels do not divide into groups")),
    }
}
