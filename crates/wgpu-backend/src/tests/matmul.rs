//! Gemm, MatMul, Einsum.

use kilim_core::DType;
use kilim_core::ops::{Activation, Einsum, Gemm, MatMul};

use super::harness::*;

/// Rows by columns, as they are in memory after undoing a transposition.
fn product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize, ta: bool, tb: bool) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            for q in 0..k {
                let x = a[if ta { q * m + i } else { i * k + q }];
                let y = b[if tb { j * k + q } else { q * n + j }];
                c[i * n + j] += x * y;
            }
        }
    }
    c
}

#[test]
fn gemm_of_all_forms() {
    on_both(check_gemm_of_all_forms);
}

fn check_gemm_of_all_forms() {
    for (m, k, n) in [
        (1, 5, 3),
        (1, 64, 70),
        (3, 12, 8),
        (4, 33, 65),
        (7, 16, 36),
        (33, 20, 40),
        (65, 37, 31),
        (700, 40, 600),
    ] {
        for form in 0..4 {
            let (ta, tb) = (form & 1 == 1, form & 2 == 2);
            let a = random(&if ta { [k, m] } else { [m, k] }, 1);
            let b = random(&if tb { [n, k] } else { [k, n] }, 2);
            let c = random(&[m, 1], 3);
            let op = Gemm {
                alpha: 0.5,
                beta: 2.0,
                transpose_a: ta,
                transpose_b: tb,
                activation: Activation::LeakyRelu { alpha: 0.5 },
            };
            let (wa, wb, wc) = (values(&a), values(&b), values(&c));
            let want: Vec<f64> = product(&wa, &wb, m, k, n, ta, tb)
                .iter()
                .enumerate()
                .map(|(i, v)| {
                    let v = 0.5 * v + 2.0 * wc[i / n];
                    if v < 0.0 { 0.5 * v } else { v }
                })
                .collect();
            for constant in [false, true] {
                let second = if constant {
                    Given::Constant(b.clone())
                } else {
                    Given::Fed(b.clone())
                };
                let given = [Given::Fed(a.clone()), second, Given::Constant(c.clone())];
                let y = run(op.clone(), &given, &[(DType::F32, vec![m, n])]);
                close(&y[0], &want, 1e-5);
            }
        }
    }
}

#[test]
fn matmul_broadcasts_batches() {
    on_both(check_matmul_broadcasts_batches);
}

fn check_matmul_broadcasts_batches() {
    type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], bool);
    let cases: &[Case] = &[
        (&[2, 3, 5, 8], &[2, 3, 8, 12], &[2, 3, 5, 12], false),
        (&[2, 1, 5, 7], &[3, 7, 6], &[2, 3, 5, 6], false),
        (&[4, 9, 8], &[8, 10], &[4, 9, 10], false),
        (&[3, 8, 16], &[3, 8, 16], &[3, 8, 8], true),
        (&[3, 1, 16], &[1, 8, 16], &[3, 1, 8], true),
        (&[6], &[6, 4], &[4], false),
        (&[5, 6], &[6], &[5], false),
        (&[6], &[6], &[], false),
        (&[2, 0, 4], &[4, 3], &[2, 0, 3], false),
        (&[2, 3, 0], &[0, 3], &[2, 3, 3], false),
    ];
    for (sa, sb, sy, tb) in cases {
        let (a, b) = (random(sa, 4), random(sb, 5));
        let (wa, wb) = (values(&a), values(&b));
        let full_a: Vec<usize> = if sa.len() == 1 {
            vec![1, sa[0]]
        } else {
            sa.to_vec()
        };
        let full_b: Vec<usize> = if sb.len() == 1 {
            vec![sb[0], 1]
        } else {
            sb.to_vec()
        };
        let [m, k] = full_a[full_a.len() - 2..] else {
            panic!()
        };
        let n = full_b[full_b.len() - if *tb { 2 } else { 1 }];
        let (ba, bb) = (&full_a[..full_a.len() - 2], &full_b[..full_b.len() - 2]);
        let rank = ba.len().max(bb.len());
        let dim = |s: &[usize], d: usize| (d + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        let batch: Vec<usize> = (0..rank).map(|d| dim(ba, d).max(dim(bb, d))).collect();
        let mut want = Vec::new();
        for flat in 0..batch.iter().product::<usize>() {
            let pick = |s: &[usize]| {
                let mut rest = flat;
                let mut at = vec![0; rank];
                for d in (0..rank).rev() {
                    at[d] = rest % batch[d];
                    rest /= batch[d];
                }
                (0..rank).fold(0, |i, d| {
                    i * dim(s, d) + if dim(s, d) == 1 { 0 } else { at[d] }
                })
            };
            let (x, y) = (pick(ba) * m * k, pick(bb) * k * n);
            want.extend(product(
                &wa[x..x + m * k],
                &wb[y..y + k * n],
                m,
                k,
                n,
                false,
                *tb,
            ));
        }
        let op = MatMul {
            transpose_b: *tb,
            alpha: Some(2.0),
            activation: Activation::None,
        };
        let want: Vec<f64> = want.iter().map(|v| 2.0 * v).collect();
        close(&fed(op.clone(), &[a.clone(), b.clone()], sy), &want, 1e-5);
        let given = [Given::Fed(a), Given::Constant(b)];
        close(
            &run(op, &given, &[(DType::F32, sy.to_vec())])[0],
            &want,
            1e-5,
        );
    }
    let op = MatMul {
        activation: Activation::Relu,
        ..MatMul::default()
    };
    let (a, b, c) = (random(&[3, 4], 1), random(&[4, 5], 2), random(&[5], 3));
    let wc = values(&c);
    let want: Vec<f64> = product(&values(&a), &values(&b), 3, 4, 5, false, false)
        .iter()
        .enumerate()
        .map(|(i, v)| (v + wc[i % 5]).max(0.0))
        .collect();
    close(&fed(op, &[a, b, c], &[3, 5]), &want, 1e-5);
}

