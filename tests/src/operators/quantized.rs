//! Quantised operators. What they must give is computed here in whole numbers, with the roundings in
//! `float32` and in fixed point that their definitions name, and is the same to the byte on every
//! backend, instruction set and build.

use std::sync::Arc;

use kilim::core::fixed::Factor;
use kilim::core::ops::*;
use kilim::core::tensor::Element;
use kilim::{DType, Tensor};

use super::{Case, Input, Random, each_index, flat};

/// Numbers of 8 bits.
struct Bytes {
    shape: Vec<usize>,
    data: Vec<i64>,
    dtype: DType,
}

impl Random {
    fn whole(&mut self, low: i64, high: i64) -> i64 {
        let unit = (f64::from(self.unit()) + 1.0) / 2.0;
        low + (unit * (high - low + 1) as f64) as i64
    }

    fn bytes(&mut self, dtype: DType, shape: &[usize]) -> Bytes {
        let (low, high) = range(dtype);
        let n = shape.iter().product();
        Bytes {
            shape: shape.to_vec(),
            data: (0..n).map(|_| self.whole(low, high)).collect(),
            dtype,
        }
    }

    fn dtype(&mut self) -> DType {
        [DType::U8, DType::I8][self.whole(0, 1) as usize]
    }

    /// Scales of `shape` around `size`.
    fn scales(&mut self, n: usize, size: f32) -> Vec<f32> {
        (0..n).map(|_| size * (1.5 + self.unit())).collect()
    }
}

fn range(dtype: DType) -> (i64, i64) {
    if dtype == DType::I8 {
        (-128, 127)
    } else {
        (0, 255)
    }
}

impl Bytes {
    fn tensor(&self) -> Tensor {
        let bytes: Vec<u8> = self.data.iter().map(|&v| v as u8).collect();
        Tensor::from_slice(&self.shape, &bytes)
            .and_then(|t| t.reinterpreted(self.dtype))
            .expect("the suite's arrays are well formed")
    }

    fn fed(&self) -> Input {
        Input::Fed(self.tensor())
    }

    fn constant(&self) -> Input {
        Input::Constant(self.tensor())
    }
}

fn constant<T: Element>(shape: &[usize], data: &[T]) -> Input {
    Input::Constant(Tensor::from_slice(shape, data).expect("the suite's arrays are well formed"))
}

/// A scale or one for each channel.
fn scale(data: &[f32]) -> Input {
    let shape: &[usize] = if data.len() == 1 { &[] } else { &[data.len()] };
    constant(shape, data)
}

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

fn convolutions(random: &mut Random) -> Vec<Case> {
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
            want: (shape.clone(), want),
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
            want: (shape, want),
            tolerance: 0.0,
        });
    }
    cases
}

fn products(random: &mut Random) -> Vec<Case> {
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
                want: (shape.clone(), sums.iter().map(|&s| s as f64).collect()),
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
            want: (shape, sums.iter().enumerate().map(of).collect()),
            tolerance: 0.0,
        });
    }
    cases
}

/// Combines two tensors of shapes that broadcast, by index.
fn joined(a: &Bytes, b: &Bytes, f: impl Fn(i64, i64) -> f64) -> (Vec<usize>, Vec<f64>) {
    let rank = a.shape.len().max(b.shape.len());
    let dim = |s: &[usize], d: usize| match d.checked_sub(rank - s.len()) {
        Some(d) => s[d],
        None => 1,
    };
    let shape: Vec<usize> = (0..rank)
        .map(|d| dim(&a.shape, d).max(dim(&b.shape, d)))
        .collect();
    let at = |s: &[usize], index: &[usize]| {
        let own: Vec<usize> = (rank - s.len()..rank)
            .map(|d| if dim(s, d) == 1 { 0 } else { index[d] })
            .collect();
        flat(s, &own)
    };
    let mut out = Vec::new();
    each_index(&shape, |i| {
        out.push(f(a.data[at(&a.shape, i)], b.data[at(&b.shape, i)]));
    });
    (shape, out)
}

