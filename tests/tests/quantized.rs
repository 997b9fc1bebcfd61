//! Quantised graphs as exporters write them: what the passes make of them, against the same graph as it
//! stands.

#![cfg(not(target_arch = "wasm32"))]

use kilim::core::ops::*;
use kilim::{BackendId, DType, Fact, Graph, RunOptions, Runtime, SessionOptions, Tensor};

type V = kilim::core::ValueId;

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 20
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn bytes(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..n).map(|_| self.next() as u8).collect();
        Tensor::from_slice(shape, &bytes)
            .and_then(|t| t.reinterpreted(dtype))
            .unwrap()
    }

    fn of_bytes(&mut self) -> DType {
        [DType::U8, DType::I8][self.below(2)]
    }

    fn floats(&mut self, shape: &[usize], most: f32) -> Tensor {
        let n: usize = shape.iter().product();
        let of = |_| ((self.next() & 0xffff) as f32 / 32768.0 - 1.0) * most;
        let data: Vec<f32> = (0..n).map(of).collect();
        Tensor::from_slice(shape, &data).unwrap()
    }
}

/// A graph in the making.
struct Builder {
    g: Graph,
    random: Random,
    /// Scales are powers of two, so that no sum of real numbers is rounded.
    exact: bool,
}

/// Scale and zero point.
#[derive(Clone, Copy)]
struct Scale(V, V);

impl Builder {
    fn new(seed: u64, exact: bool) -> Builder {
        Builder {
            g: Graph::new("test"),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            exact,
        }
    }

    fn op(&mut self, op: impl Operator, inputs: &[V]) -> V {
        let name = format!("{}{}", op.name(), self.g.nodes.len());
        self.g.apply(name, op, inputs)
    }

    fn constant(&mut self, tensor: Tensor) -> V {
        let name = format!("c{}", self.g.values.len());
        self.g.add_constant(name, tensor)
    }

    fn scale_about(&mut self, size: f32) -> f32 {
        let by = 1.0 + self.random.below(1000) as f32 / 1000.0;
        match self.exact {
            true => size.log2().floor().exp2(),
            false => size * by,
        }
    }

    fn scale(&mut self, dtype: DType, size: f32) -> Scale {
        let scale = Tensor::scalar(self.scale_about(size)).unwrap();
        let zero = self.random.bytes(dtype, &[]);
        Scale(self.constant(scale), self.constant(zero))
    }

    fn quantise(&mut self, x: V, dtype: DType, size: f32) -> (V, Scale) {
        let s = self.scale(dtype, size);
        (self.quantise_as(x, s), s)
    }

    fn quantise_as(&mut self, x: V, Scale(s, z): Scale) -> V {
        let op = QuantizeLinear {
            axis: 1,
            block: 0,
            output: None,
        };
        self.op(op, &[x, s, z])
    }

    fn real_along(&mut self, x: V, Scale(s, z): Scale, axis: i64) -> V {
        self.op(DequantizeLinear { axis, block: 0 }, &[x, s, z])
    }

    fn real(&mut self, x: V, scale: Scale) -> V {
        self.real_along(x, scale, 1)
    }

    /// An input of bytes, as real numbers.
    fn input(&mut self, shape: &[usize], size: f32) -> (V, Scale) {
        let dtype = self.random.of_bytes();
        let name = format!("x{}", self.g.inputs.len());
        let x = self.g.add_input(name, Fact::fixed(dtype, shape));
        let scale = self.scale(dtype, size);
        (self.real(x, scale), scale)
    }

    /// Weights as real numbers, with the scales that they have.
    fn weights(&mut self, shape: &[usize], axis: usize, size: f32) -> (V, Vec<f32>) {
        let dtype = self.random.of_bytes();
        let count = if self.random.flag() { shape[axis] } else { 1 };
        let scales: Vec<f32> = (0..count).map(|_| self.scale_about(size)).collect();
        let dims: &[usize] = if count == 1 { &[] } else { &[count] };
        let s = self.constant(Tensor::from_slice(dims, &scales).unwrap());
        let z = self.random.bytes(dtype, dims);
        let z = self.constant(z);
        let w = self.random.bytes(dtype, shape);
        let w = self.constant(w);
        (self.real_along(w, Scale(s, z), axis as i64), scales)
    }

