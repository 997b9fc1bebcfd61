//! Matrix products, convolutions and pooling.

use std::sync::Arc;

use kilim::core::ops::{Activation, AveragePool, Conv, MatMul, MaxPool, Padding, Window};

use super::{Array, Case, Random, each_index, flat};

fn activate(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip { min, max } => x.clamp(min.into(), max.into()),
        Activation::LeakyRelu { alpha } => {
            if x < 0.0 {
                x * f64::from(alpha)
            } else {
                x
            }
        }
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::HardSigmoid { alpha, beta } => {
            (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0)
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

fn matmul(random: &mut Random, left: &[usize], right: &[usize], op: MatMul, fixed: bool) -> Case {
    let (a, b) = (random.array(left), random.array(right));
    let batch_of = |s: &[usize]| s[..s.len() - 2].to_vec();
    let ones = |shape: Vec<usize>| Array {
        data: vec![1.0; shape.iter().product()],
        shape,
    };
    let (batch, _) =
        super::pointwise::broadcast(&ones(batch_of(left)), &ones(batch_of(right)), |_, _| 0.0);
    let (m, k) = (left[left.len() - 2], left[left.len() - 1]);
    let n = right[right.len() - if op.transpose_b { 2 } else { 1 }];
    let bias = random.array(&[n]);
    let mut want = Vec::new();
    let own = |s: &[usize], index: &[usize]| -> Vec<usize> {
        let b = batch_of(s);
        let skip = index.len() - b.len();
        b.iter()
            .zip(&index[skip..])
            .map(|(&d, &i)| if d == 1 { 0 } else { i })
            .collect()
    };
    each_index(&batch, |index| {
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0;
                for l in 0..k {
                    let mut at = own(left, index);
                    at.extend([i, l]);
                    let mut bt = own(right, index);
                    bt.extend(if op.transpose_b { [j, l] } else { [l, j] });
                    sum += f64::from(a.data[flat(left, &at)]) * f64::from(b.data[flat(right, &bt)]);
                }
                sum *= f64::from(op.alpha.unwrap_or(1.0));
                want.push(activate(op.activation, sum + f64::from(bias.data[j])));
            }
        }
    });
    let mut shape = batch;
    shape.extend([m, n]);
    Case {
        name: format!(
            "MatMul {left:?} {right:?} {op:?}{}",
            if fixed { " constant" } else { "" }
        ),
        op: Arc::new(op),
        inputs: vec![
            a.fed(),
            if fixed { b.constant() } else { b.fed() },
            bias.constant(),
        ],
        want: vec![(shape, want)],
        tolerance: 1e-5,
    }
}

/// A convolution in words: data NHWC or NCHW by `channels_last`.
struct ConvCase {
    n: usize,
    c: usize,
    m: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    pads: [usize; 4],
    groups: usize,
    channels_last: bool,
    activation: Activation,
    residual: bool,
}

fn nhwc(case: &ConvCase, index: [usize; 4]) -> [usize; 4] {
    let [n, c, y, x] = index;
    if case.channels_last {
        [n, y, x, c]
    } else {
        [n, c, y, x]
    }
}

