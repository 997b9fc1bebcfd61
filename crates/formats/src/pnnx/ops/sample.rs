//! Sampling at other positions, and blocks of pictures.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AffineGrid, AspectPolicy, Col2Im, CoordinateMode, GridMode, GridPadding, GridSample,
    NearestMode, Padding, Resize, ResizeMode, RoiAlign,
};
use kilim_core::tensor::Tensor;

use super::pool::pooled_to;
use crate::build::PoolKind;
use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// The functions `F.interpolate` and `F.upsample` and their modules. `fixed` is the mode of those that have but one.
pub fn resize(imp: &mut Import, layer: &Layer, fixed: Option<&str>) -> Result<ValueId> {
    let x = layer.x()?;
    let axes: Vec<i64> = (2..imp.rank(x)? as i64).collect();
    let word = match fixed {
        Some(word) => word.to_string(),
        None => layer.word("mode")?,
    };
    let aligned = layer.flag("align_corners", fixed == Some("bilinear"))?;
    let smooth = match aligned {
        true => CoordinateMode::AlignCorners,
        false => CoordinateMode::HalfPixel,
    };
    let (mode, coordinates) = match &*word {
        "" | "nearest" => (
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        ),
        "nearest-exact" => {
            let nearest = ResizeMode::Nearest(NearestMode::RoundPreferCeil);
            (nearest, CoordinateMode::HalfPixel)
        }
        "linear" | "bilinear" | "trilinear" => (ResizeMode::Linear, smooth),
        "bicubic" => (ResizeMode::Cubic { a: -0.75 }, smooth),
        "area" => return area(imp, layer, x, &axes),
        other => return Err(unsupported(format!("the interpolation `{other}`"))),
    };
    let resize = Resize {
        mode,
        coordinates,
        antialias: layer.flag("antialias", false)?,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some(axes.clone()),
        policy: AspectPolicy::Stretch,
    };
    if let Some(size) = layer.arg("size") {
        let size = match size {
            Value::List(list) if list.len() == 1 => Value::List(vec![list[0].clone(); axes.len()]),
            list @ Value::List(_) => list,
            Value::Tensor(v) if imp.rank(v)? == 1 => Value::Tensor(v),
            one => Value::List(vec![one; axes.len()]),
        };
        let sizes = imp.sizes(&size)?;
        return imp.step(resize, &[Some(x), None, None, Some(sizes)]);
    }
    let scales = scales(layer, axes.len())?;
    // Scales that are computed anew from the sizes are others where sizes are rounded.
    let recomputed = layer.flag("recompute_scale_factor", false)?;
    if recomputed && scales.iter().any(|scale| scale.fract() != 0.0) {
        let sizes = scaled(imp, x, &scales)?;
        let sizes = imp.i64s(&sizes)?;
        return imp.step(resize, &[Some(x), None, None, Some(sizes)]);
    }
    let scales: Vec<f32> = scales.into_iter().map(|scale| scale as f32).collect();
    let scales = Tensor::from_slice(&[axes.len()], &scales)?;
    let scales = imp.tensor_value(scales);
    imp.step(resize, &[Some(x), None, Some(scales)])
}

fn scales(layer: &Layer, axes: usize) -> Result<Vec<f64>> {
    let scales = match layer.need("scale_factor")? {
        Value::List(list) => list.iter().map(Value::float).collect::<Result<Vec<_>>>()?,
        one => vec![one.float()?],
    };
    let scales = match scales[..] {
        [one] => vec![one; axes],
        _ => scales,
    };
    let fit = scales.len() == axes && scales.iter().all(|s| s.is_finite() && *s > 0.0);
    match fit {
        true => Ok(scales),
        false => Err(invalid("`scale_factor` does not fit the data").with_expected(axes)),
    }
}

/// The sizes that scales give, rounded down.
fn scaled(imp: &Import, x: ValueId, scales: &[f64]) -> Result<Vec<i64>> {
    let shape = imp
        .shape(x)
        .ok_or_else(|| unsupported("scales of data of an open size"))?;
    let sizes = shape.iter().skip(2).zip(scales);
    Ok(sizes
        .map(|(&n, scale)| (n as f64 * scale).floor() as i64)
        .collect())
}