    /// A bias in steps of the product of two scales.
    fn bias(&mut self, n: usize, data: Scale, weights: &[f32]) -> V {
        let data = self.g.value(data.0).constant.as_ref().unwrap();
        let data = data.as_slice::<f32>().unwrap()[0];
        let scales: Vec<f32> = weights.iter().map(|w| w * data).collect();
        let dims: &[usize] = if scales.len() == 1 { &[] } else { &[n] };
        let numbers: Vec<i32> = (0..n)
            .map(|_| self.random.below(20_000) as i32 - 10_000)
            .collect();
        let zeros = Tensor::zeros(DType::I32, dims).unwrap();
        let b = self.constant(Tensor::from_slice(&[n], &numbers).unwrap());
        let s = self.constant(Tensor::from_slice(dims, &scales).unwrap());
        let z = self.constant(zeros);
        self.real_along(b, Scale(s, z), 0)
    }

    fn scalar(&mut self, value: f32) -> V {
        self.constant(Tensor::scalar(value).unwrap())
    }

    /// Nothing, Relu, or a clip.
    fn clamp(&mut self, x: V, most: f32) -> V {
        match self.random.below(4) {
            0 => self.op(Unary(UnaryKind::Relu), &[x]),
            1 => {
                let (low, high) = (self.scalar(-most / 3.0), self.scalar(most / 2.0));
                self.op(Clip, &[x, low, high])
            }
            _ => x,
        }
    }
}

fn run(graph: &Graph, optimise: bool, inputs: &[(&str, Tensor)]) -> Vec<Tensor> {
    let mut options = SessionOptions {
        backends: vec![BackendId::from("cpu")],
        ..SessionOptions::default()
    };
    options.core.optimise = optimise;
    let all = pollster::block_on(async {
        let mut session = Runtime::shared().session(graph.clone(), options).await?;
        session.run(inputs, &RunOptions::default()).await
    });
    let all = all.unwrap_or_else(|e| panic!("optimise {optimise}: {e}\n{graph:#?}"));
    all.into_iter().map(|(_, t)| t).collect()
}

/// The names of the operators that are left after all passes.
fn optimised(graph: &Graph) -> Vec<String> {
    let mut g = graph.clone();
    g.sort().unwrap();
    let cpu = Runtime::shared();
    let evaluator = pollster::block_on(cpu.backend(&BackendId::from("cpu"))).unwrap();
    let evaluate = |node: &kilim::core::backend::NodeSpec| evaluator.evaluate(node);
    let layout = kilim::core::backend::DataLayout::ChannelsLast;
    kilim::core::passes::optimise(&mut g, &evaluate, &|_| false, layout).unwrap();
    g.sort().unwrap();
    g.nodes.iter().map(|n| n.op.name().to_string()).collect()
}

/// The steps by which results differ between the graph as it stands and optimised, at most, and how
/// many of them do.
fn difference(b: &mut Builder, outputs: &[V]) -> (f64, usize) {
    b.g.outputs = outputs.to_vec();
    let ports = b.g.inputs.clone();
    let mut inputs = Vec::new();
    for v in ports {
        let value = b.g.value(v);
        let (name, dtype) = (value.name.clone(), value.fact.dtype.unwrap());
        let shape = value.fact.concrete().unwrap();
        let tensor = match dtype {
            DType::F32 => b.random.floats(&shape, 9.0),
            _ => b.random.bytes(dtype, &shape),
        };
        inputs.push((name, tensor));
    }
    let inputs: Vec<(&str, Tensor)> = inputs.iter().map(|(n, t)| (&n[..], t.clone())).collect();
    let plain = run(&b.g, false, &inputs);
    let fast = run(&b.g, true, &inputs);
    let (mut most, mut count) = (0.0f64, 0);
    for (a, b) in plain.iter().zip(&fast) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()));
        for (x, y) in a.to_f64s().unwrap().iter().zip(b.to_f64s().unwrap()) {
            most = most.max((x - y).abs());
            count += usize::from(*x != y);
        }
    }
    (most, count)
}

