//! Layers that move numbers to other places.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{DepthToSpace, Expand, Reshape, SpaceToDepth, Tile};
use kilim_core::tensor::element_count;

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

pub fn concat(imp: &mut Import, layer: &Layer) -> Outputs {
    layer.input(0)?;
    let axis = layer.params().int(1)?;
    Ok(vec![imp.concat(&layer.inputs, axis)?])
}

/// One blob for several readers.
pub fn split(_: &mut Import, layer: &Layer) -> Outputs {
    Ok(vec![layer.input(0)?; layer.outputs])
}

/// Two halves along an axis: the first times the sigmoid of the second.
pub fn glu(imp: &mut Import, layer: &Layer) -> Outputs {
    let axis = layer.params().int(-1)?;
    Ok(vec![imp.gated(layer.input(0)?, axis)?])
}

pub fn flatten(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axis = layer.params().count(0)?;
    let dims = imp.dims(x)?;
    let outer = dims.get(..axis);
    let outer = outer.ok_or_else(|| invalid("the axis is none of the blob"))?;
    let outer = element_count(outer)? as i64;
    Ok(vec![imp.reshape(x, &[outer, -1])?])
}

/// The layer `Permute`: the order of dimensions. Dimensions that are left out follow.
pub fn permute(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.rank(x)?;
    let mut perm = Vec::new();
    for axis in layer.params().list()? {
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < rank);
        perm.push(axis.ok_or_else(|| invalid("an axis is none of the blob"))?);
    }
    let rest: Vec<usize> = (0..rank).filter(|axis| !perm.contains(axis)).collect();
    perm.extend(rest);
    if perm.len() != rank {
        return Err(invalid("an axis stands twice in an order"));
    }
    Ok(vec![imp.transpose(x, &perm)?])
}

/// The layer `Reshape` (`DimsFunctionUtils::Reshape` in `utils/dims_function_utils.cc`): dimensions up to an axis stay, then 0 keeps one
/// and -1 is what is left.
pub fn reshape(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let (axis, axes) = (params.count(0)?, params.int(0)?);
    let listed = params.list()?;
    let channels_last = match params.int(0)? {
        0 => false,
        1 => true,
        other => return Err(unsupported(format!("order number {other} of the numbers"))),
    };
    let mut shape = listed;
    if let Some(&by) = layer.inputs.get(1) {
        if imp.constant(by).is_none() && axis == 0 && !channels_last {
            let shape = imp.as_sizes(by)?;
            return Ok(vec![imp.op(Reshape { allow_zero: false }, &[x, shape])?]);
        }
        shape = imp.known_ints(by)?;
    } else if axes >= 0 {
        // Dimensions behind those that count are 1.
        let count = usize::try_from(axes).unwrap_or(usize::MAX);
        shape.iter_mut().skip(count).for_each(|n| *n = 1);
    }
    if axis > imp.rank(x)? {
        return Err(invalid("the axis is none of the blob"));
    }
    // A dimension of 0 is that of the blob in its place.
    let mut whole = vec![0; axis];
    whole.append(&mut shape);
    match channels_last {
        true => Ok(vec![reshaped_last(imp, x, &whole)?]),
        false => Ok(vec![imp.reshape(x, &whole)?]),
    }
}

/// Another shape of the numbers in the order in which they lie with the channels last, as TensorFlow has them.
fn reshaped_last(imp: &mut Import, x: ValueId, to: &[i64]) -> Result<ValueId> {
    let dims = imp.dims(x)?;
    if dims.len() > 4 || to.len() > 4 || dims.len() < 2 || to.len() < 2 {
        return Err(unsupported("channels last in blobs of such a rank"));
    }
    let last = |axes: [i64; 4]| [axes[0], axes[2], axes[3], axes[1]];
    let mut own = [1; 4];
    own.iter_mut()
        .zip(&dims)
        .for_each(|(to, &n)| *to = n as i64);
    let mut x = x;
    if dims.len() < 4 {
        x = imp.reshape(x, &own)?;
    }
    let x = imp.transpose(x, &[0, 2, 3, 1])?;
    let mut asked = [1; 4];
    for (i, (asked, &n)) in asked.iter_mut().zip(to).enumerate() {
        *asked = if n == 0 { own[i] } else { n };
    }
    let y = imp.reshape(x, &last(asked))?;
    let y = imp.transpose(y, &[0, 3, 1, 2])?;
    match to.len() {
        4 => Ok(y),
        rank => imp.reshape(y, &asked[..rank]),
    }
}

