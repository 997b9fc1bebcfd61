//! Pooling (`src/layer/pooling.cpp`).

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Padding, Window};

use super::Outputs;
use super::window::{along, around, padding};
use crate::build::{PoolKind, covering};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;
use crate::ncnn::params::OPEN;

const KERNEL: [i32; 3] = [1, 11, 21];
const STRIDE: [i32; 3] = [2, 12, 22];
const AROUND: [i32; 6] = [3, 14, 13, 15, 23, 16];
const OUTPUT: [i32; 3] = [8, 18, 28];

/// The layer `Pooling` along `axes` axes.
pub fn pooling(imp: &mut Import, layer: &Layer, axes: usize) -> Outputs {
    let x = layer.input(0)?;
    let kind = match layer.params.int(0, 0)? {
        0 => PoolKind::Maximum,
        1 => PoolKind::Mean {
            counts_padding: layer.params.flag(6, false)?,
        },
        other => return Err(unsupported(format!("pooling number {other}"))),
    };
    let spatial: Vec<i64> = (2..axes as i64 + 2).collect();
    if layer.params.flag(4, false)? {
        return Ok(vec![imp.reduce(kind.reduction(), x, &spatial, false)?]);
    }
    if layer.params.flag(7, false)? {
        return Ok(vec![adaptive(imp, layer, x, kind, &spatial)?]);
    }
    let kernel = along(layer, KERNEL, axes, 0)?;
    let strides = along(layer, STRIDE, axes, 1)?;
    let pads = around(layer, AROUND, axes)?;
    let window = |padding, ceil_mode| Window {
        dilations: vec![1; axes],
        kernel: kernel.clone(),
        strides: strides.clone(),
        padding,
        ceil_mode,
    };
    // Paddings that are found count in means whatever the file says: only those of the file are left out.
    let same = match kind {
        PoolKind::Maximum => kind,
        PoolKind::Mean { .. } => PoolKind::Mean {
            counts_padding: true,
        },
    };
    let unpadded = pads.iter().all(|&p| p == (0, 0));
    let (kind, window) = match layer.params.int(5, 0)? {
        0 => {
            let full = full(imp, x, &kernel, &strides, &pads, kind)?;
            match full {
                Some(sides) => (kind, window(Padding::Explicit(sides), false)),
                None => (kind, window(padding(&pads)?, true)),
            }
        }
        1 => (kind, window(padding(&pads)?, false)),
        2 if unpadded => (same, window(Padding::SameUpper, false)),
        3 if unpadded => (same, window(Padding::SameLower, false)),
        other => return Err(unsupported(format!("padding number {other} of pooling"))),
    };
    Ok(vec![imp.pool(kind, x, window)?])
}

/// The padding with which windows reach the end of the data, where the data's size is known; nothing where rounding up gives the same
/// for every size.
fn full(
    imp: &Import,
    x: ValueId,
    kernel: &[usize],
    strides: &[usize],
    pads: &[(i64, i64)],
    kind: PoolKind,
) -> Result<Option<Vec<usize>>> {
    let Padding::Explicit(mut sides) = padding(pads)? else {
        return Err(invalid("a padding is negative"));
    };
    let axes = kernel.len();
    let mut open = false;
    for i in 0..axes {
        let Some(n) = imp.length(x, i as i64 + 2).known() else {
            open |= strides[i] > 1;
            continue;
        };
        let end = covering(n, kernel[i], strides[i], sides[i], sides[axes + i]);
        sides[axes + i] = end.ok_or_else(|| invalid("a window is larger than the padded input"))?;
    }
    if !open {
        return Ok(Some(sides));
    }
    // A window that would begin behind the data is left out where sizes are rounded up, but not by ncnn.
    let begins_behind = (0..axes).any(|i| sides[axes + i].saturating_add(strides[i]) > kernel[i]);
    if begins_behind
        || kind
            == (PoolKind::Mean {
                counts_padding: true,
            })
    {
        return Err(unsupported(
            "windows that reach behind data of an open size",
        ));
    }
    Ok(None)
}

/// Windows that divide the data into a number of parts.
fn adaptive(
    imp: &mut Import,
    layer: &Layer,
    x: ValueId,
    kind: PoolKind,
    spatial: &[i64],
) -> Result<ValueId> {
    let width = layer.params.int(OUTPUT[0], 0)?;
    let ids = OUTPUT[..spatial.len()].iter().rev();
    let asked = ids
        .map(|&id| layer.params.int(id, width))
        .collect::<Result<Vec<_>>>()?;
    let whole: Vec<i64> = spatial
        .iter()
        .zip(&asked)
        .filter(|(_, n)| **n == 1)
        .map(|(&a, _)| a)
        .collect();
    let mut y = x;
    if !whole.is_empty() {
        y = imp.reduce(kind.reduction(), x, &whole, true)?;
    }
    for (&axis, &parts) in spatial.iter().zip(&asked) {
        if parts == OPEN || parts == 1 {
            continue;
        }
        let n = imp
            .length(y, axis)
            .known()
            .and_then(|n| i32::try_from(n).ok());
        let n = n.ok_or_else(|| unsupported("adaptive pooling of data of an open size"))?;
        y = imp.pool_into(kind, y, axis, n.into(), parts)?;
    }
    Ok(y)
}
