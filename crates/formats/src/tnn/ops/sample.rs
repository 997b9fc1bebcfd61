//! Sampling at other positions (`layer/upsample_layer.cc`, `device/cpu/acc/cpu_upsample_layer_acc.cc`).

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{
    AspectPolicy, CoordinateMode, GridMode, GridPadding, GridSample, NearestMode, Resize,
    ResizeMode,
};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;

/// The layer `Upsample`, along height and width.
pub fn upsample(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let dims = imp.dims(x)?;
    let &[_, _, height, width] = &dims[..] else {
        return Err(unsupported("blobs that are no pictures"));
    };
    let mut params = layer.params();
    let mode = params.int(0)?;
    let scales = [params.float(1.0)?, params.float(1.0)?];
    let aligned = match params.int(0)? {
        0 => false,
        1 => true,
        other => return Err(unsupported(format!("corners number {other}"))),
    };
    let sizes = [params.count(0)?, params.count(0)?];
    let sizes = asked(imp, layer, [height, width], scales, sizes)?;
    // The position of a single row or column is 0.
    let centres = match sizes.contains(&1) {
        true => CoordinateMode::PytorchHalfPixel,
        false => CoordinateMode::HalfPixel,
    };
    let along = if aligned {
        CoordinateMode::AlignCorners
    } else {
        centres
    };
    let (mode, coordinates) = match mode {
        1 => (
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        ),
        2 => (ResizeMode::Linear, along),
        3 => (ResizeMode::Cubic { a: -0.75 }, along),
        other => return Err(unsupported(format!("interpolation number {other}"))),
    };
    if sizes == [height, width] {
        return Ok(vec![x]);
    }
    let resize = Resize {
        mode,
        coordinates,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: Some(vec![2, 3]),
        policy: AspectPolicy::Stretch,
    };
    let sizes = imp.i64s(&sizes.map(|n| n as i64))?;
    Ok(vec![imp.step(resize, &[Some(x), None, None, Some(sizes)])?])
}

/// The height and width that are asked for: by a blob, by numbers or by scales.
fn asked(
    imp: &Import,
    layer: &Layer,
    from: [usize; 2],
    mut scales: [f32; 2],
    sizes: [usize; 2],
) -> Result<[usize; 2]> {
    let last_two = |list: &[i64]| match list {
        [.., h, w] => Ok([*h, *w]),
        _ => Err(invalid("a picture has a height and a width")),
    };
    match layer.inputs[..] {
        [_, by] | [_, _, by] => {
            let tensor = imp
                .constant(by)
                .ok_or_else(|| unsupported("scales that another layer computes"))?;
            let [.., h, w] = tensor.as_slice::<f32>()? else {
                return Err(invalid("a picture has a height and a width"));
            };
            scales = [*h, *w];
        }
        [_, _, _, to] => {
            let asked = last_two(&imp.known_ints(to)?)?.map(usize::try_from);
            return match asked {
                [Ok(h), Ok(w)] if h > 0 && w > 0 => Ok([h, w]),
                _ => Err(invalid("a size is not positive")),
            };
        }
        _ => {}
    }
    if !sizes.contains(&0) {
        return Ok(sizes);
    }
    let mut made = [0; 2];
    for i in 0..2 {
        let size = (from[i] as f32 * scales[i]).round();
        if !(1.0..=1e9).contains(&size) {
            return Err(invalid("a scale is not positive, or too large").with_got(scales[i]));
        }
        made[i] = size as usize;
    }
    Ok(made)
}

/// The layer `GridSample`, in the one form that TNN computes on the CPU.
pub fn grid_sample(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    if (params.int(2)?, params.int(0)?, params.int(0)?) != (2, 0, 0) {
        return Err(unsupported("another form than linear, with zeros around"));
    }
    let sample = GridSample {
        mode: GridMode::Linear,
        padding: GridPadding::Zeros,
        align_corners: false,
    };
    Ok(vec![imp.op(sample, &[layer.input(0)?, layer.input(1)?])?])
}