fn pairs(random: &mut Random) -> Vec<Case> {
    use BinaryKind::{Add, Max, Min, Mul, Sub};
    let shapes: [[&[usize]; 2]; 6] = [
        [&[5], &[5]],
        [&[2, 3, 7], &[7]],
        [&[2, 3, 7], &[3, 1]],
        [&[2, 1, 5], &[3, 1]],
        [&[], &[3]],
        [&[1031], &[1031]],
    ];
    let mut cases = Vec::new();
    for kind in [Add, Sub, Mul, Max, Min] {
        for [left, right] in shapes {
            let (ta, tb, output) = (random.dtype(), random.dtype(), random.dtype());
            let (a, b) = (random.bytes(ta, left), random.bytes(tb, right));
            let mut affine = |dtype: DType, size: f32| Affine {
                scale: random.scales(1, size)[0],
                zero: random.bytes(dtype, &[]).data[0] as f32,
            };
            let operands = [affine(ta, 0.02), affine(tb, 0.03)];
            let result = affine(output, 0.03);
            let (low, high) = range(output);
            let op = QLinearBinary {
                kind,
                operands,
                offset: 0.0,
                result,
                range: [low as f32 + 9.0, high as f32],
                output,
            };
            let real = |v: i64, of: Affine| (v as f32 - of.zero) * of.scale;
            let want = joined(&a, &b, |a, b| {
                let (a, b) = (real(a, operands[0]), real(b, operands[1]));
                let value = match kind {
                    Add => a + b,
                    Sub => a - b,
                    Mul => a * b,
                    Max => a.max(b),
                    _ => a.min(b),
                };
                let step = (value / result.scale).round_ties_even() + result.zero;
                f64::from(step.clamp(op.range[0], op.range[1]))
            });
            cases.push(Case {
                name: format!("QLinearBinary {kind:?} {left:?} {right:?}"),
                op: Arc::new(op),
                inputs: vec![a.fed(), b.fed()],
                want,
                tolerance: 0.0,
            });
        }
    }
    for [left, right] in shapes {
        let (a, b) = (
            random.bytes(DType::I8, left),
            random.bytes(DType::I8, right),
        );
        let factor = |real: f64| Factor::new(real).expect("a factor");
        let factors = [factor(0.73), factor(0.41)];
        let op = QuantizedBinary {
            zero_points: [5, -7],
            combination: Combination::Sum {
                left_shift: 20,
                factors,
            },
            result: Requantize {
                factors: vec![factor(1.3 / f64::from(1 << 20))],
                zero_point: -4,
                range: [-128, 127],
                output: DType::I8,
            },
        };
        let want = joined(&a, &b, |a, b| {
            let sum =
                factors[0].apply((a as i32 - 5) << 20) + factors[1].apply((b as i32 + 7) << 20);
            f64::from(op.result.apply(0, sum))
        });
        cases.push(Case {
            name: format!("QuantizedBinary {left:?} {right:?}"),
            op: Arc::new(op),
            inputs: vec![a.fed(), b.fed()],
            want,
            tolerance: 0.0,
        });
    }
    cases
}

fn conversions(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in [&[7][..], &[0, 3], &[2, 3, 1031], &[1, 5, 4]] {
        let channels = shape.get(1).copied().filter(|&c| c > 0).unwrap_or(1);
        for per_axis in [false, true] {
            let count = if per_axis && shape.len() > 2 {
                channels
            } else {
                1
            };
            let inner: usize = shape.iter().skip(2).product();
            let dims = if count > 1 { vec![count] } else { vec![] };
            let dtype = random.dtype();
            let (scales, zeros) = (random.scales(count, 0.02), random.bytes(dtype, &dims));
            let of = |i: usize| if count > 1 { i / inner % count } else { 0 };
            let mut x = random.array(shape);
            x.data.iter_mut().for_each(|v| *v *= 4.0);
            let (low, high) = range(dtype);
            let quantised = |(i, v): (usize, &f32)| {
                let step = (v / scales[of(i)]).round_ties_even() + zeros.data[of(i)] as f32;
                f64::from(step.clamp(low as f32, high as f32))
            };
            cases.push(Case {
                name: format!("QuantizeLinear {shape:?} {count}"),
                op: Arc::new(QuantizeLinear {
                    axis: 1,
                    block: 0,
                    output: None,
                }),
                inputs: vec![x.fed(), scale(&scales), zeros.constant()],
                want: (
                    shape.to_vec(),
                    x.data.iter().enumerate().map(quantised).collect(),
                ),
                tolerance: 0.0,
            });
            let bytes = random.bytes(dtype, shape);
            let real =
                |(i, &v): (usize, &i64)| f64::from((v - zeros.data[of(i)]) as f32 * scales[of(i)]);
            cases.push(Case {
                name: format!("DequantizeLinear {shape:?} {count}"),
                op: Arc::new(DequantizeLinear { axis: 1, block: 0 }),
                inputs: vec![bytes.fed(), scale(&scales), zeros.constant()],
                want: (
                    shape.to_vec(),
                    bytes.data.iter().enumerate().map(real).collect(),
                ),
                tolerance: 0.0,
            });
            let table = random.bytes(dtype, &[256]);
            let looked_up = |&v: &i64| table.data[usize::from(v as u8)] as f64;
            cases.push(Case {
                name: format!("TableLookup {shape:?} {dtype}"),
                op: Arc::new(TableLookup),
                inputs: vec![bytes.fed(), table.constant()],
                want: (shape.to_vec(), bytes.data.iter().map(looked_up).collect()),
                tolerance: 0.0,
            });
        }
    }
    cases
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(5);
    let mut cases = convolutions(&mut random);
    cases.extend(products(&mut random));
    cases.extend(pairs(&mut random));
    cases.extend(conversions(&mut random));
    cases
}
