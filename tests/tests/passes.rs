//! The passes keep results: graphs run as they are and optimised give the same numbers.

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
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 20) as usize % n
    }

    fn floats(&mut self, shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        let of = |_| (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        let data: Vec<f32> = (0..n).map(of).collect();
        Tensor::from_slice(shape, &data).unwrap()
    }
}

fn run(graph: &Graph, optimise: bool, inputs: &[(&str, Tensor)]) -> Vec<(String, Tensor)> {
    let mut options = SessionOptions {
        backends: vec![BackendId::from("cpu")],
        ..SessionOptions::default()
    };
    options.core.optimise = optimise;
    pollster::block_on(async {
        let mut session = Runtime::shared().session(graph.clone(), options).await?;
        session.run(inputs, &RunOptions::default()).await
    })
    .unwrap_or_else(|e| panic!("optimise {optimise}: {e}\n{graph:#?}"))
}

/// The nodes that are left after all passes.
fn optimised(graph: &Graph) -> Graph {
    let mut g = graph.clone();
    g.sort().unwrap();
    let cpu = Runtime::shared();
    let evaluator = pollster::block_on(cpu.backend(&BackendId::from("cpu"))).unwrap();
    let evaluate = |node: &kilim::core::backend::NodeSpec| evaluator.evaluate(node);
    let narrow = |d: DType| d == DType::F16;
    kilim::core::passes::optimise(&mut g, &evaluate, &narrow).unwrap();
    g.sort().unwrap();
    g
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|n| n.op.name()).collect()
}

