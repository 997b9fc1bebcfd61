//! Quantised tensors.

use kilim_core::ops::{
    Affine, BinaryKind, DequantizeLinear, QLinearBinary, QLinearConv, QLinearMatMul, QuantizeLinear,
};
use kilim_core::{DType, Tensor};

use crate::common::Given::{Constant, Fed};
use crate::common::{bytes, conv, noise, scalar};
use crate::difference;

#[test]
fn quantised_tensors_are_within_one_quantum() {
    let zero = || Constant(Tensor::scalar(-3i8).unwrap());
    let x = noise(&[2, 3, 17], 1);
    let d = difference(
        QuantizeLinear {
            axis: 1,
            block: 0,
            output: None,
        },
        &[Fed(x), scalar(0.01), zero()],
        (DType::I8, &[2, 3, 17]),
    );
    assert!(d.is_none_or(|d| d <= 1.0), "{d:?}");
    let bytes: Vec<i8> = (0..120).map(|i| (i * 37 % 256) as u8 as i8).collect();
    let q = Tensor::from_slice(&[2, 3, 20], &bytes).unwrap();
    let d = difference(
        DequantizeLinear { axis: 1, block: 0 },
        &[Fed(q), scalar(0.01), zero()],
        (DType::F32, &[2, 3, 20]),
    );
    assert!(d.is_none_or(|d| d < 1e-6), "{d:?}");
}

#[test]
fn quantised_products_are_within_one_quantum() {
    let zero = |z: i8| Constant(Tensor::scalar(z).unwrap());
    let inputs = [
        Fed(bytes(&[5, 33], 37)),
        scalar(0.05),
        zero(-5),
        Constant(bytes(&[33, 20], 91)),
        scalar(0.01),
        zero(3),
        scalar(0.4),
        zero(4),
    ];
    let d = difference(QLinearMatMul::default(), &inputs, (DType::I8, &[5, 20]));
    assert!(d.is_none_or(|d| d <= 1.0), "{d:?}");
}

#[test]
fn quantised_convolutions_are_within_one_quantum() {
    for (groups, weights) in [(1, [6, 8, 3, 3]), (8, [8, 1, 3, 3])] {
        let m = weights[0];
        let scales: Vec<f32> = (0..m).map(|i| 0.002 + 0.001 * i as f32).collect();
        let bias: Vec<i32> = (0..m as i32).map(|i| i * 300 - 900).collect();
        let inputs = [
            Fed(bytes(&[2, 7, 9, 8], 37)),
            scalar(0.05),
            Constant(Tensor::scalar(-5i8).unwrap()),
            Constant(bytes(&weights, 91)),
            Constant(Tensor::from_slice(&[m], &scales).unwrap()),
            Constant(Tensor::from_slice(&[m], &vec![0i8; m]).unwrap()),
            scalar(0.4),
            Constant(Tensor::scalar(4i8).unwrap()),
            Constant(Tensor::from_slice(&[m], &bias).unwrap()),
        ];
        let op = QLinearConv {
            conv: conv(groups, true),
        };
        let d = difference(op, &inputs, (DType::I8, &[2, 7, 9, m]));
        assert!(d.is_none_or(|d| d <= 1.0), "{d:?}");
    }
}

#[test]
fn quantised_sums_and_products_of_two_are_within_one_quantum() {
    for kind in [
        BinaryKind::Add,
        BinaryKind::Sub,
        BinaryKind::Max,
        BinaryKind::Min,
    ] {
        let affine = |scale, zero| Affine { scale, zero };
        let op = QLinearBinary {
            kind,
            operands: [affine(0.05, -5.0), affine(0.03, 7.0)],
            offset: 0.0,
            result: affine(0.1, 3.0),
            range: [-128.0, 127.0],
            output: DType::I8,
        };
        let inputs = [Fed(bytes(&[2, 3, 21], 37)), Fed(bytes(&[2, 3, 21], 91))];
        let d = difference(op, &inputs, (DType::I8, &[2, 3, 21]));
        assert!(d.is_none_or(|d| d <= 1.0), "{kind:?}: {d:?}");
    }
}
