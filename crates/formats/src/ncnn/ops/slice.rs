//! Parts of blobs, and blobs with something around them.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Pad, PadMode, Slice};

use super::{Outputs, fixed};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;
use crate::ncnn::params::OPEN;
use crate::ncnn::sizes::{Size, axis_of};

/// Parts one behind the other: by their lengths, those that are open in equal shares, or by where they end.
pub fn slice(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axis = imp.axis(x, layer.params.int(1, 0)?)?;
    let (lengths, ends) = (layer.params.ints(0)?, layer.params.ints(2)?);
    let whole = imp.length(x, axis).known().map(|n| n as i64);
    let known = || whole.ok_or_else(|| unsupported("parts of a dimension of an open size"));
    let (mut begin, mut parts) = (0i64, Vec::new());
    for i in 0..layer.outputs {
        let last = i + 1 == layer.outputs;
        let end = match (ends.is_empty(), lengths.get(i)) {
            (false, _) if last => i64::MAX,
            (false, _) => match ends
                .get(i)
                .copied()
                .ok_or_else(|| invalid("the end of a part is missing"))?
            {
                end @ 0.. => end,
                end => known()?.saturating_add(end),
            },
            (true, None) => return Err(invalid("the length of a part is missing")),
            (true, Some(&OPEN)) if last => i64::MAX,
            (true, Some(&OPEN)) => begin + (known()? - begin) / (layer.outputs - i) as i64,
            (true, Some(&length)) => begin.saturating_add(length),
        };
        if end < begin || whole.is_some_and(|n| end != i64::MAX && end > n) {
            return Err(invalid("a part ends before it begins, or behind the blob"));
        }
        parts.push(imp.slice(x, axis, begin, end)?);
        begin = end;
    }
    Ok(parts)
}

/// What is kept of an axis.
struct Kept {
    axis: i64,
    begin: Size,
    end: Size,
}

fn kept(imp: &mut Import, x: ValueId, parts: &[Kept]) -> Outputs {
    if parts.is_empty() {
        return Ok(vec![x]);
    }
    let begins: Vec<Size> = parts.iter().map(|part| part.begin.clone()).collect();
    let ends: Vec<Size> = parts.iter().map(|part| part.end.clone()).collect();
    let axes: Vec<i64> = parts.iter().map(|part| part.axis).collect();
    let inputs = [
        x,
        imp.vector_of(&begins)?,
        imp.vector_of(&ends)?,
        imp.i64s(&axes)?,
    ];
    Ok(vec![imp.op(Slice, &inputs)?])
}

/// The layer `Crop`, in its four forms: by lists, by lists of expressions, by another blob, or by offsets and lengths
/// (`src/layer/crop.cpp`).
pub fn crop(imp: &mut Import, layer: &Layer) -> Outputs {
    let (starts, ends) = (layer.params.ints(9)?, layer.params.ints(10)?);
    let (starts_text, ends_text) = (layer.params.text(19)?, layer.params.text(20)?);
    if !starts_text.is_empty() && !ends_text.is_empty() {
        let starts = imp.sizes(starts_text, &layer.inputs)?;
        let ends = imp.sizes(ends_text, &layer.inputs)?;
        let axes = imp.sizes(layer.params.text(21)?, &layer.inputs)?;
        let axes = axes.iter().map(|size| match size {
            Size::Known(axis) => Ok(*axis),
            Size::Value(..) => Err(unsupported("axes that depend on sizes")),
        });
        let axes = axes.collect::<Result<Vec<_>>>()?;
        return by_lists(imp, layer, &starts, &ends, &axes);
    }
    if !starts.is_empty() && !ends.is_empty() {
        let sizes = |list: Vec<i64>| list.into_iter().map(Size::Known).collect::<Vec<_>>();
        return by_lists(
            imp,
            layer,
            &sizes(starts),
            &sizes(ends),
            &layer.params.ints(11)?,
        );
    }
    let lengths = [3, 4, 14, 5, 6, 7, 15, 8];
    let mut given = false;
    for id in lengths {
        given |= layer.params.int(id, 0)? != 0;
    }
    match given {
        true => by_lengths(imp, layer),
        false => by_blob(imp, layer),
    }
}

