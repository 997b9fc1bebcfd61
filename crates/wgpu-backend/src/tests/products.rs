use kilim_core::ops::{Activation, Conv, ConvTranspose, Einsum, Gemm, MatMul, Padding};
use kilim_core::{DType, Tensor};

use super::harness::*;

fn values(t: &Tensor) -> Vec<f64> {
    t.to_f64s().unwrap()
}

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

struct Case {
    x: Vec<usize>,
    w: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    pads: Vec<usize>,
    groups: usize,
}

fn case(x: &[usize], w: &[usize], s: &[usize], d: &[usize], p: &[usize], groups: usize) -> Case {
    Case {
        x: x.to_vec(),
        w: w.to_vec(),
        strides: s.to_vec(),
        dilations: d.to_vec(),
        pads: p.to_vec(),
        groups,
    }
}

/// Moves the channels of an `[n, c, spatial..]` tensor to the end.
fn channels_last(t: &Tensor) -> Tensor {
    let s = t.shape();
    let inner: usize = s[2..].iter().product();
    let v = t.as_slice::<f32>().unwrap();
    let mut out = Vec::with_capacity(v.len());
    for n in 0..s[0] {
        for i in 0..inner {
            out.extend((0..s[1]).map(|c| v[(n * s[1] + c) * inner + i]));
        }
    }
    let mut shape = vec![s[0]];
    shape.extend(&s[2..]);
    shape.push(s[1]);
    f32s(&shape, &out)
}

fn unravel(mut i: usize, dims: &[usize]) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for d in (0..dims.len()).rev() {
        at[d] = i % dims[d];
        i /= dims[d];
    }
    at
}

/// The plain definition on `[n, c, spatial..]`; for a transposed one the roles of input and output
/// positions change.
fn reference(c: &Case, x: &Tensor, w: &Tensor, transposed: bool) -> Tensor {
    let rank = c.x.len() - 2;
    let out: Vec<usize> = (0..rank)
        .map(|d| {
            let span = (c.w[d + 2] - 1) * c.dilations[d] + 1;
            let pad = c.pads[d] + c.pads[d + rank];
            if transposed {
                (c.x[d + 2] - 1) * c.strides[d] + span - pad
            } else {
                (c.x[d + 2] + pad - span) / c.strides[d] + 1
            }
        })
        .collect();
    let (xs, ws) = (values(x), values(w));
    let (space, taps) = (&c.x[2..], &c.w[2..]);
    let count = |s: &[usize]| s.iter().product::<usize>();
    let inputs = c.x[1] / c.groups;
    let outputs = if transposed {
        c.w[1]
    } else {
        c.w[0] / c.groups
    };
    let mut shape = vec![c.x[0], outputs * c.groups];
    shape.extend(&out);
    let mut y = vec![0.0f64; count(&shape)];
    let all = |dims: &[usize]| {
        (0..count(dims))
            .map(|i| unravel(i, dims))
            .collect::<Vec<_>>()
    };
    let (from, to) = if transposed {
        (&out[..], space)
    } else {
        (space, &out[..])
    };
    let (points, places) = (all(to), all(taps));
    for n in 0..c.x[0] {
        for g in 0..c.groups {
            for (o, i) in (0..outputs).flat_map(|o| (0..inputs).map(move |i| (o, i))) {
                for (p, t) in (0..count(to)).flat_map(|p| (0..count(taps)).map(move |t| (p, t))) {
                    let (pa, ta) = (&points[p], &places[t]);
                    let mut near = 0usize;
                    let inside = (0..rank).all(|d| {
                        let at = pa[d] * c.strides[d] + ta[d] * c.dilations[d];
                        let at = at as isize - c.pads[d] as isize;
                        near = near * from[d] + at.max(0) as usize;
                        (0..from[d] as isize).contains(&at)
                    });
                    if !inside {
                        continue;
                    }
                    let (xp, yp) = if transposed { (p, near) } else { (near, p) };
                    let xi = (n * c.x[1] + g * inputs + i) * count(space) + xp;
                    let yi = (n * shape[1] + g * outputs + o) * count(&out) + yp;
                    let wi = if transposed {
                        ((g * inputs + i) * outputs + o) * count(taps) + t
                    } else {
                        ((g * outputs + o) * inputs + i) * count(taps) + t
                    };
                    y[yi] += xs[xi] * ws[wi];
                }
            }
        }
    }
    let y: Vec<f32> = y.iter().map(|&v| v as f32).collect();
    f32s(&shape, &y)
}

