//! Sampling at other positions (`source/geometry/ConvertUtils.hpp`, `source/backend/cpu/CPUResize.hpp`).

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AspectPolicy, CoordinateMode, GridMode, GridPadding, GridSample, NearestMode, Resize,
    ResizeMode,
};
use kilim_core::tensor::Tensor;

use super::Outputs;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::{Op, Params};

/// The tables of parameters.
const INTERP: u8 = 22;
const RESIZE: u8 = 56;
const GRID_SAMPLE: u8 = 91;

/// What the numbers around a place become: the nearest below, a line between two, a curve through four, the nearest.
const FLOOR: i32 = 1;
const LINEAR: i32 = 2;
const CUBIC: i32 = 3;
const ROUND: i32 = 4;

/// The factor of MNN's curve through four numbers.
const CURVE: f32 = -0.75;

fn mode(kind: i32) -> Result<ResizeMode> {
    Ok(match kind {
        FLOOR => ResizeMode::Nearest(NearestMode::Floor),
        LINEAR => ResizeMode::Linear,
        CUBIC => ResizeMode::Cubic { a: CURVE },
        ROUND => ResizeMode::Nearest(NearestMode::RoundPreferFloor),
        other => return Err(unsupported(format!("sampling number {other}"))),
    })
}

/// Which place of the input an element of the output stands for, by the numbers of `CoordinateTransformationMode`.
fn coordinates(p: &Params, kind: i32) -> Result<CoordinateMode> {
    Ok(match p.choice(10)? {
        // Files of older converters say it by two flags.
        0 if p.flag(6, false)? && kind != FLOOR => CoordinateMode::HalfPixel,
        0 if p.flag(5, false)? => CoordinateMode::AlignCorners,
        0 | 4 => CoordinateMode::Asymmetric,
        1 => CoordinateMode::AlignCorners,
        2 => CoordinateMode::HalfPixel,
        3 => CoordinateMode::PytorchHalfPixel,
        5 if kind == FLOOR => CoordinateMode::TfHalfPixelForNearest,
        other => return Err(unsupported(format!("the coordinates number {other}"))),
    })
}

/// The operator Interp: to sizes in the parameters, or by an input of sizes or factors.
pub fn interp(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(INTERP)?);
    let kind = p.int(4, 0)?;
    let rank = imp.rank(x)?;
    if !(3..=4).contains(&rank) {
        return Err(unsupported("sampling of data of so many dimensions").with_got(rank));
    }
    let first = op.layout().spatial() as i64;
    let mut resize = Resize {
        mode: mode(kind)?,
        coordinates: coordinates(&p, kind)?,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some((first..first + rank as i64 - 2).collect()),
        policy: AspectPolicy::Stretch,
    };
    let Some(asked) = op.optional(1) else {
        return from_parameters(imp, op, &p, resize);
    };
    let count = imp.length(asked, 0).known();
    let whole = count == Some(rank);
    if whole {
        resize.axes = None;
    } else if count != Some(2) || rank != 4 {
        return Err(unsupported("sizes of some dimensions"));
    }
    let inputs = match imp.dtype(asked) {
        Some(DType::F32) if whole => [Some(x), None, Some(asked), None],
        Some(DType::F32) => {
            let sizes = imp.cast(asked, DType::I64)?;
            [Some(x), None, None, Some(sizes)]
        }
        _ => {
            let sizes = imp.vector_of(asked)?;
            [Some(x), None, None, Some(sizes)]
        }
    };
    sampled(imp, resize, &inputs)
}

