//! Against the same sums in 64 bits, or the reference kernels, on every instruction set.

use super::{Places, conv, linear, matmul, resize};
use crate::isa::Isa;
use crate::testing::Made;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;
use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::ops::{
    Activation, Conv, MatMulInteger, MatMulIntegerToFloat, Padding, QLinearConv, QuantizeLinear,
    QuantizedResize,
};
use kilim_core::{DType, Interrupt, Result, Tensor};
use kilim_host::run_candidate;
use kilim_host::testing::{noise, tensor};
use kilim_host::{Build, Kernel};
use kilim_reference_cpu::testing;

fn bytes(n: usize, seed: u32) -> Vec<u8> {
    noise(n, seed)
        .iter()
        .map(|v| ((v + 1.0) * 127.5) as u8)
        .collect()
}

fn run(
    op: &dyn kilim_core::Operator,
    inputs: &[Option<&Tensor>],
    output: TensorSpec,
    make: impl Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
) -> Tensor {
    let inputs: Vec<_> = inputs.iter().map(|i| i.map(TensorSpec::of)).collect();
    let node = NodeSpec {
        name: "test",
        op,
        inputs: &inputs,
        outputs: &[output],
    };
    run_candidate(&Made(make), &node, &Interrupt::NEVER)
        .expect("the kernel runs")
        .remove(0)
}

fn reference(
    op: &dyn kilim_core::Operator,
    inputs: &[Option<&Tensor>],
    dtype: DType,
    shape: &[usize],
) -> Tensor {
    let run = testing::run(op, inputs, &[(dtype, shape)]);
    run.expect("the reference kernel runs").remove(0)
}

#[test]
fn matrices() {
    // The zero points of the weights: one for each column, which leave numbers of nine bits, one that does, and none.
    for zeros in [1, 0, 2] {
        for (m, k, n, za) in [
            (1, 7, 5, 131i32),
            (6, 64, 33, 0),
            (3, 1000, 20, 255),
            (13, 9, 47, 128),
            (5, 1, 50, 255),
            (12, 2, 36, 1),
        ] {
            for signed in [false, true] {
                matrix([m, k, n], za, zeros, signed);
            }
        }
    }
}

/// A product with `zeros` zero points for columns: one for each if there are two, all the same if there is one.
fn matrix([m, k, n]: [usize; 3], za: i32, zeros: usize, signed: bool) {
    let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
    let zb = match zeros {
        0 => vec![0],
        1 => vec![101],
        _ => bytes(n, 3),
    };
    let number = |byte: u8| {
        if signed {
            i32::from(byte as i8)
        } else {
            byte.into()
        }
    };
    let want: Vec<i32> = (0..m * n)
        .map(|i| {
            let (row, column) = (i / n, i % n);
            let zero = number(zb[column % zb.len()]);
            let term = |x: usize| {
                (number(a[row * k + x]) - number(za as u8)) * (number(b[x * n + column]) - zero)
            };
            (0..k).map(term).sum()
        })
        .collect();
    let make = |shape: &[usize], v: &[u8]| match signed {
        true => tensor(shape, &v.iter().map(|&b| b as i8).collect::<Vec<_>>()),
        false => tensor(shape, v),
    };
    let (a, b) = (make(&[m, k], &a), make(&[k, n], &b));
    let za = make(&[], &[za as u8]);
    let zb = match zb.len() {
        1 => make(&[], &zb),
        _ => make(&[n], &zb),
    };
    let inputs = [Some(&a), Some(&b), Some(&za), Some(&zb)];
    for isa in Isa::available() {
        let output = TensorSpec::new(DType::I32, &[m, n]);
        let got = run(&MatMulInteger::default(), &inputs, output, |node, build| {
            matmul::kernel(
                matmul::Plan::of(Activation::None, None, node, &Places::INTEGER),
                node,
                build,
                isa,
            )
        });
        assert_eq!(
            got.as_slice::<i32>().expect("int32"),
            want,
            "{m} {k} {n}, {zeros} zero points, {isa:?}"
        );
    }

    // As real numbers: the bytes that the operations give one by one.
    let noise = |n: usize, seed| noise(n, seed).iter().map(|v| v * 0.1).collect::<Vec<_>>();
    let (a_scale, b_scale, bias) = (0.037f32, noise(zb.len(), 4), noise(n, 5));
    let given = [
        tensor(&[], &[a_scale]),
        tensor(zb.shape(), &b_scale),
        tensor(&[n], &bias),
    ];
    let [x, w, zx, zw] = inputs;
    for biased in [true, false] {
        let inputs = [
            x,
            w,
            Some(&given[0]),
            Some(&given[1]),
            zx,
            zw,
            Some(&given[2]),
        ];
        let inputs = &inputs[..if biased { 7 } else { 6 }];
        let number = |(i, &sum): (usize, &i32)| {
            let scaled = sum as f32 * (a_scale * b_scale[i % n % b_scale.len()]);
            if biased { scaled + bias[i % n] } else { scaled }.to_bits()
        };
        let want: Vec<u32> = want.iter().enumerate().map(number).collect();
        for isa in Isa::available() {
            let output = TensorSpec::new(DType::F32, &[m, n]);
            let got = run(&MatMulIntegerToFloat, inputs, output, |node, build| {
                matmul::kernel(
                    matmul::Plan::of(Activation::None, None, node, &Places::TO_FLOAT),
                    node,
                    build,
                    isa,
                )
            });
            let got: Vec<u32> = got
                .as_slice::<f32>()
                .expect("float32")
                .iter()
                .map(|v| v.to_bits())
                .collect();
            assert_eq!(
                got, want,
                "{m} {k} {n}, {zeros} zero points, {biased}, {isa:?}"
            );
        }
    }
}

