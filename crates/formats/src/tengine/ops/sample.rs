//! Sampling at other positions.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};
use kilim_core::tensor::Tensor;

use super::Outputs;
use crate::tengine::import::Import;
use crate::tengine::invalid;
use crate::tengine::node::Node;

fn resized(
    imp: &mut Import,
    x: ValueId,
    mode: ResizeMode,
    coordinates: CoordinateMode,
    scales: [f32; 2],
) -> Result<ValueId> {
    if !scales.iter().all(|s| s.is_finite() && *s > 0.0) {
        return Err(invalid("a scale is not positive"));
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
    let scales = imp.tensor_value(Tensor::from_slice(&[2], &scales)?);
    imp.step(resize, &[Some(x), None, Some(scales)])
}

const NEAREST: ResizeMode = ResizeMode::Nearest(NearestMode::Floor);

/// The operator `Upsample`: pixels are repeated.
pub fn upsample(imp: &mut Import, node: &Node) -> Outputs {
    let scale = node.params()?.float(0)?;
    let coordinates = CoordinateMode::Asymmetric;
    let x = node.input(0)?;
    Ok(vec![resized(imp, x, NEAREST, coordinates, [scale; 2])?])
}

/// The operator `Interp`, by scales or to a size (`operator/prototype/interp.c`, `device/cpu/op/interp/interp_ref.c`).
pub fn interp(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let (mode, coordinates) = match params.int(0)? {
        1 => (NEAREST, CoordinateMode::Asymmetric),
        2 => (ResizeMode::Linear, CoordinateMode::HalfPixel),
        4 => (ResizeMode::Linear, CoordinateMode::AlignCorners),
        other => return Err(unsupported(format!("interpolation number {other}"))),
    };
    let (width, height) = (params.float(1)?, params.float(2)?);
    let scales = match (height != 0.0, width != 0.0) {
        (true, true) => [height, width],
        _ => {
            let dims = imp.dims(x)?;
            let &[_, _, h, w] = &dims[..] else {
                return Err(invalid("a tensor that is no picture"));
            };
            let (to_w, to_h) = (node.positive(3)?, node.positive(4)?);
            [to_h as f32 / h as f32, to_w as f32 / w as f32]
        }
    };
    Ok(vec![resized(imp, x, mode, coordinates, scales)?])
}
