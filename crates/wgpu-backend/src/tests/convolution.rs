//! Conv and ConvTranspose against their definition.

use kilim_core::ops::{Activation, Conv, ConvTranspose, Padding};
use kilim_core::{DType, Tensor};

use super::harness::*;

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

#[test]
fn every_kernel_for_a_convolution_gives_the_same() {
    on_both(check_every_kernel_for_a_convolution);
}

fn check_every_kernel_for_a_convolution() {
    let sizes: [(&[usize], &[usize]); 3] = [
        (&[2, 8, 7, 9], &[12, 4, 3, 2]),
        // Long ones are cut into parts along the channels and taps.
        (&[2, 128, 7, 9], &[10, 64, 3, 2]),
        (&[1, 70, 5, 9], &[26, 35, 3, 2]),
    ];
    for (x, w) in sizes {
        check_every_kernel_for(&case(x, w, &[1, 2], &[1, 1], &[1, 1, 0, 1], 2));
    }
}

fn check_every_kernel_for(groups: &Case) {
    let (x, w) = (random(&groups.x, 1), random(&groups.w, 2));
    let plain = reference(groups, &x, &w, false);
    let bias = random(&[groups.w[0]], 3);
    let residual = random(plain.shape(), 4);
    for last in [false, true] {
        let turned = |t: &Tensor| if last { channels_last(t) } else { t.clone() };
        let op = Conv {
            strides: groups.strides.clone(),
            dilations: groups.dilations.clone(),
            padding: Padding::Explicit(groups.pads.clone()),
            groups: groups.groups,
            channels_last: last,
            activation: Activation::Relu,
        };
        let inputs = [
            Given::Fed(turned(&x)),
            Given::Constant(w.clone()),
            Given::Constant(bias.clone()),
            Given::Fed(turned(&residual)),
        ];
        let places = plain.shape()[2..].iter().product::<usize>();
        let added = values(&bias);
        let sums = values(&plain)
            .into_iter()
            .zip(values(&residual))
            .enumerate();
        let want: Vec<f32> = sums
            .map(|(i, (v, r))| (v + added[i / places % added.len()] + r).max(0.0) as f32)
            .collect();
        let want = turned(&f32s(plain.shape(), &want));
        let kernels = every_kernel(op, &inputs, want.shape(), &values(&want), 1e-4);
        // Small and flat tiles at least, and a thread for each element.
        assert!(kernels >= 3, "{kernels}");
    }
}
