use super::plan::{Pairs, gemm_addend};
use super::*;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;
use crate::testing::{assert_within, run_kernel};
use half::{bf16, f16};
use kilim_core::Tensor;
use kilim_core::backend::TensorSpec;
use kilim_host::testing::{noise, tensor};

/// The product of `[m, k]` and `[k, n]` matrices given by their elements.
fn reference(
    (m, k, n): (usize, usize, usize),
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f64> {
    let element = |i, j| {
        (0..k)
            .map(|x| f64::from(a(i, x)) * f64::from(b(x, j)))
            .sum()
    };
    (0..m * n).map(|i| element(i / n, i % n)).collect()
}

/// The inputs of `node` without values, as tensors that other nodes compute. `run_kernel` gives the values
/// when it runs the kernel.
fn computed(node: &NodeSpec) -> Vec<Option<TensorSpec>> {
    node.inputs
        .iter()
        .map(|i| i.as_ref().map(|s| TensorSpec::new(s.dtype, &s.shape)))
        .collect()
}

fn check_matmul(op: &MatMul, inputs: &[Option<&Tensor>], shape: &[usize], want: &[f64]) {
    for isa in Isa::available() {
        for constant in [true, false] {
            let got = run_kernel(op, inputs, shape, |node, build| {
                let unknown = computed(node);
                let node = if constant {
                    node.clone()
                } else {
                    NodeSpec {
                        inputs: &unknown,
                        ..node.clone()
                    }
                };
                kernel(&node, build, Plan::of_matmul(op, &node), isa)
            });
            let what = format!("{op:?} {shape:?} {isa:?}, constant {constant}");
            assert_within(&got, want, 2e-5, &what);
        }
    }
}

#[test]
fn sizes() {
    for m in [1, 2, 3, 5, 6, 7, 12, 13, 25, 100] {
        for n in [1, 3, 4, 8, 9, 16, 31, 32, 33, 50, 64] {
            for k in [1, 2, 3, 4, 9, 33] {
                let (a, b, bias) = (noise(m * k, 1), noise(k * n, 2), noise(n, 3));
                let mut want = reference((m, k, n), |i, x| a[i * k + x], |x, j| b[x * n + j]);
                for (i, w) in want.iter_mut().enumerate() {
                    *w = (0.5 * *w + f64::from(bias[i % n])).max(0.0);
                }
                let op = MatMul {
                    alpha: Some(0.5),
                    activation: Activation::Relu,
                    ..MatMul::default()
                };
                let (a, b) = (tensor(&[m, k], &a), tensor(&[k, n], &b));
                let bias = tensor(&[n], &bias);
                check_matmul(&op, &[Some(&a), Some(&b), Some(&bias)], &[m, n], &want);
            }
        }
    }
}

#[test]
fn deep_and_tall() {
    for (m, k, n) in [(70, 1300, 40), (300, 515, 17), (1, 2000, 100)] {
        let (a, b) = (noise(m * k, 1), noise(k * n, 2));
        let want = reference((m, k, n), |i, x| a[i * k + x], |x, j| b[j * k + x]);
        let op = MatMul {
            transpose_b: true,
            ..MatMul::default()
        };
        let (a, b) = (tensor(&[m, k], &a), tensor(&[n, k], &b));
        check_matmul(&op, &[Some(&a), Some(&b)], &[m, n], &want);
    }
}

#[test]
fn few_rows() {
    let op = MatMul::default();
    for m in [1, 2, 4, 11, 12, 13] {
        for (k, n) in [(200, 70), (64, 300), (65, 1), (1, 129)] {
            let (a, b) = (noise(m * k, 1), noise(k * n, 2));
            let want = reference((m, k, n), |i, x| a[i * k + x], |x, j| b[x * n + j]);
            let (a, b) = (tensor(&[m, k], &a), tensor(&[k, n], &b));
            check_matmul(&op, &[Some(&a), Some(&b)], &[m, n], &want);
        }
    }
}

#[test]
fn batches_broadcast() {
    let cases: [(&[usize], &[usize], &[usize]); 8] = [
        (&[2, 3, 5, 7], &[2, 3, 7, 6], &[2, 3, 5, 6]),
        (&[2, 1, 5, 7], &[3, 7, 6], &[2, 3, 5, 6]),
        (&[5, 7], &[4, 7, 6], &[4, 5, 6]),
        (&[4, 5, 7], &[7, 6], &[4, 5, 6]),
        (&[4, 5, 7], &[1, 7, 6], &[4, 5, 6]),
        (&[7], &[7, 6], &[6]),
        (&[5, 7], &[7], &[5]),
        (&[3, 2, 1, 7], &[2, 7, 6], &[3, 2, 1, 6]),
    ];
    for (a_shape, b_shape, shape) in cases {
        let a = noise(a_shape.iter().product(), 1);
        let b = noise(b_shape.iter().product(), 2);
        let a_lead = &a_shape[..a_shape.len().saturating_sub(2)];
        let b_lead = &b_shape[..b_shape.len().saturating_sub(2)];
        let m = if a_shape.len() > 1 {
            a_shape[a_shape.len() - 2]
        } else {
            1
        };
        let n = if b_shape.len() > 1 {
            b_shape[b_shape.len() - 1]
        } else {
            1
        };
        let want: Vec<f64> = pairs(a_lead, b_lead)
            .expect("shapes broadcast")
            .into_iter()
            .flat_map(|(p, q)| {
                reference(
                    (m, 7, n),
                    |i, x| a[(p * m + i) * 7 + x],
                    |x, j| b[(q * 7 + x) * n + j],
                )
            })
            .collect();
        let (a, b) = (tensor(a_shape, &a), tensor(b_shape, &b));
        check_matmul(&MatMul::default(), &[Some(&a), Some(&b)], shape, &want);
    }
}

fn pairs(a: &[usize], b: &[usize]) -> Option<Vec<(usize, usize)>> {
    let pairs = Pairs::broadcast(a, b)?;
    Some((0..pairs.len()).map(|i| pairs.at(i)).collect())
}

#[test]
fn pairs_of_matrices() {
    assert_eq!(pairs(&[], &[]), Some(vec![(0, 0)]));
    assert_eq!(pairs(&[2], &[1]), Some(vec![(0, 0), (1, 0)]));
    assert_eq!(
        pairs(&[2, 1], &[2]),
        Some(vec![(0, 0), (0, 1), (1, 0), (1, 1)])
    );
    assert_eq!(pairs(&[2], &[3]), None);
}

#[test]
fn gemm() {
    let (m, k, n) = (10, 19, 21);
    let (a, b, c) = (noise(m * k, 1), noise(k * n, 2), noise(m * n, 3));
    for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
        for (beta, c_shape) in [
            (1.0, vec![m, n]),
            (1.0, vec![n]),
            (0.5, vec![1, n]),
            (2.0, vec![]),
            (0.0, vec![m, 1]),
        ] {
            let op = Gemm {
                alpha: 1.5,
                beta,
                transpose_a,
                transpose_b,
                activation: Activation::Tanh,
            };
            let mut want = reference(
                (m, k, n),
                |i, x| a[if transpose_a { x * m + i } else { i * k + x }],
                |x, j| b[if transpose_b { j * k + x } else { x * n + j }],
            );
            let count: usize = c_shape.iter().product();
            for (i, w) in want.iter_mut().enumerate() {
                let c = f64::from(c[i % count]);
                *w = (1.5 * *w + f64::from(beta) * c).tanh();
            }
            let a_shape = if transpose_a { [k, m] } else { [m, k] };
            let b_shape = if transpose_b { [n, k] } else { [k, n] };
            let (a, b) = (tensor(&a_shape, &a), tensor(&b_shape, &b));
            let c = tensor(&c_shape, &c[..count]);
            for isa in Isa::available() {
                let got = run_kernel(
                    &op,
                    &[Some(&a), Some(&b), Some(&c)],
                    &[m, n],
                    |node, build| kernel(node, build, Plan::of_gemm(&op, node), isa),
                );
                assert_within(&got, &want, 2e-5, &format!("{op:?} {c_shape:?} {isa:?}"));
            }
        }
    }
}

