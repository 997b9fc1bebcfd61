//! Kernels, strides and paddings of layers with sliding windows.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::Padding;

use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// The padding before and after an axis.
pub type Around = (i64, i64);

/// The ids of one number along width, height and depth.
pub type Ids = [i32; 3];

/// The ids of what lies left, right, above, below, in front and behind.
pub type AroundIds = [i32; 6];

/// What is found by a file for all paddings: as ONNX's SAME_UPPER and SAME_LOWER.
const SAME_UPPER: i64 = -233;
const SAME_LOWER: i64 = -234;

/// A number for each of the `axes` innermost axes, the outermost first. Those along height and depth are that along the width
/// unless the file says otherwise.
pub fn along(layer: &Layer, ids: Ids, axes: usize, default: usize) -> Result<Vec<usize>> {
    let first = layer.positive(ids[0], default)?;
    let each = ids[..axes]
        .iter()
        .rev()
        .map(|&id| layer.positive(id, first));
    each.collect()
}

/// The paddings of the `axes` innermost axes, the outermost first.
pub fn around(layer: &Layer, ids: AroundIds, axes: usize) -> Result<Vec<Around>> {
    let [left, right, top, bottom, front, behind] = ids;
    let first = layer.params.int(left, 0)?;
    let ends = [(left, right), (top, bottom), (front, behind)];
    let each = ends[..axes].iter().rev().map(|&(begin, end)| {
        let begin = layer.params.int(begin, first)?;
        Ok((begin, layer.params.int(end, begin)?))
    });
    each.collect()
}

/// The padding of a window as operators have it.
///
/// # Errors
/// `InvalidModel` where it is negative, `Unsupported` where it is found in different ways.
pub fn padding(around: &[Around]) -> Result<Padding> {
    let all = |found: i64| around.iter().all(|&pads| pads == (found, found));
    if all(SAME_UPPER) {
        return Ok(Padding::SameUpper);
    }
    if all(SAME_LOWER) {
        return Ok(Padding::SameLower);
    }
    let sides = around.iter().map(|p| p.0).chain(around.iter().map(|p| p.1));
    let sides = sides.map(|side| match side {
        SAME_UPPER | SAME_LOWER => Err(unsupported("paddings that are found along some axes")),
        side => usize::try_from(side).map_err(|_| invalid("a padding is negative")),
    });
    Ok(Padding::Explicit(sides.collect::<Result<_>>()?))
}
