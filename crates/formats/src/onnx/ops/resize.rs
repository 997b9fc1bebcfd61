//! Sampling at other positions.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AffineGrid, AspectPolicy, BinaryKind, CoordinateMode, GridMode, GridPadding, GridSample,
    NearestMode, Operator, Resize, ResizeMode, UnaryKind,
};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("AffineGrid", |b| {
        let align_corners = b.flag("align_corners")?;
        b.emit_same(AffineGrid { align_corners })
    }),
    ("GridSample", grid_sample),
    ("Resize", resize),
    ("Upsample", upsample),
]);

/// What Upsample, and Resize before operator set 11, do: cells begin where those of the input do.
fn scaled(mode: ResizeMode) -> Resize {
    Resize {
        mode,
        coordinates: CoordinateMode::Asymmetric,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy: AspectPolicy::Stretch,
    }
}

fn old_mode(b: &NodeBuilder) -> Result<ResizeMode> {
    Ok(match b.text_or("mode", "nearest")? {
        "nearest" => ResizeMode::Nearest(NearestMode::Floor),
        "linear" | "bilinear" => ResizeMode::Linear,
        other => return Err(unknown("mode", other)),
    })
}

fn upsample(b: &mut NodeBuilder) -> Result<()> {
    let op = scaled(old_mode(b)?);
    let x = b.input(0)?;
    let scales = match b.version() {
        ..7 => {
            let side = |name| {
                b.float(name)?
                    .ok_or_else(|| invalid(format!("the attribute `{name}` is missing")))
            };
            vec![1.0, 1.0, side("height_scale")?, side("width_scale")?]
        }
        7..9 => b
            .floats("scales")?
            .ok_or_else(|| invalid("the attribute `scales` is missing"))?,
        _ => {
            let scales = b.input(1)?;
            return sampled(b, op, [Some(x), None, Some(scales), None]);
        }
    };
    let scales = b.tensor_value(Tensor::from_slice(&[scales.len()], &scales)?);
    sampled(b, op, [Some(x), None, Some(scales), None])
}

/// The first and the last number of an integer type.
fn range(dtype: DType) -> Option<[f64; 2]> {
    Some(match dtype {
        DType::I8 => [i8::MIN.into(), i8::MAX.into()],
        DType::U8 => [0.0, u8::MAX.into()],
        DType::I16 => [i16::MIN.into(), i16::MAX.into()],
        DType::U16 => [0.0, u16::MAX.into()],
        DType::I32 => [i32::MIN.into(), i32::MAX.into()],
        DType::U32 => [0.0, u32::MAX.into()],
        DType::I64 => [i64::MIN as f64, i64::MAX as f64],
        DType::U64 => [0.0, u64::MAX as f64],
        _ => return None,
    })
}

/// Integers are combined in `float64`. What lies between two of them is rounded, and what lies outside clamped, as onnx's
/// reference implementation of Resize does.
fn combined(
    b: &mut NodeBuilder,
    op: Arc<dyn Operator>,
    mut inputs: Vec<Option<ValueId>>,
) -> Result<()> {
    let x = b.input(0)?;
    let Some((dtype, [first, last])) = b.dtype(x).and_then(|d| Some((d, range(d)?))) else {
        return b.emit_shared(op, &inputs);
    };
    inputs[0] = Some(b.cast(x, DType::F64)?);
    let y = b.apply_shared(op, &inputs, 1)?[0];
    let y = b.unary(UnaryKind::Round, y)?;
    let (first, last) = (b.number(first, y)?, b.number(last, y)?);
    let y = b.binary(BinaryKind::Max, y, first)?;
    let y = b.binary(BinaryKind::Min, y, last)?;
    let y = b.cast(y, dtype)?;
    b.bind(0, y)
}

fn sampled(b: &mut NodeBuilder, op: Resize, inputs: [Option<ValueId>; 4]) -> Result<()> {
    match op.mode {
        ResizeMode::Nearest(_) => b.emit(op, &inputs),
        _ => combined(b, Arc::new(op), inputs.to_vec()),
    }
}