/// Means of the parts that become a pixel each.
fn area(imp: &mut Import, layer: &Layer, x: ValueId, axes: &[i64]) -> Result<ValueId> {
    let sizes = match layer.ints("size")? {
        Some(sizes) => sizes,
        None => scaled(imp, x, &scales(layer, axes.len())?)?,
    };
    let sizes = match sizes[..] {
        [one] => vec![one; axes.len()],
        _ => sizes,
    };
    let sizes: Vec<_> = axes.iter().copied().zip(sizes).collect();
    let counts_padding = false;
    pooled_to(imp, x, &sizes, PoolKind::Mean { counts_padding })
}

pub fn grid_sample(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let op = GridSample {
        mode: match &*layer.word("mode")? {
            "" | "bilinear" => GridMode::Linear,
            "nearest" => GridMode::Nearest,
            "bicubic" => GridMode::Cubic,
            other => return Err(unsupported(format!("the interpolation `{other}`"))),
        },
        padding: match &*layer.word("padding_mode")? {
            "" | "zeros" => GridPadding::Zeros,
            "border" => GridPadding::Border,
            "reflection" => GridPadding::Reflection,
            other => return Err(unsupported(format!("the padding mode `{other}`"))),
        },
        align_corners: layer.flag("align_corners", false)?,
    };
    imp.op(op, &[layer.x()?, layer.tensor("grid", 1)?])
}

pub fn affine_grid(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let op = AffineGrid {
        align_corners: layer.flag("align_corners", false)?,
    };
    let size = imp.sizes(&layer.need("size")?)?;
    imp.op(op, &[layer.tensor("theta", 0)?, size])
}

/// Columns, each of a block, add up to a picture.
pub fn fold(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let pads = layer.counts("padding", 2, 0)?.repeat(2);
    let op = Col2Im {
        strides: layer.positives("stride", 2, 1)?,
        dilations: layer.positives("dilation", 2, 1)?,
        pads,
    };
    let whole = |n: Vec<usize>| n.into_iter().map(|n| n as i64).collect::<Vec<_>>();
    let picture = whole(layer.positives("output_size", 2, 0)?);
    let block = whole(layer.positives("kernel_size", 2, 0)?);
    let inputs = [layer.x()?, imp.i64s(&picture)?, imp.i64s(&block)?];
    imp.op(op, &inputs)
}

pub fn unfold(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let x = layer.x()?;
    let known = imp.known_shape(x).and_then(|shape| shape.0.get(1)?.known());
    let channels = known.ok_or_else(|| unsupported("an open number of channels"))?;
    let pads = layer.counts("padding", 2, 0)?.repeat(2);
    let kernel = layer.positives("kernel_size", 2, 0)?;
    let (strides, dilations) = (
        layer.positives("stride", 2, 1)?,
        layer.positives("dilation", 2, 1)?,
    );
    imp.unfolded(
        x,
        channels,
        &kernel,
        (strides, dilations, Padding::Explicit(pads)),
    )
}

/// The operator `torchvision.ops.roi_align` and its module: rows `[batch, left, top, right, bottom]` of boxes.
pub fn roi_align(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let (x, boxes) = (layer.x()?, layer.tensor("boxes", 1)?);
    let output = layer.positives("output_size", 2, 0)?;
    let ratio = layer.int("sampling_ratio", -1)?;
    let op = RoiAlign {
        output: [output[0], output[1]],
        sampling_ratio: usize::try_from(ratio).unwrap_or(0),
        spatial_scale: layer.float("spatial_scale", 1.0)? as f32,
        max: false,
        half_pixel: layer.flag("aligned", false)?,
    };
    let batch = imp.slice(boxes, 1, 0, 1)?;
    let batch = imp.squeeze(batch, &[1])?;
    let batch = imp.cast(batch, kilim_core::DType::I64)?;
    let corners = imp.slice(boxes, 1, 1, 5)?;
    imp.op(op, &[x, corners, batch])
}
