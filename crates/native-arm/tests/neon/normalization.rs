//! Normalisations.

use kilim_core::DType;
use kilim_core::ops::Lrn;

use crate::common::Given::Fed;
use crate::common::noise;
use crate::difference;

#[test]
fn local_response_normalization() {
    let op = Lrn {
        alpha: 0.02,
        beta: 0.75,
        bias: 1.5,
        size: 5,
        channels_last: false,
    };
    let d = difference(
        op,
        &[Fed(noise(&[2, 9, 4, 5], 1))],
        (DType::F32, &[2, 9, 4, 5]),
    );
    assert!(d.is_none_or(|d| d < 2e-6), "{d:?}");
}
