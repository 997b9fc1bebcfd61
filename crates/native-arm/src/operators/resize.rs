//! Resizing of a picture's height and width.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    CoordinateMode, NearestMode, QuantizedResize, Resize, ResizeAxis, ResizeMode,
};
use kilim_host::registry::KernelRegistry;

use super::{Lower, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{Layout, ResizeInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, QuantizedResize>(registry);
    add::<A, Resize>(registry);
}

/// ACL's scale is that of the sizes.
fn fits(axis: &ResizeAxis) -> bool {
    let scale = axis.output as f64 / axis.input as f64;
    (axis.scale - scale).abs() <= 1e-6 * scale
}

fn info(op: &Resize) -> Result<ResizeInfo, Refusal> {
    let (bilinear, center, align_corners) = match (op.mode, op.coordinates) {
        (ResizeMode::Linear, CoordinateMode::HalfPixel) => (true, true, false),
        (ResizeMode::Linear, CoordinateMode::Asymmetric) => (true, false, false),
        (ResizeMode::Linear, CoordinateMode::AlignCorners) => (true, false, true),
        (ResizeMode::Nearest(NearestMode::Floor), CoordinateMode::Asymmetric) => {
            (false, false, false)
        }
        _ => return refuse("ACL samples in another way"),
    };
    if op.antialias || op.exclude_outside {
        return refuse("ACL's resizing has no filter against aliases");
    }
    Ok(ResizeInfo {
        bilinear: bilinear.into(),
        center: center.into(),
        align_corners: align_corners.into(),
    })
}

impl Lower for Resize {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let info = info(self)?;
        let axes = resolved(self.resolve(&x.shape, node))?;
        let changed: Vec<usize> = (0..axes.len())
            .filter(|&i| axes[i].input != axes[i].output || axes[i].scale != 1.0)
            .collect();
        let within = |axes: [usize; 2]| changed.iter().all(|i| axes.contains(i));
        let layout = match axes.len() {
            4 if within([1, 2]) => Layout::Nhwc,
            4 if within([2, 3]) => Layout::Nchw,
            _ => return refuse("ACL resizes height and width"),
        };
        if !axes.iter().all(fits) {
            return refuse("a scale that is not that of the sizes");
        }
        // What is only moved may be a whole number.
        let form = match self.mode {
            ResizeMode::Nearest(_) => Form::of_elements,
            _ => Form::new,
        };
        let data = Operand {
            source: Source::Input(0),
            form: form(x, &x.shape)?.with_layout(layout),
        };
        let form = form(y, &y.shape)?.with_layout(layout);
        Ok(vec![Call::new(info, vec![Some(data)], form)])
    }
}

impl Lower for QuantizedResize {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse("ACL interpolates bytes in an arithmetic of its own, to other bytes")
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let info = ResizeInfo {
            bilinear: 1,
            center: self.half_pixel.into(),
            align_corners: self.align_corners.into(),
        };
        let form = |spec: &TensorSpec| {
            let form = Form::of_elements(spec, &spec.shape)?;
            Ok(form.with_layout(Layout::Nhwc))
        };
        let calls = || {
            let data = Operand {
                source: Source::Input(0),
                form: form(input(node, 0)?)?,
            };
            Ok(vec![Call::new(
                info,
                vec![Some(data)],
                form(output(node)?)?,
            )])
        };
        Some(calls())
    }
}
