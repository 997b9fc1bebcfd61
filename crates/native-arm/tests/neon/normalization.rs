//! Normalisations.

use kilim_core::DType;
use kilim_core::ops::Lrn;

use crate::common::Given::Fed;
use crate::common::{noise, run};
use crate::neon;

#[test]
fn local_response_normalization_is_refused() {
    let op = Lrn {
        alpha: 0.02,
        beta: 0.75,
        bias: 1.5,
        size: 5,
        channels_last: false,
    };
    let Some(neon) = neon() else { return };
    let shape = [2, 9, 4, 5];
    let reason = run(&neon, op, &[Fed(noise(&shape, 1))], (DType::F32, &shape)).unwrap_err();
    assert!(reason.contains("turns NaN into a number"), "{reason}");
}
