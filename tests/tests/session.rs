//! Sessions on graphs built by hand: stages, control flow, placement, errors.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::{Arc, Mutex};

use kilim::core::Backend;
use kilim::core::backend::{NodeSpec, TensorSpec};
use kilim::core::ops::*;
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, Result, RunOptions, Runtime, Session,
    SessionOptions, Shape, Tensor,
};
use kilim_tests::stand_in::StandIn;

fn session(graph: Graph) -> Result<Session> {
    let options = SessionOptions {
        backends: vec![BackendId::from("cpu")],
        ..SessionOptions::default()
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

/// `then`: x + captured; `else`: x - captured.
fn branches() -> If {
    let body = |name: &str, kind| {
        let mut g = Graph::new(name);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
        let c = g.add_input("captured", Fact::fixed(DType::F32, &[2]));
        let out = g.apply("op", Binary::new(kind), &[x, c]);
        g.outputs.push(out);
        Arc::new(g)
    };
    If {
        then_body: body("then", BinaryKind::Add),
        else_body: body("else", BinaryKind::Sub),
    }
}

#[test]
fn if_takes_the_branch_that_the_data_says() {
    let mut g = Graph::new("if");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let limit = g.add_input("limit", Fact::fixed(DType::F32, &[]));
    let axes = g.add_constant("axes", i64s(&[0]));
    let sum = Reduce {
        kind: ReduceKind::Sum,
        keep_dims: false,
        noop_with_empty_axes: false,
    };
    let total = g.apply("total", sum, &[x, axes]);
    let more = g.apply("more", Binary::new(BinaryKind::Greater), &[total, limit]);
    let picked = g.apply("if", branches(), &[more, x, x]);
    let out = g.apply("after", Unary(UnaryKind::Neg), &[picked]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let x = f32s(&[2], &[1., 2.]);
    let mut at = |limit: f32| {
        let inputs = [("x", x.clone()), ("limit", f32s(&[], &[limit]))];
        let out = run(&mut s, &inputs).unwrap();
        out[0].1.as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(at(0.0), [-2., -4.]);
    assert_eq!(at(9.0), [0., 0.]);
    let report = s.report();
    assert!(
        report
            .nodes
            .iter()
            .any(|n| n.op == "If" && n.backend == "builtin")
    );
    assert!(
        report
            .nodes
            .iter()
            .any(|n| n.scope == ["if"] && n.backend == "cpu")
    );
}

#[test]
fn loop_carries_and_stacks() {
    let mut body = Graph::new("body");
    let i = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let _ = body.add_input("cond_in", Fact::fixed(DType::Bool, &[]));
    let acc = body.add_input("acc", Fact::new(DType::F32, symbolic(&["n"])));
    let step = body.add_input("step", Fact::fixed(DType::F32, &[1]));
    let limit = body.add_constant("limit", Tensor::scalar(3i64).unwrap());
    let grown = body.apply("grow", Concat { axis: 0 }, &[acc, step]);
    let go = body.apply("go", Binary::new(BinaryKind::Less), &[i, limit]);
    let as_float = body.apply("float", Cast::new(DType::F32), &[i]);
    body.outputs.extend([go, grown, as_float]);
    let mut g = Graph::new("loop");
    let trips = g.add_input("trips", Fact::fixed(DType::I64, &[]));
    let start = g.add_input("start", Fact::new(DType::F32, symbolic(&["m"])));
    let step = g.add_input("step", Fact::fixed(DType::F32, &[1]));
    let outs = [
        g.add_value("grown", Fact::default()),
        g.add_value("steps", Fact::default()),
    ];
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push(
        "loop",
        op,
        &[Some(trips), None, Some(start), Some(step)],
        &outs,
    );
    g.outputs.extend(outs);
    let mut s = session(g).unwrap();
    let mut at = |trips: i64| {
        let inputs = [
            ("trips", Tensor::scalar(trips).unwrap()),
            ("start", f32s(&[1], &[7.])),
            ("step", f32s(&[1], &[2.])),
        ];
        run(&mut s, &inputs).unwrap()
    };
    let out = at(2);
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [7., 2., 2.]);
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [0., 1.]);
    let out = at(100);
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [0., 1., 2., 3.]);
    let out = at(0);
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [7.]);
    assert_eq!(out[1].1.shape(), [0]);
}

#[test]
fn scan_runs_backwards_and_stacks_on_any_axis() {
    let mut body = Graph::new("body");
    let state = body.add_input("state", Fact::fixed(DType::F32, &[2]));
    let x = body.add_input("x", Fact::fixed(DType::F32, &[2]));
    let sum = body.apply("sum", add(), &[state, x]);
    body.outputs.extend([sum, sum]);
    let mut g = Graph::new("scan");
    let start = g.add_input("start", Fact::fixed(DType::F32, &[2]));
    let xs = g.add_input("xs", Fact::fixed(DType::F32, &[3, 2]));
    let outs = [
        g.add_value("last", Fact::default()),
        g.add_value("all", Fact::default()),
    ];
    let op = Scan {
        body: Arc::new(body),
        states: 1,
        scan_inputs: 1,
        input_axes: vec![0],
        input_reverse: vec![true],
        output_axes: vec![1],
        output_reverse: vec![false],
    };
    g.push("scan", op, &[Some(start), Some(xs)], &outs);
    g.outputs.extend(outs);
    let mut s = session(g).unwrap();
    let inputs = [
        ("start", f32s(&[2], &[0., 100.])),
        ("xs", f32s(&[3, 2], &[1., 10., 2., 20., 3., 30.])),
    ];
    let out = run(&mut s, &inputs).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [6., 160.]);
    assert_eq!(out[1].1.shape(), [2, 3]);
    assert_eq!(
        out[1].1.as_slice::<f32>().unwrap(),
        [3., 5., 6., 130., 150., 160.]
    );
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