#[test]
fn convolutions() {
    on_both(check_convolutions);
}

fn check_convolutions() {
    let cases = [
        case(
            &[2, 8, 7, 9],
            &[12, 8, 3, 3],
            &[1, 1],
            &[1, 1],
            &[1, 1, 1, 1],
            1,
        ),
        case(
            &[1, 3, 11, 8],
            &[16, 3, 3, 3],
            &[2, 2],
            &[1, 1],
            &[0, 1, 1, 0],
            1,
        ),
        case(
            &[1, 5, 6, 6],
            &[7, 5, 2, 3],
            &[1, 2],
            &[2, 1],
            &[1, 0, 0, 2],
            1,
        ),
        case(
            &[2, 8, 5, 4],
            &[10, 8, 1, 1],
            &[1, 1],
            &[1, 1],
            &[0, 0, 0, 0],
            1,
        ),
        case(
            &[1, 6, 40, 30],
            &[33, 6, 1, 1],
            &[1, 1],
            &[1, 1],
            &[0, 0, 0, 0],
            1,
        ),
        case(
            &[1, 8, 6, 5],
            &[8, 1, 3, 3],
            &[1, 1],
            &[1, 1],
            &[1, 1, 1, 1],
            8,
        ),
        case(
            &[2, 12, 9, 9],
            &[12, 1, 3, 3],
            &[2, 2],
            &[2, 2],
            &[1, 2, 1, 2],
            12,
        ),
        case(
            &[1, 6, 6, 5],
            &[12, 1, 3, 3],
            &[1, 1],
            &[1, 1],
            &[1, 1, 1, 1],
            6,
        ),
        case(
            &[2, 8, 6, 6],
            &[16, 4, 3, 3],
            &[1, 1],
            &[1, 1],
            &[1, 1, 1, 1],
            2,
        ),
        case(
            &[1, 6, 6, 6],
            &[9, 2, 3, 3],
            &[1, 1],
            &[1, 1],
            &[0, 0, 0, 0],
            3,
        ),
        case(&[2, 6, 20], &[8, 6, 5], &[2], &[1], &[2, 2], 1),
        case(
            &[1, 2, 5, 6, 4],
            &[4, 2, 3, 2, 3],
            &[1, 2, 1],
            &[1, 1, 1],
            &[1, 0, 1, 1, 0, 1],
            1,
        ),
        case(
            &[1, 4, 92, 90],
            &[48, 4, 1, 2],
            &[1, 1],
            &[1, 1],
            &[0, 1, 0, 1],
            1,
        ),
        case(
            &[1, 4, 92, 90],
            &[48, 4, 1, 1],
            &[1, 1],
            &[1, 1],
            &[0, 0, 0, 0],
            1,
        ),
    ];
    for (i, c) in cases.iter().enumerate() {
        eprintln!("case {i}");
        let (x, w) = (random(&c.x, 1), random(&c.w, 2));
        let bias = random(&[c.w[0]], 3);
        let plain = reference(c, &x, &w, false);
        let inner: usize = plain.shape()[2..].iter().product();
        let (v, b) = (values(&plain), values(&bias));
        let biased: Vec<f32> = (0..v.len())
            .map(|i| (v[i] + b[i / inner % c.w[0]]) as f32)
            .collect();
        let biased = f32s(plain.shape(), &biased);
        let residual = random(plain.shape(), 4);
        for last in [false, true] {
            let lay = |t: &Tensor| if last { channels_last(t) } else { t.clone() };
            let op = |activation| Conv {
                strides: c.strides.clone(),
                dilations: c.dilations.clone(),
                padding: Padding::Explicit(c.pads.clone()),
                groups: c.groups,
                channels_last: last,
                activation,
            };
            let out = [(DType::F32, lay(&plain).shape().to_vec())];
            let data = Given::Fed(lay(&x));
            let y = run(
                op(Activation::None),
                &[data.clone(), Given::Constant(w.clone())],
                &out,
            );
            close(&y[0], &values(&lay(&plain)), 1e-5);
            let r = lay(&residual);
            let want: Vec<f64> = values(&lay(&biased))
                .iter()
                .zip(values(&r))
                .map(|(a, b)| (a + b).clamp(-1.0, 2.0))
                .collect();
            let act = Activation::Clip {
                min: -1.0,
                max: 2.0,
            };
            for weights in [Given::Constant(w.clone()), Given::Fed(w.clone())] {
                let given = [
                    data.clone(),
                    weights,
                    Given::Constant(bias.clone()),
                    Given::Fed(r.clone()),
                ];
                close(&run(op(act), &given, &out)[0], &want, 1e-5);
            }
        }
    }
}