fn conv(random: &mut Random, case: &ConvCase) -> Case {
    let [h, w] = case.size;
    let out = |axis: usize| {
        let padded = case.size[axis] + case.pads[axis] + case.pads[axis + 2];
        (padded - case.dilation[axis] * (case.kernel[axis] - 1) - 1) / case.stride[axis] + 1
    };
    let (oh, ow) = (out(0), out(1));
    let x_shape = nhwc(case, [case.n, case.c, h, w]);
    let y_shape = nhwc(case, [case.n, case.m, oh, ow]);
    let per = case.c / case.groups;
    let w_shape = [case.m, per, case.kernel[0], case.kernel[1]];
    let (x, weights, bias) = (
        random.array(&x_shape),
        random.array(&w_shape),
        random.array(&[case.m]),
    );
    let residual = random.array(&y_shape);
    let mut want = vec![0.0; y_shape.iter().product()];
    each_index(&[case.n, case.m, oh, ow], |i| {
        let (n, m) = (i[0], i[1]);
        let group = m / (case.m / case.groups);
        let mut sum = f64::from(bias.data[m]);
        each_index(&[per, case.kernel[0], case.kernel[1]], |k| {
            let y = (i[2] * case.stride[0] + k[1] * case.dilation[0]).wrapping_sub(case.pads[0]);
            let xx = (i[3] * case.stride[1] + k[2] * case.dilation[1]).wrapping_sub(case.pads[1]);
            if y < h && xx < w {
                let at = flat(&x_shape, &nhwc(case, [n, group * per + k[0], y, xx]));
                let wt = flat(&w_shape, &[m, k[0], k[1], k[2]]);
                sum += f64::from(x.data[at]) * f64::from(weights.data[wt]);
            }
        });
        let at = flat(&y_shape, &nhwc(case, [n, m, i[2], i[3]]));
        if case.residual {
            sum += f64::from(residual.data[at]);
        }
        want[at] = activate(case.activation, sum);
    });
    let mut inputs = vec![x.fed(), weights.constant(), bias.constant()];
    if case.residual {
        inputs.push(residual.fed());
    }
    Case {
        name: format!(
            "Conv {x_shape:?} {w_shape:?} stride {:?} dilation {:?} pads {:?} groups {} last {} {:?} residual {}",
            case.stride,
            case.dilation,
            case.pads,
            case.groups,
            case.channels_last,
            case.activation,
            case.residual
        ),
        op: Arc::new(Conv {
            strides: case.stride.to_vec(),
            dilations: case.dilation.to_vec(),
            padding: Padding::Explicit(case.pads.to_vec()),
            groups: case.groups,
            channels_last: case.channels_last,
            activation: case.activation,
        }),
        inputs,
        want: vec![(y_shape.to_vec(), want)],
        tolerance: 1e-5,
    }
}

