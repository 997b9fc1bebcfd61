//! Models that use more than they may.

#![cfg(not(target_arch = "wasm32"))]

use kilim::core::Limits;
use kilim::core::ops::{Binary, BinaryKind, Loop, MatMul, Unary, UnaryKind};
use kilim::{
    BackendId, DType, ErrorCode, Fact, Graph, LoadOptions, Result, RunOptions, Runtime, Session,
    Tensor,
};

/// `(x · w) · w` of 16 × 16, and a constant that is computed of another.
fn graph() -> Graph {
    let mut g = Graph::new("limited");
    let fact = Fact::fixed(DType::F32, &[16, 16]);
    let x = g.add_input("x", fact);
    let w: Vec<f32> = (0..256).map(|i| i as f32 / 256.0).collect();
    let w = g.add_constant("w", Tensor::from_slice(&[16, 16], &w).unwrap());
    let abs = g.apply("abs", Unary(UnaryKind::Abs), &[w]);
    let once = g.apply("once", MatMul::default(), &[x, abs]);
    let twice = g.apply("twice", MatMul::default(), &[once, abs]);
    g.outputs.push(twice);
    g
}

/// A Loop that adds 1 to its input so many times.
fn counting(times: i64) -> Graph {
    let mut body = Graph::new("body");
    body.add_input("i", Fact::fixed(DType::I64, &[]));
    let go = body.add_input("go", Fact::fixed(DType::Bool, &[]));
    let sum = body.add_input("sum", Fact::fixed(DType::F32, &[16, 16]));
    let one = body.add_constant("one", Tensor::scalar(1.0f32).unwrap());
    let more = body.apply("more", Binary::new(BinaryKind::Add), &[sum, one]);
    body.outputs.extend([go, more]);
    let mut g = Graph::new("counting");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[16, 16]));
    let trips = g.add_constant("trips", Tensor::scalar(times).unwrap());
    let out = g.add_value("y", Fact::default());
    let turns = Loop {
        body: body.into(),
        carried: 1,
    };
    g.push("loop", turns, &[Some(trips), None, Some(x)], &[out]);
    g.outputs.push(out);
    g
}

fn session(graph: Graph, limits: &str) -> Result<Session> {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.limits = limits.parse()?;
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn run(session: &mut Session) -> Result<Vec<f64>> {
    let x = Tensor::filled(&[16, 16], &Tensor::scalar(0.5f32)?)?;
    let outputs = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()))?;
    outputs[0].1.to_f64s()
}

fn load_and_run(graph: Graph, limits: &str) -> Result<Vec<f64>> {
    run(&mut session(graph, limits)?)
}

#[test]
fn each_limit_is_named_where_it_is_exceeded_and_kept_where_it_is_not() {
    // What the model needs at least, and just too little.
    let cases = [
        ("nodes", "3", "2"),
        ("tensor_bytes", "1024", "1023"),
        ("weight_bytes", "8192", "512"),
        ("intermediate_bytes", "65536", "100"),
        ("output_bytes", "1024", "1023"),
        ("operations", "16384", "16383"),
    ];
    let expected = load_and_run(graph(), "default").unwrap();
    for (name, enough, little) in cases {
        let given = |bound: &str| load_and_run(graph(), &format!("default,{name}={bound}"));
        assert_eq!(given(enough).expect(name), expected, "{name}");
        let error = given(little).expect_err(name);
        assert_eq!(error.code(), ErrorCode::Limit, "{name}: {error}");
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}

#[test]
fn what_is_not_folded_is_computed_by_the_run() {
    let folded = session(graph(), "strict").unwrap().report().nodes.len();
    let mut plain = session(graph(), "strict,folded_bytes=0").unwrap();
    assert_eq!(plain.report().nodes.len(), folded + 1);
    assert_eq!(
        run(&mut plain).unwrap(),
        load_and_run(graph(), "strict").unwrap()
    );
}

#[test]
fn turns_and_operations_of_a_loop_are_counted() {
    let sum = load_and_run(counting(50), "default,iterations=50,operations=25600").unwrap();
    assert_eq!(sum, [50.5; 256]);
    for limit in ["iterations=49", "operations=12000"] {
        let error = load_and_run(counting(50), &format!("default,{limit}")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit, "{limit}: {error}");
    }
}

#[test]
fn seconds_end_a_load_and_a_run() {
    let error = session(graph(), "default,load_seconds=0").err().unwrap();
    assert_eq!(error.code(), ErrorCode::Aborted);
    let mut session = session(counting(1 << 40), "default,run_seconds=0.05").unwrap();
    assert_eq!(run(&mut session).unwrap_err().code(), ErrorCode::Aborted);
}

#[test]
fn strict_limits_run_what_is_small() {
    assert_eq!(
        load_and_run(graph(), "strict").unwrap(),
        load_and_run(graph(), "default").unwrap()
    );
    assert!(Limits::strict().operations < Limits::default().operations);
}
