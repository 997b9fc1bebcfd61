use kilim_core::ops::{Activation, Binary, BinaryKind, Clip, Unary, UnaryKind, Where};
use kilim_core::{DType, Interrupt, Tensor};

use super::harness::*;

fn erf(x: f64) -> f64 {
    // Series for small arguments, continued by the complement's asymptotics: exact enough here.
    let mut sum = x;
    let mut term = x;
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Integers are read from quotients, as steps of a quantisation are, so that one ULP decides.
#[test]
fn quotients_are_rounded_to_the_nearest() {
    if gpu().is_none() {
        return;
    }
    let edges = [
        (5.0, 255.0),
        (1.0, 3.0),
        (2.0, 49.0),
        (-3.0, 7.0),
        (0.0, 3.0),
        (-0.0, 3.0),
        (1.0, 0.0),
        (0.0, 0.0),
        (f32::INFINITY, 2.0),
        (3e38, 1e-3),
        (1.0, f32::INFINITY),
        (-2.5, 5.0 / 255.0),
    ];
    let [a, b] = [11, 12].map(|seed| values(&random(&[1000], seed)));
    let random = a.into_iter().zip(b).map(|(a, b)| (a as f32, b as f32));
    let (a, b): (Vec<f32>, Vec<f32>) = edges.into_iter().chain(random).unzip();
    let shape = [a.len()];
    let tensors = [f32s(&shape, &a), f32s(&shape, &b)];
    let got = values(&fed(Binary::new(BinaryKind::Div), &tensors, &shape));
    for ((a, b), got) in a.iter().zip(&b).zip(got) {
        let want = f64::from(a / b);
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{a} / {b}: {got}, not {want}");
    }
}

#[test]
fn unary_functions() {
    if gpu().is_none() {
        return;
    }
    let x: Vec<f32> = vec![
        -4.0, -2.5, -1.5, -1.0, -0.75, -0.5, -0.1, -0.001, 0.0, 0.001, 0.3, 0.5, 0.9, 1.0, 1.5,
        2.5, 3.5, 5.0, 9.0,
    ];
    use UnaryKind::*;
    type Case = (UnaryKind, fn(f64) -> f64);
    let cases: &[Case] = &[
        (Abs, f64::abs),
        (Neg, |x| -x),
        (Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }),
        (Exp, f64::exp),
        (Log, f64::ln),
        (Sqrt, f64::sqrt),
        (Floor, f64::floor),
        (Ceil, f64::ceil),
        (Round, f64::round_ties_even),
        (Sin, f64::sin),
        (Cos, f64::cos),
        (Tan, f64::tan),
        (Asin, f64::asin),
        (Acos, f64::acos),
        (Atan, f64::atan),
        (Sinh, f64::sinh),
        (Cosh, f64::cosh),
        (Tanh, f64::tanh),
        (Asinh, f64::asinh),
        (Acosh, f64::acosh),
        (Erf, |x| if x.abs() > 4.5 { x.signum() } else { erf(x) }),
        (Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        (Relu, |x| x.max(0.0)),
        (Softplus, |x| x.exp().ln_1p()),
        (Softsign, |x| x / (1.0 + x.abs())),
        (LeakyRelu { alpha: 0.25 }, |x| {
            if x < 0.0 { 0.25 * x } else { x }
        }),
        (Elu { alpha: 0.5 }, |x| {
            if x < 0.0 { 0.5 * x.exp_m1() } else { x }
        }),
        (
            Selu {
                alpha: 1.5,
                gamma: 2.0,
            },
            |x| 2.0 * if x < 0.0 { 1.5 * x.exp_m1() } else { x },
        ),
        (Celu { alpha: 2.0 }, |x| {
            x.max(0.0) + (2.0 * (x / 2.0).exp_m1()).min(0.0)
        }),
        (
            HardSigmoid {
                alpha: 0.25,
                beta: 0.5,
            },
            |x| (0.25 * x + 0.5).clamp(0.0, 1.0),
        ),
        (HardSwish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        (Mish, |x| x * x.exp().ln_1p().tanh()),
        (Gelu { tanh: false }, |x| {
            let e = if x.abs() > 5.0 {
                x.signum()
            } else {
                erf(x / 2f64.sqrt())
            };
            0.5 * x * (1.0 + e)
        }),
        (Gelu { tanh: true }, |x| {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + u.tanh())
        }),
        (ThresholdedRelu { alpha: 0.5 }, |x| {
            if x > 0.5 { x } else { 0.0 }
        }),
        (
            Shrink {
                bias: 0.25,
                lambda: 0.5,
            },
            |x| {
                if x > 0.5 {
                    x - 0.25
                } else if x < -0.5 {
                    x + 0.25
                } else {
                    0.0
                }
            },
        ),
        (Swish { alpha: 2.0 }, |x| x / (1.0 + (-2.0 * x).exp())),
        (
            Clip {
                min: -0.5,
                max: 2.0,
            },
            |x| x.clamp(-0.5, 2.0),
        ),
        (Identity, |x| x),
    ];
    for (kind, f) in cases {
        let want: Vec<f64> = x.iter().map(|&x| f(x.into())).collect();
        let n = x.len();
        let got = fed(Unary(*kind), &[f32s(&[n], &x)], &[n]);
        eprintln!("{kind:?}");
        close(&got, &want, 2e-6);
        // A length that is a multiple of four.
        let got = fed(Unary(*kind), &[f32s(&[2, 8], &x[..16])], &[2, 8]);
        close(&got, &want[..16], 2e-6);
    }
    let inside = [-0.9f32, -0.5, 0.0, 0.25, 0.75];
    let want: Vec<f64> = inside.iter().map(|&x| f64::from(x).atanh()).collect();
    close(
        &fed(Unary(Atanh), &[f32s(&[5], &inside)], &[5]),
        &want,
        2e-6,
    );
}

#[test]
fn integers_truth_and_special_values() {
    if gpu().is_none() {
        return;
    }
    let x = f32s(
        &[5],
        &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0, 0.0],
    );
    let out = |kind| {
        run(
            Unary(kind),
            &[Given::Fed(x.clone())],
            &[(DType::Bool, vec![5])],
        )
        .remove(0)
    };
    close(&out(UnaryKind::IsNaN), &[1.0, 0.0, 0.0, 0.0, 0.0], 0.0);
    let inf = UnaryKind::IsInf {
        negative: false,
        positive: true,
    };
    close(&out(inf), &[0.0, 1.0, 0.0, 0.0, 0.0], 0.0);
    let truth = Tensor::from_bools(&[3], &[true, false, true]).unwrap();
    let not = run(
        Unary(UnaryKind::Not),
        &[Given::Fed(truth)],
        &[(DType::Bool, vec![3])],
    );
    close(&not[0], &[0.0, 1.0, 0.0], 0.0);
    let i = Tensor::from_slice(&[4], &[-3i32, 0, 7, i32::MIN]).unwrap();
    let neg = run(
        Unary(UnaryKind::Neg),
        &[Given::Fed(i)],
        &[(DType::I32, vec![4])],
    );
    close(&neg[0], &[3.0, 0.0, -7.0, f64::from(i32::MIN)], 0.0);
}