fn cpu() -> Arc<dyn Backend> {
    pollster::block_on(Runtime::shared().backend(&BackendId::new("cpu"))).unwrap()
}

/// `same = x`, `constant = [7]`, `neg = relu(-x)`, `exp = exp(x)`; Neg and Exp on backends of their
/// own. Gives what the two are asked for as well.
fn four_outputs() -> (kilim::core::Session, Arc<Mutex<Vec<String>>>) {
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let backend = |id: &'static str, refused: &'static str| -> Arc<dyn Backend> {
        let log = calls.clone();
        let on_call = move |call: &'static str| {
            log.lock().unwrap().push(format!("{id} {call}"));
            Ok(())
        };
        let taking = move |node: &NodeSpec| node.op.name() != refused;
        Arc::new(StandIn::new(cpu(), id).taking(taking).on_call(on_call))
    };
    let mut g = Graph::new("ports");
    let x = g.add_input("x", Fact::new(DType::F32, symbolic(&["n"])));
    let seven = g.add_constant("constant", f32s(&[1], &[7.0]));
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    let relu = g.apply("relu", Unary(UnaryKind::Relu), &[neg]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
    g.outputs.extend([x, seven, relu, exp]);
    let backends = vec![backend("one", "Exp"), backend("two", "Neg")];
    let options = kilim::core::SessionOptions::default();
    let session = kilim::core::Session::new(g, backends, cpu(), options);
    (pollster::block_on(session).unwrap(), calls)
}

#[test]
fn tensors_of_the_users_are_builtins() {
    let (mut s, calls) = four_outputs();
    let x = f32s(&[3], &[1.0, -2.0, 3.0]);
    calls.lock().unwrap().clear();
    let options = RunOptions::default();
    let first = pollster::block_on(s.run(&[("x", x.clone())], &options)).unwrap();
    // Both backends are given the input, and neither takes it from the other.
    let made = std::mem::take(&mut *calls.lock().unwrap());
    for call in ["one write", "one read", "two write", "two read"] {
        assert_eq!(made.iter().filter(|c| *c == call).count(), 1, "{made:?}");
    }
    assert!(s.report().crossings.is_empty());
    // What no node makes comes from no backend: the input is handed out as it is.
    assert_eq!(first[0].1.bytes().as_ptr(), x.bytes().as_ptr());
    assert_eq!(first[1].1.as_slice::<f32>().unwrap(), [7.0]);
    // A result stays what it is when the next run is through, and so does the input.
    let (neg, exp) = (first[2].1.clone(), first[3].1.clone());
    let other = f32s(&[3], &[-5.0; 3]);
    pollster::block_on(s.run(&[("x", other)], &options)).unwrap();
    assert_eq!(neg.as_slice::<f32>().unwrap(), [0.0, 2.0, 0.0]);
    let want = [1f32, -2.0, 3.0].map(f32::exp);
    let exp = exp.as_slice::<f32>().unwrap();
    let close = |(y, want): (&f32, &f32)| (y - want).abs() <= 1e-6 * want;
    assert!(exp.iter().zip(&want).all(close), "{exp:?}");
    assert_eq!(x.as_slice::<f32>().unwrap(), [1.0, -2.0, 3.0]);
}

#[test]
fn outputs_go_into_buffers_of_the_users() {
    let (mut s, _) = four_outputs();
    let x = f32s(&[3], &[1.0, -2.0, 3.0]);
    let inputs = [("x", x.clone().into())];
    let options = RunOptions::default();
    let (mut same, mut relu) = ([0xAA; 12], [0xAA; 16]);
    let mut buffers = [("relu:0", &mut relu[..]), ("x", &mut same[..])];
    let specs = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap();
    assert_eq!(specs, [3, 3].map(|n| TensorSpec::new(DType::F32, &[n])));
    assert_eq!(same, x.bytes());
    assert_eq!(relu[..12], *f32s(&[3], &[0.0, 2.0, 0.0]).bytes());
    assert_eq!(relu[12..], [0xAA; 4], "what is longer stays as it was");

    let (mut whole, mut short) = ([0xAA; 12], [0xAA; 11]);
    let mut buffers = [("x", &mut whole[..]), ("relu:0", &mut short[..])];
    let error = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!(error.expected(), Some("12 bytes"));
    let mut buffers = [("x", &mut whole[..]), ("none", &mut short[..])];
    let error = pollster::block_on(s.run_into(&inputs, &mut buffers, &options)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Input);
    assert_eq!((whole, short), ([0xAA; 12], [0xAA; 11]), "all or nothing");
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