fn pool(random: &mut Random, case: &ConvCase, max: bool, include_pad: bool) -> Case {
    let [h, w] = case.size;
    let out = |axis: usize| {
        let padded = case.size[axis] + case.pads[axis] + case.pads[axis + 2];
        (padded - case.kernel[axis]) / case.stride[axis] + 1
    };
    let (oh, ow) = (out(0), out(1));
    let x_shape = nhwc(case, [case.n, case.c, h, w]);
    let y_shape = nhwc(case, [case.n, case.c, oh, ow]);
    let x = random.array(&x_shape);
    let mut want = vec![0.0; y_shape.iter().product()];
    each_index(&[case.n, case.c, oh, ow], |i| {
        let (mut sum, mut largest, mut count) = (0.0, f64::NEG_INFINITY, 0);
        each_index(&case.kernel, |k| {
            let y = (i[2] * case.stride[0] + k[0]).wrapping_sub(case.pads[0]);
            let xx = (i[3] * case.stride[1] + k[1]).wrapping_sub(case.pads[1]);
            if y < h && xx < w {
                let v = f64::from(x.data[flat(&x_shape, &nhwc(case, [i[0], i[1], y, xx]))]);
                sum += v;
                largest = largest.max(v);
                count += 1;
            }
        });
        let divisor = if include_pad {
            case.kernel.iter().product()
        } else {
            count
        };
        let at = flat(&y_shape, &nhwc(case, [i[0], i[1], i[2], i[3]]));
        want[at] = if max { largest } else { sum / divisor as f64 };
    });
    let window = Window {
        kernel: case.kernel.to_vec(),
        strides: case.stride.to_vec(),
        dilations: vec![1, 1],
        padding: Padding::Explicit(case.pads.to_vec()),
        ceil_mode: false,
    };
    let channels_last = case.channels_last;
    let op: Arc<dyn kilim::core::Operator> = if max {
        Arc::new(MaxPool {
            window,
            column_major: false,
            channels_last,
        })
    } else {
        Arc::new(AveragePool {
            window,
            count_include_pad: include_pad,
            channels_last,
            activation: Activation::None,
        })
    };
    Case {
        name: format!(
            "{} {x_shape:?} {:?} last {channels_last} pad {include_pad}",
            op.name(),
            case.kernel
        ),
        op,
        inputs: vec![x.fed()],
        want: vec![(y_shape.to_vec(), want)],
        tolerance: 1e-6,
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(2);
    let mut cases = Vec::new();
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[1, 1], &[1, 1]),
        (&[1, 37], &[37, 19]),
        (&[7, 13], &[13, 5]),
        (&[33, 65], &[65, 47]),
        (&[2, 3, 5, 7], &[2, 3, 7, 4]),
        (&[2, 1, 5, 7], &[3, 7, 4]),
        (&[3, 6, 0], &[0, 4]),
        (&[130, 40], &[40, 70]),
    ];
    for (left, right) in shapes {
        for fixed in [false, true] {
            cases.push(matmul(&mut random, left, right, MatMul::default(), fixed));
        }
        let mut swapped = right.to_vec();
        let r = swapped.len();
        swapped.swap(r - 1, r - 2);
        let op = MatMul {
            transpose_b: true,
            alpha: Some(0.5),
            activation: Activation::Relu,
        };
        cases.push(matmul(&mut random, left, &swapped, op, false));
    }
    for channels_last in [true, false] {
        let base = || ConvCase {
            n: 2,
            c: 5,
            m: 7,
            size: [9, 11],
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [1, 1, 1, 1],
            groups: 1,
            channels_last,
            activation: Activation::None,
            residual: false,
        };
        let relu = Activation::Relu;
        let clip = Activation::Clip { min: 0.0, max: 6.0 };
        let list = [
            base(),
            ConvCase {
                kernel: [1, 1],
                pads: [0; 4],
                activation: relu,
                ..base()
            },
            ConvCase {
                kernel: [1, 1],
                pads: [0; 4],
                stride: [2, 2],
                ..base()
            },
            ConvCase {
                c: 3,
                m: 16,
                stride: [2, 2],
                pads: [0, 0, 1, 1],
                activation: clip,
                ..base()
            },
            ConvCase {
                c: 16,
                m: 24,
                size: [8, 8],
                residual: true,
                activation: relu,
                ..base()
            },
            ConvCase {
                c: 6,
                m: 6,
                groups: 6,
                ..base()
            },
            ConvCase {
                c: 19,
                m: 19,
                groups: 19,
                stride: [2, 2],
                activation: clip,
                ..base()
            },
            ConvCase {
                c: 8,
                m: 16,
                groups: 8,
                ..base()
            },
            ConvCase {
                c: 12,
                m: 9,
                groups: 3,
                activation: Activation::Silu,
                ..base()
            },
            ConvCase {
                dilation: [2, 3],
                pads: [2, 3, 2, 3],
                ..base()
            },
            ConvCase {
                kernel: [1, 7],
                pads: [0, 3, 0, 3],
                activation: Activation::Sigmoid,
                ..base()
            },
            ConvCase {
                c: 1,
                m: 1,
                kernel: [5, 5],
                pads: [2; 4],
                ..base()
            },
            ConvCase { n: 0, ..base() },
            ConvCase {
                c: 32,
                m: 33,
                size: [5, 4],
                activation: Activation::HardSwish,
                ..base()
            },
            ConvCase {
                c: 4,
                m: 4,
                groups: 4,
                kernel: [5, 5],
                pads: [2; 4],
                activation: Activation::LeakyRelu { alpha: 0.2 },
                ..base()
            },
        ];
        for case in &list {
            cases.push(conv(&mut random, case));
        }
        let pools = [
            ConvCase {
                kernel: [2, 2],
                stride: [2, 2],
                pads: [0; 4],
                ..base()
            },
            ConvCase {
                kernel: [3, 3],
                stride: [2, 2],
                ..base()
            },
            ConvCase {
                c: 17,
                kernel: [3, 2],
                stride: [1, 2],
                pads: [1, 0, 0, 1],
                ..base()
            },
        ];
        for case in &pools {
            cases.push(pool(&mut random, case, true, false));
            cases.push(pool(&mut random, case, false, false));
            cases.push(pool(&mut random, case, false, true));
        }
    }
    cases
}
