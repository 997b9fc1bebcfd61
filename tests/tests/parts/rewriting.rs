//! A backend that rewrites what it is offered, and brings a scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kilim::core::Backend;
use kilim::core::backend::{
    BackendContext, ContextConfig, Description, KernelSpec, LocalFuture, NodeSpec, Optimizer,
    Refusal, Replacement, Rewrite, Subgraph,
};
use kilim::core::error::value_error;
use kilim::core::ids::{KernelIndex, TensorIndex};
use kilim::core::ops::{
    Attributes, Binary, BinaryKind, Cost, Custom, CustomOperator, Unary, UnaryKind,
};
use kilim::core::schedule::{OverlappedScheduler, Scheduler, StageRun, SyncScheduler};
use kilim::{
    BackendId, DType, ErrorCode, Fact, Graph, LoadOptions, Result, RunOptions, Runtime, Session,
    Tensor,
};
use kilim_tests::machine::cpu;

type OnOffer = fn(&Merging, &Subgraph) -> Rewrite;

/// Runs like `cpu`, and makes of what it is offered what `rewrite` says.
struct Merging {
    cpu: Arc<dyn Backend>,
    description: Description,
    merged: Arc<CustomOperator>,
    steps: Arc<AtomicUsize>,
    rewrite: OnOffer,
}

