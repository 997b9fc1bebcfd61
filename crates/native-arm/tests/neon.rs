//! What the shared operator suite does not try, on a machine with `libkilim_acl.so`.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

use std::sync::Arc;

use kilim_core::backend::{
    Backend, ConstantKey, ContextConfig, KernelSpec, NodeSpec, Place, StageSpec, TensorSlot,
    TensorSpec,
};
use kilim_core::ops::{
    AspectPolicy, Concat, Conv, ConvTranspose, CoordinateMode, DequantizeLinear, Lrn, MatMul,
    MaxPool, NearestMode, Padding, QLinearConv, QLinearMatMul, QuantizeLinear, Resize, ResizeMode,
    Transpose, Window,
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

fn floats(shape: &[usize], f: impl Fn(usize) -> f32) -> Tensor {
    let data: Vec<f32> = (0..shape.iter().product()).map(f).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// Numbers between -1 and 1 without a pattern.
fn noise(shape: &[usize], seed: usize) -> Tensor {
    floats(shape, |i| {
        let x = (i * 7919 + seed * 104_729 + 13) * 2_654_435_761 % 65_536;
        x as f32 / 32_768.0 - 1.0
    })
}

enum Given {
    Fed(Tensor),
    Constant(Tensor),
}
use Given::{Constant, Fed};

fn poll<T>(mut future: kilim_core::backend::LocalFuture<T>) -> T {
    let waker = std::task::Waker::noop();
    match future
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker))
    {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("reading host memory waits for nothing"),
    }
}

/// Runs one node on a backend, once with each of `feeds` in the place of the first fed input.
fn run(
    backend: &dyn Backend,
    op: impl Operator,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Result<Vec<Tensor>, String> {
    let mut tensors = Vec::new();
    let mut feeds = Vec::new();
    for (i, given) in inputs.iter().enumerate() {
        let (spec, place) = match given {
            Fed(t) => {
                feeds.push((i, t.clone()));
                (TensorSpec::new(t.dtype(), t.shape()), Place::Input)
            }
            Constant(t) => (TensorSpec::of(t), Place::Constant(ConstantKey(i as u64))),
        };
        tensors.push(TensorSlot {
            name: format!("input{i}"),
            spec,
            place,
        });
    }
    tensors.push(TensorSlot {
        name: "y".into(),
        spec: TensorSpec::new(output.0, output.1),
        place: Place::Output,
    });
    let y = tensors.len() - 1;
    let op: Arc<dyn Operator> = Arc::new(op);
    let node = KernelSpec {
        name: "node".into(),
        op: op.clone(),
        inputs: (0..inputs.len()).map(Some).collect(),
        outputs: vec![y],
    };
    let stage = StageSpec {
        tensors,
        nodes: vec![node],
        parts: std::iter::once(0..1).collect(),
        ..StageSpec::default()
    };
    let (specs, outputs) = stage.specs(&stage.nodes[0]);
    backend
        .supports(&NodeSpec {
            name: "node",
            op: &*op,
            inputs: &specs,
            outputs: &outputs,
        })
        .map_err(|r| r.reason)?;
    let error = |e: kilim_core::Error| e.to_string();
    let mut context = backend
        .create_context(&ContextConfig::default())
        .map_err(error)?;
    let mut stage = context.prepare(stage).map_err(error)?;
    let mut results = Vec::new();
    // The second time with other data: nothing of the first may be left.
    for sign in [1.0, -1.0] {
        stage.execute_begin().map_err(error)?;
        for (i, t) in &feeds {
            let fed = match t.dtype() {
                DType::F32 => {
                    let data = t.as_slice::<f32>().unwrap();
                    floats(t.shape(), |i| sign * data[i])
                }
                _ => t.clone(),
            };
            stage.write(*i, &fed).map_err(error)?;
        }
        stage.run(0).map_err(error)?;
        stage.execute_end().map_err(error)?;
        results.push(poll(stage.read(&[y])).map_err(error)?.remove(0));
    }
    Ok(results)
}

/// The largest difference between ACL and the `cpu` backend's kernels, which have references of
/// their own.
fn difference(
    op: impl Operator + Clone,
    inputs: &[Given],
    output: (DType, &[usize]),
) -> Option<f64> {
    let neon = neon()?;
    let cpu = kilim_simd_cpu::backend();
    let got = run(&neon, op.clone(), inputs, output).unwrap();
    let want = run(&cpu, op, inputs, output).unwrap();
    let mut largest = 0.0f64;
    for (got, want) in got.iter().zip(&want) {
        for (g, w) in got.to_f64s().unwrap().iter().zip(want.to_f64s().unwrap()) {
            let d = (g - w).abs();
            assert!(d.is_finite(), "{g} instead of {w}");
            largest = largest.max(d);
        }
    }
    assert!(want[0].to_f64s().unwrap().iter().any(|&v| v != 0.0));
    Some(largest)
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

fn conv(groups: usize, channels_last: bool) -> Conv {
    Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![1, 1, 1, 1]),
        groups,
        channels_last,
        activation: Default::default(),
    }
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

fn scalar(v: f32) -> Given {
    Constant(Tensor::scalar(v).unwrap())
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

fn bytes(shape: &[usize], step: usize) -> Tensor {
    let data: Vec<i8> = (0..shape.iter().product())
        .map(|i: usize| (i * step % 251) as u8 as i8)
        .collect();
    Tensor::from_slice(shape, &data).unwrap()
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