#[test]
fn binary_broadcasts() {
    if gpu().is_none() {
        return;
    }
    let cases: &[(&[usize], &[usize], &[usize])] = &[
        (&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]),
        (&[2, 3, 4], &[4], &[2, 3, 4]),
        (&[2, 3, 4], &[3, 1], &[2, 3, 4]),
        (&[2, 3, 5], &[2, 1, 5], &[2, 3, 5]),
        (&[1, 4], &[3, 1], &[3, 4]),
        (&[], &[2, 2], &[2, 2]),
        (&[7], &[], &[7]),
        (
            &[2, 1, 2, 1, 2, 1, 2, 1],
            &[1, 3, 1, 2, 1, 3, 1, 4],
            &[2, 3, 2, 2, 2, 3, 2, 4],
        ),
        (&[0, 3], &[3], &[0, 3]),
    ];
    for (sa, sb, sy) in cases {
        let (a, b) = (random(sa, 1), random(sb, 2));
        let read = |t: &Tensor, at: &[usize]| {
            let s = t.shape();
            let skip = at.len() - s.len();
            let i = s.iter().enumerate().fold(0, |i, (d, &n)| {
                i * n + if n == 1 { 0 } else { at[skip + d] }
            });
            f64::from(t.as_slice::<f32>().unwrap()[i])
        };
        let count: usize = sy.iter().product();
        let want: Vec<f64> = (0..count)
            .map(|mut i| {
                let mut at = vec![0; sy.len()];
                for d in (0..sy.len()).rev() {
                    at[d] = i % sy[d];
                    i /= sy[d];
                }
                (read(&a, &at) - read(&b, &at)).max(0.0)
            })
            .collect();
        let op = Binary {
            kind: BinaryKind::Sub,
            activation: Activation::Relu,
        };
        close(&fed(op.clone(), &[a.clone(), b.clone()], sy), &want, 1e-6);
        let given = [Given::Fed(a), Given::Constant(b)];
        close(
            &run(op, &given, &[(DType::F32, sy.to_vec())])[0],
            &want,
            1e-6,
        );
    }
}

