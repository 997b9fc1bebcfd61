//! Half precision where it does no harm, as measured on samples ([`mixed`]); and precision by name ([`named`]).

#![cfg(not(target_arch = "wasm32"))]

mod mixed;
mod named;

use std::sync::Arc;

use kilim::core::backend::Half;
use kilim::core::ops::{
    Activation, Binary, BinaryKind, Cast, Conv, If, MatMul, Padding, Reshape, Transpose, Unary,
    UnaryKind,
};
use kilim::core::report::SingleReport;
use kilim::core::session::{MixedPrecision, SessionOptions};
use kilim::core::{Backend, Session};
use kilim::{DType, ErrorCode, Fact, Graph, Result, RunOptions, Tensor};
use kilim_tests::machine::{cpu, gpu};
use kilim_tests::operators::Random;
use kilim_tests::stand_in::StandIn;

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

fn options(mixed: Option<MixedPrecision>) -> SessionOptions {
    SessionOptions {
        mixed_precision: mixed,
        // The passes would fold the detour into the weights.
        optimise: false,
        ..SessionOptions::default()
    }
}

fn pinned(pins: &[&str]) -> SessionOptions {
    SessionOptions {
        precisions: pins.iter().map(|p| p.parse().unwrap()).collect(),
        ..options(None)
    }
}

fn make(graph: Graph, backend: StandIn, options: SessionOptions) -> Result<Session> {
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(backend)];
    pollster::block_on(Session::new(graph, backends, cpu(), options))
}

fn session(backend: StandIn, mixed: Option<MixedPrecision>) -> Result<Session> {
    make(graph(), backend, options(mixed))
}

fn run(session: &mut Session) -> Tensor {
    let out = pollster::block_on(session.run(&[("x", sample(3))], &RunOptions::default()));
    out.unwrap()[0].1.clone()
}

fn dtypes(session: &Session, op: &str) -> Vec<(String, String)> {
    let nodes = session.report().nodes.into_iter();
    let nodes = nodes.filter(|n| n.op == op);
    nodes
        .map(|n| (n.name, n.outputs[0].dtype.clone()))
        .collect()
}