fn by_lists(
    imp: &mut Import,
    layer: &Layer,
    starts: &[Size],
    ends: &[Size],
    axes: &[i64],
) -> Outputs {
    let x = layer.input(0)?;
    let all: Vec<i64> = (0..imp.blob_rank(x)? as i64).collect();
    let axes = if axes.is_empty() { &all[..] } else { axes };
    if starts.len() < axes.len() || ends.len() < axes.len() {
        return Err(invalid("a crop has fewer ends than axes"));
    }
    let mut parts = Vec::new();
    for ((&axis, begin), end) in axes.iter().zip(starts).zip(ends) {
        let begin = match begin {
            Size::Known(OPEN) => Size::Known(0),
            begin => begin.clone(),
        };
        // An end of 0 is that of the blob.
        let end = match end {
            Size::Known(OPEN | 0) => Size::Known(i64::MAX),
            end => end.clone(),
        };
        let axis = imp.axis(x, axis)?;
        parts.push(Kept { axis, begin, end });
    }
    kept(imp, x, &parts)
}

/// The letters of axes with the ids of offset, length, and offset from the end.
const AXES: [(u8, [i32; 3]); 4] = [
    (b'w', [0, 3, 6]),
    (b'h', [1, 4, 7]),
    (b'd', [13, 14, 15]),
    (b'c', [2, 5, 8]),
];

fn by_lengths(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.blob_rank(x)?;
    let mut parts = Vec::new();
    for (letter, ids) in AXES {
        let Some(axis) = axis_of(letter, rank) else {
            continue;
        };
        let [offset, length, behind] = ids.map(|id| layer.params.int(id, 0));
        let (offset, length, behind) = (offset?, length?, behind?);
        let end = match (length, behind) {
            (OPEN, 0) => i64::MAX,
            (OPEN, behind) => behind.saturating_neg(),
            (length, 0) => offset.saturating_add(length),
            (length, behind) => {
                let whole = fixed(imp, x, axis, "a size that is cropped from both ends")? as i64;
                offset
                    .saturating_add(length)
                    .min(whole.saturating_sub(behind))
            }
        };
        if (offset, end) != (0, i64::MAX) {
            let (begin, end) = (Size::Known(offset), Size::Known(end));
            parts.push(Kept { axis, begin, end });
        }
    }
    kept(imp, x, &parts)
}

/// Crops to the size of another blob, whose channels count where it has any.
fn by_blob(imp: &mut Import, layer: &Layer) -> Outputs {
    let (x, like) = (layer.input(0)?, layer.input(1)?);
    let rank = imp.blob_rank(x)?;
    let channels = imp.blob_rank(like)? == rank;
    let mut parts = Vec::new();
    for (letter, [offset, ..]) in AXES {
        let Some(axis) = axis_of(letter, rank).filter(|_| letter != b'c' || channels) else {
            continue;
        };
        let begin = Size::Known(layer.params.int(offset, 0)?);
        let length = imp.size_of(like, letter)?;
        let end = imp.combined("+", begin.clone(), length)?;
        parts.push(Kept { axis, begin, end });
    }
    kept(imp, x, &parts)
}

/// The layer `Padding`. Front and behind are the depth where a blob has one, else the channels.
pub fn padding(imp: &mut Import, layer: &Layer) -> Outputs {
    layer
        .params
        .refuse(6, "a padding of another number for each channel")?;
    let x = layer.input(0)?;
    let rank = imp.blob_rank(x)?;
    let mode = match layer.params.int(4, 0)? {
        0 => PadMode::Constant,
        1 => PadMode::Edge,
        2 => PadMode::Reflect,
        other => return Err(unsupported(format!("padding number {other}"))),
    };
    let mut pads = vec![0; 2 * (rank + 1)];
    for (place, [before, behind]) in [(1, [2, 3]), (2, [0, 1]), (3, [7, 8])] {
        if place <= rank {
            let axis = rank + 1 - place;
            pads[axis] = layer.params.int(before, 0)?;
            pads[rank + 1 + axis] = layer.params.int(behind, 0)?;
        }
    }
    if pads.iter().all(|&pad| pad == 0) {
        return Ok(vec![x]);
    }
    let inputs = [x, imp.i64s(&pads)?, imp.float(layer.params.float(5, 0.0)?)?];
    Ok(vec![imp.op(Pad { mode }, &inputs)?])
}

/// Blobs backwards along axes; lists along their only one.
pub fn flip(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axes = layer.params.ints(0)?;
    if axes.is_empty() {
        return Ok(vec![x]);
    }
    let axes = match imp.blob_rank(x)? {
        1 => vec![1],
        _ => axes
            .iter()
            .map(|&axis| imp.axis(x, axis))
            .collect::<Result<_>>()?,
    };
    let count = axes.len();
    let (starts, ends) = (
        imp.i64s(&vec![-1; count])?,
        imp.i64s(&vec![i64::MIN; count])?,
    );
    let (axes, steps) = (imp.i64s(&axes)?, imp.i64s(&vec![-1; count])?);
    Ok(vec![imp.op(Slice, &[x, starts, ends, axes, steps])?])
}
