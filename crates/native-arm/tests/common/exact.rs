//! Products of bytes whose 32-bit sums ACL makes: the bytes of `cpu`.

use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Activation, Conv, ConvInteger, MatMulInteger, MatMulIntegerToFloat, Padding, QLinearConv,
    QLinearMatMul, Requantize,
};
use kilim_core::{DType, Operator, Tensor};
use kilim_native_arm::AclBackend;

use super::Given::{Constant, Fed};
use super::{Given, conv, difference, of_type, scalar, zero};

#[track_caller]
pub fn same_bytes(
    acl: &AclBackend,
    op: impl Operator + Clone,
    inputs: &[Given],
    output: (DType, &[usize]),
) {
    let what = format!("{:?}", &op as &dyn Operator);
    let d = difference(acl, op, inputs, output);
    assert!(d == 0.0, "{what}: {d}");
}

/// Element types of data and weights, and their zero points and that of the result.
pub struct Types {
    pub data: DType,
    pub weights: DType,
    pub zeros: [i32; 3],
}

const fn types(data: DType, weights: DType, zeros: [i32; 3]) -> Types {
    Types {
        data,
        weights,
        zeros,
    }
}

pub const TYPES: [Types; 6] = [
    types(DType::I8, DType::I8, [-128, 3, 127]),
    types(DType::U8, DType::I8, [255, 0, 40]),
    types(DType::U8, DType::U8, [7, 131, 40]),
    types(DType::I8, DType::I8, [7, 0, -128]),
    types(DType::I8, DType::I8, [127, -128, 40]),
    types(DType::U8, DType::U8, [255, 255, 0]),
];

/// Rows, columns of the first and of the second factor.
pub const MATRICES: [[usize; 3]; 4] = [[5, 33, 20], [1, 129, 10], [64, 48, 96], [2, 8, 3]];

const CLAMP: Activation = Activation::Clip {
    min: -5.0,
    max: 20.0,
};

/// A bias of `m` channels.
fn bias(m: usize) -> Given {
    let bias: Vec<i32> = (0..m as i32).map(|i| i * 300 - 900).collect();
    Constant(Tensor::from_slice(&[m], &bias).unwrap())
}

/// Scales of `m` channels.
fn scales(m: usize) -> Given {
    let scales: Vec<f32> = (0..m).map(|i| 0.001 + 0.0007 * i as f32).collect();
    Constant(Tensor::from_slice(&[m], &scales).unwrap())
}

/// Products with constant weights.
pub fn products(acl: &AclBackend, types: &[Types], matrices: &[[usize; 3]]) {
    for t in types {
        let [x_zero, w_zero, y_zero] = t.zeros;
        for &[m, k, n] in matrices {
            let x = || Fed(of_type(t.data, &[m, k], 37));
            let w = || Constant(of_type(t.weights, &[k, n], 91));
            for activation in [Activation::None, Activation::Relu, CLAMP] {
                let inputs = [
                    x(),
                    scalar(0.05),
                    zero(t.data, x_zero),
                    w(),
                    scales(n),
                    zero(t.weights, w_zero),
                    scalar(0.4),
                    zero(t.data, y_zero),
                    bias(n),
                ];
                let op = QLinearMatMul { activation };
                same_bytes(acl, op, &inputs, (t.data, &[m, n]));
            }
            let fixed = Requantize {
                factors: vec![Factor::new(0.0013).unwrap()],
                zero_point: 3,
                range: [-100, 120],
                output: DType::I8,
            };
            for requantize in [None, Some(fixed)] {
                let output = match requantize {
                    None => DType::I32,
                    Some(_) => DType::I8,
                };
                let zeros = [zero(t.data, x_zero), zero(t.weights, w_zero)];
                let inputs: Vec<Given> = [x(), w()].into_iter().chain(zeros).collect();
                let op = MatMulInteger { requantize };
                same_bytes(acl, op, &inputs, (output, &[m, n]));
            }
            let inputs = [
                x(),
                w(),
                scalar(0.05),
                scales(n),
                zero(t.data, x_zero),
                zero(t.weights, w_zero),
                scales(n),
            ];
            same_bytes(acl, MatMulIntegerToFloat, &inputs, (DType::F32, &[m, n]));
        }
    }
}

