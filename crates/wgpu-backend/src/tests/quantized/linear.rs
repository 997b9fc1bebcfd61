//! QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.

use kilim_core::DType;
use kilim_core::ops::{AffineQuantize, DequantizeLinear, DynamicQuantizeLinear, QuantizeLinear};

use super::super::harness::*;
use super::*;

/// Numbers at and beside the middle of two steps, far ones, and what is no number.
fn awkward(scale: f32) -> Vec<f32> {
    let mut x = vec![0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    x.extend([1e-45, -1e-40, 1e-30, 1e30, -1e38]);
    for step in -300..300 {
        let middle = (step as f32 + 0.5) * scale;
        for turn in -2..=2 {
            x.push(f32::from_bits(middle.to_bits().wrapping_add_signed(turn)));
        }
    }
    x
}

#[test]
fn numbers_between_two_steps() {
    if gpu().is_none() {
        return;
    }
    for scale in [0.1f32, 1.0 / 3.0, 0.007_812_5, 3e-39, 1.7e38, 0.499_999_97] {
        let x = awkward(scale);
        let x = f32s(&[x.len()], &x);
        let scale = f32s(&[], &[scale]);
        for dtype in [DType::U8, DType::I8, DType::I16, DType::U16, DType::I4] {
            let zero = bytes(dtype, &[], 3);
            let zero = if dtype == DType::I4 {
                Given::Absent
            } else {
                Given::Fed(zero)
            };
            let op = QuantizeLinear {
                axis: 0,
                block: 0,
                output: Some(dtype),
            };
            let [x, scale] = [x.clone(), scale.clone()].map(Given::Fed);
            agree(op, &[x, scale, zero], 1, 0.0);
        }
        let op = AffineQuantize {
            scale: scale.to_f64s().unwrap()[0] as f32,
            zero_point: -7,
            output: DType::I8,
        };
        agree(op, &[Given::Fed(x)], 1, 0.0);
    }
}

#[test]
fn every_scale_where_it_belongs() {
    if gpu().is_none() {
        return;
    }
    let shape = [3, 5, 7];
    let x = f32s(
        &shape,
        &random(&shape, 5)
            .to_f64s()
            .unwrap()
            .iter()
            .map(|&v| v as f32 * 20.0)
            .collect::<Vec<_>>(),
    );
    for (axis, block, of) in [
        (0, 0, vec![]),
        (0, 0, vec![3]),
        (1, 0, vec![5]),
        (-1, 0, vec![7]),
        (1, 2, vec![3, 3, 7]),
        (2, 3, vec![3, 5, 3]),
    ] {
        let count = of.iter().product();
        let scale = scales(count, 0.1, 8).reshaped(&of).unwrap();
        for dtype in [DType::U8, DType::I8, DType::U16, DType::I16] {
            for zero in [Given::Fed(bytes(dtype, &of, 9)), Given::Absent] {
                let quantize = QuantizeLinear {
                    axis,
                    block,
                    output: Some(dtype),
                };
                let [x, q] = [x.clone(), bytes(dtype, &shape, 4)].map(Given::Fed);
                let scale = Given::Fed(scale.clone());
                agree(quantize, &[x, scale.clone(), zero.clone()], 1, 0.0);
                let dequantize = DequantizeLinear { axis, block };
                agree(dequantize, &[q, scale, zero], 1, 0.0);
            }
        }
        let given = [bytes(DType::F8E4M3FN, &shape, 4), scale].map(Given::Fed);
        agree(DequantizeLinear { axis, block }, &given, 1, 0.0);
    }
}

#[test]
fn scales_from_the_data() {
    if gpu().is_none() {
        return;
    }
    for (count, size) in [(1, 1.0), (77, 3.7), (5000, 1e-3), (3, 0.0), (90, 1e-37)] {
        let data = random(&[count], 7).to_f64s().unwrap();
        for sign in [1.0, -1.0] {
            // From both sides of zero, and from one.
            for offset in [0.1, 1.0, -1.5] {
                let mut x: Vec<f32> = data
                    .iter()
                    .map(|&v| sign * size * (v as f32 + offset))
                    .collect();
                if count > 80 {
                    x[9] = f32::NAN;
                }
                agree(
                    DynamicQuantizeLinear,
                    &[Given::Fed(f32s(&[count], &x))],
                    3,
                    0.0,
                );
            }
        }
    }
}
