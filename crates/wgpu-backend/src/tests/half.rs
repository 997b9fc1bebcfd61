//! Kernels that read half precision as it is, where the adapter has shader-f16; the refusal where it
//! has not.

use std::sync::Arc;

use kilim_core::ops::{Activation, Conv, MatMul, Padding};
use kilim_core::{Backend, DType};

use super::harness::*;

#[test]
fn products_of_half_precision() {
    on_both(check_products_of_half_precision);
}

fn check_products_of_half_precision() {
    for (m, k, n) in [
        (1, 64, 70),
        (3, 12, 8),
        (7, 16, 36),
        (33, 21, 41),
        (65, 40, 64),
    ] {
        let (a, b) = (halved(&random(&[m, k], 1)), halved(&random(&[k, n], 2)));
        let given = [Given::Fed(a), Given::Constant(b)];
        let outputs = [(DType::F16, vec![m, n])];
        if !gpu().unwrap().describe().f16() {
            let spec = stage(Arc::new(MatMul::default()), &given, &outputs);
            assert_eq!(
                supports(&spec),
                Err("the adapter has no shader-f16".to_string())
            );
            continue;
        }
        agree(MatMul::default(), &given, 1, 5e-3);
    }
}

#[test]
fn convolutions_of_half_precision() {
    on_both(check_convolutions_of_half_precision);
}

fn check_convolutions_of_half_precision() {
    if !gpu().unwrap().describe().f16() {
        return;
    }
    // Implicit products with and without whole quads, pointwise, depthwise, direct.
    for (channels, outputs, groups, kernel) in [
        (8, 12, 1, 3),
        (3, 5, 1, 3),
        (8, 8, 1, 1),
        (8, 8, 8, 3),
        (2, 2, 2, 3),
    ] {
        for channels_last in [false, true] {
            let shape = match channels_last {
                true => vec![1, 7, 6, channels],
                false => vec![1, channels, 7, 6],
            };
            let op = Conv {
                strides: vec![1; 2],
                dilations: vec![1; 2],
                padding: Padding::Explicit(vec![kernel / 2; 4]),
                groups,
                channels_last,
                activation: Activation::Relu,
            };
            let x = halved(&random(&shape, 3));
            let w = halved(&random(&[outputs, channels / groups, kernel, kernel], 4));
            let b = halved(&random(&[outputs], 5));
            let inputs = [Given::Fed(x), Given::Constant(w), Given::Constant(b)];
            agree(op, &inputs, 1, 5e-3);
        }
    }
}
