//! Operators that move numbers to other places.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Pad, PadMode, Slice, Split};

use super::Outputs;
use super::reduce::NO_AXIS;
use crate::tengine::import::Import;
use crate::tengine::invalid;
use crate::tengine::node::Node;

/// Nothing: the first tensor passes.
pub fn same(_: &mut Import, node: &Node) -> Outputs {
    Ok(vec![node.input(0)?])
}

pub fn concat(imp: &mut Import, node: &Node) -> Outputs {
    node.input(0)?;
    let axis = node.params()?.int(0)?;
    Ok(vec![imp.concat(&node.inputs, axis)?])
}

/// The operator `Flatten`: the dimensions from an axis on become one.
pub fn flatten(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let rank = imp.rank(x)? as i64;
    if params.int(0)? != 1 || params.int(1)? < rank - 1 {
        return Err(unsupported("a part of the dimensions"));
    }
    Ok(vec![imp.reshape(x, &[0, -1])?])
}

/// The two orders that `operator/prototype/permute.c` knows.
pub fn permute(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let order = [
        params.int(1)?,
        params.int(2)?,
        params.int(3)?,
        params.int(4)?,
    ];
    let perm: &[usize] = match (order, imp.rank(x)?) {
        ([0, 2, 3, 1], 4) => &[0, 2, 3, 1],
        ([1, 0, 2, _], 3) => &[1, 0, 2],
        _ => return Err(unsupported("an order that Tengine does not have itself")),
    };
    Ok(vec![imp.transpose(x, perm)?])
}

fn transposed(imp: &mut Import, x: ValueId, order: &[i64]) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    let perm = order
        .iter()
        .map(|&axis| usize::try_from(axis).ok().filter(|&a| a < rank));
    let perm: Option<Vec<usize>> = perm.collect();
    match perm {
        Some(perm) if perm.len() == rank => imp.transpose(x, &perm),
        _ => Err(invalid("an order of other axes than the tensor has")),
    }
}

pub fn transpose(imp: &mut Import, node: &Node) -> Outputs {
    let order = node.params()?.ints(0)?;
    Ok(vec![transposed(imp, node.input(0)?, &order)?])
}

pub fn swap_axes(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let mut order: Vec<i64> = (0..imp.rank(x)? as i64).collect();
    let (a, b) = (node.count(0)?, node.count(1)?);
    if a.max(b) >= order.len() {
        return Err(invalid("an axis is none of the tensor"));
    }
    order.swap(a, b);
    Ok(vec![transposed(imp, x, &order)?])
}

/// The operator `Reshape` (`operator/prototype/reshape.c`): -1 is what is left, 0 keeps a dimension. In files from Caffe 0 is 1 in front,
/// and left out elsewhere.
pub fn reshape(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let keeps = params.int(0)? != 0 || params.int(3)? != 0;
    if params.int(1)? != 0 {
        return Err(unsupported("a shape that is read backwards"));
    }
    let mut shape = Vec::new();
    for (i, n) in params.ints(2)?.into_iter().enumerate() {
        match n {
            0 if keeps => shape.push(0),
            0 if i == 0 => shape.push(1),
            0 => {}
            n if n < -1 => return Err(unsupported(format!("number {n} in a shape"))),
            n => shape.push(n),
        }
    }
    Ok(vec![imp.reshape(x, &shape)?])
}

/// Copies for several readers, or parts of equal or given lengths.
pub fn split(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    // Two flags stand in the third word.
    if params.flag(8)? {
        return Ok(vec![x; node.outputs]);
    }
    let axis = match params.flag(9)? {
        true => params.int(0)?,
        false => 0,
    };
    let lengths = params.ints(3)?;
    if !lengths.is_empty() {
        let lengths = imp.i64s(&lengths)?;
        return imp.apply(Split { axis }, &[Some(x), Some(lengths)], node.outputs);
    }
    imp.apply(Split { axis }, &[Some(x)], node.outputs)
}