/// Samples, but where MNN takes other numbers than there are: its curves beyond the first number go through the wrong four.
fn sampled(imp: &mut Import, resize: Resize, inputs: &[Option<ValueId>]) -> Outputs {
    let curved = matches!(resize.mode, ResizeMode::Cubic { .. });
    let shifted = matches!(
        resize.coordinates,
        CoordinateMode::HalfPixel | CoordinateMode::PytorchHalfPixel
    );
    let x = inputs.first().copied().flatten();
    let y = imp.step(resize, inputs)?;
    if curved && shifted {
        let (before, after) = (x.and_then(|x| imp.shape(x)), imp.shape(y));
        let grows = match (before, after) {
            (Some(before), Some(after)) => before.iter().zip(&after).any(|(a, b)| a < b),
            _ => true,
        };
        if grows {
            return Err(unsupported(
                "curves through the centres of pixels that begin before the first",
            ));
        }
    }
    Ok(vec![y])
}

fn from_parameters(imp: &mut Import, op: &Op, p: &Params, resize: Resize) -> Outputs {
    let x = op.input(0)?;
    let rank = imp.rank(x)?;
    // Height and width; a row has a height alone. Factors count where there are no sizes.
    let (sizes, factors): (&[usize], &[usize]) = match rank {
        3 => (&[3], &[1]),
        _ => (&[3, 2], &[1, 0]),
    };
    let sizes = sizes.iter().map(|&slot| p.size(slot, 0));
    let sizes = sizes.collect::<Result<Vec<_>>>()?;
    if !sizes.contains(&0) {
        let sizes: Vec<i64> = sizes.into_iter().map(|n| n as i64).collect();
        let sizes = imp.i64s(&sizes)?;
        return sampled(imp, resize, &[Some(x), None, None, Some(sizes)]);
    }
    let factors = factors.iter().map(|&slot| p.float(slot, 0.0));
    let factors = factors.collect::<Result<Vec<_>>>()?;
    if factors
        .iter()
        .any(|factor| !factor.is_finite() || *factor <= 0.0)
    {
        return Err(invalid("a picture is sampled to no size"));
    }
    let first = op.layout().spatial();
    let known: Option<Vec<i64>> = factors
        .iter()
        .enumerate()
        .map(|(i, factor)| {
            let n = imp.length(x, (first + i) as i64).known()?;
            Some((n as f32 * factor) as i64)
        })
        .collect();
    let inputs = match known {
        Some(sizes) => [Some(x), None, None, Some(imp.i64s(&sizes)?)],
        None => {
            let factors = Tensor::from_slice(&[factors.len()], &factors)?;
            [Some(x), None, Some(imp.tensor_value(factors)), None]
        }
    };
    sampled(imp, resize, &inputs)
}

/// The operator Resize of older files: a line between two numbers, by factors.
pub fn resize(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p) = (op.input(0)?, op.params(RESIZE)?);
    let (width, height) = (p.float(0, 0.0)?, p.float(1, 0.0)?);
    let resize = Resize {
        mode: ResizeMode::Linear,
        coordinates: CoordinateMode::Asymmetric,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some(vec![2, 3]),
        policy: AspectPolicy::Stretch,
    };
    let factors = Tensor::from_slice(&[2], &[height, width])?;
    let factors = imp.tensor_value(factors);
    Ok(vec![
        imp.step(resize, &[Some(x), None, Some(factors), None])?,
    ])
}

/// The operator GridSample.
pub fn grid_sample(imp: &mut Import, op: &Op) -> Outputs {
    let (x, grid, p) = (op.input(0)?, op.input(1)?, op.params(GRID_SAMPLE)?);
    if p.flag(3, false)? || op.inputs.len() > 2 {
        return Err(unsupported("the derivative of sampling"));
    }
    let mode = match p.choice(0)? {
        0 => GridMode::Linear,
        1 => GridMode::Nearest,
        other => return Err(unsupported(format!("sampling number {other}"))),
    };
    let padding = match p.choice(1)? {
        0 => GridPadding::Zeros,
        1 => GridPadding::Border,
        2 => {
            return Err(unsupported(
                "a border that mirrors, which MNN itself does not",
            ));
        }
        other => return Err(unsupported(format!("the border number {other}"))),
    };
    let sample = GridSample {
        mode,
        padding,
        align_corners: p.flag(2, false)?,
    };
    Ok(vec![imp.op(sample, &[x, grid])?])
}
