//! Element types.

use super::*;

#[test]
fn half_precision_becomes_single_inside() {
    let mut b = Builder::new(11);
    let x = b.input("x", &[2, 3]);
    let half = b.op(Cast::new(DType::F16), &[x]);
    let c: Vec<u8> = [0x3c00u16, 0x4000, 0x4200]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let c = b.constant(Tensor::from_raw(DType::F16, &[3], &c).unwrap());
    let y = b.binary(BinaryKind::Mul, half, c);
    let y = b.unary(UnaryKind::Relu, y);
    b.g.outputs = vec![y];
    let g = optimised(&b.g);
    assert_eq!(names(&g), ["Cast", "Cast", "Mul", "Cast"]);
    let out = g.value(g.outputs[0]);
    assert_eq!(out.fact.dtype, Some(DType::F16));
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, 0.1, -1.0, 3.0, 5.0, 0.3]).unwrap();
    let plain = run(&b.g, false, &[("x", x.clone())]);
    let fast = run(&b.g, true, &[("x", x)]);
    assert_eq!(plain[0].1.dtype(), DType::F16);
    let (a, b) = (plain[0].1.to_f64s().unwrap(), fast[0].1.to_f64s().unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-3 * a.abs(), "{a} and {b}");
    }
}

/// The bits of a half are not those of the number in single precision.
#[test]
fn bits_stay_those_of_half_precision() {
    let mut b = Builder::new(12);
    let x = b.input("x", &[4]);
    let half = b.op(Cast::new(DType::F16), &[x]);
    let double = b.binary(BinaryKind::Add, half, half);
    let bits = b.op(BitCast { to: DType::I16 }, &[double]);
    let back = b.op(BitCast { to: DType::F16 }, &[bits]);
    let y = b.unary(UnaryKind::Neg, back);
    b.g.outputs = vec![bits, y];
    let x = Tensor::from_slice(&[4], &[1.0f32, -0.5, 0.1, f32::INFINITY]).unwrap();
    for optimise in [false, true] {
        let got = run(&b.g, optimise, &[("x", x.clone())]);
        let bits = [0x4000u16, 0xbc00, 0x3266, 0x7c00].map(|v| f64::from(v as i16));
        assert_eq!(got[0].1.to_f64s().unwrap(), bits);
        let negated = [-2.0, 1.0, -0.199951171875, f64::NEG_INFINITY];
        assert_eq!(got[1].1.to_f64s().unwrap(), negated);
    }
}
