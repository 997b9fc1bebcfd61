//! Pooling.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{LpPool, Padding, Window};

use crate::build::PoolKind;
use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

fn window(layer: &Layer, axes: usize) -> Result<Window> {
    let kernel = layer.positives("kernel_size", axes, 0)?;
    let strides = match layer.ints("stride")?.is_some_and(|list| !list.is_empty()) {
        true => layer.positives("stride", axes, 1)?,
        false => kernel.clone(),
    };
    Ok(Window {
        kernel,
        strides,
        dilations: layer.positives("dilation", axes, 1)?,
        padding: Padding::Explicit(layer.counts("padding", axes, 0)?.repeat(2)),
        ceil_mode: layer.flag("ceil_mode", false)?,
    })
}

/// Data whose rank is that of `axes` axes with batch and channels.
fn data(imp: &Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    let x = layer.x()?;
    match imp.rank(x)? == axes + 2 {
        true => Ok(x),
        false => Err(unsupported("pooling of data without a batch")),
    }
}

pub fn max(imp: &mut Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    let x = data(imp, layer, axes)?;
    imp.pool(PoolKind::Maximum, x, window(layer, axes)?)
}

pub fn mean(imp: &mut Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    layer.refuse(
        "divisor_override",
        Value::None,
        "a divisor of another number",
    )?;
    let x = data(imp, layer, axes)?;
    let kind = PoolKind::Mean {
        counts_padding: layer.flag("count_include_pad", true)?,
    };
    imp.pool(kind, x, window(layer, axes)?)
}

/// The root of the sum of squares.
pub fn power(imp: &mut Import, layer: &Layer, axes: usize) -> Result<ValueId> {
    if layer.float("norm_type", 2.0)? != 2.0 {
        return Err(unsupported("a norm of another power than 2"));
    }
    let pool = LpPool {
        window: window(layer, axes)?,
        p: 2,
        channels_last: false,
    };
    let x = data(imp, layer, axes)?;
    imp.op(pool, &[x])
}

/// Windows that divide the data into a number of parts; None keeps an axis.
pub fn adaptive(imp: &mut Import, layer: &Layer, axes: usize, kind: PoolKind) -> Result<ValueId> {
    let x = data(imp, layer, axes)?;
    let asked = match layer.need("output_size")? {
        Value::List(list) if list.len() == axes => list,
        Value::List(list) if list.len() == 1 => vec![list[0].clone(); axes],
        Value::List(list) => {
            return Err(invalid("`output_size` is for another number of axes")
                .with_expected(axes)
                .with_got(list.len()));
        }
        one => vec![one; axes],
    };
    let mut sizes = Vec::new();
    for (size, axis) in asked.iter().zip(2i64..) {
        match size {
            // pnnx writes 0 for None where other sizes are numbers.
            Value::None | Value::Int(0) => (),
            size => sizes.push((axis, size.int()?)),
        }
    }
    pooled_to(imp, x, &sizes, kind)
}

/// Pools axes into numbers of parts.
pub fn pooled_to(
    imp: &mut Import,
    x: ValueId,
    sizes: &[(i64, i64)],
    kind: PoolKind,
) -> Result<ValueId> {
    let whole: Vec<i64> = sizes
        .iter()
        .filter(|(_, n)| *n == 1)
        .map(|(a, _)| *a)
        .collect();
    let mut y = x;
    if !whole.is_empty() {
        y = imp.reduce(kind.reduction(), x, &whole, true)?;
    }
    for &(axis, parts) in sizes.iter().filter(|(_, n)| *n != 1) {
        let known = imp
            .known_shape(y)
            .and_then(|shape| shape.0[axis as usize].known());
        let n = known.and_then(|n| i32::try_from(n).ok());
        let n = n.ok_or_else(|| unsupported("adaptive pooling of data of an open size"))?;
        y = imp.pool_into(kind, y, axis, n.into(), parts)?;
    }
    Ok(y)
}