/// The operator `Slice` in the forms of Caffe, MXNet, ONNX and TensorFlow (`operator/prototype/slice.c`).
pub fn slice(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let axis = params.int(0)?;
    if params.int(4)? != 0 {
        return parts(imp, node, axis);
    }
    let [begin, end] = [params.int(7)?, params.int(8)?];
    let (begins, ends, axes, step) = if params.int(5)? != 0 {
        (vec![begin], vec![end], vec![axis], 1)
    } else if params.int(6)? != 0 {
        (vec![begin], vec![end], vec![axis], params.int(9)?.max(1))
    } else {
        let (begins, sizes) = (params.ints(2)?, params.ints(3)?);
        let ends = begins.iter().zip(&sizes).map(|(begin, size)| begin + size);
        let ends: Vec<i64> = ends.collect();
        let rank = imp.rank(x)?;
        if [begins.len(), sizes.len()] != [rank; 2] {
            return Err(invalid("a part is not given for all dimensions"));
        }
        (begins, ends, (0..rank as i64).collect(), 1)
    };
    let steps = vec![step; axes.len()];
    let inputs = [
        x,
        imp.i64s(&begins)?,
        imp.i64s(&ends)?,
        imp.i64s(&axes)?,
        imp.i64s(&steps)?,
    ];
    Ok(vec![imp.op(Slice, &inputs)?])
}

/// Parts one behind the other, which are equal where the file does not say where they end.
fn parts(imp: &mut Import, node: &Node, axis: i64) -> Outputs {
    let x = node.input(0)?;
    let points = node.params()?.ints(1)?;
    if points.is_empty() {
        return imp.apply(Split { axis }, &[Some(x)], node.outputs);
    }
    if points.len() + 1 != node.outputs {
        return Err(invalid("the parts are of another number than their ends"));
    }
    let begins = std::iter::once(0).chain(points.iter().copied());
    let ends = points.iter().copied().chain(std::iter::once(i64::MAX));
    let ends = begins.zip(ends);
    ends.map(|(begin, end)| imp.slice(x, axis, begin, end))
        .collect()
}

/// The axes of four parameters, without those that are left out.
fn axes(node: &Node) -> Result<Vec<i64>> {
    let params = node.params()?;
    let axes = (0..4).map(|i| params.int(i));
    let axes: Vec<i64> = axes.collect::<Result<_>>()?;
    Ok(axes.into_iter().filter(|&axis| axis != NO_AXIS).collect())
}

/// The operator `Squeeze`. Its axes are those of a tensor whose channels lie last (`operator/prototype/squeeze.c`); without any, all
/// dimensions of 1 go.
pub fn squeeze(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let dims = imp.dims(x)?;
    let asked = axes(node)?;
    let mut axes = Vec::new();
    for axis in &asked {
        let place = match axis {
            0 => 0,
            1 => 2,
            2 => 3,
            3 => 1,
            _ => return Err(unsupported("an axis that is counted from behind")),
        };
        if dims.get(place) == Some(&1) {
            axes.push(place as i64);
        }
    }
    if asked.is_empty() {
        axes = (0..dims.len())
            .filter(|&i| dims[i] == 1)
            .map(|i| i as i64)
            .collect();
    }
    axes.sort_unstable();
    axes.dedup();
    match axes.is_empty() {
        true => Ok(vec![x]),
        false => Ok(vec![imp.squeeze(x, &axes)?]),
    }
}

pub fn unsqueeze(imp: &mut Import, node: &Node) -> Outputs {
    let axes = node.params()?.ints(0)?;
    Ok(vec![imp.unsqueeze(node.input(0)?, &axes)?])
}

pub fn expand_dims(imp: &mut Import, node: &Node) -> Outputs {
    let axis = node.params()?.int(0)?;
    Ok(vec![imp.unsqueeze(node.input(0)?, &[axis])?])
}

pub fn shuffle_channel(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let groups = node.positive(0)?;
    let channels = imp.channels(x)?;
    if channels % groups != 0 {
        return Err(invalid(format!(
            "{channels} channels do not divide into {groups} groups"
        )));
    }
    Ok(vec![imp.shuffled(x, groups, channels / groups)?])
}

/// The operator `Pad`: in front of and behind each dimension in turn.
pub fn pad(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    if imp.rank(x)? != 4 {
        return Err(unsupported("tensors that are no pictures"));
    }
    let sides = (0..8).map(|i| params.int(i)).collect::<Result<Vec<_>>>()?;
    // Sides that are left out are -1.
    let side = |i: usize| sides[i].max(0);
    let pads: Vec<i64> = (0..4)
        .map(|a| side(2 * a))
        .chain((0..4).map(|a| side(2 * a + 1)))
        .collect();
    let mode = match params.int(8)? {
        0 => PadMode::Constant,
        1 => PadMode::Edge,
        2 => PadMode::Reflect,
        other => return Err(unsupported(format!("padding number {other}"))),
    };
    if pads.iter().all(|&pad| pad == 0) {
        return Ok(vec![x]);
    }
    let inputs = [x, imp.i64s(&pads)?, imp.float(params.float(9)?)?];
    Ok(vec![imp.op(Pad { mode }, &inputs)?])
}