/// Runs both ways and compares; gives the optimised graph.
fn check(graph: &Graph, seed: u64) -> Graph {
    let mut random = Random(seed | 1);
    let inputs: Vec<(String, Tensor)> = graph
        .inputs
        .iter()
        .map(|&v| {
            let value = graph.value(v);
            let shape = value.fact.concrete().unwrap();
            (value.name.clone(), random.floats(&shape))
        })
        .collect();
    let inputs: Vec<(&str, Tensor)> = inputs.iter().map(|(n, t)| (&n[..], t.clone())).collect();
    let plain = run(graph, false, &inputs);
    let fast = run(graph, true, &inputs);
    assert_eq!(plain.len(), fast.len());
    for ((name, a), (other, b)) in plain.iter().zip(&fast) {
        assert_eq!(name, other);
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{graph:#?}");
        let (a, b) = (a.to_f64s().unwrap(), b.to_f64s().unwrap());
        let largest = a.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (x, y) in a.iter().zip(&b) {
            let close = (x - y).abs() <= 1e-5 * largest;
            assert!(close, "seed {seed}: {x} and {y}\n{graph:#?}");
        }
    }
    optimised(graph)
}

/// A graph in the making.
struct Builder {
    g: Graph,
    random: Random,
}

impl Builder {
    fn new(seed: u64) -> Builder {
        Builder {
            g: Graph::new("test"),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        }
    }

    fn input(&mut self, name: &str, shape: &[usize]) -> V {
        self.g.add_input(name, Fact::fixed(DType::F32, shape))
    }

    fn op(&mut self, op: impl Operator, inputs: &[V]) -> V {
        let name = format!("{}{}", op.name(), self.g.nodes.len());
        self.g.apply(name, op, inputs)
    }

    fn constant(&mut self, tensor: Tensor) -> V {
        let name = format!("c{}", self.g.values.len());
        self.g.add_constant(name, tensor)
    }

    fn floats(&mut self, shape: &[usize]) -> V {
        let tensor = self.random.floats(shape);
        self.constant(tensor)
    }

    fn scalar(&mut self, value: f32) -> V {
        self.constant(Tensor::scalar(value).unwrap())
    }

    fn ints(&mut self, ints: &[i64]) -> V {
        self.constant(Tensor::from_slice(&[ints.len()], ints).unwrap())
    }

    fn unary(&mut self, kind: UnaryKind, x: V) -> V {
        self.op(Unary(kind), &[x])
    }

    fn binary(&mut self, kind: BinaryKind, a: V, b: V) -> V {
        self.op(Binary::new(kind), &[a, b])
    }

    fn transpose(&mut self, x: V, perm: &[usize]) -> V {
        let perm = perm.to_vec();
        self.op(Transpose { perm }, &[x])
    }

    fn conv(&mut self, x: V, c: usize, m: usize, groups: usize) -> V {
        let w = self.floats(&[m, c / groups, 3, 3]);
        let b = self.floats(&[m]);
        let conv = Conv {
            strides: vec![1, 1],
            dilations: vec![1, 1],
            padding: Padding::Explicit(vec![1, 1, 1, 1]),
            groups,
            channels_last: false,
            activation: Activation::None,
        };
        self.op(conv, &[x, w, b])
    }

    fn mean(&mut self, x: V, axes: &[i64], keep_dims: bool) -> V {
        let axes = self.ints(axes);
        let kind = ReduceKind::Mean;
        let mean = Reduce {
            kind,
            keep_dims,
            noop_with_empty_axes: false,
        };
        self.op(mean, &[x, axes])
    }

    fn check(mut self, outputs: &[V], seed: u64) -> Graph {
        self.g.outputs = outputs.to_vec();
        check(&self.g, seed)
    }
}

#[test]
fn a_residual_block_becomes_its_convolutions() {
    let mut b = Builder::new(1);
    let x = b.input("x", &[2, 4, 6, 5]);
    let mut y = b.conv(x, 4, 4, 1);
    let scale = b.floats(&[4]);
    let bias = b.floats(&[4]);
    let mean = b.floats(&[4]);
    let variance = b.constant(Tensor::from_slice(&[4], &[0.5f32, 1.0, 2.0, 0.1]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-5,
        channels_last: false,
    };
    y = b.op(norm, &[y, scale, bias, mean, variance]);
    y = b.unary(UnaryKind::Relu, y);
    y = b.conv(y, 4, 4, 2);
    let c = b.floats(&[4, 1, 1]);
    y = b.binary(BinaryKind::Mul, y, c);
    y = b.binary(BinaryKind::Add, y, x);
    y = b.unary(UnaryKind::Relu, y);
    let g = b.check(&[y], 1);
    assert_eq!(names(&g), ["Transpose", "Conv", "Conv", "Transpose"]);
    let last = g.nodes[2].op.downcast_ref::<Conv>().unwrap();
    assert_eq!(last.activation, Activation::Relu);
    assert_eq!(g.nodes[2].inputs.len(), 4);
}

#[test]
fn normalisation_on_its_own() {
    let mut b = Builder::new(2);
    let x = b.input("x", &[2, 3, 4, 5]);
    let p: Vec<V> = (0..3).map(|_| b.floats(&[3])).collect();
    let variance = b.constant(Tensor::from_slice(&[3], &[0.5f32, 1.0, 2.0]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-3,
        channels_last: false,
    };
    let y = b.op(norm.clone(), &[x, p[0], p[1], p[2], variance]);
    let z = b.unary(UnaryKind::Relu, y);
    let y = b.op(norm, &[x, p[1], p[0], p[2], variance]);
    let y = b.transpose(y, &[0, 2, 3, 1]);
    let g = b.check(&[y, z], 2);
    assert_eq!(names(&g), ["Mul", "Add", "BatchNormalization", "Transpose"]);
}

#[test]
fn a_transformer_block_spelled_out() {
    let mut b = Builder::new(3);
    let x = b.input("x", &[2, 5, 8]);
    // Layer normalisation
    let mean = b.mean(x, &[-1], true);
    let d = b.binary(BinaryKind::Sub, x, mean);
    let two = b.scalar(2.0);
    let square = b.binary(BinaryKind::Pow, d, two);
    let variance = b.mean(square, &[-1], true);
    let epsilon = b.scalar(1e-5);
    let variance = b.binary(BinaryKind::Add, variance, epsilon);
    let deviation = b.unary(UnaryKind::Sqrt, variance);
    let y = b.binary(BinaryKind::Div, d, deviation);
    let gamma = b.floats(&[8]);
    let beta = b.floats(&[8]);
    let y = b.binary(BinaryKind::Mul, y, gamma);
    let normed = b.binary(BinaryKind::Add, y, beta);
    // Attention scores
    let k = b.transpose(normed, &[0, 2, 1]);
    let scores = b.op(MatMul::default(), &[normed, k]);
    let eight = b.scalar(8.0);
    let scores = b.binary(BinaryKind::Div, scores, eight);
    // Gelu
    let w = b.floats(&[5, 6]);
    let y = b.op(MatMul::default(), &[scores, w]);
    let bias = b.floats(&[6]);
    let y = b.binary(BinaryKind::Add, y, bias);
    let root = b.scalar(std::f32::consts::SQRT_2);
    let e = b.binary(BinaryKind::Div, y, root);
    let e = b.unary(UnaryKind::Erf, e);
    let one = b.scalar(1.0);
    let e = b.binary(BinaryKind::Add, e, one);
    let y = b.binary(BinaryKind::Mul, y, e);
    let half = b.scalar(0.5);
    let y = b.binary(BinaryKind::Mul, y, half);
    // Root-mean-square normalisation
    let square = b.binary(BinaryKind::Mul, y, y);
    let square = b.mean(square, &[2], true);
    let square = b.binary(BinaryKind::Add, square, epsilon);
    let root = b.unary(UnaryKind::Sqrt, square);
    let root = b.unary(UnaryKind::Reciprocal, root);
    let y = b.binary(BinaryKind::Mul, y, root);
    let gamma = b.floats(&[6]);
    let y = b.binary(BinaryKind::Mul, gamma, y);
    let g = b.check(&[y], 3);
    let expected = [
        "LayerNormalization",
        "MatMul",
        "MatMul",
        "Gelu",
        "RMSNormalization",
    ];
    assert_eq!(names(&g), expected);
}

#[test]
fn activations_spelled_out() {
    let mut b = Builder::new(4);
    let x = b.input("x", &[3, 7]);
    let s = b.unary(UnaryKind::Sigmoid, x);
    let silu = b.binary(BinaryKind::Mul, s, x);
    let three = b.scalar(3.0);
    let (zero, six) = (b.scalar(0.0), b.scalar(6.0));
    let shifted = b.binary(BinaryKind::Add, x, three);
    let clipped = b.op(Clip, &[shifted, zero, six]);
    let product = b.binary(BinaryKind::Mul, x, clipped);
    let swish = b.binary(BinaryKind::Div, product, six);
    let soft = b.unary(UnaryKind::Softplus, x);
    let tanh = b.unary(UnaryKind::Tanh, soft);
    let mish = b.binary(BinaryKind::Mul, x, tanh);
    let cube = b.scalar(3.0);
    let cube = b.binary(BinaryKind::Pow, x, cube);
    let c = b.scalar(0.044715);
    let cube = b.binary(BinaryKind::Mul, cube, c);
    let sum = b.binary(BinaryKind::Add, x, cube);
    let c = b.scalar((2.0 / std::f32::consts::PI).sqrt());
    let sum = b.binary(BinaryKind::Mul, c, sum);
    let t = b.unary(UnaryKind::Tanh, sum);
    let one = b.scalar(1.0);
    let t = b.binary(BinaryKind::Add, one, t);
    let half = b.scalar(0.5);
    let x2 = b.binary(BinaryKind::Mul, half, x);
    let gelu = b.binary(BinaryKind::Mul, x2, t);
    let g = b.check(&[silu, swish, mish, gelu], 4);
    assert_eq!(names(&g), ["Swish", "HardSwish", "Mish", "Gelu"]);
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let mut b = Builder::new(13);
    let x = b.input("x", &[2, 3]);
    let sums: Vec<V> = (0..2)
        .map(|_| {
            let two = b.scalar(2.0);
            let product = b.binary(BinaryKind::Mul, x, two);
            b.unary(UnaryKind::Exp, product)
        })
        .collect();
    let y = b.binary(BinaryKind::Add, sums[0], sums[1]);
    let _unread = b.unary(UnaryKind::Neg, y);
    let g = b.check(&[y, sums[0], sums[1]], 13);
    assert_eq!(names(&g), ["Mul", "Exp", "Add"]);
}

#[test]
fn constants_are_computed_but_not_blown_up() {
    let mut b = Builder::new(14);
    let x = b.input("x", &[3, 4]);
    let w = b.floats(&[4, 3]);
    let w = b.transpose(w, &[1, 0]);
    let w = b.unary(UnaryKind::Neg, w);
    let y = b.binary(BinaryKind::Sub, x, w);
    // 32 MiB that one number makes.
    let one = b.scalar(1.0);
    let large = b.ints(&[2048, 4096]);
    let large = b.op(Expand, &[one, large]);
    let g = b.check(&[y, large], 14);
    assert_eq!(names(&g), ["Sub", "Expand"]);
}

#[test]
fn shape_arithmetic_goes() {
    let mut b = Builder::new(5);
    let x = b.input("x", &[2, 3, 4]);
    let shape = ShapeOf {
        start: 0,
        end: None,
    };
    let shape = b.op(shape, &[x]);
    let first = b.constant(Tensor::scalar(0i64).unwrap());
    let batch = b.op(Gather { axis: 0 }, &[shape, first]);
    let zero = b.ints(&[0]);
    let batch = b.op(Unsqueeze, &[batch, zero]);
    let rest = b.ints(&[-1]);
    let shape = b.op(Concat { axis: 0 }, &[batch, rest]);
    let y = b.op(Reshape { allow_zero: false }, &[x, shape]);
    let g = b.check(&[y], 5);
    assert_eq!(names(&g), ["Reshape"]);
}

#[test]
fn a_gather_takes_in_the_cast_of_its_indices() {
    let mut b = Builder::new(9);
    let table = b.input("table", &[3, 5]);
    let x = b.input("x", &[4]);
    let most = b.constant(Tensor::scalar(2.9f32).unwrap());
    let tokens = b.op(Binary::new(BinaryKind::Mul), &[x, most]);
    let tokens = b.op(Cast::new(DType::I32), &[tokens]);
    let y = b.op(Gather { axis: 0 }, &[table, tokens]);
    let g = b.check(&[y], 9);
    assert_eq!(names(&g), ["Mul", "GatherCast"]);
}

#[test]
fn a_known_condition_chooses_its_body() {
    let mut b = Builder::new(6);
    let x = b.input("x", &[3]);
    let body = |kind| {
        let mut g = Graph::new("body");
        let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
        let y = g.apply("y", Unary(kind), &[a]);
        g.outputs = vec![y];
        std::sync::Arc::new(g)
    };
    let yes = b.constant(Tensor::from_bools(&[], &[true]).unwrap());
    let choice = If {
        then_body: body(UnaryKind::Neg),
        else_body: body(UnaryKind::Abs),
    };
    let y = b.op(choice, &[yes, x]);
    let y = b.unary(UnaryKind::Relu, y);
    let g = b.check(&[y], 6);
    assert_eq!(names(&g), ["Neg", "Relu"]);
}

#[test]
fn constants_move_into_bodies() {
    let mut b = Builder::new(7);
    let x = b.input("x", &[3]);
    let w = b.floats(&[3]);
    let body = |kind| {
        let mut g = Graph::new("body");
        let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
        let w = g.add_input("w", Fact::fixed(DType::F32, &[3]));
        let n = g.apply("n", Unary(UnaryKind::Neg), &[w]);
        let y = g.apply("y", Binary::new(kind), &[a, n]);
        g.outputs = vec![y];
        std::sync::Arc::new(g)
    };
    let zero = b.scalar(0.0);
    let sum = {
        let axes = b.ints(&[0]);
        let sum = Reduce {
            kind: ReduceKind::Sum,
            keep_dims: false,
            noop_with_empty_axes: false,
        };
        b.op(sum, &[x, axes])
    };
    let condition = b.binary(BinaryKind::Greater, sum, zero);
    let choice = If {
        then_body: body(BinaryKind::Add),
        else_body: body(BinaryKind::Mul),
    };
    let y = b.op(choice, &[condition, x, w]);
    let g = b.check(&[y], 7);
    let node = g.nodes.iter().find(|n| n.op.name() == "If").unwrap();
    assert_eq!(node.inputs.len(), 2);
    for body in node.op.subgraphs() {
        assert_eq!((body.inputs.len(), body.nodes.len()), (1, 1));
    }
}

#[test]
fn a_dilated_convolution_in_three_parts() {
    let mut b = Builder::new(8);
    let x = b.input("x", &[1, 9, 7, 2]);
    let block = b.ints(&[2, 2]);
    let pads = b.constant(Tensor::from_slice(&[2, 2], &[2i64, 3, 2, 3]).unwrap());
    let y = b.op(SpaceToBatch, &[x, block, pads]);
    let w = b.floats(&[3, 2, 3, 3]);
    let bias = b.floats(&[3]);
    let conv = Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        groups: 1,
        channels_last: true,
        activation: Activation::Relu,
    };
    let y = b.op(conv, &[y, w, bias]);
    let crops = b.constant(Tensor::from_slice(&[2, 2], &[0i64, 1, 0, 1]).unwrap());
    let y = b.op(BatchToSpace, &[y, block, crops]);
    let g = b.check(&[y], 8);
    assert_eq!(names(&g), ["Conv"]);
}

#[test]
fn a_padded_convolution_on_a_sequence() {
    let mut b = Builder::new(9);
    let x = b.input("x", &[1, 12, 2]);
    let pads = b.ints(&[0, 2, 0, 0, 1, 0]);
    let mode = PadMode::Constant;
    let y = b.op(Pad { mode }, &[x, pads]);
    let axes = b.ints(&[1]);
    let y = b.op(Unsqueeze, &[y, axes]);
    let y = b.transpose(y, &[0, 3, 1, 2]);
    let w = b.floats(&[3, 2, 1, 4]);
    let bias = b.floats(&[3]);
    let conv = Conv {
        strides: vec![1, 2],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    };
    let y = b.op(conv, &[y, w, bias]);
    let axes = b.ints(&[2]);
    let y = b.op(Squeeze, &[y, axes]);
    let y = b.transpose(y, &[0, 2, 1]);
    let g = b.check(&[y], 9);
    assert_eq!(names(&g), ["Reshape", "Conv", "Reshape"]);
}

#[test]
fn scales_go_into_any_weights() {
    let mut b = Builder::new(10);
    // A transposed convolution with groups
    let x = b.input("x", &[1, 4, 3, 3]);
    let w = b.floats(&[4, 3, 2, 2]);
    let conv = ConvTranspose {
        strides: vec![2, 2],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![0; 4]),
        output_padding: vec![0, 0],
        output_shape: None,
        groups: 2,
        channels_last: false,
        activation: Activation::None,
    };
    let y = b.op(conv, &[x, w]);
    let c = b.floats(&[1, 6, 1, 1]);
    let y = b.binary(BinaryKind::Mul, c, y);
    let c = b.floats(&[6, 1, 1]);
    let y = b.binary(BinaryKind::Sub, c, y);
    // A product with alpha, beta and a bias that broadcasts
    let a = b.input("a", &[2, 5]);
    let w = b.floats(&[4, 5]);
    let bias = b.floats(&[1, 4]);
    let gemm = Gemm {
        alpha: 0.5,
        beta: 2.0,
        transpose_a: false,
        transpose_b: true,
        activation: Activation::None,
    };
    let z = b.op(gemm, &[a, w, bias]);
    let c = b.floats(&[4]);
    let z = b.binary(BinaryKind::Div, z, c);
    let c = b.floats(&[4]);
    let z = b.binary(BinaryKind::Add, z, c);
    let z = b.unary(UnaryKind::Tanh, z);
    let g = b.check(&[y, z], 10);
    let mut left = names(&g);
    left.sort_unstable();
    assert_eq!(left, ["ConvTranspose", "Gemm", "Transpose", "Transpose"]);
}

#[test]
fn half_precision_becomes_single_inside() {
    let mut b = Builder::new(11);
    let x = b.input("x", &[2, 3]);
    let half = b.op(Cast::new(DType::F16), &[x]);
    let c: Vec<u8> = [0x3c00u16, 0x4000, 0x4200]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let c = b.constant(Tensor::from_raw(DType::F16, &[3], &c).unwrap());
    let y = b.binary(BinaryKind::Mul, half, c);
    let y = b.unary(UnaryKind::Relu, y);
    b.g.outputs = vec![y];
    let g = optimised(&b.g);
    assert_eq!(names(&g), ["Cast", "Cast", "Mul", "Cast"]);
    let out = g.value(g.outputs[0]);
    assert_eq!(out.fact.dtype, Some(DType::F16));
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, 0.1, -1.0, 3.0, 5.0, 0.3]).unwrap();
    let plain = run(&b.g, false, &[("x", x.clone())]);
    let fast = run(&b.g, true, &[("x", x)]);
    assert_eq!(plain[0].1.dtype(), DType::F16);
    let (a, b) = (plain[0].1.to_f64s().unwrap(), fast[0].1.to_f64s().unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-3 * a.abs(), "{a} and {b}");
    }
}

