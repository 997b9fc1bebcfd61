use super::super::{infer_graph, layout};
use super::run;
use crate::backend::DataLayout;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::graph::{Graph, ValueId};
use crate::interrupt::Interrupt;
use crate::ops::{
    Activation, Binary, BinaryKind, Concat, Conv, Fact, Flatten, MatMul, Pad, PadMode, Padding,
    Reduce, ReduceKind, Reshape, Slice, Softmax, SoftmaxKind, Transpose, Unary, UnaryKind,
};
use crate::tensor::Tensor;

const LAST: layout::Layout = layout::Layout::Every(DataLayout::ChannelsLast);

fn graph(shape: &[usize]) -> (Graph, ValueId) {
    let mut g = Graph::new("test");
    let x = g.add_input("x", Fact::fixed(DType::F32, shape));
    (g, x)
}

fn transpose(g: &mut Graph, x: ValueId, perm: &[usize]) -> ValueId {
    let name = format!("t{}", g.nodes.len());
    let perm = perm.to_vec();
    g.apply(name, Transpose { perm }, &[x])
}

fn relu(g: &mut Graph, x: ValueId) -> ValueId {
    let name = format!("relu{}", g.nodes.len());
    g.apply(name, Unary(UnaryKind::Relu), &[x])
}

fn reshape(g: &mut Graph, x: ValueId, shape: &[i64]) -> ValueId {
    let name = format!("reshape{}", g.nodes.len());
    let shape = Tensor::from_slice(&[shape.len()], shape).unwrap();
    let shape = g.add_constant(format!("{name}/shape"), shape);
    g.apply(name, Reshape { allow_zero: false }, &[x, shape])
}

fn conv(g: &mut Graph, x: ValueId, from: usize, to: usize) -> ValueId {
    let name = format!("conv{}", g.nodes.len());
    let w = Tensor::zeros(DType::F32, &[to, from, 3, 3]).unwrap();
    let w = g.add_constant(format!("{name}/w"), w);
    let conv = Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::SameUpper,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    };
    g.apply(name, conv, &[x, w])
}

/// Lays the graph out, removes transposes, and counts what is left.
fn settle(g: &mut Graph, layout: bool) -> usize {
    infer_graph(g, &Interrupt::NEVER).unwrap();
    let facts: Vec<Fact> = g.outputs.iter().map(|&v| g.fact(v).clone()).collect();
    if layout {
        layout::run(g, &LAST).unwrap();
        infer_graph(g, &Interrupt::NEVER).unwrap();
    }
    run(g).unwrap();
    g.sort().unwrap();
    infer_graph(g, &Interrupt::NEVER).unwrap();
    let after: Vec<Fact> = g.outputs.iter().map(|&v| g.fact(v).clone()).collect();
    assert_eq!(facts, after);
    g.nodes.iter().filter(|n| n.op.is::<Transpose>()).count()
}

#[test]
fn two_that_undo_each_other_go() {
    let (mut g, x) = graph(&[2, 3, 4, 5]);
    let t = transpose(&mut g, x, &[0, 2, 3, 1]);
    let r = relu(&mut g, t);
    let y = transpose(&mut g, r, &[0, 3, 1, 2]);
    g.outputs = vec![y];
    assert_eq!(settle(&mut g, false), 0);
    assert_eq!(g.nodes.len(), 1);
}

#[test]
fn one_that_moves_ones_is_a_view() {
    let (mut g, x) = graph(&[2, 7, 1, 1]);
    let t = transpose(&mut g, x, &[0, 2, 3, 1]);
    let y = relu(&mut g, t);
    let z = transpose(&mut g, x, &[1, 0, 2, 3]);
    g.outputs = vec![y, z];
    assert_eq!(settle(&mut g, false), 1);
}

#[test]
fn a_chain_of_convolutions_keeps_one_at_each_end() {
    let (mut g, x) = graph(&[1, 3, 8, 8]);
    let a = conv(&mut g, x, 3, 4);
    let a = relu(&mut g, a);
    let b = conv(&mut g, a, 4, 4);
    let slope = Tensor::from_slice(&[4, 1, 1], &[0.1f32, 0.2, 0.3, 0.4]).unwrap();
    let slope = g.add_constant("slope", slope);
    let b = g.apply("prelu", Binary::new(BinaryKind::PRelu), &[b, slope]);
    let c = g.apply("add", Binary::new(BinaryKind::Add), &[a, b]);
    let c = g.apply("concat", Concat { axis: 1 }, &[c, a]);
    let d = conv(&mut g, c, 8, 2);
    g.outputs = vec![d];
    assert_eq!(settle(&mut g, true), 2);
    let concat = g.nodes.iter().find_map(|n| n.op.downcast_ref::<Concat>());
    assert_eq!(concat.unwrap().axis, 3);
    let prelu = g.nodes.iter().find(|n| n.op.name() == "PRelu").unwrap();
    assert_eq!(g.constant(prelu.input(1)).unwrap().shape(), [4]);
}

#[test]
fn a_pooled_head_needs_none_at_its_end() {
    let (mut g, x) = graph(&[1, 3, 8, 8]);
    let a = conv(&mut g, x, 3, 4);
    let axes = g.add_ints("axes".into(), &[2, 3]).unwrap();
    let mean = Reduce {
        kind: ReduceKind::Mean,
        keep_dims: true,
        noop_with_empty_axes: false,
    };
    let a = g.apply("mean", mean, &[a, axes]);
    let a = g.apply("flatten", Flatten { axis: 1 }, &[a]);
    let w = Tensor::zeros(DType::F32, &[4, 10]).unwrap();
    let w = g.add_constant("w", w);
    let a = g.apply("fc", MatMul::default(), &[a, w]);
    g.outputs = vec![a];
    assert_eq!(settle(&mut g, true), 1);
}