fn conv(stride: usize, groups: usize, pad: usize) -> Conv {
    Conv {
        strides: vec![stride; 2],
        dilations: vec![1; 2],
        padding: Padding::Explicit(vec![pad; 4]),
        groups,
        channels_last: false,
        activation: Activation::None,
    }
}

/// A convolution and what is around it, quantised; gives its result and the scale of that.
fn convolution(b: &mut Builder) -> V {
    let r = &mut b.random;
    let depthwise = r.below(3) == 0;
    let (c, m) = match depthwise {
        true => [(5, 5), (16, 16), (33, 33)][r.below(3)],
        false => [(3, 8), (8, 7), (17, 20), (4, 4)][r.below(4)],
    };
    let (h, w) = (4 + r.below(6), 4 + r.below(9));
    let (stride, pad, k) = (1 + r.below(2), r.below(2), 1 + 2 * r.below(2));
    let (x, scale) = b.input(&[1 + b.g.inputs.len() % 2, c, h, w], 0.02);
    let groups = if depthwise { c } else { 1 };
    let (weights, scales) = b.weights(&[m, c / groups, k, k], 0, 0.01);
    let mut inputs = vec![x, weights];
    if b.random.flag() {
        inputs.push(b.bias(m, scale, &scales));
    }
    let y = b.op(conv(stride, groups, pad), &inputs);
    let y = b.clamp(y, 4.0);
    let dtype = b.random.of_bytes();
    b.quantise(y, dtype, 0.05 * (c * k) as f32 / groups as f32)
        .0
}

fn product(b: &mut Builder) -> V {
    let r = &mut b.random;
    let (m, k, n) = (1 + r.below(5), 1 + r.below(40), 1 + r.below(40));
    let gemm = r.flag();
    let turned = gemm && r.flag();
    let (x, scale) = b.input(&[m, k], 0.02);
    let (shape, axis) = if turned { ([n, k], 0) } else { ([k, n], 1) };
    let (weights, scales) = b.weights(&shape, axis, 0.01);
    let y = if gemm {
        let mut inputs = vec![x, weights];
        if b.random.flag() {
            inputs.push(b.bias(n, scale, &scales));
        }
        let gemm = Gemm {
            alpha: 1.0,
            beta: 1.0,
            transpose_a: false,
            transpose_b: turned,
            activation: Activation::None,
        };
        b.op(gemm, &inputs)
    } else {
        b.op(MatMul::default(), &[x, weights])
    };
    let y = b.clamp(y, 4.0);
    let dtype = b.random.of_bytes();
    b.quantise(y, dtype, 0.02 * k as f32).0
}

#[test]
fn products_of_exact_scales_are_the_same_bytes() {
    for seed in 0..60 {
        let mut b = Builder::new(seed, true);
        let y = match seed % 2 {
            0 => convolution(&mut b),
            _ => product(&mut b),
        };
        let (_, count) = difference(&mut b, &[y]);
        assert_eq!(count, 0, "seed {seed}: {:#?}", b.g);
        let left = optimised(&b.g);
        let whole = left.iter().filter(|n| n.starts_with("QLinear")).count();
        let real = [
            "QuantizeLinear",
            "DequantizeLinear",
            "Conv",
            "Gemm",
            "MatMul",
        ];
        let none = !left.iter().any(|n| real.contains(&&n[..]));
        assert!(whole == 1 && none, "seed {seed}: {left:?}");
    }
}

/// Sums of real numbers are rounded, in another order on every machine: a result close to the middle
/// of two steps may be either of them.
#[test]
fn products_of_any_scales_are_at_most_one_step_away() {
    let (mut differ, mut all) = (0, 0);
    for seed in 100..160 {
        let mut b = Builder::new(seed, false);
        let y = match seed % 2 {
            0 => convolution(&mut b),
            _ => product(&mut b),
        };
        let (most, count) = difference(&mut b, &[y]);
        assert!(most <= 1.0, "seed {seed}: {most}\n{:#?}", b.g);
        differ += count;
        let mut facts = b.g.clone();
        kilim::core::passes::infer_graph(&mut facts).unwrap();
        let shape = facts.value(y).fact.concrete().unwrap();
        all += shape.iter().product::<usize>();
    }
    assert!(differ * 1000 <= all, "{differ} of {all} results differ");
}

