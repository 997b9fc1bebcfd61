//! Convolutions and matrix products.

use std::sync::Arc;

use kilim::core::fixed::Factor;
use kilim::core::ops::{
    Activation, Conv, ConvInteger, MatMulInteger, MatMulIntegerToFloat, Padding, QLinearConv,
    QLinearMatMul, Requantize,
};
use kilim::{DType, Tensor};

use super::super::{Case, Input, Random, each_index, flat};
use super::{Bytes, constant, range, scale};

/// A sum as QLinearConv and QLinearMatMul quantise it.
fn scaled(sum: i64, factor: f32, zero: i64, dtype: DType, activation: Activation, y: f32) -> f64 {
    let (low, high) = range(dtype);
    let step = (sum as i32 as f32 * factor).round_ties_even() as f64 + zero as f64;
    let clamp = |bound: f32, none: i64| match bound.is_finite() {
        true => ((bound / y).round_ties_even() as i64 + zero).clamp(low, high),
        false => none,
    };
    let [least, most] = activation.bounds().expect("a clamp");
    step.clamp(clamp(least, low) as f64, clamp(most, high) as f64)
}

/// A convolution: sizes, and the layout.
#[derive(Clone, Debug)]
struct Layer {
    batch: usize,
    size: [usize; 2],
    channels: usize,
    outputs: usize,
    groups: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
    channels_last: bool,
}

impl Layer {
    fn conv(&self, activation: Activation) -> Conv {
        Conv {
            strides: vec![self.stride; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![self.pad; 4]),
            groups: self.groups,
            channels_last: self.channels_last,
            activation,
        }
    }

    fn shape(&self, c: usize, [h, w]: [usize; 2]) -> Vec<usize> {
        match self.channels_last {
            true => vec![self.batch, h, w, c],
            false => vec![self.batch, c, h, w],
        }
    }

    fn output(&self) -> [usize; 2] {
        self.size
            .map(|n| (n + 2 * self.pad - self.kernel) / self.stride + 1)
    }

    /// Calls `f` with the channel of each output and its sum, in the order of the output.
    fn sums(&self, x: &Bytes, zx: i64, w: &Bytes, zw: &[i64], mut f: impl FnMut(usize, i64)) {
        let shape = self.shape(self.outputs, self.output());
        let (own, of_group) = (self.channels / self.groups, self.outputs / self.groups);
        each_index(&shape, |index| {
            let [n, m, oy, ox] = match (self.channels_last, index) {
                (true, &[n, y, x, m]) => [n, m, y, x],
                (_, &[n, m, y, x]) => [n, m, y, x],
                _ => return,
            };
            let mut sum = 0;
            each_index(&[own, self.kernel, self.kernel], |tap| {
                let y = (oy * self.stride + tap[1]).wrapping_sub(self.pad);
                let c = (ox * self.stride + tap[2]).wrapping_sub(self.pad);
                if y < self.size[0] && c < self.size[1] {
                    let channel = m / of_group * own + tap[0];
                    let at = match self.channels_last {
                        true => [n, y, c, channel],
                        false => [n, channel, y, c],
                    };
                    let weight = w.data[flat(&w.shape, &[m, tap[0], tap[1], tap[2]])];
                    let value = x.data[flat(&x.shape, &at)];
                    sum += (value - zx) * (weight - zw[m % zw.len()]);
                }
            });
            f(m, sum);
        });
    }
}

fn layers() -> Vec<Layer> {
    let mut layers = Vec::new();
    for (channels, outputs, groups) in [(3, 7, 1), (16, 17, 1), (5, 5, 5), (33, 33, 33), (6, 4, 2)]
    {
        for (kernel, stride, pad) in [(1, 1, 0), (3, 1, 1), (3, 2, 1)] {
            for channels_last in [false, true] {
                layers.push(Layer {
                    batch: 1 + kernel / 2,
                    size: [5 + stride, 7],
                    channels,
                    outputs,
                    groups,
                    kernel,
                    stride,
                    pad,
                    channels_last,
                });
            }
        }
    }
    layers
}

