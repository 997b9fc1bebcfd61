//! Pooling (`layer/pooling_layer.cc` and its like, `utils/naive_compute.cc`). Numbers of the padding never count in means.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Padding, UnaryKind, Window};

use super::Outputs;
use super::window::found;
use crate::build::{PoolKind, covering};
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The layers `Pooling`, `Pooling1D` and `Pooling3D` along `axes` axes.
pub fn pooling(imp: &mut Import, layer: &Layer, axes: usize) -> Outputs {
    let x = layer.input(0)?;
    let dims = imp.dims(x)?;
    if dims.len() != axes + 2 {
        return Err(invalid("a pooling of other axes than the blob has"));
    }
    let mut params = layer.params();
    let kind = match params.int(0)? {
        0 => PoolKind::Maximum,
        1 => PoolKind::Mean {
            counts_padding: false,
        },
        other => return Err(unsupported(format!("pooling number {other}"))),
    };
    let (mut kernel, strides) = (params.counts(axes)?, params.counts(axes)?);
    let pads = params.counts(axes)?;
    // The axes of the blob whose lengths are those of the kernel. A line of one axis has two.
    let mut lengths = Vec::new();
    for _ in 0..axes.max(2) {
        lengths.push(params.int(-1)?);
    }
    let (pad_type, ceil) = (params.int(-1)?, params.int(0)? != 0);
    let adaptive = params.int(0)? != 0;
    if adaptive && layer.scale.is_some() {
        return Err(unsupported("adaptive pooling of integers"));
    }
    let spatial: Vec<i64> = (2..axes as i64 + 2).collect();
    if adaptive {
        let mut y = x;
        for &axis in &spatial {
            let parts = params.int(0)?;
            let n = i64::try_from(dims[axis as usize]).unwrap_or(i64::MAX);
            y = match parts {
                1 => imp.reduce(kind.reduction(), y, &[axis], true)?,
                parts => imp.pool_into(kind, y, axis, n, parts)?,
            };
        }
        return Ok(vec![y]);
    }
    let first = lengths[0];
    for (i, kernel) in kernel.iter_mut().enumerate() {
        if *kernel == 0 {
            *kernel = dims[i + 2];
        }
        let of = if lengths[i] == -1 { first } else { lengths[i] };
        if of != -1 {
            let length = usize::try_from(of).ok().and_then(|axis| dims.get(axis));
            *kernel = *length.ok_or_else(|| invalid("a kernel is as long as a missing axis"))?;
        }
    }
    if pad_type == -1 && pads.iter().all(|&pad| pad == 0) && kernel == dims[2..] {
        let y = imp.reduce(kind.reduction(), x, &spatial, true)?;
        return Ok(vec![towards_zero(imp, layer, y, kind, &kernel)?]);
    }
    if strides.contains(&0) {
        return Err(invalid("a stride is 0"));
    }
    let padding = match pad_type {
        -1 => {
            let mut sides = pads.repeat(2);
            for i in 0..axes {
                let end = covering(dims[i + 2], kernel[i], strides[i], pads[i], pads[i]);
                let end = end.ok_or_else(|| invalid("a window is larger than the padded blob"))?;
                if ceil {
                    sides[axes + i] = end;
                }
            }
            Padding::Explicit(sides)
        }
        number => found(number, &dims[2..], &kernel, &strides)?,
    };
    let window = Window {
        kernel: kernel.clone(),
        strides,
        dilations: vec![1; axes],
        padding,
        ceil_mode: false,
    };
    let y = imp.pool(kind, x, window)?;
    Ok(vec![towards_zero(imp, layer, y, kind, &kernel)?])
}

/// A mean of integers of 8 bits is rounded towards zero (`NaivePooling` of `int8_t`). Half the least that it can be away from an integer
/// keeps what floats lose from doing harm.
fn towards_zero(
    imp: &mut Import,
    layer: &Layer,
    y: ValueId,
    kind: PoolKind,
    kernel: &[usize],
) -> Result<ValueId> {
    let (Some(scale), PoolKind::Mean { .. }) = (layer.scale, kind) else {
        return Ok(y);
    };
    let most = kernel.iter().fold(1f32, |n, &k| n * k as f32);
    let y = imp.scaled(y, 1.0 / scale)?;
    let size = imp.unary(UnaryKind::Abs, y)?;
    let size = imp.shifted(size, 0.5 / most)?;
    let size = imp.unary(UnaryKind::Floor, size)?;
    let sign = imp.unary(UnaryKind::Sign, y)?;
    let whole = imp.mul(size, sign)?;
    imp.scaled(whole, scale)
}
