//! Pooling, over windows, regions and everything.

use kilim_core::error::Result;
use kilim_core::ops::{
    Activation, AveragePool, LpPool, MaxPool, MaxRoiPool, MaxUnpool, Reduce, ReduceKind, RoiAlign,
    UnaryKind, Window,
};

use super::conv::{padding, steps};
use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("AveragePool", average_pool),
    ("GlobalAveragePool", |b| global(b, ReduceKind::Mean)),
    ("GlobalLpPool", global_lp_pool),
    ("GlobalMaxPool", |b| global(b, ReduceKind::Max)),
    ("LpPool", lp_pool),
    ("MaxPool", max_pool),
    ("MaxRoiPool", max_roi_pool),
    ("MaxUnpool", |b| {
        let window = window(b)?;
        b.emit_same(MaxUnpool { window })
    }),
    ("RoiAlign", roi_align),
]);

pub fn window(b: &NodeBuilder) -> Result<Window> {
    let kernel = b
        .counts("kernel_shape")?
        .ok_or_else(|| invalid("the attribute `kernel_shape` is missing"))?;
    let n = kernel.len();
    Ok(Window {
        kernel,
        strides: steps(b, "strides", n)?,
        dilations: steps(b, "dilations", n)?,
        padding: padding(b, n)?,
        ceil_mode: b.flag("ceil_mode")?,
    })
}

fn max_pool(b: &mut NodeBuilder) -> Result<()> {
    let op = MaxPool {
        window: window(b)?,
        column_major: b.flag("storage_order")?,
        channels_last: false,
    };
    b.emit_same(op)
}

fn average_pool(b: &mut NodeBuilder) -> Result<()> {
    let op = AveragePool {
        window: window(b)?,
        count_include_pad: b.flag("count_include_pad")?,
        channels_last: false,
        activation: Activation::None,
    };
    b.emit_same(op)
}

/// The exponent of a norm: an integer, before operator set 2 a number.
fn exponent(b: &NodeBuilder) -> Result<u32> {
    let p = match b.version() {
        ..2 => b.float_or("p", 2.0)? as i64,
        _ => b.int_or("p", 2)?,
    };
    match u32::try_from(p) {
        Ok(p) if p > 0 => Ok(p),
        _ => Err(invalid(format!("the attribute `p` has the value {p}"))),
    }
}

fn lp_pool(b: &mut NodeBuilder) -> Result<()> {
    let op = LpPool {
        window: window(b)?,
        p: exponent(b)?,
        channels_last: false,
    };
    b.emit_same(op)
}

/// The axes after batch and channels.
fn spatial_axes(b: &mut NodeBuilder) -> Result<Vec<i64>> {
    let x = b.input(0)?;
    let rank = b.rank(x)?;
    Ok((2..rank as i64).collect())
}

fn global(b: &mut NodeBuilder, kind: ReduceKind) -> Result<()> {
    let x = b.input(0)?;
    let axes = spatial_axes(b)?;
    let axes = b.i64s(&axes)?;
    let op = Reduce {
        kind,
        keep_dims: true,
        noop_with_empty_axes: true,
    };
    b.emit(op, &[Some(x), Some(axes)])
}

fn global_lp_pool(b: &mut NodeBuilder) -> Result<()> {
    let p = exponent(b)?;
    match p {
        1 => return global(b, ReduceKind::L1),
        2 => return global(b, ReduceKind::L2),
        _ => {}
    }
    let x = b.input(0)?;
    let axes = spatial_axes(b)?;
    let power = b.number(p.into(), x)?;
    let root = b.number(1.0 / f64::from(p), x)?;
    let x = b.unary(UnaryKind::Abs, x)?;
    let x = b.binary(kilim_core::ops::BinaryKind::Pow, x, power)?;
    let x = b.reduce(ReduceKind::Sum, x, &axes, true)?;
    let y = b.binary(kilim_core::ops::BinaryKind::Pow, x, root)?;
    b.bind(0, y)
}

fn max_roi_pool(b: &mut NodeBuilder) -> Result<()> {
    let pooled = b.counts("pooled_shape")?.unwrap_or_default();
    let pooled: [usize; 2] = pooled
        .try_into()
        .map_err(|_| invalid("the attribute `pooled_shape` needs two numbers"))?;
    let spatial_scale = b.float_or("spatial_scale", 1.0)?;
    b.emit_same(MaxRoiPool {
        pooled,
        spatial_scale,
    })
}

fn roi_align(b: &mut NodeBuilder) -> Result<()> {
    let max = match b.text_or("mode", "avg")? {
        "avg" => false,
        "max" => true,
        other => return Err(unknown("mode", other)),
    };
    let default = if b.version() < 16 {
        "output_half_pixel"
    } else {
        "half_pixel"
    };
    let half_pixel = match b.text_or("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(unknown("coordinate_transformation_mode", other)),
    };
    let op = RoiAlign {
        output: [
            b.count("output_height", Some(1))?,
            b.count("output_width", Some(1))?,
        ],
        sampling_ratio: b.count("sampling_ratio", Some(0))?,
        spatial_scale: b.float_or("spatial_scale", 1.0)?,
        max,
        half_pixel,
    };
    b.emit_same(op)
}
