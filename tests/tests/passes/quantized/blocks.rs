//! Several operators, and what stays as it is.

use kilim::core::ops::{Binary, BinaryKind, MatMul, Unary, UnaryKind};
use kilim::{DType, Fact};

use super::*;

/// A residual block as onnxruntime's static quantisation writes it: nothing real is left inside.
#[test]
fn a_residual_block_is_integers_from_end_to_end() {
    let mut b = Builder::new(7, true);
    let x = b.g.add_input("x", Fact::fixed(DType::F32, &[1, 8, 10, 10]));
    let (q, scale) = b.quantise(x, DType::U8, 0.06);
    let real = b.real(q, scale);
    let mut y = real;
    let mut s = scale;
    for _ in 0..2 {
        let (weights, scales) = b.weights(&[8, 8, 3, 3], 0, 0.004);
        let bias = b.bias(8, s, &scales);
        y = b.op(conv(1, 1, 1), &[y, weights, bias]);
        y = b.op(Unary(UnaryKind::Relu), &[y]);
        let (q, to) = b.quantise(y, DType::U8, 0.06);
        (y, s) = (b.real(q, to), to);
    }
    let sum = b.op(Binary::new(BinaryKind::Add), &[y, real]);
    let (q, to) = b.quantise(sum, DType::U8, 0.1);
    let y = b.real(q, to);
    let (_, count) = difference(&mut b, &[y]);
    assert_eq!(count, 0);
    let left = remaining(&b.g);
    let count = |name: &str| left.iter().filter(|n| *n == name).count();
    assert_eq!(
        [
            "QuantizeLinear",
            "QLinearConv",
            "QLinearBinary",
            "DequantizeLinear",
            "Transpose"
        ]
        .map(count),
        [1, 2, 1, 1, 2],
        "{left:?}"
    );
}

/// What another reader needs as real numbers, or what no integer product is, stays as it is.
#[test]
fn what_cannot_be_replaced_stays() {
    let mut b = Builder::new(8, false);
    let (x, _) = b.input(&[3, 9], 0.02);
    let (weights, _) = b.weights(&[9, 6], 1, 0.01);
    let y = b.op(MatMul::default(), &[x, weights]);
    let q = b.quantise(y, DType::I8, 0.1).0;
    b.g.outputs = vec![q, y];
    assert!(remaining(&b.g).contains(&"MatMul".to_string()));
    let mut b = Builder::new(9, false);
    let (x, _) = b.input(&[3, 9], 0.02);
    let (y, _) = b.input(&[9, 4], 0.02);
    let z = b.op(MatMul::default(), &[x, y]);
    let q = b.quantise(z, DType::I8, 0.1).0;
    let (_, count) = difference(&mut b, &[q]);
    assert_eq!(count, 0);
    assert!(remaining(&b.g).contains(&"MatMul".to_string()));
}
