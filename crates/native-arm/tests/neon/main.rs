//! What the shared operator suite does not try, on a machine with `libkilim_acl.so`: a room for each family of
//! operators, and one for numbers at the edges.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

#[path = "../common/mod.rs"]
mod common;

mod activation;
mod agreement;
mod convolution;
mod edges;
mod float16;
mod matmul;
mod movement;
mod native;
mod normalization;
mod odd;
mod pooling;
mod quantization;
mod resize;
mod softmax;

use kilim_core::{DType, ErrorCode, Operator};
use kilim_native_arm::AclBackend;

use common::Given;

/// The backend; `None`, which skips the test, where its library is not there and was not asked for.
fn neon() -> Option<AclBackend> {
    match AclBackend::neon() {
        Ok(backend) => Some(backend),
        Err(e) if std::env::var_os("KILIM_ACL").is_none() => {
            assert_eq!(e.code(), ErrorCode::NoBackend);
            kilim_test_support::skip(e);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn difference(
    op: impl Operator + Clone,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Option<f64> {
    Some(common::difference(&neon()?, op, inputs, output))
}

/// Whether the release has MatMul: 20.08 does not.
fn has_matmul(neon: &AclBackend) -> bool {
    use kilim_core::backend::Backend;
    !neon.describe().device.contains("v20.08")
}

#[test]
fn opencl_that_is_absent_is_a_reason() {
    if let Err(e) = AclBackend::cl() {
        assert_eq!(e.code(), ErrorCode::NoBackend);
        let about = if neon().is_some() {
            "OpenCL"
        } else {
            "libkilim_acl"
        };
        assert!(e.message().contains(about), "{e}");
    }
}
