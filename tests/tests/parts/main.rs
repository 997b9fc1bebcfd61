//! The parts of a backend that may be left out, and what else a program may add: a backend that
//! rewrites what it is offered and brings a scheduler, and a file format; and what sessions call ([`calls`]).

#![cfg(not(target_arch = "wasm32"))]

mod calls;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kilim::core::Backend;
use kilim::core::backend::{
    BackendContext, ContextConfig, Description, KernelSpec, LocalFuture, NodeSpec, Optimizer,
    Refusal, Replacement, Rewrite, Subgraph,
};
use kilim::core::error::value_error;
use kilim::core::ops::{
    Attributes, Binary, BinaryKind, Cost, Custom, CustomOperator, Unary, UnaryKind,
};
use kilim::core::schedule::{Scheduler, StageRun, SyncScheduler};
use kilim::formats::{Interpreter, Limits};
use kilim::{
    BackendId, BackendRegistry, DType, Dim, ErrorCode, Fact, Graph, Result, RunOptions, Runtime,
    Session, SessionOptions, Shape, Tensor,
};
use kilim_tests::machine::cpu;
use kilim_tests::stand_in::StandIn;

/// Runs like `cpu`, but merges Relu and a Neg behind it, and gives an Exp back that is alone.
struct Merging {
    cpu: Arc<dyn Backend>,
    description: Description,
    merged: Arc<CustomOperator>,
    steps: Arc<AtomicUsize>,
    /// Replaces nodes by ones that do not write what they wrote.
    broken: bool,
}

impl Merging {
    fn new(broken: bool) -> Merging {
        let cpu = cpu();
        let merged = CustomOperator::new("merging", "ReluNeg", |_, ctx| {
            Ok(vec![ctx.fact(0)?.clone()])
        });
        let merged = merged.host(|_, inputs, outputs| {
            let [Some(x)] = inputs else {
                return Err(value_error("one input"));
            };
            let x = x.elements::<f32>()?;
            for (y, x) in outputs[0].elements::<f32>()?.iter_mut().zip(x) {
                *y = -x.max(0.0);
            }
            Ok(())
        });
        Merging {
            description: Description {
                id: BackendId::new("merging"),
                ..cpu.describe().clone()
            },
            cpu,
            merged: Arc::new(merged),
            steps: Arc::default(),
            broken,
        }
    }
}

impl Backend for Merging {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.cpu.supports(node)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        self.cpu.create_context(config)
    }

    fn optimizer(&self) -> Option<&dyn Optimizer> {
        Some(self)
    }

    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        Some(Arc::new(Counting(self.steps.clone())))
    }
}

impl Optimizer for Merging {
    fn optimise(&self, subgraph: &Subgraph) -> Result<Rewrite> {
        let mut rewrite = Rewrite::default();
        if let [only] = &subgraph.nodes[..]
            && only.op.name() == "Exp"
        {
            let refusal = Refusal::new("an Exp alone is not worth it");
            rewrite.refused.push((0, refusal));
            return Ok(rewrite);
        }
        for (i, relu) in subgraph.nodes.iter().enumerate() {
            let between = relu.outputs[0];
            let mut readers = subgraph.nodes.iter().enumerate();
            let reader = readers.find(|(_, n)| n.inputs.contains(&Some(between)));
            let Some((j, neg)) = reader else { continue };
            let pair = (relu.op.name(), neg.op.name()) == ("Relu", "Neg");
            if !pair || subgraph.tensors[between].escapes {
                continue;
            }
            let merged = Custom::new(self.merged.clone(), Attributes::default());
            let outputs = match self.broken {
                true => vec![subgraph.tensors.len()],
                false => neg.outputs.clone(),
            };
            rewrite.replaced.push(Replacement {
                nodes: vec![i, j],
                with: vec![KernelSpec {
                    name: format!("{}+{}", relu.name, neg.name),
                    op: Arc::new(merged),
                    inputs: relu.inputs.clone(),
                    outputs,
                }],
            });
        }
        Ok(rewrite)
    }
}

/// Counts the stages that it runs.
struct Counting(Arc<AtomicUsize>);

impl Scheduler for Counting {
    fn run<'a>(&'a self, stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        self.0.fetch_add(stage.steps.len(), Ordering::Relaxed);
        SyncScheduler.run(stage)
    }
}

/// `y = -relu(a + b)`, `z = exp(b)`.
fn graph() -> Graph {
    let mut g = Graph::new("parts");
    let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
    let b = g.add_input("b", Fact::fixed(DType::F32, &[3]));
    let sum = g.apply("sum", Binary::new(BinaryKind::Mul), &[a, b]);
    let relu = g.apply("relu", Unary(UnaryKind::Relu), &[sum]);
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[relu]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[b]);
    g.outputs.extend([neg, exp]);
    g
}