#[test]
fn a_thousand_nodes_take_little_time() {
    let mut b = Builder::new(12);
    let mut y = b.input("x", &[1, 4, 8, 8]);
    for _ in 0..250 {
        let before = y;
        y = b.conv(y, 4, 4, 1);
        let c = b.floats(&[4, 1, 1]);
        y = b.binary(BinaryKind::Mul, y, c);
        y = b.binary(BinaryKind::Add, y, before);
        y = b.unary(UnaryKind::Relu, y);
    }
    b.g.outputs = vec![y];
    let start = std::time::Instant::now();
    let g = optimised(&b.g);
    let seconds = start.elapsed().as_secs_f64();
    println!("{} nodes of 1000 left after {seconds:.3} s", g.nodes.len());
    assert_eq!(g.nodes.len(), 252);
    // Far above what it takes, unoptimised, on a machine that does other things as well.
    assert!(seconds < 10.0);
}

/// One value of a random graph with its shape.
#[derive(Clone)]
struct Known {
    v: V,
    shape: Vec<usize>,
}

fn permutation(random: &mut Random, rank: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    for i in (1..rank).rev() {
        perm.swap(i, random.below(i + 1));
    }
    perm
}

/// A random operator on random values.
fn grow(b: &mut Builder, pool: &mut Vec<Known>) {
    let x = pool[b.random.below(pool.len())].clone();
    let rank = x.shape.len();
    let axis = b.random.below(rank.max(1));
    let mut shape = x.shape.clone();
    let v = match b.random.below(20) {
        0..=2 => {
            let perm = if b.random.below(2) == 0 && rank == 4 {
                [[0, 2, 3, 1], [0, 3, 1, 2]][b.random.below(2)].to_vec()
            } else {
                permutation(&mut b.random, rank)
            };
            shape = perm.iter().map(|&p| x.shape[p]).collect();
            b.transpose(x.v, &perm)
        }
        3 => b.unary(UnaryKind::Relu, x.v),
        4 => {
            // A constant that broadcasts along some axes.
            let from = b.random.below(rank + 1);
            let dims: Vec<usize> = x.shape[from..]
                .iter()
                .map(|&d| if b.random.below(2) == 0 { 1 } else { d })
                .collect();
            let c = b.floats(&dims);
            let kinds = [BinaryKind::Add, BinaryKind::Mul, BinaryKind::PRelu];
            let kind = kinds[b.random.below(3)];
            b.binary(kind, x.v, c)
        }
        5 | 6 => {
            let same: Vec<Known> = pool
                .iter()
                .filter(|k| k.shape == x.shape)
                .cloned()
                .collect();
            let other = same[b.random.below(same.len())].v;
            b.binary(BinaryKind::Add, x.v, other)
        }
        7 => {
            let same: Vec<Known> = pool
                .iter()
                .filter(|k| k.shape == x.shape)
                .cloned()
                .collect();
            let other = same[b.random.below(same.len())].v;
            shape[axis] *= 2;
            let axis = axis as i64;
            b.op(Concat { axis }, &[x.v, other])
        }
        8 if x.shape[axis] > 1 => {
            let (starts, ends) = (b.ints(&[1]), b.ints(&[i64::MAX]));
            let axes = b.ints(&[axis as i64]);
            shape[axis] -= 1;
            b.op(Slice, &[x.v, starts, ends, axes])
        }
        9 => {
            let mut pads = vec![0; 2 * rank];
            pads[axis] = 1;
            pads[rank + b.random.below(rank)] = 2;
            for (i, d) in shape.iter_mut().enumerate() {
                *d += (pads[i] + pads[rank + i]) as usize;
            }
            let pads = b.ints(&pads);
            let mode = PadMode::Constant;
            b.op(Pad { mode }, &[x.v, pads])
        }
        10 => {
            let kind = SoftmaxKind::Softmax;
            let axis = axis as i64 - rank as i64;
            b.op(
                Softmax {
                    kind,
                    axis,
                    beta: 1.0,
                },
                &[x.v],
            )
        }
        11 if rank > 2 => {
            let keep = b.random.below(2) == 0;
            let other = b.random.below(rank);
            let mut axes = vec![axis as i64];
            if other != axis {
                axes.push(other as i64 - rank as i64);
            }
            let gone = |i: usize| i == axis || i == other;
            shape = if keep {
                (0..rank)
                    .map(|i| if gone(i) { 1 } else { shape[i] })
                    .collect()
            } else {
                (0..rank).filter(|&i| !gone(i)).map(|i| shape[i]).collect()
            };
            b.mean(x.v, &axes, keep)
        }
        12 if rank < 6 && x.shape[axis].is_multiple_of(2) => {
            shape.splice(axis..=axis, [2, x.shape[axis] / 2]);
            let to: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
            let to = b.ints(&to);
            b.op(Reshape { allow_zero: false }, &[x.v, to])
        }
        13 if rank > 2 && axis + 1 < rank => {
            shape.splice(axis..axis + 2, [x.shape[axis] * x.shape[axis + 1]]);
            let to: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
            let to = b.ints(&to);
            b.op(Reshape { allow_zero: false }, &[x.v, to])
        }
        14 if rank < 6 => {
            shape.insert(axis, 1);
            let axes = b.ints(&[axis as i64]);
            b.op(Unsqueeze, &[x.v, axes])
        }
        15 if x.shape[axis] > 1 => {
            let first = b.random.below(x.shape[axis] - 1) + 1;
            let sizes = b.ints(&[first as i64, (x.shape[axis] - first) as i64]);
            let n = b.g.nodes.len();
            let outs: Vec<V> = (0..2)
                .map(|i| b.g.add_value(format!("split{n}:{i}"), Fact::default()))
                .collect();
            let inputs = [Some(x.v), Some(sizes)];
            let split = Split { axis: axis as i64 };
            b.g.push(format!("split{n}"), split, &inputs, &outs);
            let mut other = shape.clone();
            other[axis] -= first;
            pool.push(Known {
                v: outs[1],
                shape: other,
            });
            shape[axis] = first;
            outs[0]
        }
        16 | 17 if rank == 4 => {
            let (c, m) = (x.shape[1], b.random.below(3) + 1);
            shape[1] = m;
            b.conv(x.v, c, m, 1)
        }
        18 if rank > 1 => {
            let p: Vec<V> = (0..3).map(|_| b.floats(&[x.shape[1]])).collect();
            let ones = Tensor::from_slice(&[x.shape[1]], &vec![1.0f32; x.shape[1]]).unwrap();
            let variance = b.constant(ones);
            let norm = BatchNorm {
                epsilon: 1e-3,
                channels_last: false,
            };
            b.op(norm, &[x.v, p[0], p[1], p[2], variance])
        }
        19 => b.unary(UnaryKind::Neg, x.v),
        _ => b.unary(UnaryKind::Abs, x.v),
    };
    if shape.iter().product::<usize>() <= 4000 && !shape.is_empty() {
        pool.push(Known { v, shape });
    }
}

