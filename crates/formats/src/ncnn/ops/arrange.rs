//! Layers that move numbers to other places.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DepthToSpace, SpaceToDepth, Tile};

use super::{Outputs, fixed};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;
use crate::ncnn::params::OPEN;
use crate::ncnn::sizes::{Size, dim_of};

/// The orders of the dimensions of `Permute`, each with the new innermost dimension first (`src/layer/permute.cpp`).
const ORDERS: [&[&str]; 5] = [
    &[],
    &["w"],
    &["wh", "hw"],
    &["whc", "hwc", "wch", "cwh", "hcw", "chw"],
    &[
        "whdc", "hwdc", "wdhc", "dwhc", "hdwc", "dhwc", "whcd", "hwcd", "wchd", "cwhd", "hcwd",
        "chwd", "wdch", "dwch", "wcdh", "cwdh", "dcwh", "cdwh", "hdcw", "dhcw", "hcdw", "chdw",
        "dchw", "cdhw",
    ],
];

pub fn permute(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.blob_rank(x)?;
    if rank == 1 {
        return Ok(vec![x]);
    }
    let order = layer.params.count(0, 0)?;
    let orders = ORDERS.get(rank).copied().unwrap_or_default();
    let order = orders
        .get(order)
        .ok_or_else(|| invalid(format!("order number {order} of {rank} dimensions")))?;
    let own = orders[0];
    let mut perm = vec![0];
    for letter in order.chars().rev() {
        let place = own.chars().rev().position(|l| l == letter);
        perm.push(place.unwrap_or(0) + 1);
    }
    Ok(vec![imp.transpose(x, &perm)?])
}

/// The letters of the parameters `0=w 1=h 11=d 2=c`, from the outermost on.
const LETTERS: [(i32, u8); 4] = [(2, b'c'), (11, b'd'), (1, b'h'), (0, b'w')];

pub fn reshape(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    for id in [12, 13] {
        if !matches!(layer.params.int(id, 233)?, 233) {
            return Err(unsupported("an axis of the batch"));
        }
    }
    let expression = layer.params.text(6)?;
    let mut sizes = Vec::new();
    if expression.is_empty() {
        for (id, letter) in LETTERS {
            match layer.params.int(id, OPEN)? {
                OPEN => {}
                0 => sizes.push(imp.size_of(x, letter)?),
                n => sizes.push(Size::Known(n)),
            }
        }
    } else {
        sizes = imp.sizes(expression, &layer.inputs)?;
        let letters = ORDERS.get(sizes.len()).and_then(|orders| orders.first());
        let letters = letters.ok_or_else(|| invalid("a shape has 1 to 4 sizes"))?;
        for (size, letter) in sizes.iter_mut().zip(letters.bytes()) {
            if matches!(size, Size::Known(0)) {
                *size = imp.size_of(x, letter)?;
            }
        }
        sizes.reverse();
    }
    sizes.insert(0, Size::Known(1));
    Ok(vec![reshaped(imp, x, &sizes)?])
}

/// `x` in another shape.
fn reshaped(imp: &mut Import, x: ValueId, sizes: &[Size]) -> Result<ValueId> {
    let shape = imp.vector_of(sizes)?;
    imp.reshape_as(x, &[shape], sizes.iter().map(dim_of).collect())
}

pub fn flatten(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    match imp.blob_rank(x)? {
        1 => Ok(vec![x]),
        _ => Ok(vec![imp.reshape(x, &[1, -1])?]),
    }
}

/// The axes of a list, or those of flags along width, height, channels and depth.
fn axes(imp: &Import, layer: &Layer, x: ValueId) -> Result<Vec<i64>> {
    let list = layer.params.ints(3)?;
    if !list.is_empty() {
        return list.iter().map(|&axis| imp.axis(x, axis)).collect();
    }
    let rank = imp.blob_rank(x)?;
    let mut axes = Vec::new();
    for (id, letter) in LETTERS {
        if let (true, Some(axis)) = (
            layer.params.flag(id, false)?,
            crate::ncnn::sizes::axis_of(letter, rank),
        ) {
            axes.push(if axis < 0 {
                axis + rank as i64 + 1
            } else {
                axis
            });
        }
    }
    Ok(axes)
}

/// Takes away dimensions that are 1; the others stay. One is always left.
pub fn squeeze(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut axes = axes(imp, layer, x)?;
    for &axis in &axes {
        if imp.length(x, axis).known().is_none() {
            return Err(unsupported("a dimension of an open size that may be 1"));
        }
    }
    axes.retain(|&axis| imp.length(x, axis).known() == Some(1));
    axes.sort_unstable();
    axes.dedup();
    if axes.len() == imp.blob_rank(x)? {
        axes.pop();
    }
    match axes.is_empty() {
        true => Ok(vec![x]),
        false => Ok(vec![imp.squeeze(x, &axes)?]),
    }
}