/// An input that counts as left out where it has no elements.
fn not_empty(b: &mut NodeBuilder, i: usize) -> Result<Option<ValueId>> {
    let value = b.optional(i)?;
    let empty = value.is_some_and(|v| b.shape(v).is_some_and(|s| s.contains(&0)));
    Ok(value.filter(|_| !empty))
}

fn resize(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    if b.version() < 11 {
        let op = scaled(old_mode(b)?);
        let scales = b.input(1)?;
        return sampled(b, op, [Some(x), None, Some(scales), None]);
    }
    let nearest = match b.text_or("nearest_mode", "round_prefer_floor")? {
        "round_prefer_floor" => NearestMode::RoundPreferFloor,
        "round_prefer_ceil" => NearestMode::RoundPreferCeil,
        "floor" => NearestMode::Floor,
        "ceil" => NearestMode::Ceil,
        other => return Err(unknown("nearest_mode", other)),
    };
    let mode = match b.text_or("mode", "nearest")? {
        "nearest" => ResizeMode::Nearest(nearest),
        "linear" => ResizeMode::Linear,
        "cubic" => ResizeMode::Cubic {
            a: b.float_or("cubic_coeff_a", -0.75)?,
        },
        other => return Err(unknown("mode", other)),
    };
    let coordinates = match b.text_or("coordinate_transformation_mode", "half_pixel")? {
        "half_pixel" => CoordinateMode::HalfPixel,
        "half_pixel_symmetric" => CoordinateMode::HalfPixelSymmetric,
        "pytorch_half_pixel" => CoordinateMode::PytorchHalfPixel,
        "align_corners" => CoordinateMode::AlignCorners,
        "asymmetric" => CoordinateMode::Asymmetric,
        "tf_crop_and_resize" => CoordinateMode::TfCropAndResize,
        "tf_half_pixel_for_nn" => CoordinateMode::TfHalfPixelForNearest,
        other => return Err(unknown("coordinate_transformation_mode", other)),
    };
    let policy = match b.text_or("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => AspectPolicy::Stretch,
        "not_larger" => AspectPolicy::NotLarger,
        "not_smaller" => AspectPolicy::NotSmaller,
        other => return Err(unknown("keep_aspect_ratio_policy", other)),
    };
    let op = Resize {
        mode,
        coordinates,
        antialias: b.flag("antialias")?,
        exclude_outside: b.flag("exclude_outside")?,
        extrapolation: b.float_or("extrapolation_value", 0.0)?,
        axes: b.ints("axes")?,
        policy,
    };
    // Only one way to crop reads the regions.
    let roi = match coordinates {
        CoordinateMode::TfCropAndResize => not_empty(b, 1)?,
        _ => None,
    };
    let scales = not_empty(b, 2)?;
    let sizes = not_empty(b, 3)?;
    if scales.is_some() == sizes.is_some() {
        return Err(unsupported("neither or both of scales and sizes"));
    }
    sampled(b, op, [Some(x), roi, scales, sizes])
}

pub fn grid_sample(b: &mut NodeBuilder) -> Result<()> {
    let mode = match b.text_or("mode", "linear")? {
        "linear" | "bilinear" => GridMode::Linear,
        "nearest" => GridMode::Nearest,
        "cubic" | "bicubic" => GridMode::Cubic,
        other => return Err(unknown("mode", other)),
    };
    let padding = match b.text_or("padding_mode", "zeros")? {
        "zeros" => GridPadding::Zeros,
        "border" => GridPadding::Border,
        "reflection" => GridPadding::Reflection,
        other => return Err(unknown("padding_mode", other)),
    };
    let align_corners = b.flag("align_corners")?;
    let op = GridSample {
        mode,
        padding,
        align_corners,
    };
    if mode == GridMode::Nearest {
        return b.emit_same(op);
    }
    let (x, grid) = (b.input(0)?, b.input(1)?);
    if b.dtype(x) != Some(DType::Bool) {
        return combined(b, Arc::new(op), vec![Some(x), Some(grid)]);
    }
    // True where something true has a weight.
    let x = b.cast(x, DType::F64)?;
    let y = b.op(op, &[x, grid])?;
    let y = b.cast(y, DType::Bool)?;
    b.bind(0, y)
}
