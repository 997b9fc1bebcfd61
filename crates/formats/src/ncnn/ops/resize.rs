//! Sampling at other positions, and blocks of pictures.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    AspectPolicy, Col2Im, CoordinateMode, Expand, GridMode, GridPadding, GridSample, NearestMode,
    Padding, Resize, ResizeMode,
};
use kilim_core::tensor::Tensor;

use super::window::{along, around, padding};
use super::{Outputs, fixed};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;
use crate::ncnn::sizes::Size;

/// The layer `Interp`: along the width of matrices, along height and width of pictures. A list becomes a picture of equal pixels for each
/// of its numbers (`src/layer/interp.cpp`).
pub fn interp(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let rank = imp.blob_rank(x)?;
    let asked = asked(imp, layer)?;
    let axes: &[i64] = match rank {
        1 => return spread(imp, layer, x, asked),
        2 => &[2],
        3 => &[2, 3],
        _ => return Err(unsupported("blobs with a depth")),
    };
    let mode = match layer.params.int(0, 0)? {
        1 => ResizeMode::Nearest(NearestMode::Floor),
        2 => ResizeMode::Linear,
        3 => ResizeMode::Cubic { a: -0.75 },
        other => return Err(unsupported(format!("interpolation number {other}"))),
    };
    let nearest = matches!(mode, ResizeMode::Nearest(_));
    let resize = Resize {
        mode,
        coordinates: match layer.params.flag(6, false)? {
            _ if nearest => CoordinateMode::Asymmetric,
            true => CoordinateMode::AlignCorners,
            false => CoordinateMode::HalfPixel,
        },
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some(axes.to_vec()),
        policy: AspectPolicy::Stretch,
    };
    let last = axes.len();
    let Some(sizes) = asked else {
        // Positions follow from the scales, not from the numbers of pixels, which are rounded down.
        let scales = Tensor::from_slice(&[last], &scales(layer)?[2 - last..])?;
        let scales = imp.tensor_value(scales);
        return Ok(vec![imp.step(resize, &[Some(x), None, Some(scales)])?]);
    };
    let sizes = &sizes[2 - last..];
    let sizes = imp.vector_of(sizes)?;
    Ok(vec![imp.step(resize, &[Some(x), None, None, Some(sizes)])?])
}

/// Height and width that are asked for: by an expression, another blob or numbers. Nothing where the file gives scales.
fn asked(imp: &mut Import, layer: &Layer) -> Result<Option<[Size; 2]>> {
    let expression = layer.params.text(9)?;
    if !expression.is_empty() {
        return match &imp.sizes(expression, &layer.inputs)?[..] {
            [w] => Ok(Some([imp.size_of(layer.input(0)?, b'h')?, w.clone()])),
            [w, h] => Ok(Some([h.clone(), w.clone()])),
            _ => Err(invalid("a picture has a width and a height")),
        };
    }
    if layer.params.flag(5, false)? {
        let like = layer.input(1)?;
        return Ok(Some([imp.size_of(like, b'h')?, imp.size_of(like, b'w')?]));
    }
    match (layer.params.count(3, 0)?, layer.params.count(4, 0)?) {
        (0, _) | (_, 0) => Ok(None),
        (h, w) => Ok(Some([h, w].map(|n| Size::Known(n as i64)))),
    }
}

/// The scales along height and width.
fn scales(layer: &Layer) -> Result<[f32; 2]> {
    let scales = [layer.params.float(1, 1.0)?, layer.params.float(2, 1.0)?];
    match scales.iter().all(|s| s.is_finite() && *s > 0.0) {
        true => Ok(scales),
        false => Err(invalid("a scale is not positive")),
    }
}

/// The numbers of a list, each for all pixels of a channel.
fn spread(imp: &mut Import, layer: &Layer, x: ValueId, asked: Option<[Size; 2]>) -> Outputs {
    let [h, w] = match asked {
        Some(sizes) => sizes,
        None => scales(layer)?.map(|s| Size::Known(s as i64)),
    };
    let x = imp.unsqueeze(x, &[2, 3])?;
    let shape = imp.vector_of(&[Size::Known(1), Size::Known(1), h, w])?;
    Ok(vec![imp.op(Expand, &[x, shape])?])
}

/// The layer `GridSample`. A grid has its coordinates in its innermost dimension, or in its channels.
pub fn grid_sample(imp: &mut Import, layer: &Layer) -> Outputs {
    let sample = GridSample {
        mode: match layer.params.int(0, 1)? {
            1 => GridMode::Linear,
            2 => GridMode::Nearest,
            3 => GridMode::Cubic,
            other => return Err(unsupported(format!("interpolation number {other}"))),
        },
        padding: match layer.params.int(1, 1)? {
            1 => GridPadding::Zeros,
            2 => GridPadding::Border,
            3 => GridPadding::Reflection,
            other => return Err(unsupported(format!("padding number {other}"))),
        },
        align_corners: layer.params.flag(2, false)?,
    };
    let (x, mut grid) = (layer.input(0)?, layer.input(1)?);
    if layer.params.flag(3, false)? {
        let rank = imp.rank(grid)?;
        let perm: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        grid = imp.transpose(grid, &perm)?;
    }
    Ok(vec![imp.op(sample, &[x, grid])?])
}

const KERNEL: [i32; 3] = [1, 11, 21];
const DILATION: [i32; 3] = [2, 12, 22];
const STRIDE: [i32; 3] = [3, 13, 23];
const AROUND: [i32; 6] = [4, 15, 14, 16, 24, 17];

/// The layer `Fold`: columns, each of a block, add up to a picture.
pub fn fold(imp: &mut Import, layer: &Layer) -> Outputs {
    let Padding::Explicit(pads) = padding(&around(layer, AROUND, 2)?)? else {
        return Err(unsupported("paddings that are found"));
    };
    let op = Col2Im {
        strides: along(layer, STRIDE, 2, 1)?,
        dilations: along(layer, DILATION, 2, 1)?,
        pads,
    };
    let block = along(layer, KERNEL, 2, 0)?;
    let width = layer.positive(20, 0)?;
    let picture = [layer.positive(21, width)? as i64, width as i64];
    let block: Vec<i64> = block.iter().map(|&n| n as i64).collect();
    let inputs = [layer.input(0)?, imp.i64s(&picture)?, imp.i64s(&block)?];
    Ok(vec![imp.op(op, &inputs)?])
}

/// The layer `Unfold`: the blocks of a picture as columns, which convolutions with one tap each find.
pub fn unfold(imp: &mut Import, layer: &Layer) -> Outputs {
    if layer.params.float(18, 0.0)? != 0.0 {
        return Err(unsupported("a padding of numbers that are not 0"));
    }
    let x = layer.input(0)?;
    let channels = fixed(imp, x, 1, "the number of channels")?;
    let kernel = along(layer, KERNEL, 2, 0)?;
    let window = (
        along(layer, STRIDE, 2, 1)?,
        along(layer, DILATION, 2, 1)?,
        padding(&around(layer, AROUND, 2)?)?,
    );
    Ok(vec![imp.unfolded(x, channels, &kernel, window)?])
}
