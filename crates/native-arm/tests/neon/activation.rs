//! Functions of one tensor.

use kilim_core::DType;
use kilim_core::ops::{Unary, UnaryKind};

use crate::common;
use crate::common::Given::Fed;
use crate::common::{floats, run};
use crate::{has_matmul, neon};

#[test]
fn gelu_is_there_or_refused() {
    let Some(neon) = neon() else { return };
    let op = Unary(UnaryKind::Gelu { tanh: false });
    let x = floats(&[3, 37], |i| i as f32 / 10.0 - 5.5);
    let run = run(&neon, op.clone(), &[Fed(x)], (DType::F32, &[3, 37]));
    if let Err(reason) = run {
        assert!(!has_matmul(&neon), "{reason}");
        assert!(
            reason.contains("this release of ACL has no GELU"),
            "{reason}"
        );
        return;
    }
    let x = floats(&[3, 37], |i| i as f32 / 10.0 - 5.5);
    let d = common::difference(&neon, op, &[Fed(x)], (DType::F32, &[3, 37]));
    assert!(d < 2e-6, "{d}");
}
