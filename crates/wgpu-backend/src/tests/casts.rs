//! Casts between element types, half precision among them.

use kilim_core::ops::Cast;
use kilim_core::{DType, Tensor};

use super::harness::*;

#[test]
fn casts() {
    if gpu().is_none() {
        return;
    }
    let longs = [
        0i64,
        -1,
        16_777_217,
        -16_777_219,
        i64::from(u32::MAX),
        1 << 40,
        (1 << 40) + (1 << 16) + 1,
        i64::MAX,
        i64::MIN,
        123_456_789_012,
    ];
    let n = longs.len();
    let given = Given::Fed(Tensor::from_slice(&[n], &longs).unwrap());
    let y = run(Cast::new(DType::F32), &[given], &[(DType::F32, vec![n])]);
    let want: Vec<f32> = longs.iter().map(|&v| v as f32).collect();
    assert_eq!(y[0].as_slice::<f32>().unwrap(), want);
    let floats = [0.0f32, -0.9, 1.9, -7.5, 3e9, -1e12, 1e18, 0.49];
    let given = Given::Fed(f32s(&[8], &floats));
    let y = run(
        Cast::new(DType::I64),
        std::slice::from_ref(&given),
        &[(DType::I64, vec![8])],
    );
    let want: Vec<i64> = floats.iter().map(|&v| v as i64).collect();
    assert_eq!(y[0].as_slice::<i64>().unwrap(), want);
    let y = run(Cast::new(DType::Bool), &[given], &[(DType::Bool, vec![8])]);
    close(&y[0], &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.0);
    let ints = [i32::MIN, -5, 0, 16_777_217, i32::MAX];
    let given = Given::Fed(Tensor::from_slice(&[5], &ints).unwrap());
    let y = run(
        Cast::new(DType::F32),
        std::slice::from_ref(&given),
        &[(DType::F32, vec![5])],
    );
    let want: Vec<f32> = ints.iter().map(|&v| v as f32).collect();
    assert_eq!(y[0].as_slice::<f32>().unwrap(), want);
    let y = run(Cast::new(DType::I64), &[given], &[(DType::I64, vec![5])]);
    let want: Vec<i64> = ints.iter().map(|&v| v.into()).collect();
    assert_eq!(y[0].as_slice::<i64>().unwrap(), want);
}

#[test]
fn half_precision() {
    if gpu().is_none() {
        return;
    }
    let values = [
        0.0f32,
        -0.0,
        1.0,
        -2.5,
        65504.0,
        65519.9,
        65520.0,
        1e9,
        f32::NEG_INFINITY,
        6.1e-5,
        5.96e-8,
        2.9e-8,
        1e-7,
        -3.3e-6,
        0.333_333_34,
        1.000_488_3,
        1.001_464_8,
    ];
    for count in [values.len(), values.len() - 1, 1] {
        let x = f32s(&[count], &values[..count]);
        let half = run(
            Cast::new(DType::F16),
            &[Given::Fed(x)],
            &[(DType::F16, vec![count])],
        );
        let got = half[0].as_slice::<half::f16>().unwrap();
        for (g, v) in got.iter().zip(values) {
            assert_eq!(g.to_bits(), half::f16::from_f32(v).to_bits(), "{v}");
        }
        let back = run(
            Cast::new(DType::F32),
            &[Given::Fed(half[0].clone())],
            &[(DType::F32, vec![count])],
        );
        close(&back[0], &half[0].to_f64s().unwrap(), 0.0);
    }
    let ints = Tensor::from_slice(&[5], &[0i64, -3, 2049, 70_000, 1 << 40]).unwrap();
    agree(Cast::new(DType::F16), &[Given::Fed(ints)], 1, 0.0);
    let halves: Vec<half::f16> = [0.5f32, -2.9, 1000.0].map(half::f16::from_f32).to_vec();
    let halves = Tensor::from_slice(&[3], &halves).unwrap();
    agree(Cast::new(DType::I32), &[Given::Fed(halves)], 1, 0.0);
}
