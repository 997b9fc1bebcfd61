//! What the shared operator suite does not try, on a machine with `libkilim_acl.so`.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

mod common;

use common::Given::{Constant, Fed};
use common::{Given, bytes, conv, floats, noise, run, scalar};
use kilim_core::ops::{
    Activation, Affine, AspectPolicy, AveragePool, Binary, BinaryKind, Concat, Conv, ConvTranspose,
    CoordinateMode, DequantizeLinear, Gemm, Lrn, MatMul, MaxPool, NearestMode, Padding,
    QLinearBinary, QLinearConv, QLinearMatMul, QuantizeLinear, Resize, ResizeMode, Softmax,
    SoftmaxKind, Transpose, Unary, UnaryKind, Window,
};
use kilim_core::{DType, ErrorCode, Operator, Tensor};
use kilim_native_arm::AclBackend;

/// The backend; `None`, which skips the test, where its library is not there and was not asked for.
fn neon() -> Option<AclBackend> {
    match AclBackend::neon() {
        Ok(backend) => Some(backend),
        Err(e) if std::env::var_os("KILIM_ACL").is_none() => {
            assert_eq!(e.code(), ErrorCode::NoBackend);
            println!("skipped: {e}");
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

#[test]
fn a_computed_factor_is_read_in_every_run() {
    let inputs = [Fed(noise(&[5, 33], 1)), Fed(noise(&[33, 20], 2))];
    // Both factors change sign, the product does not: feed one constant factor as well.
    let d = difference(MatMul::default(), &inputs, (DType::F32, &[5, 20]));
    assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
    let inputs = [Constant(noise(&[5, 33], 1)), Fed(noise(&[33, 20], 2))];
    let d = difference(MatMul::default(), &inputs, (DType::F32, &[5, 20]));
    assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
}

#[test]
fn grouped_convolution_is_refused_in_acl_words() {
    let Some(neon) = neon() else { return };
    let inputs = [
        Fed(noise(&[1, 4, 5, 5], 1)),
        Constant(noise(&[6, 2, 3, 3], 2)),
    ];
    let reason = run(&neon, conv(2, false), &inputs, (DType::F32, &[1, 6, 5, 5])).unwrap_err();
    assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
}

#[test]
fn transposed_convolution() {
    for channels_last in [false, true] {
        let (x, y): ([usize; 4], [usize; 4]) = match channels_last {
            false => ([1, 5, 6, 7], [1, 3, 11, 13]),
            true => ([1, 6, 7, 5], [1, 11, 13, 3]),
        };
        let op = ConvTranspose {
            strides: vec![2, 2],
            dilations: vec![1, 1],
            padding: Padding::Explicit(vec![1, 1, 1, 1]),
            output_padding: Vec::new(),
            output_shape: None,
            groups: 1,
            channels_last,
            activation: Default::default(),
        };
        let inputs = [
            Fed(noise(&x, 1)),
            Constant(noise(&[5, 3, 3, 3], 2)),
            Constant(noise(&[3], 3)),
        ];
        let d = difference(op, &inputs, (DType::F32, &y));
        assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
    }
}

#[test]
fn local_response_normalization() {
    let op = Lrn {
        alpha: 0.02,
        beta: 0.75,
        bias: 1.5,
        size: 5,
        channels_last: false,
    };
    let d = difference(
        op,
        &[Fed(noise(&[2, 9, 4, 5], 1))],
        (DType::F32, &[2, 9, 4, 5]),
    );
    assert!(d.is_none_or(|d| d < 2e-6), "{d:?}");
}

#[test]
fn pictures_are_resized() {
    let modes = [
        (ResizeMode::Linear, CoordinateMode::HalfPixel),
        (ResizeMode::Linear, CoordinateMode::Asymmetric),
        (ResizeMode::Linear, CoordinateMode::AlignCorners),
        (
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        ),
    ];
    for (mode, coordinates) in modes {
        for (x, y) in [
            ([1, 3, 5, 4], [1, 3, 10, 12]),
            ([2, 5, 4, 3], [2, 10, 12, 3]),
            ([1, 8, 10, 3], [1, 5, 4, 3]),
        ] {
            let op = Resize {
                mode,
                coordinates,
                antialias: false,
                exclude_outside: false,
                extrapolation: 0.0,
                axes: None,
                policy: AspectPolicy::Stretch,
            };
            let none = Tensor::from_slice::<f32>(&[0], &[]).unwrap();
            let sizes: Vec<i64> = y.iter().map(|&d| d as i64).collect();
            let inputs = [
                Fed(noise(&x, 1)),
                Constant(none.clone()),
                Constant(none),
                Constant(Tensor::from_slice(&[4], &sizes).unwrap()),
            ];
            let d = difference(op, &inputs, (DType::F32, &y));
            assert!(
                d.is_none_or(|d| d < 2e-6),
                "{mode:?} {coordinates:?} {x:?}: {d:?}"
            );
        }
    }
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
fn bytes_are_moved_and_compared() {
    for channels_last in [true, false] {
        let (x, y) = match channels_last {
            true => ([2, 7, 9, 5], [2, 4, 5, 5]),
            false => ([2, 5, 7, 9], [2, 5, 4, 5]),
        };
        // All below zero, so that padding that counted would show.
        let below: Vec<i8> = (0..630).map(|i| -1 - (i * 37 % 120) as i8).collect();
        let op = MaxPool {
            window: Window {
                kernel: vec![3, 3],
                strides: vec![2, 2],
                dilations: vec![1, 1],
                padding: Padding::Explicit(vec![1, 1, 1, 1]),
                ceil_mode: false,
            },
            column_major: false,
            channels_last,
        };
        let x = Tensor::from_slice(&x, &below).unwrap();
        let d = difference(op, &[Fed(x)], (DType::I8, &y));
        assert!(d.is_none_or(|d| d == 0.0), "{channels_last}: {d:?}");
    }
    let parts = [Fed(bytes(&[2, 3, 4], 37)), Fed(bytes(&[2, 5, 4], 91))];
    let d = difference(Concat { axis: 1 }, &parts, (DType::I8, &[2, 8, 4]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
    let op = Transpose {
        perm: vec![0, 2, 3, 1],
    };
    let x = bytes(&[2, 3, 4, 5], 37);
    let d = difference(op, &[Fed(x)], (DType::I8, &[2, 4, 5, 3]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
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

/// Whether the release has MatMul: 20.08 does not.
fn has_matmul(neon: &AclBackend) -> bool {
    use kilim_core::backend::Backend;
    !neon.describe().device.contains("v20.08")
}

#[test]
fn stacks_and_transposed_factors_are_multiplied() {
    let Some(neon) = neon() else { return };
    let product = |transpose_b, alpha| MatMul {
        transpose_b,
        alpha,
        ..MatMul::default()
    };
    let cases = [
        (
            product(false, None),
            vec![2, 3, 5, 7],
            vec![2, 3, 7, 6],
            vec![2, 3, 5, 6],
        ),
        (
            product(true, Some(0.25)),
            vec![6, 5, 8],
            vec![6, 9, 8],
            vec![6, 5, 9],
        ),
        (product(true, None), vec![5, 7], vec![6, 7], vec![5, 6]),
    ];
    for (op, a, b, y) in cases {
        let inputs = [Fed(noise(&a, 1)), Fed(noise(&b, 2))];
        match has_matmul(&neon) {
            true => {
                let d = common::difference(&neon, op, &inputs, (DType::F32, &y));
                assert!(d < 1e-5, "{a:?} {b:?}: {d}");
            }
            false => {
                let reason = run(&neon, op, &inputs, (DType::F32, &y)).unwrap_err();
                assert!(
                    reason.contains("this release of ACL has no MatMul"),
                    "{reason}"
                );
            }
        }
    }
    let transposed = Gemm {
        alpha: 1.0,
        beta: 1.0,
        transpose_a: true,
        transpose_b: false,
        activation: Activation::None,
    };
    let inputs = [Fed(noise(&[7, 5], 1)), Fed(noise(&[7, 6], 2))];
    if has_matmul(&neon) {
        let d = common::difference(&neon, transposed, &inputs, (DType::F32, &[5, 6]));
        assert!(d < 1e-5, "{d}");
        // One stack for all of another is refused by ACL itself.
        let inputs = [Fed(noise(&[1, 5, 7], 1)), Fed(noise(&[3, 7, 6], 2))];
        let reason = run(
            &neon,
            product(false, None),
            &inputs,
            (DType::F32, &[3, 5, 6]),
        );
        let reason = reason.unwrap_err();
        assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
    }
}

#[test]
fn softmax_goes_along_any_axis() {
    for (kind, axis) in [
        (SoftmaxKind::Softmax, 0),
        (SoftmaxKind::Softmax, 1),
        (SoftmaxKind::Softmax, 2),
        (SoftmaxKind::LogSoftmax, -1),
    ] {
        let op = Softmax {
            kind,
            axis,
            beta: 1.0,
        };
        let Some(neon) = neon() else { return };
        let x = || Fed(floats(&[3, 7, 5], |i| (i * 37 % 101) as f32 / 10.0 - 5.0));
        let output = (DType::F32, &[3, 7, 5][..]);
        // Old releases have the innermost alone.
        if let Err(reason) = run(&neon, op.clone(), &[x()], output) {
            assert!(!has_matmul(&neon) && [0, 1].contains(&axis), "{reason}");
            assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
            continue;
        }
        let d = common::difference(&neon, op, &[x()], output);
        assert!(d < 5e-6, "{kind:?} {axis}: {d}");
    }
}

#[test]
fn gelu_is_there_or_refused() {
    let Some(neon) = neon() else { return };
    let op = Unary(UnaryKind::Gelu { tanh: false });
    let x = floats(&[3, 37], |i| i as f32 / 10.0 - 5.5);
    let run = run(&neon, op.clone(), &[Fed(x)], (DType::F32, &[3, 37]));
    if let Err(reason) = run {
        assert!(!has_matmul(&neon), "{reason}");
        assert!(
            reason.contains("this release of ACL has no GELU"),
            "{reason}"
        );
        return;
    }
    let x = floats(&[3, 37], |i| i as f32 / 10.0 - 5.5);
    let d = common::difference(&neon, op, &[Fed(x)], (DType::F32, &[3, 37]));
    assert!(d < 2e-6, "{d}");
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

#[test]
fn bytes_are_resized_to_the_nearest() {
    let op = Resize {
        mode: ResizeMode::Nearest(NearestMode::Floor),
        coordinates: CoordinateMode::Asymmetric,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy: AspectPolicy::Stretch,
    };
    let none = Tensor::from_slice::<f32>(&[0], &[]).unwrap();
    let sizes = Tensor::from_slice(&[4], &[1i64, 10, 12, 3]).unwrap();
    let inputs = [
        Fed(bytes(&[1, 5, 4, 3], 37)),
        Constant(none.clone()),
        Constant(none),
        Constant(sizes),
    ];
    let d = difference(op, &inputs, (DType::I8, &[1, 10, 12, 3]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
}

/// Numbers at the edges of what there is.
fn extremes(shape: &[usize]) -> Tensor {
    let edges = [
        f32::INFINITY,
        1.0,
        f32::NEG_INFINITY,
        -1.0,
        0.0,
        1e30,
        -1e30,
        88.0,
        -88.0,
        1e-30,
        -0.0,
        3e9,
        f32::NAN,
    ];
    floats(shape, |i| edges[i % edges.len()])
}

/// Every third number is none.
fn holes(shape: &[usize]) -> Tensor {
    let noise = noise(shape, 5).as_slice::<f32>().unwrap().to_vec();
    floats(shape, |i| if i % 3 == 1 { f32::NAN } else { noise[i] })
}

/// Runs a node on ACL and on `cpu`, which must agree on what is no finite number and be near each
/// other elsewhere; or ACL is not asked.
fn agrees(
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
) -> Result<(), String> {
    let Some(neon) = neon() else { return Ok(()) };
    let got = match run(&neon, op.clone(), inputs, (DType::F32, y)) {
        Ok(got) => got,
        Err(reason) => {
            println!("{what}: refused: {reason}");
            return Ok(());
        }
    };
    let want = run(&kilim_simd_cpu::backend(), op, inputs, (DType::F32, y)).unwrap();
    let near = |(g, w): (f32, f32)| {
        g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= 1e-5 + 1e-4 * w.abs()
    };
    for (got, want) in got.iter().zip(&want) {
        let (got, want) = (
            got.as_slice::<f32>().unwrap(),
            want.as_slice::<f32>().unwrap(),
        );
        let mut pairs = got.iter().copied().zip(want.iter().copied());
        if let Some(at) = pairs.position(|pair| !near(pair)) {
            return Err(format!(
                "{what}: {} instead of {} at {at}",
                got[at], want[at]
            ));
        }
    }
    println!("{what}: agrees");
    Ok(())
}

#[test]
fn nan_comes_out_where_it_does_elsewhere() {
    let clip = Activation::Clip {
        min: -0.5,
        max: 0.5,
    };
    let mut results = Vec::new();
    for activation in [
        Activation::Relu,
        clip,
        Activation::HardSigmoid {
            alpha: 0.2,
            beta: 0.5,
        },
    ] {
        for (channels_last, x, y) in [
            (true, [1, 3, 3, 5], [1, 3, 3, 7]),
            (false, [1, 5, 3, 3], [1, 7, 3, 3]),
        ] {
            let what = |name: &str| format!("{name} {activation:?} channels_last={channels_last}");
            let pointwise = Conv {
                padding: Padding::Explicit(vec![0; 4]),
                activation,
                ..conv(1, channels_last)
            };
            let inputs = [Fed(holes(&x)), Constant(noise(&[7, 5, 1, 1], 2))];
            results.push(agrees(&what("Conv 1x1"), pointwise, &inputs, &y));
            // One number that is none, so that few results are.
            let mut one = noise(&x, 1);
            one.make_mut::<f32>().unwrap()[0] = f32::NAN;
            let spatial = Conv {
                activation,
                ..conv(1, channels_last)
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[7, 5, 3, 3], 2))];
            results.push(agrees(&what("Conv 3x3"), spatial, &inputs, &y));
            let depthwise = Conv {
                activation,
                ..conv(5, channels_last)
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[5, 1, 3, 3], 2))];
            results.push(agrees(&what("depthwise"), depthwise, &inputs, &x));
            let transposed = ConvTranspose {
                strides: vec![1, 1],
                dilations: vec![1, 1],
                padding: Padding::Explicit(vec![1; 4]),
                output_padding: Vec::new(),
                output_shape: None,
                groups: 1,
                channels_last,
                activation,
            };
            let inputs = [Fed(one.clone()), Constant(noise(&[5, 7, 3, 3], 2))];
            results.push(agrees(&what("ConvTranspose"), transposed, &inputs, &y));
            let window = Window {
                kernel: vec![2, 2],
                strides: vec![1, 1],
                dilations: vec![1, 1],
                padding: Padding::Explicit(vec![0; 4]),
                ceil_mode: false,
            };
            let pooled = if channels_last {
                [1, 2, 2, 5]
            } else {
                [1, 5, 2, 2]
            };
            let average = AveragePool {
                window,
                count_include_pad: false,
                channels_last,
                activation,
            };
            results.push(agrees(&what("AveragePool"), average, &[Fed(one)], &pooled));
        }
        for n in [5, 7, 8] {
            let what = |name: &str| format!("{name} {activation:?} n={n}");
            let product = MatMul {
                activation,
                ..MatMul::default()
            };
            let inputs = [Fed(holes(&[3, 6])), Constant(noise(&[6, n], 2))];
            results.push(agrees(
                &what("FullyConnected"),
                product.clone(),
                &inputs,
                &[3, n],
            ));
            let inputs = [Fed(holes(&[3, 6])), Fed(noise(&[6, n], 2))];
            results.push(agrees(&what("GEMM"), product, &inputs, &[3, n]));
            let sum = Binary {
                activation,
                ..Binary::new(BinaryKind::Add)
            };
            let inputs = [Fed(holes(&[3, n])), Fed(noise(&[3, n], 2))];
            results.push(agrees(&what("Add"), sum, &inputs, &[3, n]));
        }
    }
    for n in [5, 8] {
        use BinaryKind::*;
        for kind in [Add, Sub, Mul, Div, Max, Min, PRelu] {
            let what = format!("{kind:?} n={n}");
            let inputs = [Fed(holes(&[3, n])), Fed(noise(&[3, n], 2))];
            results.push(agrees(&what, Binary::new(kind), &inputs, &[3, n]));
            let inputs = [Fed(noise(&[3, n], 2)), Fed(holes(&[3, n]))];
            results.push(agrees(
                &format!("{what} second"),
                Binary::new(kind),
                &inputs,
                &[3, n],
            ));
        }
        for kind in [SoftmaxKind::Softmax, SoftmaxKind::LogSoftmax] {
            for axis in [0, 1] {
                let op = Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                };
                let what = format!("{kind:?} of masked axis={axis} n={n}");
                let masked = floats(&[3, n], |i| match i % 4 {
                    1 => f32::NEG_INFINITY,
                    k => k as f32,
                });
                results.push(agrees(&what, op, &[Fed(masked)], &[3, n]));
                let what = format!("{kind:?} axis={axis} n={n}");
                let op = Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                };
                let mut one = noise(&[3, n], 1);
                one.make_mut::<f32>().unwrap()[n - 1] = f32::NAN;
                results.push(agrees(&what, op, &[Fed(one)], &[3, n]));
            }
        }
        for kind in functions() {
            let what = format!("{kind:?} n={n}");
            results.push(agrees(&what, Unary(kind), &[Fed(holes(&[3, n]))], &[3, n]));
        }
    }
    check(results);
}

/// Functions of one tensor, among them those that ACL computes otherwise and that are refused.
fn functions() -> Vec<UnaryKind> {
    vec![
        UnaryKind::Relu,
        UnaryKind::Clip {
            min: -0.5,
            max: 0.5,
        },
        UnaryKind::Elu { alpha: 1.0 },
        UnaryKind::HardSwish,
        UnaryKind::LeakyRelu { alpha: 0.1 },
        UnaryKind::Sigmoid,
        UnaryKind::Tanh,
        UnaryKind::Softplus,
        UnaryKind::Sqrt,
        UnaryKind::Gelu { tanh: false },
        UnaryKind::Swish { alpha: 1.0 },
        UnaryKind::Swish { alpha: 2.0 },
        UnaryKind::Exp,
        UnaryKind::Log,
        UnaryKind::Abs,
        UnaryKind::Round,
        UnaryKind::Floor,
    ]
}

fn check(results: Vec<Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "ACL differs:\n{}", wrong.join("\n"));
}

#[test]
fn functions_agree_at_the_edges_of_what_there_is() {
    let mut results = Vec::new();
    for n in [5, 8] {
        for kind in functions() {
            let what = format!("{kind:?} of extremes n={n}");
            results.push(agrees(
                &what,
                Unary(kind),
                &[Fed(extremes(&[4, n]))],
                &[4, n],
            ));
        }
    }
    check(results);
}
