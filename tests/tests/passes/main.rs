//! The passes keep results: graphs run as they are and optimised give the same numbers.

#![cfg(not(target_arch = "wasm32"))]

mod attention;
mod convolution;
mod facts;
mod flow;
mod folding;
mod formats;
mod fusion;
mod grouped;
mod models;
mod precision;
mod quantized;
mod random;
mod rotary;
mod rules;
mod selection;

use std::collections::BTreeSet;

use kilim::core::backend::DataLayout;
use kilim::core::ops::{
    Activation, BatchNorm, BatchToSpace, Binary, BinaryKind, BitCast, Cast, CastLike, Clip, Concat,
    Conv, ConvTranspose, DepthToSpace, DequantizeLinear, Dropout, Expand, Flatten, Gather,
    GatherElements, GatherNd, Gemm, If, InferContext, LpPool, Lrn, MatMul, MatMulNBits, Operator,
    Pad, PadMode, Padding, QuantizeLinear, Reduce, ReduceKind, Reshape, RmsNorm, ScatterElements,
    ScatterNd, ScatterReduction, ShapeOf, Slice, Softmax, SoftmaxKind, SpaceToBatch, SpaceToDepth,
    Split, Squeeze, TensorScatter, Tile, Transpose, Unary, UnaryKind, Unsqueeze, Where, Window,
};
use kilim::core::passes::{ChangeLog, Evaluator, Layout, Passes, Rule, optimise};
use kilim::{BackendId, DType, Fact, Graph, LoadOptions, RunOptions, Runtime, Tensor};
use kilim_tests::machine::cpu;

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
    run_with(graph, inputs, |options| options.optimise = optimise)
}

fn run_with(
    graph: &Graph,
    inputs: &[(&str, Tensor)],
    choose: impl FnOnce(&mut kilim::core::SessionOptions),
) -> Vec<(String, Tensor)> {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    choose(&mut options.session);
    let (optimise, without) = (options.optimise, options.without.clone());
    pollster::block_on(async {
        let mut session = Runtime::shared().session(graph.clone(), options).await?;
        session.run(inputs, &RunOptions::default()).await
    })
    .unwrap_or_else(|e| panic!("optimise {optimise}, without {without:?}: {e}\n{graph:#?}"))
}

/// The nodes that are left after all passes.
fn optimised(graph: &Graph) -> Graph {
    optimised_without(graph, &[]).0
}

/// The nodes that are left after all passes but some rules, and the rules that changed something.
fn optimised_without(graph: &Graph, without: &[Rule]) -> (Graph, BTreeSet<Rule>) {
    let mut g = graph.clone();
    g.sort().unwrap();
    let cpu = cpu();
    let never = kilim::core::Interrupt::NEVER;
    let log = ChangeLog::default();
    let passes = Passes {
        evaluate: Evaluator {
            compute: &|node| cpu.evaluate(node, &never),
            interrupt: &never,
        },
        narrow: &|d: DType| d == DType::F16,
        layout: Layout::Every(DataLayout::ChannelsLast),
        without,
        observer: Some(&log),
    };
    optimise(&mut g, &passes).unwrap();
    g.sort().unwrap();
    let rules = log.changes().iter().map(|change| change.rule).collect();
    (g, rules)
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|n| n.op.name()).collect()
}

/// Runs as it is, optimised, and without each rule that changes something, and compares; gives the optimised graph.
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
    let (optimised, rules) = optimised_without(graph, &[]);
    let all = std::iter::once(None).chain(rules.into_iter().map(Some));
    for without in all {
        let fast = run_with(graph, &inputs, |options| options.without.extend(without));
        let case = format!("seed {seed}, without {without:?}");
        assert_alike(&plain, &fast, &format!("{case}: {graph:#?}"));
    }
    optimised
}

fn assert_alike(plain: &[(String, Tensor)], fast: &[(String, Tensor)], case: &str) {
    assert_eq!(plain.len(), fast.len());
    for ((name, a), (other, b)) in plain.iter().zip(fast) {
        assert_eq!(name, other);
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{case}");
        let (a, b) = (a.to_f64s().unwrap(), b.to_f64s().unwrap());
        let largest = a.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        for (x, y) in a.iter().zip(&b) {
            let close = (x - y).abs() <= 1e-5 * largest;
            assert!(close, "{x} and {y} in {case}");
        }
    }
}

/// The softmax along the last axis.
fn softmax() -> Softmax {
    Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    }
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