/// Products of two factors of one type, both computed.
pub fn computed_products(acl: &AclBackend, types: &[Types], matrices: &[[usize; 3]]) {
    for t in types.iter().filter(|t| t.data == t.weights) {
        let [x_zero, w_zero, y_zero] = t.zeros;
        for &[m, k, n] in matrices {
            let inputs = [
                Fed(of_type(t.data, &[m, k], 37)),
                Fed(of_type(t.weights, &[k, n], 91)),
                zero(t.data, x_zero),
                zero(t.weights, w_zero),
            ];
            let op = MatMulInteger::default();
            same_bytes(acl, op, &inputs, (DType::I32, &[m, n]));
            let inputs = [
                Fed(of_type(t.data, &[m, k], 37)),
                scalar(0.05),
                zero(t.data, x_zero),
                Fed(of_type(t.weights, &[k, n], 91)),
                scalar(0.02),
                zero(t.weights, w_zero),
                scalar(0.4),
                zero(t.data, y_zero),
            ];
            let op = QLinearMatMul { activation: CLAMP };
            same_bytes(acl, op, &inputs, (t.data, &[m, n]));
        }
    }
}

/// A convolution of 8 channels to 6, over pictures of 7 by 9.
pub struct Windows {
    kernel: usize,
    pad: usize,
    stride: usize,
    dilation: usize,
    activation: Activation,
    /// Height and width of the result.
    y: [usize; 2],
}

const PLAIN: Windows = Windows {
    kernel: 3,
    pad: 1,
    stride: 1,
    dilation: 1,
    activation: Activation::None,
    y: [7, 9],
};

pub const WINDOWS: [Windows; 4] = [
    PLAIN,
    Windows {
        kernel: 1,
        pad: 0,
        ..PLAIN
    },
    Windows {
        stride: 2,
        y: [4, 5],
        ..PLAIN
    },
    Windows {
        dilation: 2,
        activation: CLAMP,
        y: [5, 7],
        ..PLAIN
    },
];

pub fn convolutions(acl: &AclBackend, types: &[Types], windows: &[Windows]) {
    const CHANNELS: [usize; 2] = [8, 6];
    let [c, m] = CHANNELS;
    for t in types {
        let [x_zero, w_zero, y_zero] = t.zeros;
        for g in windows {
            let plain = Conv {
                strides: vec![g.stride; 2],
                dilations: vec![g.dilation; 2],
                padding: Padding::Explicit(vec![g.pad; 4]),
                ..conv(1, true)
            };
            let y = [2, g.y[0], g.y[1], m];
            let x = || Fed(of_type(t.data, &[2, 7, 9, c], 37));
            let w = || Constant(of_type(t.weights, &[m, c, g.kernel, g.kernel], 91));
            let inputs = [
                x(),
                scalar(0.05),
                zero(t.data, x_zero),
                w(),
                scales(m),
                zero(t.weights, w_zero),
                scalar(0.4),
                zero(t.data, y_zero),
                bias(m),
            ];
            let conv = Conv {
                activation: g.activation,
                ..plain.clone()
            };
            same_bytes(acl, QLinearConv { conv }, &inputs, (t.data, &y));
            let zeros = [zero(t.data, x_zero), zero(t.weights, w_zero)];
            let inputs: Vec<Given> = [x(), w()]
                .into_iter()
                .chain(zeros)
                .chain([bias(m)])
                .collect();
            let factors = (0..m).map(|i| Factor::new(0.001 + 0.0004 * i as f64).unwrap());
            let op = ConvInteger {
                conv: plain,
                requantize: Some(Requantize {
                    factors: factors.collect(),
                    zero_point: -3,
                    range: [-128, 127],
                    output: DType::I8,
                }),
            };
            same_bytes(acl, op, &inputs, (DType::I8, &y));
        }
    }
}