#[test]
fn transposed_convolutions() {
    if gpu().is_none() {
        return;
    }
    let cases = [
        case(
            &[1, 3, 4, 5],
            &[3, 2, 3, 3],
            &[2, 2],
            &[1, 1],
            &[1, 1, 1, 1],
            1,
        ),
        case(
            &[2, 4, 5, 3],
            &[4, 3, 2, 2],
            &[2, 2],
            &[1, 1],
            &[0, 0, 0, 0],
            2,
        ),
        case(&[1, 2, 6], &[2, 3, 4], &[3], &[2], &[1, 0], 1),
        case(
            &[1, 2, 3, 2, 3],
            &[2, 2, 2, 3, 2],
            &[1, 2, 2],
            &[1, 1, 1],
            &[0, 1, 0, 1, 0, 0],
            1,
        ),
    ];
    for c in &cases {
        let (x, w) = (random(&c.x, 1), random(&c.w, 2));
        let plain = reference(c, &x, &w, true);
        for last in [false, true] {
            let lay = |t: &Tensor| if last { channels_last(t) } else { t.clone() };
            let op = ConvTranspose {
                strides: c.strides.clone(),
                dilations: c.dilations.clone(),
                padding: Padding::Explicit(c.pads.clone()),
                output_padding: vec![],
                output_shape: None,
                groups: c.groups,
                channels_last: last,
                activation: Activation::None,
            };
            let y = fed(op, &[lay(&x), w.clone()], lay(&plain).shape());
            close(&y, &values(&lay(&plain)), 1e-5);
        }
    }
}

fn zeros_and_bias(shape: &[usize], seed: u32) -> Given {
    Given::Fed(random(shape, seed))
}

#[test]
fn recurrent_layers() {
    use kilim_core::ops::{CellActivation, Direction, Gru, Lstm, Recurrent, Rnn};
    if gpu().is_none() {
        return;
    }
    let (time, batch, input, hidden) = (5, 3, 7, 10);
    for direction in [
        Direction::Forward,
        Direction::Reverse,
        Direction::Bidirectional,
    ] {
        for batch_first in [false, true] {
            let d = direction.count();
            let cell = |each: &[CellActivation]| Recurrent {
                hidden,
                direction,
                activations: each.repeat(d),
                clip: Some(0.9),
                batch_first,
            };
            use CellActivation::{Sigmoid, Tanh};
            let x = if batch_first {
                [batch, time, input]
            } else {
                [time, batch, input]
            };
            let state = if batch_first {
                [batch, d, hidden]
            } else {
                [d, batch, hidden]
            };
            for constant in [false, true] {
                let weights = |shape: &[usize], seed| {
                    let t = random(shape, seed);
                    if constant {
                        Given::Constant(t)
                    } else {
                        Given::Fed(t)
                    }
                };
                let given = |gates: usize, full: bool| {
                    let mut g = vec![
                        Given::Fed(random(&x, 1)),
                        weights(&[d, gates * hidden, input], 2),
                        weights(&[d, gates * hidden, hidden], 3),
                    ];
                    if full {
                        g.push(weights(&[d, 2 * gates * hidden], 4));
                        g.push(Given::Absent);
                        g.push(zeros_and_bias(&state, 5));
                        if gates == 4 {
                            g.push(zeros_and_bias(&state, 6));
                        }
                    }
                    g
                };
                for full in [false, true] {
                    let lstm = Lstm {
                        cell: cell(&[Sigmoid, Tanh, Tanh]),
                        input_forget: false,
                        cell_clip: full.then_some(0.5),
                    };
                    agree(lstm, &given(4, full), 3, 1e-5);
                    let gru = Gru {
                        cell: cell(&[Sigmoid, Tanh]),
                        linear_before_reset: full == constant,
                    };
                    agree(gru, &given(3, full), 2, 1e-5);
                    let rnn = Rnn {
                        cell: cell(&[Tanh]),
                    };
                    agree(rnn, &given(1, full), 2, 1e-5);
                }
            }
        }
    }
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