impl Merging {
    fn new(rewrite: OnOffer) -> Merging {
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
            rewrite,
        }
    }

    /// A node of the operator `ReluNeg`.
    fn kernel(&self, name: String, input: TensorIndex, output: TensorIndex) -> KernelSpec {
        KernelSpec {
            name,
            op: Arc::new(Custom::new(self.merged.clone(), Attributes::default())),
            inputs: vec![Some(input)],
            outputs: vec![output],
        }
    }

    /// Merges Relu and a Neg behind it, and gives an Exp back that is alone.
    fn merge(&self, subgraph: &Subgraph) -> Rewrite {
        let mut rewrite = Rewrite::default();
        if let [only] = &*subgraph.nodes
            && only.op.name() == "Exp"
        {
            let refusal = Refusal::new("an Exp alone is not worth it");
            rewrite.refused.push((KernelIndex(0), refusal));
            return rewrite;
        }
        for (i, relu) in subgraph.nodes.entries() {
            let between = relu.outputs[0];
            let mut readers = subgraph.nodes.entries();
            let reader = readers.find(|(_, n)| n.inputs.contains(&Some(between)));
            let Some((j, neg)) = reader else { continue };
            let pair = (relu.op.name(), neg.op.name()) == ("Relu", "Neg");
            if !pair || subgraph.tensors[between].escapes {
                continue;
            }
            let name = format!("{}+{}", relu.name, neg.name);
            let input = relu.inputs[0].unwrap();
            rewrite.replaced.push(Replacement {
                nodes: vec![i, j],
                with: vec![self.kernel(name, input, neg.outputs[0])],
            });
        }
        rewrite
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
        Ok((self.rewrite)(self, subgraph))
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

/// `y = -relu(a b)`, `z = exp(b)`.
pub fn graph() -> Graph {
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

/// The graph on `backend`, with `cpu` behind it.
fn session(graph: Graph, backend: Merging, scheduler: Arc<dyn Scheduler>) -> Result<Session> {
    let runtime = Runtime::default().with_backend(Arc::new(backend));
    let mut options = LoadOptions {
        backends: ["merging", "cpu"].map(BackendId::from).to_vec(),
        ..LoadOptions::default()
    };
    // The passes would fuse Relu into the product.
    options.optimise = false;
    options.scheduler = scheduler;
    pollster::block_on(runtime.session(graph, options))
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[3], values).unwrap()
}

fn inputs() -> [(&'static str, Tensor); 2] {
    [
        ("a", f32s(&[1.0, -2.0, 3.0])),
        ("b", f32s(&[0.5, 1.0, 2.0])),
    ]
}

fn run(session: &mut Session) -> Vec<Vec<f32>> {
    let out = pollster::block_on(session.run(&inputs(), &RunOptions::default())).unwrap();
    let values = out
        .iter()
        .map(|(_, t)| t.as_slice::<f32>().unwrap().to_vec());
    values.collect()
}

/// The nodes that run, and where.
fn placed(session: &Session) -> Vec<(String, String)> {
    let nodes = session.report().nodes.into_iter();
    nodes.map(|n| (n.name, n.backend)).collect()
}

fn at(name: &str, backend: &str) -> (String, String) {
    (name.to_string(), backend.to_string())
}

#[test]
fn a_backend_merges_nodes_gives_others_back_and_schedules() {
    let backend = Merging::new(Merging::merge);
    let steps = backend.steps.clone();
    let mut session = session(graph(), backend, Arc::new(SyncScheduler)).unwrap();
    let out = run(&mut session);
    assert_eq!(out[0], [-0.5, 0.0, -6.0]);
    assert!((out[1][2] - 2f32.exp()).abs() < 1e-5);
    assert!(steps.load(Ordering::Relaxed) >= 2);
    let at_last = placed(&session);
    assert!(at_last.contains(&at("relu+neg", "merging")), "{at_last:?}");
    assert!(at_last.contains(&at("exp", "cpu")), "{at_last:?}");
    assert_eq!(at_last.len(), 3, "{at_last:?}");
    let nodes = session.report().nodes;
    let exp = nodes.iter().find(|n| n.name == "exp").unwrap();
    assert_eq!(exp.refusals[0].reason, "an Exp alone is not worth it");
    let inputs = inputs().map(|(name, x)| (name, x.into()));
    let (_, times) = pollster::block_on(session.profile(&inputs, &RunOptions::default())).unwrap();
    assert!(times.iter().any(|t| t.name == "relu+neg"));
}

#[test]
fn the_scheduler_of_the_user_goes_before_that_of_a_backend() {
    let backend = Merging::new(Merging::merge);
    let steps = backend.steps.clone();
    let scheduler = Arc::new(OverlappedScheduler::default());
    let mut session = session(graph(), backend, scheduler).unwrap();
    assert_eq!(run(&mut session)[0], [-0.5, 0.0, -6.0]);
    assert_eq!(steps.load(Ordering::Relaxed), 0);
}

#[test]
fn what_others_read_is_told_and_still_written() {
    let mut g = graph();
    let relu = g.nodes.iter().find(|n| n.name == "relu").unwrap().outputs[0];
    g.outputs.push(relu);
    let backend = Merging::new(Merging::merge);
    let mut session = session(g, backend, Arc::new(SyncScheduler)).unwrap();
    assert_eq!(run(&mut session)[2], [0.5, 0.0, 6.0]);
    assert!(placed(&session).contains(&at("relu", "merging")));
}

#[test]
fn what_is_left_is_offered_again() {
    // Each time the first of a group, if it is an Exp.
    let backend = Merging::new(|_, subgraph| {
        let first = subgraph.nodes[KernelIndex(0)].op.name() == "Exp";
        let refusal = first.then(|| (KernelIndex(0), Refusal::new("no Exp first")));
        Rewrite {
            refused: refusal.into_iter().collect(),
            ..Rewrite::default()
        }
    });
    let mut g = Graph::new("chain");
    let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
    let _ = g.add_input("b", Fact::fixed(DType::F32, &[3]));
    let first = g.apply("first", Unary(UnaryKind::Exp), &[a]);
    let second = g.apply("second", Unary(UnaryKind::Exp), &[first]);
    let third = g.apply("third", Unary(UnaryKind::Neg), &[second]);
    g.outputs.push(third);
    let session = session(g, backend, Arc::new(SyncScheduler)).unwrap();
    let at_last = placed(&session);
    assert!(at_last.contains(&at("first", "cpu")), "{at_last:?}");
    assert!(at_last.contains(&at("second", "cpu")), "{at_last:?}");
}

#[test]
fn a_rewrite_that_cannot_be_is_an_error() {
    /// A rewrite that puts `with` in the place of the first node, in the one group that has several nodes.
    fn replaced(subgraph: &Subgraph, with: Vec<KernelSpec>) -> Rewrite {
        let nodes = vec![KernelIndex(0)];
        let replaced = vec![Replacement { nodes, with }];
        match subgraph.nodes.len() {
            1 => Rewrite::default(),
            _ => Rewrite {
                replaced,
                ..Rewrite::default()
            },
        }
    }
    let wrong: [(&str, OnOffer); 9] = [
        ("the node 99 of 3 nodes", |_, _| Rewrite {
            refused: vec![(KernelIndex(99), Refusal::new("nobody"))],
            ..Rewrite::default()
        }),
        ("the node 99 of 3 nodes", |_, s| {
            let mut rewrite = replaced(s, Vec::new());
            rewrite
                .replaced
                .iter_mut()
                .for_each(|r| r.nodes[0] = KernelIndex(99));
            rewrite
        }),
        ("the node 0, `sum`, twice", |_, s| {
            let mut rewrite = replaced(s, Vec::new());
            rewrite
                .replaced
                .iter_mut()
                .for_each(|r| r.nodes.push(KernelIndex(0)));
            rewrite
        }),
        ("the node 0, `sum`, twice", |_, s| {
            let mut rewrite = replaced(s, Vec::new());
            if !rewrite.replaced.is_empty() {
                rewrite.refused.push((KernelIndex(0), Refusal::new("both")));
            }
            rewrite
        }),
        ("`far` names the tensor 1048576", |m, s| {
            replaced(
                s,
                vec![m.kernel("far".to_string(), TensorIndex(1 << 20), TensorIndex(0))],
            )
        }),
        (
            "nothing writes the tensor `sum:0`, which `relu` reads",
            |m, s| {
                let new = s.tensors.end();
                let input = s.nodes[KernelIndex(0)].inputs[0].unwrap();
                replaced(s, vec![m.kernel("lost".to_string(), input, new)])
            },
        ),
        (
            "nothing writes the tensor `neg:0`, which is read after",
            |_, s| {
                let mut rewrite = replaced(s, Vec::new());
                rewrite
                    .replaced
                    .iter_mut()
                    .for_each(|r| r.nodes = vec![KernelIndex(2)]);
                rewrite
            },
        ),
        ("`one` and `two` both write the tensor `sum:0`", |m, s| {
            let (input, output) = (
                s.nodes[KernelIndex(0)].inputs[0].unwrap(),
                s.nodes[KernelIndex(0)].outputs[0],
            );
            let kernel = |name: &str| m.kernel(name.to_string(), input, output);
            replaced(s, vec![kernel("one"), kernel("two")])
        }),
        ("` waits for what it writes itself", |m, s| {
            let (output, new) = (s.nodes[KernelIndex(0)].outputs[0], s.tensors.end());
            let kernel = |name: &str, from, to| m.kernel(name.to_string(), from, to);
            replaced(
                s,
                vec![kernel("one", new, output), kernel("two", output, new)],
            )
        }),
    ];
    for (why, rewrite) in wrong {
        let made = session(graph(), Merging::new(rewrite), Arc::new(SyncScheduler));
        let error = made.err().expect(why);
        assert_eq!(error.code(), ErrorCode::State, "{error}");
        let message = error.message();
        assert!(message.contains("`merging`"), "{error}");
        assert!(message.contains(why), "{why}: {error}");
        assert!(!message.contains("`relu` waits"), "{error}");
    }
}
