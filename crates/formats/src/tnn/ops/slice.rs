//! Parts of blobs, blobs with something around them, and numbers by their places.

use kilim_core::error::unsupported;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Gather, GatherNd, Pad, PadMode, ScatterElements, ScatterNd, ScatterReduction, Slice, Split,
};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The layer `SplitV`: the lengths of the parts, which are equal where the file has none.
pub fn split(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let axis = params.int(0)?;
    let lengths = params.list()?;
    if lengths.is_empty() {
        return imp.apply(Split { axis }, &[Some(x)], layer.outputs);
    }
    if lengths.len() != layer.outputs {
        return Err(invalid(
            "the parts are of another number than their lengths",
        ));
    }
    let lengths = imp.i64s(&lengths)?;
    imp.apply(Split { axis }, &[Some(x), Some(lengths)], layer.outputs)
}

/// What is taken of axes, as `Slice` has it.
struct Ends {
    begins: ValueId,
    ends: ValueId,
    axes: ValueId,
    steps: ValueId,
}

fn sliced(imp: &mut Import, x: ValueId, at: &Ends) -> Outputs {
    let inputs = [x, at.begins, at.ends, at.axes, at.steps];
    Ok(vec![imp.op(Slice, &inputs)?])
}

/// The layer `StridedSlice`: begins, ends and steps of all dimensions (`layer/stride_slice_layer.cc`). An end of 0 is that of the blob;
/// a second blob has the size of the part.
pub fn strided(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let (begins, mut ends, steps) = (params.list()?, params.list()?, params.list()?);
    let rank = imp.rank(x)?;
    if [begins.len(), ends.len(), steps.len()] != [rank; 3] {
        return Err(invalid("a part is not given for all dimensions"));
    }
    if steps.iter().any(|&step| step < 1) {
        return Err(invalid("a step is not positive"));
    }
    match layer.inputs.get(1) {
        Some(&like) => {
            let dims = imp.dims(like)?;
            for (i, end) in ends.iter_mut().enumerate() {
                let length = dims.get(i).copied().unwrap_or(1);
                let part = (length as i64).saturating_mul(steps[i]);
                *end = begins[i].saturating_add(part);
            }
        }
        None => ends
            .iter_mut()
            .filter(|end| **end == 0)
            .for_each(|end| *end = i64::MAX),
    }
    let axes: Vec<i64> = (0..rank as i64).collect();
    let at = Ends {
        begins: imp.i64s(&begins)?,
        ends: imp.i64s(&ends)?,
        axes: imp.i64s(&axes)?,
        steps: imp.i64s(&steps)?,
    };
    sliced(imp, x, &at)
}

/// The layer `StridedSliceV2`: begins, ends, axes and steps. A second and a third blob replace the first two.
pub fn strided_v2(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let (begins, ends) = (params.list()?, params.list()?);
    let (axes, steps) = (params.list()?, params.list()?);
    // The largest and the smallest number of 32 bits stand for the ends of the blob.
    let open = |&end: &i64| match end {
        _ if end == i64::from(i32::MAX) => i64::MAX,
        _ if end == i64::from(i32::MIN) => i64::MIN,
        end => end,
    };
    let ends: Vec<i64> = ends.iter().map(open).collect();
    let begins = match layer.inputs.get(1) {
        Some(&begins) => imp.as_sizes(begins)?,
        None => imp.i64s(&begins)?,
    };
    let ends = match layer.inputs.get(2) {
        Some(&ends) => match imp.constant(ends) {
            Some(tensor) => {
                let ends: Vec<i64> = tensor.to_i64s()?.iter().map(open).collect();
                imp.i64s(&ends)?
            }
            None => imp.as_sizes(ends)?,
        },
        None => imp.i64s(&ends)?,
    };
    let at = Ends {
        begins,
        ends,
        axes: imp.i64s(&axes)?,
        steps: imp.i64s(&steps)?,
    };
    sliced(imp, x, &at)
}

