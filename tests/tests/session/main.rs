//! Sessions on graphs built by hand: stages, placement, errors, runs of some outputs ([`asked`]), nodes that are views at some lengths ([`aliases`]), control flow
//! ([`control`]), inputs that grow ([`growing`]), values that are found wrong while a run computes ([`faults`]), outputs that stay where they are ([`keep`]),
//! inputs that are used up ([`owned`]), the tensors of the user ([`ports`]) and the memory of the user ([`import`]), threads ([`threads`]), what a model keeps from run to run
//! ([`variables`]), and the steps of language models on a GPU ([`decoding`]).

#![cfg(not(target_arch = "wasm32"))]

mod aliases;
mod asked;
mod control;
mod decoding;
mod faults;
mod growing;
mod import;
mod keep;
mod owned;
mod ports;
mod threads;
mod variables;

use std::sync::{Arc, Mutex};

use kilim::core::Backend;
use kilim::core::backend::{NodeSpec, TensorSpec};
use kilim::core::ops::{
    Binary, BinaryKind, Cast, Concat, Expand, Gather, If, Loop, MatMul, NonZero, Reduce,
    ReduceKind, Reshape, Scan, ShapeOf, Slice, Softmax, SoftmaxKind, Squeeze, Transpose, Unary,
    UnaryKind,
};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, LoadOptions, Result, RunOptions, Runtime,
    Session, Shape, Tensor,
};
use kilim_tests::machine::cpu;
use kilim_tests::stand_in::StandIn;

fn session(graph: Graph) -> Result<Session> {
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn run(session: &mut Session, inputs: &[(&str, Tensor)]) -> Result<Vec<(String, Tensor)>> {
    pollster::block_on(session.run(inputs, &RunOptions::default()))
}

fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

fn i64s(values: &[i64]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn symbolic(names: &[&str]) -> Shape {
    Shape(names.iter().map(|n| Dim::Symbol((*n).into())).collect())
}

fn add() -> Binary {
    Binary::new(BinaryKind::Add)
}

#[test]
fn shapes_may_change_between_runs() {
    let mut g = Graph::new("sum");
    let a = g.add_input("a", Fact::new(DType::F32, symbolic(&["n"])));
    let b = g.add_input("b", Fact::new(DType::F32, symbolic(&["n"])));
    let sum = g.apply("sum", add(), &[a, b]);
    let out = g.apply("relu", Unary(UnaryKind::Relu), &[sum]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    for n in [3usize, 0, 7, 3] {
        let x: Vec<f32> = (0..n).map(|i| i as f32 - 2.0).collect();
        let y = vec![0.5; n];
        let out = run(&mut s, &[("b", f32s(&[n], &y)), ("a", f32s(&[n], &x))]).unwrap();
        let want: Vec<f32> = x.iter().map(|v| (v + 0.5).max(0.0)).collect();
        assert_eq!(out[0].1.as_slice::<f32>().unwrap(), want);
    }
}

#[test]
fn a_shape_that_is_an_input_is_read_before_planning() {
    let mut g = Graph::new("reshape");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[6]));
    let shape = g.add_input("shape", Fact::new(DType::I64, symbolic(&["r"])));
    let y = g.apply("double", add(), &[x, x]);
    let r = g.apply("reshape", Reshape { allow_zero: false }, &[y, shape]);
    let out = g.apply("neg", Unary(UnaryKind::Neg), &[r]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let x = f32s(&[6], &[1., 2., 3., 4., 5., 6.]);
    for shape in [vec![2, 3], vec![3, -1], vec![1, 6, 1]] {
        let out = run(&mut s, &[("x", x.clone()), ("shape", i64s(&shape))]).unwrap();
        assert_eq!(out[0].1.shape().len(), shape.len());
        assert_eq!(
            out[0].1.as_slice::<f32>().unwrap(),
            [-2., -4., -6., -8., -10., -12.]
        );
    }
    let error = run(&mut s, &[("x", x), ("shape", i64s(&[4, 2]))]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Shape);
    assert_eq!(error.node(), Some("reshape"));
}

#[test]
fn shapes_may_depend_on_data() {
    let mut g = Graph::new("nonzero");
    let x = g.add_input("x", Fact::new(DType::F32, symbolic(&["n"])));
    let y = g.apply("relu", Unary(UnaryKind::Relu), &[x]);
    let where_ = g.apply("nonzero", NonZero, &[y]);
    let axes = g.add_constant("axes", i64s(&[0]));
    let flat = g.apply("squeeze", Squeeze, &[where_, axes]);
    let out = g.apply("gather", Gather { axis: 0 }, &[y, flat]);
    g.outputs.extend([out, flat]);
    let mut s = session(g).unwrap();
    let out = run(&mut s, &[("x", f32s(&[5], &[-1., 2., 0., 4., 5.]))]).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [2., 4., 5.]);
    assert_eq!(out[1].1.as_slice::<i64>().unwrap(), [1, 3, 4]);
    let out = run(&mut s, &[("x", f32s(&[2], &[-1., -2.]))]).unwrap();
    assert_eq!(out[0].1.shape(), [0]);
}

#[test]
fn wrong_inputs_are_typed_errors() {
    let mut g = Graph::new("id");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2, 2]));
    let out = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let good = f32s(&[2, 2], &[1., 2., 3., 4.]);
    let code = |s: &mut Session, inputs: &[(&str, Tensor)]| run(s, inputs).unwrap_err().code();
    assert_eq!(code(&mut s, &[]), ErrorCode::Input);
    assert_eq!(code(&mut s, &[("y", good.clone())]), ErrorCode::Input);
    assert_eq!(
        code(&mut s, &[("x", f32s(&[4], &[0.; 4]))]),
        ErrorCode::Shape
    );
    assert_eq!(code(&mut s, &[("x", i64s(&[1, 2]))]), ErrorCode::DType);
    assert!(run(&mut s, &[("x", good)]).is_ok());
}