#[test]
fn arithmetic_on_two_tensors_is_the_same_to_the_byte() {
    use BinaryKind::{Add, Max, Min, Mul, Sub};
    for seed in 200..260 {
        let mut b = Builder::new(seed, false);
        let kind = [Add, Sub, Mul, Max, Min][b.random.below(5)];
        let shapes: [[&[usize]; 2]; 5] = [
            [&[2, 3, 7], &[2, 3, 7]],
            [&[2, 3, 7], &[7]],
            [&[2, 3, 7], &[3, 1]],
            [&[5, 1, 4], &[3, 1]],
            [&[300], &[]],
        ];
        let [left, right] = shapes[b.random.below(5)];
        let (x, _) = b.input(left, 0.02);
        let (y, _) = b.input(right, 0.03);
        let z = b.op(Binary::new(kind), &[x, y]);
        let z = b.clamp(z, 2.0);
        let dtype = b.random.of_bytes();
        let z = b.quantise(z, dtype, 0.03).0;
        let (_, count) = difference(&mut b, &[z]);
        assert_eq!(count, 0, "seed {seed} {kind:?}: {:#?}", b.g);
        assert_eq!(optimised(&b.g), ["QLinearBinary"], "seed {seed}");
    }
}

#[test]
fn functions_of_one_tensor_become_tables() {
    let exact = [
        UnaryKind::Relu,
        UnaryKind::Abs,
        UnaryKind::Neg,
        UnaryKind::Floor,
        UnaryKind::LeakyRelu { alpha: 0.1 },
        UnaryKind::Clip {
            min: -0.7,
            max: 1.3,
        },
    ];
    let close = [
        UnaryKind::Sigmoid,
        UnaryKind::Tanh,
        UnaryKind::HardSwish,
        UnaryKind::Gelu { tanh: false },
    ];
    for (i, &kind) in exact.iter().chain(&close).enumerate() {
        for seed in 300..306 {
            let mut b = Builder::new(seed, false);
            let (x, _) = b.input(&[3, 5, 17], 0.02);
            let mut y = b.op(Unary(kind), &[x]);
            // Swish, spelled out, among others.
            if seed % 3 == 0 {
                y = b.op(Binary::new(BinaryKind::Mul), &[x, y]);
            }
            let dtype = b.random.of_bytes();
            let y = b.quantise(y, dtype, 0.02).0;
            let (most, count) = difference(&mut b, &[y]);
            let same = if i < exact.len() {
                count == 0
            } else {
                most <= 1.0
            };
            assert!(same, "{kind:?} {seed}: {count} differ");
            assert_eq!(optimised(&b.g), ["TableLookup"], "{kind:?} {seed}");
        }
    }
}

#[test]
fn movement_works_on_bytes() {
    for seed in 400..440 {
        let mut b = Builder::new(seed, false);
        let (mut x, scale) = b.input(&[2, 4, 6, 6], 0.02);
        let mut more = vec![];
        for _ in 0..3 {
            x = match b.random.below(4) {
                0 => {
                    let perm = vec![0, 1, 3, 2];
                    b.op(Transpose { perm }, &[x])
                }
                1 => {
                    let window = Window {
                        kernel: vec![2, 2],
                        strides: vec![1, 1],
                        dilations: vec![1, 1],
                        padding: Padding::Explicit(vec![1, 0, 0, 1]),
                        ceil_mode: false,
                    };
                    let pool = MaxPool {
                        window,
                        column_major: false,
                        channels_last: false,
                    };
                    b.op(pool, &[x])
                }
                2 => {
                    let shape = b.constant(Tensor::from_slice(&[4], &[2i64, 4, 6, 6]).unwrap());
                    b.op(Reshape { allow_zero: false }, &[x, shape])
                }
                _ => b.op(Concat { axis: 1 }, &[x, x]),
            };
            let channels = 4 << more.len();
            // A Concat doubles the channels: cut back to what a Reshape can take.
            let (from, to) = (
                b.constant(Tensor::from_slice(&[1], &[0i64]).unwrap()),
                b.constant(Tensor::from_slice(&[1], &[4i64]).unwrap()),
            );
            let axis = b.constant(Tensor::from_slice(&[1], &[1i64]).unwrap());
            x = b.op(Slice, &[x, from, to, axis]);
            more.push(channels);
        }
        let y = b.quantise_as(x, scale);
        let (_, count) = difference(&mut b, &[y]);
        assert_eq!(count, 0, "seed {seed}");
        let left = optimised(&b.g);
        let real = left
            .iter()
            .any(|n| n.ends_with("quantizeLinear") || n == "QuantizeLinear");
        assert!(!real, "seed {seed}: {left:?}");
    }
}