#[test]
fn einstein_sums() {
    if gpu().is_none() {
        return;
    }
    type Case<'a> = (&'a str, &'a [&'a [usize]]);
    let cases: &[Case] = &[
        ("ij,jk->ik", &[&[5, 7], &[7, 6]]),
        ("bhid,bhjd->bhij", &[&[2, 3, 5, 8], &[2, 3, 4, 8]]),
        ("bihd,bjhd->bhij", &[&[2, 5, 3, 8], &[2, 4, 3, 8]]),
        ("bij,bjk->bki", &[&[2, 3, 4], &[2, 4, 5]]),
        ("...ii->...i", &[&[3, 4, 4]]),
        ("ij->ji", &[&[3, 4]]),
        ("ij->", &[&[3, 4]]),
        ("i,j->ij", &[&[3], &[4]]),
        ("i,i->", &[&[9], &[9]]),
        ("ijk,jl->il", &[&[2, 3, 4], &[3, 5]]),
        ("ab,bc,cd->ad", &[&[2, 3], &[3, 4], &[4, 5]]),
    ];
    for (equation, shapes) in cases {
        eprintln!("{equation}");
        let given: Vec<_> = shapes.iter().map(|s| Given::Fed(random(s, 7))).collect();
        let equation = equation.to_string();
        agree(Einsum { equation }, &given, 1, 1e-5);
    }
}

#[test]
fn every_kernel_for_a_product_gives_the_same() {
    on_both(check_every_kernel_for_a_product);
}

fn check_every_kernel_for_a_product() {
    // Long ones are cut into up to 16 parts along k.
    for (m, k, n) in [
        (3, 12, 8),
        (9, 16, 36),
        (65, 37, 31),
        (33, 1600, 70),
        (10, 200, 13),
    ] {
        let (a, b, bias) = (random(&[m, k], 1), random(&[k, n], 2), random(&[n], 3));
        let added = values(&bias);
        let want: Vec<f64> = product(&values(&a), &values(&b), m, k, n, false, false)
            .iter()
            .enumerate()
            .map(|(i, v)| (0.5 * v + added[i % n]).max(0.0))
            .collect();
        let op = MatMul {
            alpha: Some(0.5),
            activation: Activation::Relu,
            ..MatMul::default()
        };
        let inputs = [Given::Fed(a), Given::Constant(b), Given::Constant(bias)];
        let kernels = every_kernel(op, &inputs, &[m, n], &want, 1e-4);
        // Small and flat tiles at least, and row by row where there are few.
        assert!(kernels >= 2 + usize::from(m < 16), "{kernels} for {m} rows");
    }
    let (a, b) = (random(&[2, 1, 9, 400], 1), random(&[3, 400, 13], 2));
    let (x, y) = (values(&a), values(&b));
    let blocks = (0..2).flat_map(|i| (0..3).map(move |j| (i, j)));
    let want = blocks.flat_map(|(i, j)| {
        let (x, y) = (&x[i * 3600..][..3600], &y[j * 5200..][..5200]);
        product(x, y, 9, 400, 13, false, false)
    });
    let want: Vec<f64> = want.collect();
    let inputs = [Given::Fed(a), Given::Fed(b)];
    every_kernel(MatMul::default(), &inputs, &[2, 3, 9, 13], &want, 1e-4);
}
