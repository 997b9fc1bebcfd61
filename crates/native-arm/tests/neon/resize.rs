//! Resizing.

use kilim_core::DType;
use kilim_core::ops::{CoordinateMode, NearestMode, ResizeMode};

use crate::common::{RESIZES, bytes, noise, resize, resized};
use crate::difference;

#[test]
fn pictures_are_resized() {
    for (mode, coordinates) in RESIZES {
        for (x, y) in [
            ([1, 3, 5, 4], [1, 3, 10, 12]),
            ([2, 5, 4, 3], [2, 10, 12, 3]),
            ([1, 8, 10, 3], [1, 5, 4, 3]),
        ] {
            let op = resize(mode, coordinates);
            let d = difference(op, &resized(noise(&x, 1), &y), (DType::F32, &y));
            assert!(
                d.is_none_or(|d| d < 2e-6),
                "{mode:?} {coordinates:?} {x:?}: {d:?}"
            );
        }
    }
}

#[test]
fn bytes_are_resized_to_the_nearest() {
    let op = resize(
        ResizeMode::Nearest(NearestMode::Floor),
        CoordinateMode::Asymmetric,
    );
    let y = [1, 10, 12, 3];
    let d = difference(op, &resized(bytes(&[1, 5, 4, 3], 37), &y), (DType::I8, &y));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
}
