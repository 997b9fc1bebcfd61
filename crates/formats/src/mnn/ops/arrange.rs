//! Other shapes and other orders of the same numbers.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BatchToSpace, DepthToSpace, SpaceToBatch, SpaceToDepth, Split, Tile};

use super::Outputs;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::layout::Layout;
use crate::mnn::op::{Op, Params};

/// The tables of parameters.
pub const AXIS: u8 = 4;
const EXPAND_DIMS: u8 = 15;
const FLATTEN: u8 = 17;
const PACK: u8 = 28;
const PERMUTE: u8 = 29;
const RESHAPE: u8 = 55;
const SPACE_BATCH: u8 = 63;
const SQUEEZE: u8 = 64;
const CONVERT: u8 = 66;
const DEPTH_SPACE: u8 = 75;

/// The operator ConvertTensor.
pub fn convert(imp: &mut Import, op: &Op) -> Outputs {
    let to = Layout::of(op.params(CONVERT)?.choice(1)?)?;
    imp.gives(to);
    let x = op.input(0)?;
    Ok(vec![imp.laid_out(x, op.layout(), to)?])
}

/// The operator Reshape, to a shape in its parameters or one that is input. One that was made for NHWC goes over pictures in that order.
pub fn reshape(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(RESHAPE)?);
    let made_for = Layout::of(p.choice(1)?)?;
    let turned = op.layout() == Layout::Nc4hw4 && made_for == Layout::Nhwc;
    let rank = imp.rank(x)?;
    let shape = match op.optional(1) {
        Some(shape) => imp.vector_of(shape)?,
        None => {
            let mut dims = p.ints(0)?;
            if turned && dims.len() == 4 {
                // A shape in the parameters is that of the result.
                dims[1..].rotate_left(1);
            }
            imp.i64s(&dims)?
        }
    };
    if !turned || rank <= 2 {
        return Ok(vec![imp.reshape_to(x, shape)?]);
    }
    let x = imp.laid_out(x, Layout::Nchw, Layout::Nhwc)?;
    let y = imp.reshape_to(x, shape)?;
    Ok(vec![imp.laid_out(y, Layout::Nhwc, Layout::Nchw)?])
}

/// The operator Flatten: to a matrix from `axis` on, or the dimensions from `axis` to another to one.
pub fn flatten(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(FLATTEN)?);
    let rank = imp.rank(x)?;
    let axis = imp.axis_of(x, p.int(0, 0)?.into())?;
    let end = match p.int(1, 0)? {
        0 => {
            let flatten = kilim_core::ops::Flatten { axis: axis as i64 };
            return Ok(vec![imp.op(flatten, &[x])?]);
        }
        end => imp.axis_of(x, end.into())?,
    };
    if end < axis {
        return Err(invalid("the last dimension stands before the first"));
    }
    let mut parts = Vec::new();
    for i in (0..axis).chain(end + 1..rank) {
        if i == end + 1 {
            parts.push(imp.i64s(&[-1])?);
        }
        parts.push(imp.dim(x, i as i64)?);
    }
    if end + 1 == rank {
        parts.push(imp.i64s(&[-1])?);
    }
    let shape = imp.vector(&parts)?;
    Ok(vec![imp.reshape_to(x, shape)?])
}

/// Axes in the parameters, else in the second input.
fn axes(imp: &mut Import, op: &Op, p: &Params) -> Result<Vec<i64>> {
    let axes = p.ints(0)?;
    match (axes.is_empty(), op.optional(1)) {
        (true, Some(given)) => {
            let known = imp.known(given)?;
            known.ok_or_else(|| unsupported("axes that another operator computes"))
        }
        _ => Ok(axes),
    }
}

/// The operator Squeeze; without axes all dimensions of 1 go.
pub fn squeeze(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let mut axes = axes(imp, op, &op.params(SQUEEZE)?)?;
    if axes.is_empty() {
        let shape = imp.shape(x);
        let shape = shape.ok_or_else(|| unsupported("all dimensions of 1 of an open shape"))?;
        axes = (0..)
            .zip(shape)
            .filter(|(_, n)| *n == 1)
            .map(|(i, _)| i)
            .collect();
    }
    if axes.is_empty() {
        return Ok(vec![x]);
    }
    let number = imp.rank(x)? == 1 && axes.len() == 1;
    if number && let Some(number) = imp.shaped(x, &[])? {
        return Ok(vec![number]);
    }
    Ok(vec![imp.squeeze(x, &axes)?])
}

/// The operator Unsqueeze.
pub fn unsqueeze(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let axes = axes(imp, op, &op.params(SQUEEZE)?)?;
    let number = imp.rank(x)? == 0 && axes.len() == 1;
    if number && let Some(list) = imp.shaped(x, &[1])? {
        return Ok(vec![list]);
    }
    Ok(vec![imp.unsqueeze(x, &axes)?])
}

/// The operator ExpandDims.
pub fn expand_dims(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let axis = match op.optional(1) {
        Some(axis) => one(imp, axis, "an axis")?,
        None => op.params(EXPAND_DIMS)?.int(2, 0)?.into(),
    };
    Ok(vec![imp.unsqueeze(x, &[axis])?])
}