pub(super) fn convolutions(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, layer) in layers().into_iter().enumerate() {
        let (tx, tw, ty) = (random.dtype(), random.dtype(), random.dtype());
        let x = random.bytes(tx, &layer.shape(layer.channels, layer.size));
        let own = layer.channels / layer.groups;
        let w = random.bytes(tw, &[layer.outputs, own, layer.kernel, layer.kernel]);
        let count = if i % 2 == 0 { layer.outputs } else { 1 };
        let (zx, zw) = (
            random.bytes(tx, &[]),
            random.bytes(tw, &[count][..usize::from(count > 1)]),
        );
        let bias: Vec<i32> = (0..layer.outputs)
            .map(|_| random.whole(-9000, 9000) as i32)
            .collect();
        let shape = layer.shape(layer.outputs, layer.output());
        let with_bias = i % 3 > 0;
        let biased = |m: usize, sum: i64| sum + if with_bias { i64::from(bias[m]) } else { 0 };

        let (sx, sw) = (random.scales(1, 0.02), random.scales(count, 0.01));
        let (sy, zy) = (random.scales(1, 0.2), random.bytes(ty, &[]));
        let activation = [
            Activation::None,
            Activation::Relu,
            Activation::Clip {
                min: -1.0,
                max: 3.0,
            },
        ][i % 3];
        let mut want = Vec::new();
        layer.sums(&x, zx.data[0], &w, &zw.data, |m, sum| {
            let factor = sx[0] * sw[m % count] / sy[0];
            let sum = biased(m, sum);
            want.push(scaled(sum, factor, zy.data[0], ty, activation, sy[0]));
        });
        let mut inputs = vec![
            x.fed(),
            scale(&sx),
            zx.constant(),
            w.constant(),
            scale(&sw),
            zw.constant(),
            scale(&sy),
            zy.constant(),
        ];
        if with_bias {
            inputs.push(constant(&[layer.outputs], &bias));
        }
        cases.push(Case {
            name: format!("QLinearConv {layer:?} {activation:?}"),
            op: Arc::new(QLinearConv {
                conv: layer.conv(activation),
            }),
            inputs,
            want: vec![(shape.clone(), want)],
            tolerance: 0.0,
        });

        // Factors for several channels need them last.
        let factors = if layer.channels_last { count } else { 1 };
        let requantize = Requantize {
            factors: (0..factors)
                .map(|_| Factor::new(f64::from(random.unit().abs()) * 0.01).expect("a factor"))
                .collect(),
            zero_point: -3,
            range: [-100, 120],
            output: DType::I8,
        };
        let again = (i % 4 > 0).then_some(requantize);
        let mut want = Vec::new();
        layer.sums(&x, zx.data[0], &w, &zw.data, |m, sum| {
            want.push(match &again {
                None => sum as f64,
                Some(r) => f64::from(r.apply(m, sum as i32)),
            });
        });
        cases.push(Case {
            name: format!("ConvInteger {layer:?} {}", again.is_some()),
            op: Arc::new(ConvInteger {
                conv: layer.conv(Activation::None),
                requantize: again,
            }),
            inputs: vec![x.fed(), w.constant(), zx.constant(), zw.constant()],
            want: vec![(shape, want)],
            tolerance: 0.0,
        });
    }
    cases
}