fn session(backend: Merging) -> Result<Session> {
    let runtime = Runtime::default().with_backend(Arc::new(backend));
    let mut options = SessionOptions {
        backends: ["merging", "cpu"].map(BackendId::from).to_vec(),
        ..SessionOptions::default()
    };
    // The passes would fuse Relu into the product.
    options.core.optimise = false;
    pollster::block_on(runtime.session(graph(), options))
}

#[test]
fn a_backend_merges_nodes_gives_others_back_and_schedules() {
    let backend = Merging::new(false);
    let steps = backend.steps.clone();
    let mut session = session(backend).unwrap();
    let f32s = |v: &[f32]| Tensor::from_slice(&[3], v).unwrap();
    let inputs = [
        ("a", f32s(&[1.0, -2.0, 3.0])),
        ("b", f32s(&[0.5, 1.0, 2.0])),
    ];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [-0.5, 0.0, -6.0]);
    let exp = out[1].1.as_slice::<f32>().unwrap();
    assert!((exp[2] - 2f32.exp()).abs() < 1e-5);
    assert!(steps.load(Ordering::Relaxed) >= 2);
    let nodes = session.report().nodes;
    let at: Vec<_> = nodes.iter().map(|n| (&*n.name, &*n.backend)).collect();
    assert!(at.contains(&("relu+neg", "merging")), "{at:?}");
    assert!(at.contains(&("exp", "cpu")), "{at:?}");
    assert_eq!(at.len(), 3, "{at:?}");
    let exp = nodes.iter().find(|n| n.name == "exp").unwrap();
    assert_eq!(exp.refusals[0].reason, "an Exp alone is not worth it");
    let inputs = inputs.map(|(name, x)| (name, x.into()));
    let (_, times) = pollster::block_on(session.profile(&inputs)).unwrap();
    assert!(times.iter().any(|t| t.name == "relu+neg"));
}

#[test]
fn a_rewrite_that_cannot_be_is_an_error() {
    let error = session(Merging::new(true)).err().unwrap();
    let code = error.code();
    assert!(
        matches!(code, ErrorCode::InvalidGraph | ErrorCode::State),
        "{error}"
    );
}

/// A model in words, `negate SIZE`, and what is made of it.
struct Words(UnaryKind);

impl Interpreter for Words {
    fn format(&self) -> &'static str {
        "words"
    }

    fn probe(&self, bytes: &[u8], _: &str) -> bool {
        bytes.starts_with(b"negate ")
    }

    fn load(&self, source: &kilim::formats::ModelSource, _: &Limits) -> Result<Graph> {
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
    let options = || SessionOptions {
        backends: vec![BackendId::new("cpu")],
        ..SessionOptions::default()
    };
    let load =
        |runtime: &Runtime| pollster::block_on(runtime.load(b"negate 2".as_slice(), options()));
    let error = load(&Runtime::default()).err().unwrap();
    assert_eq!(error.code(), ErrorCode::UnknownFormat);
    // One of the same id takes the place of the first.
    let runtime = Runtime::default().with_interpreter(Words(UnaryKind::Abs));
    let mut session = load(&runtime.with_interpreter(Words(UnaryKind::Neg))).unwrap();
    let x = Tensor::from_slice(&[2], &[1.0f32, -2.0]).unwrap();
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [-1.0, 2.0]);
}

#[test]
fn a_backend_of_another_version_is_refused() {
    fn old() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "old").of_version(1)) as _) })
    }
    let mut registry = BackendRegistry::new();
    registry.register(BackendId::new("old"), old);
    let opened = pollster::block_on(Runtime::new(registry).backend(&BackendId::new("old")));
    let error = opened.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.got(), Some("1"));
}

#[test]
fn an_id_is_of_one_backend() {
    fn first() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "first")) as _) })
    }
    fn second() -> LocalFuture<'static, Result<Arc<dyn Backend>>> {
        Box::pin(async { Ok(Arc::new(StandIn::new(cpu(), "second")) as _) })
    }
    let id = BackendId::new("one");
    let mut registry = BackendRegistry::new();
    registry.register(id.clone(), first);
    registry.register(id.clone(), second);
    assert_eq!(registry.ids().collect::<Vec<_>>(), [&id]);
    let made = pollster::block_on(registry.create(&id)).unwrap();
    assert_eq!(made.describe().id.as_str(), "second");
    let unknown = pollster::block_on(registry.create(&BackendId::new("two")));
    let error = unknown.err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(error.to_string().contains("this build has one"), "{error}");
}

#[test]
fn sessions_share_the_device() {
    let session = || {
        let options = SessionOptions {
            backends: vec![BackendId::new("cpu")],
            ..SessionOptions::default()
        };
        pollster::block_on(Runtime::shared().session(graph(), options)).unwrap()
    };
    let (one, two) = (session(), session());
    assert!(Arc::ptr_eq(&one.backends()[0], &two.backends()[0]));
}