#[test]
fn binary_functions() {
    if gpu().is_none() {
        return;
    }
    let a = [7.0f32, -7.0, 2.0, -2.0, 0.0, 2.5, f32::NAN, -8.0];
    let b = [3.0f32, 3.0, -3.0, 3.0, 0.0, 0.5, 1.0, 1.0 / 3.0];
    use BinaryKind::*;
    type Case = (BinaryKind, fn(f64, f64) -> f64);
    let cases: &[Case] = &[
        (Mul, |a, b| a * b),
        (Div, |a, b| a / b),
        (Pow, f64::powf),
        (Max, |a, b| if a.is_nan() { a } else { a.max(b) }),
        (Min, |a, b| if a.is_nan() { a } else { a.min(b) }),
        (Fmod, |a, b| a % b),
        (PRelu, |a, b| if a < 0.0 { a * b } else { a }),
    ];
    let tensors = [f32s(&[8], &a), f32s(&[8], &b)];
    for (kind, f) in cases {
        eprintln!("{kind:?}");
        let want: Vec<f64> = a
            .iter()
            .zip(&b)
            .map(|(&a, &b)| f(a.into(), b.into()))
            .collect();
        close(&fed(Binary::new(*kind), &tensors, &[8]), &want, 1e-6);
    }
    let ints = |v: &[i32]| Given::Fed(Tensor::from_slice(&[v.len()], v).unwrap());
    let out = |kind, a: &[i32], b: &[i32], d| {
        run(
            Binary::new(kind),
            &[ints(a), ints(b)],
            &[(d, vec![a.len()])],
        )
        .remove(0)
    };
    let (x, y) = ([7, -7, 7, -7, 5], [3, 3, -3, -3, 5]);
    close(
        &out(Mod, &x, &y, DType::I32),
        &[1.0, 2.0, -2.0, -1.0, 0.0],
        0.0,
    );
    close(
        &out(Fmod, &x, &y, DType::I32),
        &[1.0, -1.0, 1.0, -1.0, 0.0],
        0.0,
    );
    close(
        &out(Div, &x, &y, DType::I32),
        &[2.0, -2.0, -2.0, 2.0, 1.0],
        0.0,
    );
    close(
        &out(Less, &x, &y, DType::Bool),
        &[0.0, 1.0, 0.0, 1.0, 0.0],
        0.0,
    );
    let longs = |v: &[i64]| Given::Fed(Tensor::from_slice(&[v.len()], v).unwrap());
    let (p, q) = ([5i64, -5_000_000_000, 3 << 40], [7i64, 4_000_000_000, -2]);
    let wide = |kind, d| run(Binary::new(kind), &[longs(&p), longs(&q)], &[(d, vec![3])]).remove(0);
    for (kind, f) in [
        (Add, i64::wrapping_add as fn(i64, i64) -> i64),
        (Sub, i64::wrapping_sub),
        (Mul, i64::wrapping_mul),
    ] {
        let want: Vec<i64> = p.iter().zip(&q).map(|(&a, &b)| f(a, b)).collect();
        assert_eq!(wide(kind, DType::I64).as_slice::<i64>().unwrap(), want);
    }
    close(&wide(LessOrEqual, DType::Bool), &[1.0, 1.0, 0.0], 0.0);
}

#[test]
fn one_tensor_may_be_both_operands() {
    let Some(gpu) = gpu() else { return };
    use kilim_core::backend::{Backend, Location};
    use kilim_core::ids::{PartIndex, TensorIndex};
    let x = random(&[6], 3);
    for kind in [BinaryKind::Mul, BinaryKind::Sub] {
        let given = [Given::Fed(x.clone()), Given::Fed(x.clone())];
        let mut spec = stage(
            std::sync::Arc::new(Binary::new(kind)),
            &given,
            &[(DType::F32, vec![6])],
        );
        spec.tensors[TensorIndex(1)].location = Location::Alias(TensorIndex(0));
        let mut context = gpu.create_context(&Default::default()).unwrap();
        let mut e = context.prepare(spec, &Interrupt::NEVER).unwrap();
        e.execute_begin().unwrap();
        e.write(TensorIndex(0), &x).unwrap();
        e.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        let got = pollster::block_on(e.read(&[TensorIndex(2)])).unwrap();
        let want: Vec<f64> = x
            .to_f64s()
            .unwrap()
            .iter()
            .map(|v| if kind == BinaryKind::Mul { v * v } else { 0.0 })
            .collect();
        close(&got[0], &want, 1e-6);
        assert_eq!(e.launches(), 1);
    }
}

#[test]
fn where_and_clip() {
    if gpu().is_none() {
        return;
    }
    let c = Given::Fed(Tensor::from_bools(&[3, 1], &[true, false, true]).unwrap());
    let a = Given::Fed(f32s(&[2], &[1.0, 2.0]));
    let b = Given::Fed(f32s(&[], &[9.0]));
    let y = run(Where, &[c, a.clone(), b], &[(DType::F32, vec![3, 2])]);
    close(&y[0], &[1.0, 2.0, 9.0, 9.0, 1.0, 2.0], 0.0);
    // The same tensor on both sides.
    let x = Given::Fed(f32s(&[3], &[-1.0, 0.5, 2.0]));
    let upper = Given::Constant(f32s(&[], &[1.0]));
    let y = run(
        Clip,
        &[x.clone(), Given::Absent, upper.clone()],
        &[(DType::F32, vec![3])],
    );
    close(&y[0], &[-1.0, 0.5, 1.0], 0.0);
    let lower = Given::Fed(f32s(&[], &[0.0]));
    let y = run(Clip, &[x, lower, upper], &[(DType::F32, vec![3])]);
    close(&y[0], &[0.0, 0.5, 1.0], 0.0);
}