/// Elements that transposes move; a convolution in the file's layout may move its input, its output
/// and a residual that it adds.
fn moved(graph: &Graph) -> usize {
    let size = |v: V| {
        graph
            .value(v)
            .fact
            .concrete()
            .map_or(0, |s| s.iter().product())
    };
    let of = |n: &kilim::core::Node| -> usize {
        let conv = n.op.downcast_ref::<Conv>();
        if n.op.is::<Transpose>() {
            size(n.outputs[0])
        } else if conv.is_some_and(|c| !c.channels_last) {
            n.input(0).map_or(0, size) + 2 * size(n.outputs[0])
        } else {
            0
        }
    };
    graph.nodes.iter().map(of).sum()
}

#[test]
fn random_graphs() {
    let seeds = std::env::var("KILIM_SEEDS")
        .ok()
        .and_then(|s| s.parse().ok());
    for seed in 0..seeds.unwrap_or(150u64) {
        let mut b = Builder::new(seed + 100);
        let dims = [[1, 4, 3, 5], [2, 2, 4, 3], [1, 6, 1, 4]][b.random.below(3)];
        let x = b.input("x", &dims);
        let mut pool = vec![Known {
            v: x,
            shape: dims.to_vec(),
        }];
        for _ in 0..b.random.below(14) + 2 {
            grow(&mut b, &mut pool);
        }
        // What nothing reads, and one value from the middle.
        let uses = b.g.use_counts();
        let mut outputs: Vec<V> =
            b.g.nodes
                .iter()
                .flat_map(|n| n.outputs.clone())
                .filter(|v| uses[v.0] == 0)
                .collect();
        if let Some(node) = b.g.nodes.first() {
            outputs.push(node.outputs[0]);
        }
        outputs.dedup();
        let mut plain = b.g.clone();
        kilim::core::passes::infer_graph(&mut plain).unwrap();
        let g = b.check(&outputs, seed);
        let (before, after) = (moved(&plain), moved(&g));
        assert!(after <= before, "seed {seed}: {after} of {before}");
    }
}