#[test]
fn a_cycle_is_an_invalid_graph() {
    let mut g = Graph::new("cycle");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
    let back = g.add_value("back", Fact::default());
    let there = g.add_value("there", Fact::default());
    g.push("a", add(), &[Some(x), Some(back)], &[there]);
    g.push("b", Unary(UnaryKind::Neg), &[Some(there)], &[back]);
    g.outputs.push(back);
    assert_eq!(
        session(g).err().map(|e| e.code()),
        Some(ErrorCode::InvalidGraph)
    );
}

#[test]
fn abort_and_timeout_stop_a_loop() {
    let mut body = Graph::new("body");
    let _ = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let cond = body.add_input("cond", Fact::fixed(DType::Bool, &[]));
    let x = body.add_input("x", Fact::fixed(DType::F32, &[1]));
    let out = body.apply("neg", Unary(UnaryKind::Neg), &[x]);
    body.outputs.extend([cond, out]);
    let mut g = Graph::new("forever");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
    let out = g.add_value("out", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[None, None, Some(x)], &[out]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let options = RunOptions {
        timeout: Some(0.05),
        ..RunOptions::default()
    };
    let inputs = [("x", f32s(&[1], &[1.]))];
    let error = pollster::block_on(s.run(&inputs, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Aborted);
    let abort = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let options = RunOptions {
        abort: Some(abort),
        ..RunOptions::default()
    };
    let error = pollster::block_on(s.run(&inputs, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Aborted);
}

#[test]
fn the_revision_tells_of_another_plan() {
    let mut g = Graph::new("sum");
    let x = g.add_input("x", Fact::new(DType::F32, symbolic(&["n"])));
    let out = g.apply("double", add(), &[x, x]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let mut seen = Vec::new();
    for n in [2usize, 2, 3, 3, 2] {
        run(&mut s, &[("x", f32s(&[n], &vec![1.0; n]))]).unwrap();
        seen.push((s.revision(), s.report().nodes[0].outputs[0].shape.clone()));
    }
    for pair in seen.windows(2) {
        assert_eq!(pair[0].0 == pair[1].0, pair[0].1 == pair[1].1, "{seen:?}");
    }
}