#[test]
fn convolutions() {
    // Signed data, and weights that are unsigned with a zero point and take nine bits without it.
    for [signed_data, unsigned_weights] in [[false, false], [true, false], [false, true]] {
        convolve(signed_data, unsigned_weights);
    }
}

fn convolve(signed_data: bool, unsigned_weights: bool) {
    let number = |byte: u8, signed: bool| match signed {
        true => i64::from(byte as i8),
        false => byte.into(),
    };
    let make = |shape: &[usize], v: &[u8], signed: bool| match signed {
        true => tensor(shape, &v.iter().map(|&b| b as i8).collect::<Vec<_>>()),
        false => tensor(shape, v),
    };
    let zw = if unsigned_weights { 101u8 } else { 0 };
    for (channels_last, groups, c, m, padded, [k, stride, dilation]) in [
        (false, 1, 3, 10, 1, [3, 1, 1]),
        (true, 1, 8, 9, 0, [3, 1, 1]),
        (false, 12, 12, 12, 1, [3, 1, 1]),
        (true, 33, 33, 33, 2, [5, 2, 1]),
        (true, 16, 16, 16, 2, [3, 1, 2]),
        (true, 7, 7, 7, 0, [1, 1, 1]),
        (true, 2, 6, 4, 1, [3, 1, 1]),
        (false, 1, 1, 1, 1, [3, 1, 1]),
    ] {
        let (h, w) = (7, 9);
        let out = |size: usize| (size + 2 * padded - (k - 1) * dilation - 1) / stride + 1;
        let (oh, ow) = (out(h), out(w));
        let x = bytes(2 * h * w * c, 1);
        let weights = bytes(m * c / groups * k * k, 2);
        let bias: Vec<i32> = (0..m as i32).map(|i| i * 1000 - 3000).collect();
        let scales: Vec<f32> = (0..m).map(|i| 0.001 * (i + 1) as f32).collect();
        let at = |n: usize, y: usize, x: usize, ch: usize| {
            if channels_last {
                ((n * h + y) * w + x) * c + ch
            } else {
                ((n * c + ch) * h + y) * w + x
            }
        };
        let (zx, zy) = (120u8, 7u8);
        let mut want = vec![0.0; 2 * oh * ow * m];
        for i in 0..want.len() {
            let (rest, o) = (i / m, i % m);
            let (n, oy, ox) = (rest / ow / oh, rest / ow % oh, rest % ow);
            let mut sum = i64::from(bias[o]);
            for (ky, kx, ch) in (0..k * k * c / groups)
                .map(|t| (t / (k * c / groups), t / (c / groups) % k, t % (c / groups)))
            {
                let y = (oy * stride + ky * dilation).wrapping_sub(padded);
                let xx = (ox * stride + kx * dilation).wrapping_sub(padded);
                if y < h && xx < w {
                    let v = x[at(n, y, xx, o / (m / groups) * (c / groups) + ch)];
                    let weight = weights[((o * (c / groups) + ch) * k + ky) * k + kx];
                    sum += (number(v, signed_data) - number(zx, signed_data))
                        * (number(weight, !unsigned_weights) - i64::from(zw));
                }
            }
            let v = sum as f64 * 0.02 * f64::from(scales[o]) / 0.5;
            let to = if channels_last {
                i
            } else {
                ((n * m + o) * oh + oy) * ow + ox
            };
            want[to] = (v + f64::from(zy)).clamp(0.0, 255.0);
        }
        let shape = |n, h, w, c| {
            if channels_last {
                [n, h, w, c]
            } else {
                [n, c, h, w]
            }
        };
        let op = QLinearConv {
            conv: Conv {
                strides: vec![stride; 2],
                dilations: vec![dilation; 2],
                padding: Padding::Explicit(vec![padded; 4]),
                groups,
                channels_last,
                activation: Activation::None,
            },
        };
        let x = make(&shape(2, h, w, c), &x, signed_data);
        let weights = make(&[m, c / groups, k, k], &weights, !unsigned_weights);
        let inputs = [
            x,
            tensor(&[], &[0.02f32]),
            make(&[], &[zx], signed_data),
            weights,
            tensor(&[m], &scales),
            make(&[], &[zw], !unsigned_weights),
            tensor(&[], &[0.5f32]),
            tensor(&[], &[zy]),
            tensor(&[m], &bias),
        ];
        let inputs: Vec<_> = inputs.iter().map(Some).collect();
        for isa in Isa::available() {
            let output = TensorSpec::new(DType::U8, &shape(2, oh, ow, m));
            let got = run(&op, &inputs, output, |node, build| {
                conv::kernel(
                    conv::Plan::of(&op.conv, None, node, &Places::Q_LINEAR),
                    node,
                    build,
                    isa,
                )
            });
            let got = got.as_slice::<u8>().expect("uint8");
            // What lies in the middle between two numbers may become either: factors are `float32`.
            let both = got.iter().zip(&want);
            let off = both.filter(|&(&g, w)| (f64::from(g) - w).abs() > 0.5001);
            let off = off.count();
            assert_eq!(
                off, 0,
                "{channels_last} {groups} {signed_data} {zw} {isa:?}: {off} differ"
            );
        }
    }
}

