//! `acl_cl` on a machine with OpenCL: one node or more of each family. Every function compiles OpenCL
//! programs, which takes seconds under an emulator.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

#[path = "../common/mod.rs"]
mod common;
mod float16;

use common::Given::{Constant, Fed};
use common::exact;
use common::steps::{self, Extent};
use common::{Given, bytes, conv, difference, max_pool, noise, quantised, run, scalar, window};
use kilim_core::ops::{
    Binary, BinaryKind, Concat, DequantizeLinear, MatMul, QLinearConv, Softmax, SoftmaxKind,
    Transpose, Unary, UnaryKind,
};
use kilim_core::{DType, ErrorCode, Operator, Tensor};
use kilim_native_arm::AclBackend;

/// The backend. Without OpenCL there is none, which skips the test unless `KILIM_OPENCL` asks for it.
fn cl() -> Option<AclBackend> {
    match AclBackend::cl() {
        Ok(cl) => Some(cl),
        Err(e) if std::env::var_os("KILIM_OPENCL").is_none() => {
            assert_eq!(e.code(), ErrorCode::NoBackend);
            kilim_test_support::skip(e);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Compares a node with `cpu`.
fn check(op: impl Operator + Clone, inputs: &[Given], y: &[usize]) {
    let Some(cl) = cl() else { return };
    let d = difference(&cl, op, inputs, (DType::F32, y));
    assert!(d < 2e-5, "{d}");
}

#[test]
fn activation() {
    check(Unary(UnaryKind::Relu), &[Fed(noise(&[3, 8], 1))], &[3, 8]);
}

#[test]
fn elementwise() {
    let inputs = [Fed(noise(&[3, 8], 1)), Fed(noise(&[3, 8], 2))];
    check(Binary::new(BinaryKind::Sub), &inputs, &[3, 8]);
}

#[test]
fn softmax() {
    let op = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: 1,
        beta: 1.0,
    };
    check(op, &[Fed(noise(&[3, 9], 1))], &[3, 9]);
}

#[test]
fn concatenation() {
    let inputs = [Fed(noise(&[2, 4], 1)), Fed(noise(&[2, 8], 2))];
    check(Concat { axis: 1 }, &inputs, &[2, 12]);
}

#[test]
fn transpose() {
    let op = Transpose {
        perm: vec![0, 2, 1],
    };
    check(op, &[Fed(noise(&[2, 3, 4], 1))], &[2, 4, 3]);
}

#[test]
fn fully_connected() {
    let inputs = [Fed(noise(&[3, 9], 1)), Constant(noise(&[9, 5], 2))];
    check(MatMul::default(), &inputs, &[3, 5]);
}

#[test]
fn convolution() {
    let inputs = [
        Fed(noise(&[1, 6, 5, 4], 1)),
        Constant(noise(&[8, 4, 3, 3], 2)),
        Constant(noise(&[8], 3)),
    ];
    check(conv(1, true), &inputs, &[1, 6, 5, 8]);
}

#[test]
fn depthwise_convolution() {
    let inputs = [
        Fed(noise(&[1, 6, 5, 8], 1)),
        Constant(noise(&[8, 1, 3, 3], 2)),
    ];
    check(conv(8, true), &inputs, &[1, 6, 5, 8]);
}

#[test]
fn grouped_convolution() {
    let inputs = [
        Fed(noise(&[2, 4, 7, 5], 1)),
        Constant(noise(&[6, 2, 3, 3], 2)),
        Constant(noise(&[6], 3)),
    ];
    check(conv(2, false), &inputs, &[2, 6, 7, 5]);
}

#[test]
fn pooling() {
    let op = max_pool(window(2, 2, 0), true);
    check(op, &[Fed(noise(&[1, 4, 6, 8], 1))], &[1, 2, 3, 8]);
}

#[test]
fn dequantisation() {
    let zero = Constant(Tensor::scalar(-3i8).unwrap());
    let inputs = [Fed(bytes(&[2, 8], 37)), scalar(0.01), zero];
    check(DequantizeLinear { axis: 1, block: 0 }, &inputs, &[2, 8]);
}

#[test]
fn products_of_bytes() {
    let Some(cl) = cl() else { return };
    exact::products(&cl, &exact::TYPES, &exact::MATRICES[..1]);
}

#[test]
fn products_of_computed_bytes() {
    let Some(cl) = cl() else { return };
    exact::computed_products(&cl, &exact::TYPES, &exact::MATRICES[..1]);
}

#[test]
fn convolutions_of_bytes() {
    let Some(cl) = cl() else { return };
    exact::convolutions(&cl, &exact::TYPES[..3], &exact::WINDOWS[..1]);
}

#[test]
fn native_sum() {
    let Some(cl) = cl() else { return };
    steps::of_two(&cl, BinaryKind::Add, Extent::Sample);
}

#[test]
fn native_difference() {
    let Some(cl) = cl() else { return };
    steps::of_two(&cl, BinaryKind::Sub, Extent::Sample);
}

#[test]
fn native_product() {
    let Some(cl) = cl() else { return };
    steps::of_two(&cl, BinaryKind::Mul, Extent::Sample);
}

#[test]
fn native_depthwise_convolution() {
    let Some(cl) = cl() else { return };
    steps::convolutions(&cl, &steps::DEPTHWISE[..1], &steps::FORMS[..1], true);
}

#[test]
fn native_convolution() {
    let Some(cl) = cl() else { return };
    steps::convolutions(&cl, &steps::GENERAL[..1], &steps::FORMS, false);
}

#[test]
fn native_grouped_convolution() {
    let Some(cl) = cl() else { return };
    let (first, other) = steps::WITHOUT_BIAS.split_at(1);
    steps::convolutions(&cl, &steps::GROUPED, first, false);
    steps::convolutions(&cl, &steps::GROUPED[..1], other, false);
}

/// ACL's kernel gives wrong results here, though its `validate` takes the node.
#[test]
fn native_grouped_convolution_of_two_pictures() {
    let Some(cl) = cl() else { return };
    let op = QLinearConv {
        conv: conv(2, false),
    };
    let x = [2, 8, 6, 6];
    let inputs = quantised(&x, &[8, 4, 3, 3]);
    let reason = run(&cl.native(), op, &inputs, (DType::I8, &x)).unwrap_err();
    assert!(reason.contains("of several pictures"), "{reason}");
}

#[test]
fn native_activations() {
    let Some(cl) = cl() else { return };
    steps::activations(&cl, &steps::FUNCTIONS, Extent::Sample);
}

#[test]
fn native_average() {
    let Some(cl) = cl() else { return };
    steps::averages(&cl, Extent::Sample);
}

#[test]
fn native_softmax() {
    let Some(cl) = cl() else { return };
    steps::softmaxes(&cl, Extent::Sample);
}

#[test]
fn native_resizing() {
    let Some(cl) = cl() else { return };
    steps::resizes(&cl, Extent::Sample);
}
