//! Sampling at other places, and regions.

use kilim_core::error::Result;
use kilim_core::ops::{CoordinateMode, GridMode, GridSample, NearestMode, Resize, ResizeMode};

use super::Family;
use crate::onnx::form::{Form, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told};
use kilim_formats::build::OpTable;

pub static OPERATORS: Family = OpTable(&[
    (
        "AffineGrid",
        Form::of(&[("align_corners", As("align_corners"))]).since(20),
    ),
    (
        "GridSample",
        Form::of(&[
            ("align_corners", As("align_corners")),
            ("mode", Told),
            (
                "padding",
                Said(
                    "padding_mode",
                    &[
                        ("Border", "border"),
                        ("Reflection", "reflection"),
                        ("Zeros", "zeros"),
                    ],
                ),
            ),
        ])
        .also(grid),
    ),
    (
        "MaxRoiPool",
        Form::of(&[
            ("pooled", As("pooled_shape")),
            ("spatial_scale", As("spatial_scale")),
        ]),
    ),
    (
        "Resize",
        Form::of(&[
            ("antialias", Told),
            ("axes", As("axes")),
            ("coordinates", COORDINATES),
            ("exclude_outside", As("exclude_outside")),
            ("extrapolation", As("extrapolation_value")),
            (
                "mode",
                Said(
                    "mode",
                    &[
                        ("Cubic", "cubic"),
                        ("Linear", "linear"),
                        ("Nearest", "nearest"),
                    ],
                ),
            ),
            ("mode.a", As("cubic_coeff_a")),
            ("mode.value", Told),
            (
                "policy",
                Said(
                    "keep_aspect_ratio_policy",
                    &[
                        ("NotLarger", "not_larger"),
                        ("NotSmaller", "not_smaller"),
                        ("Stretch", "stretch"),
                    ],
                ),
            ),
        ])
        .also(resize),
    ),
    (
        "RoiAlign",
        Form::of(&[
            (
                "half_pixel",
                Said(
                    "coordinate_transformation_mode",
                    &[("0", "output_half_pixel"), ("1", "half_pixel")],
                ),
            ),
            ("max", Said("mode", &[("0", "avg"), ("1", "max")])),
            ("output", Told),
            ("sampling_ratio", As("sampling_ratio")),
            ("spatial_scale", As("spatial_scale")),
        ])
        .also(|n| {
            let [height, width] = n.op::<kilim_core::ops::RoiAlign>()?.output;
            n.set_int("output_height", height as i64);
            n.set_int("output_width", width as i64);
            Ok(())
        }),
    ),
]);

const COORDINATES: Rule = Said(
    "coordinate_transformation_mode",
    &[
        ("AlignCorners", "align_corners"),
        ("Asymmetric", "asymmetric"),
        ("HalfPixel", "half_pixel"),
        ("HalfPixelSymmetric", "half_pixel_symmetric"),
        ("PytorchHalfPixel", "pytorch_half_pixel"),
        ("TfCropAndResize", "tf_crop_and_resize"),
        ("TfHalfPixelForNearest", "tf_half_pixel_for_nn"),
    ],
);

/// Modes have other words before operator set 20.
fn grid(n: &mut NodeForm) -> Result<()> {
    let old = n.opset < 20;
    let mode = match n.op::<GridSample>()?.mode {
        GridMode::Linear if old => "bilinear",
        GridMode::Linear => "linear",
        GridMode::Nearest => "nearest",
        GridMode::Cubic if old => "bicubic",
        GridMode::Cubic => "cubic",
    };
    n.set_text("mode", mode);
    let flat = n.node.input(0).and_then(|x| n.graph.value(x).fact.rank()) == Some(4);
    if !flat {
        n.needs(20);
    }
    Ok(())
}

/// What came with operator set 18 is left out where it says nothing.
fn resize(n: &mut NodeForm) -> Result<()> {
    let op = n.op::<Resize>()?;
    if let ResizeMode::Nearest(mode) = op.mode {
        let word = match mode {
            NearestMode::RoundPreferFloor => "round_prefer_floor",
            NearestMode::RoundPreferCeil => "round_prefer_ceil",
            NearestMode::Floor => "floor",
            NearestMode::Ceil => "ceil",
        };
        n.set_text("nearest_mode", word);
    }
    if op.antialias {
        n.set_int("antialias", 1);
    }
    let stretched = op.policy == kilim_core::ops::AspectPolicy::Stretch;
    if op.antialias || op.axes.is_some() || !stretched {
        n.needs(18);
    } else if n.opset < 18 {
        n.attributes
            .retain(|(name, _)| name != "keep_aspect_ratio_policy");
    }
    if op.coordinates == CoordinateMode::HalfPixelSymmetric {
        n.needs(19);
    }
    Ok(())
}
