//! Softmax.

use kilim_core::DType;
use kilim_core::ops::{Softmax, SoftmaxKind};

use crate::common;
use crate::common::Given::Fed;
use crate::common::{floats, run};
use crate::{has_matmul, neon};

#[test]
fn softmax_goes_along_any_axis() {
    for (kind, axis) in [
        (SoftmaxKind::Softmax, 0),
        (SoftmaxKind::Softmax, 1),
        (SoftmaxKind::Softmax, 2),
        (SoftmaxKind::LogSoftmax, -1),
    ] {
        let op = Softmax {
            kind,
            axis,
            beta: 1.0,
        };
        let Some(neon) = neon() else { return };
        let x = || Fed(floats(&[3, 7, 5], |i| (i * 37 % 101) as f32 / 10.0 - 5.0));
        let output = (DType::F32, &[3, 7, 5][..]);
        // Old releases have the innermost alone.
        if let Err(reason) = run(&neon, op.clone(), &[x()], output) {
            assert!(!has_matmul(&neon) && [0, 1].contains(&axis), "{reason}");
            assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
            continue;
        }
        let d = common::difference(&neon, op, &[x()], output);
        assert!(d < 5e-6, "{kind:?} {axis}: {d}");
    }
}