/// One number that must be known when the model is read.
pub fn one(imp: &mut Import, x: ValueId, what: &str) -> Result<i64> {
    match imp.known(x)?.as_deref() {
        Some(&[n]) => Ok(n),
        Some(_) => Err(invalid(format!("{what} is not one number"))),
        None => Err(unsupported(format!(
            "{what} that another operator computes"
        ))),
    }
}

/// The operators Permute, with its order in the parameters, and Transpose, with its order as input.
pub fn permute(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let order = match op.optional(1) {
        Some(order) => {
            let known = imp.known(order)?;
            known.ok_or_else(|| unsupported("an order that another operator computes"))?
        }
        None => op.params(PERMUTE)?.ints(0)?,
    };
    let rank = imp.rank(x)?;
    // MNN looks at the beginning of a list that is longer.
    let order = order.iter().take(rank).map(|&axis| imp.axis_of(x, axis));
    let order = order.collect::<Result<Vec<_>>>()?;
    Ok(vec![imp.transpose(x, &order)?])
}

/// The operator Concat.
pub fn concat(imp: &mut Import, op: &Op) -> Outputs {
    let axis = op.params(AXIS)?.int(0, 0)?.into();
    let parts = op.all()?;
    Ok(vec![imp.concat(&parts, axis)?])
}

/// The operator Pack: inputs beside each other along a new dimension.
pub fn pack(imp: &mut Import, op: &Op) -> Outputs {
    let axis: i64 = op.params(PACK)?.int(1, 0)?.into();
    let mut parts = op.all()?;
    for part in &mut parts {
        *part = imp.unsqueeze(*part, &[axis])?;
    }
    // A new dimension that is counted from behind is one of the result, for Unsqueeze and for Concat.
    Ok(vec![imp.concat(&parts, axis)?])
}

/// The operator Unpack: the parts of one along a dimension, which goes.
pub fn unpack(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let axis = imp.axis_of(x, op.params(AXIS)?.int(0, 0)?.into())? as i64;
    let count = op.outputs();
    let parts = match imp.length(x, axis).known() {
        Some(n) if n == count => imp.apply(Split { axis }, &[Some(x)], count)?,
        Some(n) if n < count => {
            return Err(invalid("more parts than there are")
                .with_expected(n)
                .with_got(count));
        }
        _ => (0..count as i64)
            .map(|i| imp.slice(x, axis, i, i + 1))
            .collect::<Result<_>>()?,
    };
    parts
        .into_iter()
        .map(|part| imp.squeeze(part, &[axis]))
        .collect()
}

/// The operator Tile.
pub fn tile(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let repeats = op.input(1)?;
    let repeats = imp.vector_of(repeats)?;
    Ok(vec![imp.op(Tile, &[x, repeats])?])
}

/// The operator BroadcastTo.
pub fn broadcast(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let shape = op.input(1)?;
    let shape = imp.vector_of(shape)?;
    Ok(vec![imp.expand(x, shape)?])
}

/// The operators DepthToSpace and SpaceToDepth.
pub fn blocks(imp: &mut Import, op: &Op, to_space: bool) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(DEPTH_SPACE)?);
    let block = p.positive(0, 0)?;
    let (crd, channels_last) = (p.choice(1)? == 1, op.layout().channels_last());
    let y = match to_space {
        true => imp.op(
            DepthToSpace {
                block,
                crd,
                channels_last,
            },
            &[x],
        )?,
        false if crd => return Err(unsupported("blocks whose channels lie apart")),
        false => imp.op(
            SpaceToDepth {
                block,
                channels_last,
            },
            &[x],
        )?,
    };
    Ok(vec![y])
}

/// The operators SpaceToBatchND and BatchToSpaceND.
pub fn batches(imp: &mut Import, op: &Op, to_space: bool) -> Outputs {
    let x = op.input(0)?;
    let (block, around) = match (op.optional(1), op.optional(2)) {
        (Some(block), Some(around)) => (
            imp.vector_of(block)?,
            imp.cast(around, kilim_core::DType::I64)?,
        ),
        _ => {
            let p = op.params(SPACE_BATCH)?;
            let ints = |slot| -> Result<Vec<i64>> {
                let blob = p.table(slot)?;
                let blob = blob.ok_or_else(|| invalid("the sizes of blocks are missing"))?;
                let tensor = crate::mnn::blob::tensor(&blob, imp.numbers)?;
                tensor.to_i64s()
            };
            let (block, around) = (ints(0)?, ints(1)?);
            (imp.i64s(&block)?, imp.i64s(&around)?)
        }
    };
    let around = imp.reshape(around, &[-1, 2])?;
    // The operators of the graph take blocks of dimensions behind the batch.
    let x = imp.laid_out(x, op.layout(), Layout::Nhwc)?;
    let y = match to_space {
        true => imp.op(BatchToSpace, &[x, block, around])?,
        false => imp.op(SpaceToBatch, &[x, block, around])?,
    };
    Ok(vec![imp.laid_out(y, Layout::Nhwc, op.layout())?])
}