pub fn expand_dims(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let list = layer.params.ints(3)?;
    let rank = imp.blob_rank(x)? + list.len();
    let axes = list
        .iter()
        .map(|&axis| Ok(kilim_core::ops::normalize_axis(axis, rank)? as i64 + 1));
    let axes = axes.collect::<Result<Vec<_>>>()?;
    Ok(vec![imp.unsqueeze(x, &axes)?])
}

pub fn concat(imp: &mut Import, layer: &Layer) -> Outputs {
    let axis = imp.axis(layer.input(0)?, layer.params.int(0, 0)?)?;
    Ok(vec![imp.concat(&layer.inputs, axis)?])
}

/// One blob for several readers.
pub fn split(_: &mut Import, layer: &Layer) -> Outputs {
    Ok(vec![layer.input(0)?; layer.outputs])
}

/// Nothing: the blobs pass.
pub fn noop(_: &mut Import, layer: &Layer) -> Outputs {
    Ok(layer.inputs.clone())
}

pub fn tile(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut x = layer.input(0)?;
    let mut repeats = layer.params.ints(2)?;
    let rank = imp.blob_rank(x)?;
    if repeats.is_empty() {
        let axis = imp.axis(x, layer.params.int(0, 0)?)?;
        repeats = vec![1; rank];
        repeats[axis as usize - 1] = layer.params.int(1, 1)?;
    }
    if repeats.iter().any(|&n| n < 1) {
        return Err(invalid("a blob is repeated less than once"));
    }
    if let Some(more) = repeats.len().checked_sub(rank).filter(|&more| more > 0) {
        // Channels stay the outermost dimension where a depth is added.
        let first = if rank == 3 { 2 } else { 1 };
        let axes: Vec<i64> = (first..first + more as i64).collect();
        x = imp.unsqueeze(x, &axes)?;
    }
    let whole = imp.blob_rank(x)? + 1;
    let mut all = vec![1; whole - repeats.len()];
    all.append(&mut repeats);
    if all.iter().all(|&n| n == 1) {
        return Ok(vec![x]);
    }
    let all = imp.i64s(&all)?;
    Ok(vec![imp.op(Tile, &[x, all])?])
}

/// Channels of groups in turn. Reversed, what such a layer of as many groups did is undone.
pub fn shuffle_channel(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let groups = layer.positive(0, 1)?;
    let channels = fixed(imp, x, 1, "the number of channels")?;
    if channels % groups != 0 {
        return Err(invalid(format!(
            "{channels} channels do not divide into {groups} groups"
        )));
    }
    let (groups, each) = match layer.params.flag(1, false)? {
        true => (channels / groups, groups),
        false => (groups, channels / groups),
    };
    Ok(vec![imp.shuffled(x, groups, each)?])
}

/// Pixels of squares become channels. In the first mode the channels of one channel stand together.
pub fn reorg(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let block = layer.positive(0, 1)?;
    let y = imp.op(
        SpaceToDepth {
            block,
            channels_last: false,
        },
        &[x],
    )?;
    if layer.params.flag(1, false)? {
        return Ok(vec![y]);
    }
    let channels = fixed(imp, x, 1, "the number of channels")?;
    let squares = block
        .checked_mul(block)
        .ok_or_else(|| invalid("the stride is too large"))?;
    let (h, w) = (imp.size(y, 2)?, imp.size(y, 3)?);
    let parts = [
        Size::Known(1),
        Size::Known(squares as i64),
        Size::Known(channels as i64),
        h.clone(),
        w.clone(),
    ];
    let y = reshaped(imp, y, &parts)?;
    let y = imp.transpose(y, &[0, 2, 1, 3, 4])?;
    Ok(vec![reshaped(
        imp,
        y,
        &[Size::Known(1), Size::Known(-1), h, w],
    )?])
}

pub fn pixel_shuffle(imp: &mut Import, layer: &Layer) -> Outputs {
    let op = DepthToSpace {
        block: layer.positive(0, 1)?,
        crd: !layer.params.flag(1, false)?,
        channels_last: false,
    };
    Ok(vec![imp.op(op, &[layer.input(0)?])?])
}

/// Two halves: one is multiplied with the sigmoid of the other.
pub fn glu(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axis = imp.axis(x, layer.params.int(0, 0)?)?;
    Ok(vec![imp.gated(x, axis)?])
}