#[test]
fn resized_images() {
    for (channels, to, half_pixel, align_corners) in [
        (21, [11, 13], true, false),
        (3, [2, 3], false, false),
        (1, [40, 9], true, false),
        (5, [9, 1], false, true),
    ] {
        let op = QuantizedResize {
            half_pixel,
            align_corners,
        };
        let sizes = tensor(&[2], &to.map(|n| n as i32));
        let x = bytes(2 * 5 * 7 * channels, 1);
        let signed: Vec<i8> = x.iter().map(|&b| b as i8).collect();
        let shape = [2, to[0], to[1], channels];
        for x in [
            tensor(&[2, 5, 7, channels], &x),
            tensor(&[2, 5, 7, channels], &signed),
        ] {
            let inputs = [Some(&x), Some(&sizes)];
            let want = reference(&op, &inputs, x.dtype(), &shape);
            for isa in Isa::available() {
                let output = TensorSpec::new(x.dtype(), &shape);
                let got = run(&op, &inputs, output, |node, build| {
                    resize::kernel(&op, node, build, isa)
                });
                assert_eq!(
                    got.read().unwrap(),
                    want.read().unwrap(),
                    "{to:?} {} {isa:?}",
                    x.dtype()
                );
            }
        }
    }
}

#[test]
fn quantised_numbers() {
    let mut x: Vec<f32> = (-2000..2000).map(|i| i as f32 * 0.125).collect();
    x.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30]);
    let n = x.len();
    let x = tensor(&[n], &x);
    let op = QuantizeLinear {
        axis: 0,
        block: 0,
        output: None,
    };
    for (scale, zero) in [
        (0.5f32, tensor(&[], &[3u8])),
        (0.7, tensor(&[], &[-5i8])),
        (0.25, tensor(&[], &[255u8])),
    ] {
        let scale = tensor(&[], &[scale]);
        let inputs = [Some(&x), Some(&scale), Some(&zero)];
        let want = reference(&op, &inputs, zero.dtype(), &[n]);
        for isa in Isa::available() {
            let output = TensorSpec::new(zero.dtype(), &[n]);
            let got = run(&op, &inputs, output, |node, _| {
                Ok(Box::new(linear::Quantize::new(node, isa)))
            });
            assert_eq!(got.read().unwrap(), want.read().unwrap(), "{isa:?}");
        }
    }
}
