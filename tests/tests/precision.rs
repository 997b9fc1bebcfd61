//! Half precision where it does not harm, as measured on samples.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use kilim::core::ops::*;
use kilim::core::session::{MixedPrecision, SessionOptions};
use kilim::core::{Backend, Session};
use kilim::{BackendId, DType, ErrorCode, Fact, Graph, Result, RunOptions, Runtime, Tensor};
use kilim_tests::operators::Random;
use kilim_tests::stand_in::StandIn;

fn cpu() -> Arc<dyn Backend> {
    pollster::block_on(Runtime::shared().backend(&BackendId::from("cpu"))).unwrap()
}

/// Two products, then a detour over numbers that half precision does not have: `y * 1e6 / 1e6`.
fn graph() -> Graph {
    let mut random = Random::new(7);
    let mut g = Graph::new("products");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 16]));
    let mut weights =
        |g: &mut Graph, name: &str| g.add_constant(name, random.array(&[16, 16]).tensor());
    let (v, w) = (weights(&mut g, "v"), weights(&mut g, "w"));
    let large = g.add_constant("large", Tensor::scalar(1e6f32).unwrap());
    let first = g.apply("first", MatMul::default(), &[x, v]);
    let tanh = g.apply("tanh", Unary(UnaryKind::Tanh), &[first]);
    let second = g.apply("second", MatMul::default(), &[tanh, w]);
    let up = g.apply("up", Binary::new(BinaryKind::Mul), &[second, large]);
    let down = g.apply("down", Binary::new(BinaryKind::Div), &[up, large]);
    g.outputs.push(down);
    g
}

fn sample(seed: u64) -> Tensor {
    Random::new(seed).array(&[4, 16]).tensor()
}

fn session(backend: StandIn, mixed: Option<MixedPrecision>) -> Result<Session> {
    let options = SessionOptions {
        mixed_precision: mixed,
        // The passes would fold the detour into the weights.
        optimise: false,
        ..SessionOptions::default()
    };
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(backend)];
    pollster::block_on(Session::new(graph(), backends, cpu(), options))
}

fn within(tolerance: f64) -> Option<MixedPrecision> {
    Some(MixedPrecision {
        tolerance,
        samples: vec![
            vec![("x".to_string(), sample(1))],
            vec![("x".to_string(), sample(2))],
        ],
    })
}

fn run(session: &mut Session) -> Tensor {
    let out = pollster::block_on(session.run(&[("x", sample(3))], &RunOptions::default()));
    out.unwrap()[0].1.clone()
}

fn half() -> StandIn {
    StandIn::new(cpu(), "half").fast_in(DType::F16)
}

#[test]
fn nodes_that_leave_the_range_of_half_precision_stay_single() {
    let want = run(&mut session(half(), None).unwrap());
    let mut s = session(half(), within(0.01)).unwrap();
    let chosen = s.report().precision.unwrap();
    assert!(chosen.error > 0.0 && chosen.error <= 0.01, "{chosen:?}");
    let has = |name: &str| chosen.nodes.iter().any(|n| n == name);
    assert!(has("first") && has("second"), "{chosen:?}");
    assert!(!has("up") && !has("down"), "{chosen:?}");
    let report = s.report();
    let product = report.nodes.iter().find(|n| n.name == "first").unwrap();
    assert_eq!(product.outputs[0].dtype, "float16");
    // On an input that was no sample, half precision shows, and not too much.
    let got = run(&mut s);
    let (got, want) = (got.to_f64s().unwrap(), want.to_f64s().unwrap());
    let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = got.iter().zip(&want).map(|(a, b)| (a - b).abs() / scale);
    let apart = apart.fold(0.0, f64::max);
    assert!(apart > 0.0 && apart < 0.02, "{apart}");
}

#[test]
fn without_tolerance_or_a_fast_device_nothing_changes() {
    let want = run(&mut session(half(), None).unwrap());
    for (backend, tolerance) in [(half(), 0.0), (StandIn::new(cpu(), "single"), 0.01)] {
        let mut s = session(backend, within(tolerance)).unwrap();
        assert_eq!(s.report().precision.unwrap().nodes, Vec::<String>::new());
        assert_eq!(run(&mut s), want);
    }
}

#[test]
fn samples_are_needed() {
    let mixed = MixedPrecision {
        tolerance: 0.01,
        samples: Vec::new(),
    };
    let error = session(half(), Some(mixed)).err().map(|e| e.code());
    assert_eq!(error, Some(ErrorCode::Input));
}