#[test]
fn a_channel_shuffle_stays_channels_last() {
    let (mut g, x) = graph(&[1, 3, 8, 8]);
    let a = conv(&mut g, x, 3, 6);
    let a = reshape(&mut g, a, &[1, 2, 3, 8, 8]);
    let a = transpose(&mut g, a, &[0, 2, 1, 3, 4]);
    let a = reshape(&mut g, a, &[1, 6, 8, 8]);
    let a = conv(&mut g, a, 6, 2);
    g.outputs = vec![a];
    // In, shuffle, out.
    assert_eq!(settle(&mut g, true), 3);
    let shuffle = g
        .nodes
        .iter()
        .filter_map(|n| n.op.downcast_ref::<Transpose>());
    assert!(shuffle.into_iter().any(|t| t.perm == [0, 1, 2, 4, 3]));
}

#[test]
fn a_channel_shuffle_with_an_open_batch() {
    let mut g = Graph::new("test");
    let dims = vec![Dim::Symbol("n".into()), 3.into(), 8.into(), 8.into()];
    let x = g.add_input("x", Fact::new(DType::F32, Shape(dims)));
    let a = conv(&mut g, x, 3, 6);
    let a = reshape(&mut g, a, &[-1, 2, 3, 8, 8]);
    let a = transpose(&mut g, a, &[0, 2, 1, 3, 4]);
    let a = reshape(&mut g, a, &[-1, 6, 8, 8]);
    let a = conv(&mut g, a, 6, 2);
    g.outputs = vec![a];
    infer_graph(&mut g, &Interrupt::NEVER).unwrap();
    layout::run(&mut g, &LAST).unwrap();
    infer_graph(&mut g, &Interrupt::NEVER).unwrap();
    run(&mut g).unwrap();
    let left = g.nodes.iter().filter(|n| n.op.is::<Transpose>()).count();
    assert_eq!(left, 3);
}

#[test]
fn detection_heads_lose_their_transposes() {
    let (mut g, x) = graph(&[1, 3, 8, 8]);
    let a = conv(&mut g, x, 3, 6);
    let mut heads = Vec::new();
    for _ in 0..2 {
        let h = conv(&mut g, a, 6, 4);
        let h = transpose(&mut g, h, &[0, 2, 3, 1]);
        heads.push(reshape(&mut g, h, &[1, -1, 2]));
    }
    let y = g.apply("concat", Concat { axis: 1 }, &heads);
    g.outputs = vec![y];
    assert_eq!(settle(&mut g, true), 1);
}

#[test]
fn slices_pads_and_resizes_follow() {
    let (mut g, x) = graph(&[1, 8, 8, 4]);
    let a = transpose(&mut g, x, &[0, 3, 1, 2]);
    let (starts, ends) = ([1, 0], [3, 6]);
    let starts = g.add_ints("starts".into(), &starts).unwrap();
    let ends = g.add_ints("ends".into(), &ends).unwrap();
    let axes = g.add_ints("axes".into(), &[1, 2]).unwrap();
    let a = g.apply("slice", Slice, &[a, starts, ends, axes]);
    let pads = g
        .add_ints("pads".into(), &[0, 0, 1, 2, 0, 0, 3, 4])
        .unwrap();
    let mode = PadMode::Constant;
    let a = g.apply("pad", Pad { mode }, &[a, pads]);
    let a = g.apply(
        "softmax",
        Softmax {
            kind: SoftmaxKind::Softmax,
            axis: 1,
            beta: 1.0,
        },
        &[a],
    );
    let y = transpose(&mut g, a, &[0, 2, 3, 1]);
    g.outputs = vec![y];
    assert_eq!(settle(&mut g, false), 0);
    let names: Vec<_> = g.nodes.iter().map(|n| n.op.name()).collect();
    assert_eq!(names, ["Slice", "Pad", "Softmax"]);
    assert_eq!(g.ints(g.nodes[0].input(3)).unwrap(), [3, 1]);
    assert_eq!(
        g.ints(g.nodes[1].input(1)).unwrap(),
        [0, 1, 2, 0, 0, 3, 4, 0]
    );
    assert_eq!(g.nodes[2].op.downcast_ref::<Softmax>().unwrap().axis, 3);
}

#[test]
fn a_transposed_operand_is_an_attribute() {
    let (mut g, x) = graph(&[2, 3, 4]);
    let y = g.add_input("y", Fact::fixed(DType::F32, &[2, 5, 4]));
    let t = transpose(&mut g, y, &[0, 2, 1]);
    let z = g.apply("product", MatMul::default(), &[x, t]);
    g.outputs = vec![z];
    assert_eq!(settle(&mut g, false), 0);
    let product = g.nodes[0].op.downcast_ref::<MatMul>().unwrap();
    assert!(product.transpose_b);
}

#[test]
fn never_more_than_before() {
    // One transposed value that two readers need in order.
    let (mut g, x) = graph(&[2, 3, 4]);
    let t = transpose(&mut g, x, &[0, 2, 1]);
    let a = relu(&mut g, t);
    let b = g.apply("abs", Unary(UnaryKind::Abs), &[t]);
    g.outputs = vec![a, b, t];
    assert_eq!(settle(&mut g, false), 1);
}