/// The layer `Pad`: above, below, left, right, channels in front and behind.
pub fn pad(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    if imp.rank(x)? != 4 {
        return Err(invalid("a blob that is no picture"));
    }
    let mut params = layer.params();
    params.ints(2)?;
    let [top, bottom, left, right, front, behind] = params.ints(6)?[..] else {
        return Err(invalid("a padding has six sides"));
    };
    let pads = [0, front, top, left, 0, behind, bottom, right];
    let number = params.int(0)?;
    let value = params.float(0.0)?;
    let mode = match number {
        0 => PadMode::Constant,
        1 => PadMode::Reflect,
        2 => PadMode::Edge,
        other => return Err(unsupported(format!("padding number {other}"))),
    };
    padded(imp, x, &pads, mode, value)
}

/// The layer `PadV2`: in front of all dimensions, then behind them.
pub fn pad_v2(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let rank = params.count(0)?;
    let count = rank.checked_mul(2);
    let mut pads = params.ints(count.ok_or_else(|| invalid("a list is too long"))?)?;
    if let Some(&by) = layer.inputs.get(1) {
        pads = imp.known_ints(by)?;
    }
    let mode = match params.int(0)? {
        0 => PadMode::Constant,
        1 => PadMode::Reflect,
        other => return Err(unsupported(format!("padding number {other}"))),
    };
    let value = params.float(0.0)?;
    padded(imp, x, &pads, mode, value)
}

fn padded(imp: &mut Import, x: ValueId, pads: &[i64], mode: PadMode, value: f32) -> Outputs {
    if pads.iter().all(|&pad| pad == 0) {
        return Ok(vec![x]);
    }
    let inputs = [x, imp.i64s(pads)?, imp.number(f64::from(value), x)?];
    Ok(vec![imp.op(Pad { mode }, &inputs)?])
}

/// The layer `Gather`: data and indices are blobs, or weights.
pub fn gather(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let axis = params.int(0)?;
    let is_weights = [params.int(0)? != 0, params.int(1)? != 0];
    let mut blobs = layer.inputs.iter();
    let mut inputs = Vec::new();
    for (i, is_weights) in is_weights.into_iter().enumerate() {
        let what = ["data", "indices"][i];
        inputs.push(if is_weights {
            let stored = imp.as_stored(layer, i, what)?;
            let value = imp.node_constant(what, stored.tensor);
            imp.widened(value)?
        } else {
            let blob = if i == 0 {
                blobs.next()
            } else {
                layer.inputs.last()
            };
            *blob.ok_or_else(|| invalid(format!("{what} are missing")))?
        });
    }
    Ok(vec![imp.op(Gather { axis }, &inputs)?])
}

pub fn gather_nd(imp: &mut Import, layer: &Layer) -> Outputs {
    let batch_dims = layer.params().count(0)?;
    let inputs = [layer.input(0)?, layer.input(1)?];
    Ok(vec![imp.op(GatherNd { batch_dims }, &inputs)?])
}

pub fn scatter_elements(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let axis = params.int(0)?;
    let reduction = match params.int(0)? {
        0 => ScatterReduction::None,
        1 => ScatterReduction::Add,
        other => return Err(unsupported(format!("reduction number {other}"))),
    };
    let inputs = [layer.input(0)?, layer.input(1)?, layer.input(2)?];
    Ok(vec![imp.op(ScatterElements { axis, reduction }, &inputs)?])
}

/// The layer `ScatterND`: indices and updates are blobs, or weights.
pub fn scatter_nd(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut blobs = layer.inputs.iter().copied();
    let mut next = || blobs.next().ok_or_else(|| invalid("an input is missing"));
    let mut inputs = vec![next()?];
    for (i, what) in ["indices", "updates"].into_iter().enumerate() {
        let stored = match layer.inputs.len() {
            3 => None,
            _ => imp.buffer(layer, i)?,
        };
        inputs.push(match stored {
            Some(stored) => {
                let value = imp.node_constant(what, stored.tensor);
                imp.widened(value)?
            }
            None => next()?,
        });
    }
    let reduction = ScatterReduction::None;
    Ok(vec![imp.op(ScatterNd { reduction }, &inputs)?])
}
