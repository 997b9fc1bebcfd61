//! The parts of a backend and of a runtime: backends by name and version, file formats that a program adds,
//! backends that rewrite what they are offered ([`rewriting`]), and what sessions call ([`calls`]).

#![cfg(not(target_arch = "wasm32"))]

mod calls;
mod rewriting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use kilim::core::Backend;
use kilim::core::Limits;
use kilim::core::backend::{DeviceOptions, LocalFuture, NodeSpec};
use kilim::core::error::value_error;
use kilim::core::ops::{Unary, UnaryKind};
use kilim::formats::{Draft, DraftNode, Importer};
use kilim::{
    BackendId, BackendRegistry, DType, Dim, ErrorCode, Fact, Graph, LoadOptions, Result,
    RunOptions, Runtime, Shape, Tensor,
};
use kilim_tests::machine::cpu;
use kilim_tests::stand_in::StandIn;

/// A model in words, `negate SIZE`, and what is made of it.
struct Words(UnaryKind);

impl Importer for Words {
    fn format(&self) -> &'static str {
        "words"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        bytes.starts_with(b"negate ")
    }

    fn load(&self, source: &kilim::formats::ModelFile, _: &Limits) -> Result<Graph> {
        let text = String::from_utf8_lossy(&source.bytes.as_slice()[7..]).into_owned();
        let size = text.trim().parse().map_err(|_| value_error("a size"))?;
        let mut g = Graph::new("words");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[size]));
        let y = g.apply("y", Unary(self.0), &[x]);
        g.outputs.push(y);
        Ok(g)
    }
}

#[test]
fn a_program_may_add_a_format() {
    let options = || LoadOptions {
        backends: vec![BackendId::new("cpu")],
        ..LoadOptions::default()
    };
    let load =
        |runtime: &Runtime| pollster::block_on(runtime.load(b"negate 2".as_slice(), options()));
    let error = load(&Runtime::default()).err().unwrap();
    assert_eq!(error.code(), ErrorCode::UnknownFormat);
    // One of the same id takes the place of the first.
    let runtime = Runtime::default().with_importer(Words(UnaryKind::Abs));
    let mut session = load(&runtime.with_importer(Words(UnaryKind::Neg))).unwrap();
    let x = Tensor::from_slice(&[2], &[1.0f32, -2.0]).unwrap();
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [-1.0, 2.0]);
}

#[test]
fn a_program_may_load_a_model_that_it_has_made() {
    let mut draft = Draft::new("mine");
    let shape = Shape(vec![Dim::Symbol("n".into())]);
    draft.input("x", DType::F32, shape).unwrap();
    let node = DraftNode {
        op: "Neg".into(),
        inputs: vec!["x".into()],
        outputs: vec!["y".into()],
        ..DraftNode::default()
    };
    draft.node(node).unwrap();
    draft.output("y").unwrap();
    let options = LoadOptions {
        backends: vec![BackendId::new("cpu")],
        ..LoadOptions::default()
    };
    let mut session = pollster::block_on(Runtime::default().load(draft, options)).unwrap();
    let x = Tensor::from_slice(&[2], &[1.0f32, -2.0]).unwrap();
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [-1.0, 2.0]);
}

#[test]
fn a_backend_of_another_version_is_refused() {
    fn old(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "old").of_version(1)) as _) })
    }
    let mut registry = BackendRegistry::new();
    registry.register(BackendId::new("old"), old);
    let opened = pollster::block_on(Runtime::new(registry).backend(&BackendId::new("old")));
    let error = opened.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.got(), Some("1"));

    let runtime =
        Runtime::default().with_backend(Arc::new(StandIn::new(cpu(), "old").of_version(1)));
    let options = LoadOptions {
        backends: vec![BackendId::new("old")],
        ..LoadOptions::default()
    };
    let made = pollster::block_on(runtime.session(rewriting::graph(), options));
    let error = made.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.got(), Some("1"));
}

#[test]
fn an_id_is_of_one_backend() {
    fn first(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "first")) as _) })
    }
    fn second(_: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "second")) as _) })
    }
    let id = BackendId::new("one");
    let mut registry = BackendRegistry::new();
    registry.register(id.clone(), first);
    registry.register(id.clone(), second);
    assert_eq!(registry.ids().collect::<Vec<_>>(), [&id]);
    let made = pollster::block_on(registry.create(&id, &DeviceOptions::default())).unwrap();
    assert_eq!(made.describe().id.as_str(), "second");
    let unknown =
        pollster::block_on(registry.create(&BackendId::new("two"), &DeviceOptions::default()));
    let error = unknown.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.expected(), Some("one"), "{error}");
}

#[test]
fn sessions_share_the_device() {
    let session = || {
        let options = LoadOptions {
            backends: vec![BackendId::new("cpu")],
            ..LoadOptions::default()
        };
        pollster::block_on(Runtime::shared().session(rewriting::graph(), options)).unwrap()
    };
    let (one, two) = (session(), session());
    assert!(Arc::ptr_eq(&one.backends()[0], &two.backends()[0]));
}