#[test]
fn parts_of_other_scales_are_brought_to_one() {
    for seed in 500..520 {
        let mut b = Builder::new(seed, false);
        let (x, _) = b.input(&[2, 3, 5], 0.02);
        let (y, _) = b.input(&[2, 4, 5], 0.05);
        let both = b.op(Concat { axis: 1 }, &[x, y]);
        let dtype = b.random.of_bytes();
        let both = b.quantise(both, dtype, 0.03).0;
        let (_, count) = difference(&mut b, &[both]);
        assert_eq!(count, 0, "seed {seed}");
        assert_eq!(optimised(&b.g), ["TableLookup", "TableLookup", "Concat"]);
    }
}

/// A residual block as onnxruntime's static quantisation writes it: nothing real is left inside.
#[test]
fn a_residual_block_is_integers_from_end_to_end() {
    let mut b = Builder::new(7, true);
    let x = b.g.add_input("x", Fact::fixed(DType::F32, &[1, 8, 10, 10]));
    let (q, scale) = b.quantise(x, DType::U8, 0.06);
    let real = b.real(q, scale);
    let mut y = real;
    let mut s = scale;
    for _ in 0..2 {
        let (weights, scales) = b.weights(&[8, 8, 3, 3], 0, 0.004);
        let bias = b.bias(8, s, &scales);
        y = b.op(conv(1, 1, 1), &[y, weights, bias]);
        y = b.op(Unary(UnaryKind::Relu), &[y]);
        let (q, to) = b.quantise(y, DType::U8, 0.06);
        (y, s) = (b.real(q, to), to);
    }
    let sum = b.op(Binary::new(BinaryKind::Add), &[y, real]);
    let (q, to) = b.quantise(sum, DType::U8, 0.1);
    let y = b.real(q, to);
    let (_, count) = difference(&mut b, &[y]);
    assert_eq!(count, 0);
    let left = optimised(&b.g);
    let count = |name: &str| left.iter().filter(|n| *n == name).count();
    assert_eq!(
        [
            "QuantizeLinear",
            "QLinearConv",
            "QLinearBinary",
            "DequantizeLinear",
            "Transpose"
        ]
        .map(count),
        [1, 2, 1, 1, 2],
        "{left:?}"
    );
}

/// What another reader needs as real numbers, or what no integer product is, stays as it is.
#[test]
fn what_cannot_be_replaced_stays() {
    let mut b = Builder::new(8, false);
    let (x, _) = b.input(&[3, 9], 0.02);
    let (weights, _) = b.weights(&[9, 6], 1, 0.01);
    let y = b.op(MatMul::default(), &[x, weights]);
    let q = b.quantise(y, DType::I8, 0.1).0;
    b.g.outputs = vec![q, y];
    assert!(optimised(&b.g).contains(&"MatMul".to_string()));
    let mut b = Builder::new(9, false);
    let (x, _) = b.input(&[3, 9], 0.02);
    let (y, _) = b.input(&[9, 4], 0.02);
    let z = b.op(MatMul::default(), &[x, y]);
    let q = b.quantise(z, DType::I8, 0.1).0;
    let (_, count) = difference(&mut b, &[q]);
    assert_eq!(count, 0);
    assert!(optimised(&b.g).contains(&"MatMul".to_string()));
}