pub(super) fn products(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [
        (1, 1, 1),
        (1, 7, 5),
        (6, 64, 33),
        (13, 31, 17),
        (4, 300, 9),
        (2, 5, 130),
    ];
    for (i, (m, k, n)) in sizes.into_iter().enumerate() {
        let (ta, tb, ty) = (random.dtype(), random.dtype(), random.dtype());
        let batch = 1 + i % 2;
        let (a, b) = (random.bytes(ta, &[batch, m, k]), random.bytes(tb, &[k, n]));
        let count = if i % 2 == 0 { n } else { 1 };
        let dims = if count == 1 { vec![] } else { vec![n] };
        let (za, zb) = (random.bytes(ta, &[]), random.bytes(tb, &dims));
        let mut sums = Vec::new();
        each_index(&[batch * m, n], |at| {
            let term = |l: usize| {
                let zero = zb.data[at[1] % count];
                (a.data[at[0] * k + l] - za.data[0]) * (b.data[l * n + at[1]] - zero)
            };
            sums.push((0..k).map(term).sum::<i64>());
        });
        let shape = vec![batch, m, n];
        for fixed in [true, false] {
            cases.push(Case {
                name: format!("MatMulInteger {m} {k} {n} {fixed}"),
                op: Arc::new(MatMulInteger::default()),
                inputs: vec![
                    a.fed(),
                    if fixed { b.constant() } else { b.fed() },
                    za.fed(),
                    zb.constant(),
                ],
                want: vec![(shape.clone(), sums.iter().map(|&s| s as f64).collect())],
                tolerance: 0.0,
            });
        }
        let (sa, sb) = (random.scales(1, 0.02), random.scales(count, 0.01));
        let (sy, zy) = (random.scales(1, 0.1), random.bytes(ty, &[]));
        let bias: Vec<i32> = (0..n).map(|_| random.whole(-9000, 9000) as i32).collect();
        let activation = [Activation::None, Activation::Relu][i % 2];
        let of = |(at, sum): (usize, &i64)| {
            let factor = sa[0] * sb[at % n % count] / sy[0];
            let sum = sum + i64::from(bias[at % n]);
            scaled(sum, factor, zy.data[0], ty, activation, sy[0])
        };
        cases.push(Case {
            name: format!("QLinearMatMul {m} {k} {n} {activation:?}"),
            op: Arc::new(QLinearMatMul { activation }),
            inputs: vec![
                a.fed(),
                scale(&sa),
                za.constant(),
                b.constant(),
                scale(&sb),
                zb.constant(),
                scale(&sy),
                zy.constant(),
                constant(&[n], &bias),
            ],
            want: vec![(shape, sums.iter().enumerate().map(of).collect())],
            tolerance: 0.0,
        });
    }
    cases
}

/// Products of bytes as real numbers.
pub(super) fn real_products(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    // Leading dimensions and rows of the data, depth, columns.
    let sizes: [(&[usize], usize, usize); 9] = [
        (&[1], 1, 1),
        (&[1], 70, 33),
        (&[5], 3, 130),
        (&[30], 64, 48),
        (&[2, 3, 7], 31, 17),
        (&[], 9, 20),
        (&[0], 4, 5),
        (&[3], 0, 5),
        (&[2, 4], 5, 0),
    ];
    for (i, (rows, k, n)) in sizes.into_iter().enumerate() {
        let (ta, tb) = (random.dtype(), random.dtype());
        let (x, w) = ([rows, &[k]].concat(), [k, n]);
        let (a, b) = (random.bytes(ta, &x), random.bytes(tb, &w));
        let (each, given) = (i % 2 == 0 && n > 0, i % 3 > 0);
        let count = if each { n } else { 1 };
        let dims = if each { vec![n] } else { vec![] };
        let (za, zb) = (random.bytes(ta, &[]), random.bytes(tb, &dims));
        let (sa, sb) = (random.scales(1, 0.02)[0], random.scales(count, 0.01));
        let bias = random.scales(n, 0.3);
        let shape = [rows, &[n]].concat();
        let zero = |z: &Bytes, at: usize| if given { z.data[at % z.data.len()] } else { 0 };
        let mut sums = Vec::new();
        each_index(&[rows.iter().product(), n], |at| {
            let term = |l: usize| {
                let right = b.data[l * n + at[1]] - zero(&zb, at[1]);
                (a.data[at[0] * k + l] - zero(&za, 0)) * right
            };
            sums.push((0..k).map(term).sum::<i64>());
        });
        for (biased, fixed) in [(true, true), (false, true), (true, false)] {
            let of = |(at, &sum): (usize, &i64)| {
                let scaled = sum as i32 as f32 * (sa * sb[at % n % count]);
                f64::from(if biased {
                    scaled + bias[at % n]
                } else {
                    scaled
                })
            };
            let known = |input: Input| match (fixed, input) {
                (false, Input::Constant(t)) => Input::Fed(t),
                (_, other) => other,
            };
            let there = |input: Input, there: bool| if there { input } else { Input::Absent };
            cases.push(Case {
                name: format!("MatMulIntegerToFloat {rows:?} {k} {n} {biased} {fixed}"),
                op: Arc::new(MatMulIntegerToFloat),
                inputs: vec![
                    a.fed(),
                    known(b.constant()),
                    Input::Fed(Tensor::scalar(sa).expect("the suite's arrays are well formed")),
                    known(constant(&dims, &sb)),
                    there(za.fed(), given),
                    there(known(zb.constant()), given),
                    there(known(constant(&[n], &bias)), biased),
                ],
                want: vec![(shape.clone(), sums.iter().enumerate().map(of).collect())],
                tolerance: 0.0,
            });
        }
    }
    cases
}
