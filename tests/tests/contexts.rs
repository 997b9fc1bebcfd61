//! What a backend's context is given of a graph, and the tensors that it keeps.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::{Arc, Mutex};

use kilim::core::backend::{
    Backend, BackendContext, ContextConfig, KernelSpec, Location, Memory, NodeSpec, StageSpec,
    TensorSlot, TensorSpec,
};
use kilim::core::ids::{KernelIndex, TensorIndex};
use kilim::core::ops::{Binary, BinaryKind, If, Loop, Scan, Unary, UnaryKind};
use kilim::core::{Interrupt, Pin, Session, SessionOptions};
use kilim::{DType, ErrorCode, Fact, Graph, RunOptions, Runtime, Tensor};
use kilim_tests::machine::{backend, cpu};
use kilim_tests::stand_in::StandIn;

/// The stages that backends were given, in words, and the operators that they were asked about.
#[derive(Clone, Default)]
struct Seen {
    stages: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Seen {
    /// A backend that would take everything, if `takes` lets it.
    fn backend(
        &self,
        id: &'static str,
        takes: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Arc<dyn Backend> {
        let (stages, asked) = (self.stages.clone(), self.asked.clone());
        let greedy = StandIn::new(cpu(), id).taking(move |node: &NodeSpec| {
            asked.lock().unwrap().push(node.op.name().to_string());
            takes(node.op.name())
        });
        Arc::new(greedy.rewriting(move |stage| {
            let nodes: Vec<_> = stage.nodes.iter().map(|n| &*n.name).collect();
            let names = |which: &[TensorIndex]| {
                let names: Vec<_> = which.iter().map(|&t| &*stage.tensors[t].name).collect();
                names.join(" ")
            };
            let text = format!(
                "{id}: {} -> {} -> {}",
                names(&stage.inputs),
                nodes.join(" "),
                names(&stage.outputs)
            );
            let mut stages = stages.lock().unwrap();
            // It is called for the tensors, and for the kernels.
            if stages.last() != Some(&text) {
                stages.push(text);
            }
        }))
    }

    fn stages(&self) -> Vec<String> {
        let mut stages = std::mem::take(&mut *self.stages.lock().unwrap());
        stages.sort();
        stages
    }
}

fn session(graph: Graph, backends: Vec<Arc<dyn Backend>>) -> Session {
    let options = SessionOptions {
        optimise: false,
        ..SessionOptions::default()
    };
    pollster::block_on(Session::new(graph, backends, cpu(), options)).unwrap()
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

#[test]
fn a_context_is_given_its_part_of_the_graph_and_what_lies_outside_of_it() {
    let seen = Seen::default();
    let backends = vec![
        seen.backend("one", |op| op == "Neg"),
        seen.backend("two", |op| op == "Exp"),
    ];
    let mut g = Graph::new("there and back");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let a = g.apply("a", Unary(UnaryKind::Neg), &[x]);
    let b = g.apply("b", Unary(UnaryKind::Exp), &[a]);
    let c = g.apply("c", Unary(UnaryKind::Neg), &[b]);
    g.outputs.push(c);
    let mut s = session(g, backends);
    assert_eq!(
        seen.stages(),
        ["one: x b:0 -> a c -> a:0 c:0", "two: a:0 -> b -> b:0"]
    );
    let out = pollster::block_on(s.run(&[("x", f32s(&[0.0, -1.0]))], &RunOptions::default()));
    let want = [-1.0, -(1f32.exp())];
    for (y, want) in out.unwrap()[0]
        .1
        .as_slice::<f32>()
        .unwrap()
        .iter()
        .zip(want)
    {
        assert!((y - want).abs() < 1e-5, "{y} is not {want}");
    }
}

/// `if x > 0: -x else: |x|`, then twice `x + x`, then the sums of what comes.
fn controlled() -> Graph {
    let branch = |name: &str, kind| {
        let mut g = Graph::new(name);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
        let out = g.apply(name, Unary(kind), &[x]);
        g.outputs.push(out);
        Arc::new(g)
    };
    let mut body = Graph::new("double");
    let _ = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let going = body.add_input("going", Fact::fixed(DType::Bool, &[]));
    let x = body.add_input("x", Fact::fixed(DType::F32, &[1]));
    let twice = body.apply("twice", Binary::new(BinaryKind::Add), &[x, x]);
    body.outputs.extend([going, twice]);
    let mut sums = Graph::new("sums");
    let state = sums.add_input("state", Fact::fixed(DType::F32, &[]));
    let x = sums.add_input("x", Fact::fixed(DType::F32, &[]));
    let sum = sums.apply("sum", Binary::new(BinaryKind::Add), &[state, x]);
    sums.outputs.push(sum);

    let mut g = Graph::new("controlled");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
    let zero = g.add_constant("zero", f32s(&[0.0]));
    let positive = g.apply("positive", Binary::new(BinaryKind::Greater), &[x, zero]);
    let op = If {
        then_body: branch("negate", UnaryKind::Neg),
        else_body: branch("absolute", UnaryKind::Abs),
    };
    let taken = g.apply("if", op, &[positive, x]);
    let trips = g.add_constant("trips", Tensor::scalar(2i64).unwrap());
    let last = g.add_value("last", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[Some(trips), None, Some(taken)], &[last]);
    let start = g.add_constant("start", Tensor::scalar(1f32).unwrap());
    let total = g.add_value("total", Fact::default());
    let op = Scan {
        body: Arc::new(sums),
        states: 1,
        scan_inputs: 1,
        input_axes: vec![0],
        input_reverse: vec![false],
        output_axes: Vec::new(),
        output_reverse: Vec::new(),
    };
    g.push("scan", op, &[Some(start), Some(last)], &[total]);
    g.outputs.push(total);
    g
}

#[test]
fn no_other_backend_is_asked_for_control_flow() {
    let seen = Seen::default();
    let mut s = session(controlled(), vec![seen.backend("greedy", |_| true)]);
    let out = pollster::block_on(s.run(&[("x", f32s(&[3.0]))], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [-11.0]);
    let mut asked = std::mem::take(&mut *seen.asked.lock().unwrap());
    asked.sort();
    asked.dedup();
    assert_eq!(asked, ["Abs", "Add", "Greater", "Neg"]);
    for node in s.report().nodes {
        let control = ["If", "Loop", "Scan"].contains(&&*node.op);
        let home = if control { "builtin" } else { "greedy" };
        assert_eq!(node.backend, home, "{}", node.name);
    }
}

#[test]
fn control_flow_cannot_be_pinned_to_another_backend() {
    for pin in ["op:If=cpu", "node:loop=cpu", "op:Scan=cpu"] {
        let options = SessionOptions {
            pins: vec![pin.parse::<Pin>().unwrap()],
            ..SessionOptions::default()
        };
        let made = Session::new(controlled(), vec![cpu()], cpu(), options);
        let error = pollster::block_on(made).err().expect(pin);
        assert_eq!(error.code(), ErrorCode::NoBackend, "{error}");
        assert!(error.node().is_some(), "{error}");
    }
}

/// A stage that computes `y = -x`; a backend on a device has both tensors in its arena.
fn stage(backend: &Arc<dyn Backend>, name: &str) -> StageSpec {
    let slot = |name: &str, location| TensorSlot {
        name: name.into(),
        spec: TensorSpec::new(DType::F32, &[4]),
        location,
    };
    let first = match backend.describe().memory {
        Memory::Host => Location::Input,
        _ => Location::Arena { offset: 256 },
    };
    StageSpec {
        tensors: [slot("x", first), slot(name, Location::Arena { offset: 0 })].into(),
        nodes: [KernelSpec {
            name: "negative".into(),
            op: Arc::new(Unary(UnaryKind::Neg)),
            inputs: vec![Some(TensorIndex(0))],
            outputs: vec![TensorIndex(1)],
        }]
        .into(),
        parts: [KernelIndex(0)..KernelIndex(1)].into(),
        arena_bytes: 512,
        inputs: vec![TensorIndex(0)],
        outputs: vec![TensorIndex(1)],
    }
}

#[test]
fn each_context_has_a_registry_of_its_own_tensors() {
    for id in Runtime::shared().ids() {
        let Ok(backend) = backend(id.as_str()) else {
            continue;
        };
        let context = || backend.create_context(&ContextConfig::default()).unwrap();
        let (mut own, other) = (context(), context());
        let kept = |c: &dyn BackendContext| c.tensors().stages().count();
        let first = own
            .prepare(stage(&backend, "y"), &Interrupt::NEVER)
            .unwrap();
        let second = own
            .prepare(stage(&backend, "z"), &Interrupt::NEVER)
            .unwrap();
        assert_eq!((kept(&*own), kept(&*other)), (2, 0), "{id}");
        assert!(other.tensors().find("y").is_none());
        let (tensors, at) = own.tensors().find("y").expect("it was made");
        assert_eq!(tensors.inputs(), [TensorIndex(0)]);
        assert_eq!(tensors.outputs(), [TensorIndex(1)]);
        assert_eq!(tensors.location(at), Location::Arena { offset: 0 });
        let spec = TensorSpec::new(DType::F32, &[4]);
        tensors.check(at, &spec).unwrap();
        let error = tensors.check(at, &TensorSpec::new(DType::F32, &[5]));
        assert_eq!(error.unwrap_err().code(), ErrorCode::Shape);
        // Of one name, the newest is found.
        let (newest, _) = own.tensors().find("x").unwrap();
        assert_eq!(newest.slots()[TensorIndex(1)].name, "z");
        // A stage that goes takes its tensors along.
        drop((tensors, newest, first));
        assert!(own.tensors().find("y").is_none(), "{id}");
        assert!(own.tensors().find("z").is_some());
        drop(second);
        assert_eq!(kept(&*own), 0, "{id}");
    }
}