/// Axes are taken away from the last of the list to the first (`layer/squeeze_layer.cc`).
pub fn squeeze(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut left: Vec<i64> = (0..imp.rank(x)? as i64).collect();
    let mut axes = Vec::new();
    for axis in layer.params().list()?.into_iter().rev() {
        let place = kilim_core::ops::normalize_axis(axis, left.len())?;
        axes.push(left.remove(place));
    }
    axes.sort_unstable();
    match axes.is_empty() {
        true => Ok(vec![x]),
        false => Ok(vec![imp.squeeze(x, &axes)?]),
    }
}

/// Axes are put in one after the other (`layer/unsqueeze_layer.cc`).
pub fn unsqueeze(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut is_new = vec![false; imp.rank(x)?];
    for axis in layer.params().list()? {
        let place = kilim_core::ops::normalize_axis(axis, is_new.len() + 1)?;
        is_new.insert(place, true);
    }
    let new = is_new.iter().enumerate().filter(|(_, new)| **new);
    let axes: Vec<i64> = new.map(|(axis, _)| axis as i64).collect();
    Ok(vec![imp.unsqueeze(x, &axes)?])
}

/// The layer `Expand`, which broadcasts both ways. A dimension of -1 stays.
pub fn expand(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let shape = match layer.inputs.get(1) {
        Some(&by) if imp.constant(by).is_none() => imp.as_sizes(by)?,
        by => {
            let mut shape = match by {
                Some(&by) => imp.known_ints(by)?,
                None => layer.params().list()?,
            };
            shape.iter_mut().filter(|n| **n == -1).for_each(|n| *n = 1);
            imp.i64s(&shape)?
        }
    };
    Ok(vec![imp.op(Expand, &[x, shape])?])
}

/// The layers `Repeat` and `Tile`: how often each dimension is repeated, the innermost last.
pub fn tile(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut x = layer.input(0)?;
    let mut params = layer.params();
    let mut repeats = match layer.inputs.get(1) {
        Some(&by) => imp.known_ints(by)?,
        None => params.ints(params.left())?,
    };
    let rank = imp.rank(x)?;
    if let Some(more) = repeats.len().checked_sub(rank) {
        let axes: Vec<i64> = (0..more as i64).collect();
        x = imp.unsqueeze(x, &axes)?;
    }
    while repeats.len() < rank {
        repeats.insert(0, 1);
    }
    let repeats = imp.i64s(&repeats)?;
    Ok(vec![imp.op(Tile, &[x, repeats])?])
}

/// Channels of groups in turn.
pub fn shuffle_channel(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let groups = layer.params().positive(1)?;
    let channels = imp.channels(x)?;
    if channels % groups != 0 {
        return Err(invalid(format!(
            "{channels} channels do not divide into {groups} groups"
        )));
    }
    Ok(vec![imp.shuffled(x, groups, channels / groups)?])
}

pub fn pixel_shuffle(imp: &mut Import, layer: &Layer) -> Outputs {
    let op = DepthToSpace {
        block: layer.params().positive(1)?,
        crd: true,
        channels_last: false,
    };
    Ok(vec![imp.op(op, &[layer.input(0)?])?])
}

/// The layer `Reorg`: channels become squares of pixels, or the other way around.
pub fn reorg(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let block = params.positive(1)?;
    let to_space = params.int(0)? != 0;
    params.int(0)?;
    let crd = match params.int(0)? {
        0 => false,
        1 => true,
        other => return Err(unsupported(format!("order number {other} of channels"))),
    };
    let channels_last = false;
    Ok(vec![match (to_space, crd) {
        (true, crd) => imp.op(
            DepthToSpace {
                block,
                crd,
                channels_last,
            },
            &[x],
        )?,
        (false, false) => imp.op(
            SpaceToDepth {
                block,
                channels_last,
            },
            &[x],
        )?,
        (false, true) => return Err(unsupported("squares within channels")),
    }])
}
