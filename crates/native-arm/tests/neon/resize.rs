//! Resizing.

use kilim_core::ops::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};
use kilim_core::{DType, Tensor};

use crate::common::Given::{Constant, Fed};
use crate::common::{bytes, noise};
use crate::difference;

#[test]
fn pictures_are_resized() {
    let modes = [
        (ResizeMode::Linear, CoordinateMode::HalfPixel),
        (ResizeMode::Linear, CoordinateMode::Asymmetric),
        (ResizeMode::Linear, CoordinateMode::AlignCorners),
        (
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        ),
    ];
    for (mode, coordinates) in modes {
        for (x, y) in [
            ([1, 3, 5, 4], [1, 3, 10, 12]),
            ([2, 5, 4, 3], [2, 10, 12, 3]),
            ([1, 8, 10, 3], [1, 5, 4, 3]),
        ] {
            let op = Resize {
                mode,
                coordinates,
                antialias: false,
                exclude_outside: false,
                extrapolation: 0.0,
                axes: None,
                policy: AspectPolicy::Stretch,
            };
            let none = Tensor::from_slice::<f32>(&[0], &[]).unwrap();
            let sizes: Vec<i64> = y.iter().map(|&d| d as i64).collect();
            let inputs = [
                Fed(noise(&x, 1)),
                Constant(none.clone()),
                Constant(none),
                Constant(Tensor::from_slice(&[4], &sizes).unwrap()),
            ];
            let d = difference(op, &inputs, (DType::F32, &y));
            assert!(
                d.is_none_or(|d| d < 2e-6),
                "{mode:?} {coordinates:?} {x:?}: {d:?}"
            );
        }
    }
}

#[test]
fn bytes_are_resized_to_the_nearest() {
    let op = Resize {
        mode: ResizeMode::Nearest(NearestMode::Floor),
        coordinates: CoordinateMode::Asymmetric,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy: AspectPolicy::Stretch,
    };
    let none = Tensor::from_slice::<f32>(&[0], &[]).unwrap();
    let sizes = Tensor::from_slice(&[4], &[1i64, 10, 12, 3]).unwrap();
    let inputs = [
        Fed(bytes(&[1, 5, 4, 3], 37)),
        Constant(none.clone()),
        Constant(none),
        Constant(sizes),
    ];
    let d = difference(op, &inputs, (DType::I8, &[1, 10, 12, 3]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
}