#[test]
fn addends() {
    let spec = |shape: &[usize]| TensorSpec::new(DType::F32, shape);
    assert_eq!(gemm_addend(&spec(&[4]), 1.0, 3, 4), Some(Addend::Bias));
    assert_eq!(gemm_addend(&spec(&[3, 4]), 1.0, 3, 4), Some(Addend::Full));
    assert_eq!(gemm_addend(&spec(&[3, 1]), 1.0, 3, 4), None);
    assert_eq!(gemm_addend(&spec(&[4, 1]), 1.0, 4, 4), None);
    assert_eq!(gemm_addend(&spec(&[4]), 0.5, 3, 4), None);
}

/// Halves of either type that weights may have, their bits from `bits`, as a constant of `float32`.
fn widened(dtype: DType, shape: &[usize], bits: &[u16]) -> Tensor {
    let bits = tensor(shape, bits).reinterpreted(dtype);
    bits.and_then(|halves| halves.widened()).expect("halves")
}

/// Constants that were widened from half precision are packed as they were, and give the bits of the same numbers in `float32`.
#[test]
fn half_precision_is_kept() {
    for (batch, m, k, n) in [
        (1, 1, 700, 70),
        (1, 13, 1300, 40),
        (3, 5, 9, 33),
        (1, 300, 33, 1),
    ] {
        for (dtype, transpose_b) in [(DType::F16, false), (DType::F16, true), (DType::BF16, true)] {
            let numbers = noise(batch * k * n, 2);
            let bits: Vec<u16> = match dtype {
                DType::F16 => numbers
                    .iter()
                    .map(|&x| f16::from_f32(x).to_bits())
                    .collect(),
                _ => numbers
                    .iter()
                    .map(|&x| bf16::from_f32(x).to_bits())
                    .collect(),
            };
            let shape = if transpose_b {
                [batch, n, k]
            } else {
                [batch, k, n]
            };
            let narrow = widened(dtype, &shape, &bits);
            let plain = tensor(&shape, narrow.as_slice::<f32>().expect("numbers"));
            let narrow = narrow.unread();
            let a = tensor(&[batch, m, k], &noise(batch * m * k, 1));
            let op = MatMul {
                transpose_b,
                ..MatMul::default()
            };
            for isa in Isa::available() {
                let product = |b: &Tensor| {
                    run_kernel(&op, &[Some(&a), Some(b)], &[batch, m, n], |node, build| {
                        kernel(node, build, Plan::of_matmul(&op, node), isa)
                    })
                };
                let got = product(&narrow);
                assert!(
                    got == product(&plain),
                    "{isa:?} {dtype} {m} {k} {n} {transpose_b}"
                );
            }
        }
    }
}

/// Every number of half precision is widened to the same number. Subnormal ones of `bfloat16` are subnormal in `float32`, too, and become zero.
#[test]
fn every_half_is_widened() {
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    let one = tensor(&[1, 1], &[1.0f32]);
    for dtype in [DType::F16, DType::BF16] {
        let b = widened(dtype, &[1, bits.len()], &bits);
        for isa in Isa::available() {
            let op = MatMul::default();
            let got = run_kernel(
                &op,
                &[Some(&one), Some(&b)],
                &[1, bits.len()],
                |node, build| kernel(node, build, Plan::of_matmul(&op, node), isa),
            );
            for (&bits, &got) in bits.iter().zip(&got) {
                let want = match dtype {
                    DType::F16 => f16::from_bits(bits).to_f32(),
                    _ => bf16::from_bits(bits).to_f32(),
                };
                let want = if want.is_subnormal() { 0.0 } else { want };
                let same = got == want || (got.is_nan() && want.is_nan());
                assert!(same, "{isa:?} {dtype} {bits:#06x}: {got} for {want}");
            }
        }
    }
}
