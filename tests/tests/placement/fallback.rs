//! What a backend cannot run after all goes to the next one, when a session is made and for inputs of other shapes.

use kilim::core::backend::{Allocator, HostAllocator, StageSpec};
use kilim::core::memory::ArenaMemory;
use kilim::core::ops::MatMul;
use kilim::core::{Limits, SessionOptions};
use kilim::{Dim, Error, Result, Shape};

use crate::*;

fn matrix(rows: usize, columns: usize) -> Tensor {
    let data: Vec<f32> = (0..rows * columns).map(|i| (i % 5) as f32 - 2.0).collect();
    Tensor::from_slice(&[rows, columns], &data).unwrap()
}

/// Nodes 0 to 4 on matrices of `n` rows: Exp and a product of 4 columns, Sin and a product of 64, Abs of 4.
fn chain(n: Dim) -> Graph {
    let mut g = Graph::new("chain");
    let shape = Shape(vec![n, Dim::Known(4)]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let wide = g.add_constant("wide", matrix(4, 64));
    let narrow = g.add_constant("narrow", matrix(64, 4));
    let exp = g.apply("0", Unary(UnaryKind::Exp), &[x]);
    let up = g.apply("1", MatMul::default(), &[exp, wide]);
    let sin = g.apply("2", Unary(UnaryKind::Sin), &[up]);
    let down = g.apply("3", MatMul::default(), &[sin, narrow]);
    let y = g.apply("4", Unary(UnaryKind::Abs), &[down]);
    g.outputs.push(y);
    g
}

fn device() -> StandIn {
    StandIn::new(backend("cpu").unwrap(), "device")
}

fn fixed() -> SessionOptions {
    SessionOptions {
        placement: Placement::Fixed,
        ..SessionOptions::default()
    }
}

fn made(graph: Graph, device: StandIn, options: SessionOptions) -> Result<Session> {
    let cpu = backend("cpu").unwrap();
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(device), cpu.clone()];
    pollster::block_on(Session::new(graph, backends, cpu, options))
}

fn alone(graph: Graph, device: StandIn) -> Error {
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(device)];
    let session = Session::new(graph, backends, backend("cpu").unwrap(), fixed());
    pollster::block_on(session).err().unwrap()
}

fn run(session: &mut Session, rows: usize) -> Result<Vec<f32>> {
    let inputs = [("x", matrix(rows, 4))];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default()))?;
    Ok(out[0].1.as_slice::<f32>()?.to_vec())
}

/// Runs with these rows, compares with `cpu` alone, and says which nodes were on the device.
fn on_device(session: &mut Session, rows: usize) -> Vec<String> {
    let cpu = backend("cpu").unwrap();
    let plain = Session::new(chain(Dim::Known(rows)), vec![cpu.clone()], cpu, fixed());
    let mut plain = pollster::block_on(plain).unwrap();
    assert_eq!(run(session, rows).unwrap(), run(&mut plain, rows).unwrap());
    let nodes = session.report().nodes.into_iter();
    let own = nodes.filter(|n| n.backend == "device");
    own.map(|n| n.name).collect()
}

/// Why a node is not on the device.
fn reason(session: &Session, node: &str) -> String {
    let report = session.report();
    let node = report.nodes.iter().find(|n| n.name == node).unwrap();
    assert_eq!(node.backend, "cpu");
    assert_eq!(node.refusals[0].backend, "device");
    node.refusals[0].reason.clone()
}

fn code(made: Result<Session>) -> ErrorCode {
    made.err().unwrap().code()
}

#[test]
fn nodes_of_a_tensor_that_is_too_large_go_elsewhere() {
    let small = || device().describing(|d| d.max_tensor_bytes = 512);
    let mut s = made(chain(Dim::Known(4)), small(), fixed()).unwrap();
    assert_eq!(on_device(&mut s, 4), ["0", "4"]);
    let why = reason(&s, "2");
    assert!(why.contains("too large for `device`"), "{why}");
    assert!(why.contains("1024 bytes"), "{why}");
    // At other shapes, other nodes.
    let mut s = made(chain(Dim::Symbol("n".into())), small(), fixed()).unwrap();
    assert_eq!(on_device(&mut s, 2), ["0", "1", "2", "3", "4"]);
    assert_eq!(on_device(&mut s, 4), ["0", "4"]);
    assert_eq!(on_device(&mut s, 1), ["0", "1", "2", "3", "4"]);
    let strict = SessionOptions {
        strict: true,
        ..fixed()
    };
    let graph = chain(Dim::Known(4));
    assert_eq!(code(made(graph.clone(), small(), strict)), ErrorCode::Limit);
    assert_eq!(alone(graph, small()).code(), ErrorCode::Limit);
}

#[test]
fn a_stage_that_is_too_large_goes_elsewhere() {
    for placement in [Placement::Fixed, Placement::Prefer, Placement::Priced] {
        let small = device().describing(|d| d.max_arena_bytes = 100);
        let options = SessionOptions {
            placement,
            ..SessionOptions::default()
        };
        let mut s = made(chain(Dim::Known(4)), small, options).unwrap();
        assert!(on_device(&mut s, 4).is_empty());
        let why = reason(&s, "1");
        assert!(why.contains("do not fit on `device`"), "{why}");
    }
}

/// Host memory, at most so much at once.
struct Pool(usize);

impl Allocator for Pool {
    fn tensor_bytes(&self, tensor: &kilim::core::backend::TensorSpec) -> usize {
        HostAllocator.tensor_bytes(tensor)
    }

    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        match bytes <= self.0 {
            true => HostAllocator.allocate(bytes),
            false => Err(Error::new(ErrorCode::Limit, "the pool is empty")),
        }
    }

    fn release(&self, memory: Box<dyn ArenaMemory>) {
        HostAllocator.release(memory);
    }
}

#[test]
fn what_an_allocator_has_no_memory_for_goes_elsewhere() {
    let pool = || device().allocating(Arc::new(Pool(8192)));
    let mut s = made(chain(Dim::Known(64)), pool(), fixed()).unwrap();
    assert!(on_device(&mut s, 64).is_empty());
    assert_eq!(reason(&s, "1"), "the pool is empty");
    let mut s = made(chain(Dim::Symbol("n".into())), pool(), fixed()).unwrap();
    for (rows, count) in [(4, 5), (64, 0), (5, 5), (6, 5), (100, 0), (4, 5)] {
        assert_eq!(on_device(&mut s, rows).len(), count, "{rows}");
    }
    let strict = SessionOptions {
        strict: true,
        ..fixed()
    };
    let error = made(chain(Dim::Known(64)), pool(), strict);
    assert_eq!(error.err().unwrap().message(), "the pool is empty");
}

/// What a body needs on top of the rest does not keep the rest from the device.
#[test]
fn a_body_that_does_not_fit_goes_elsewhere_alone() {
    let branch = |columns: usize| {
        let mut g = Graph::new("branch");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 4]));
        let w = g.add_constant("w", matrix(4, columns));
        let v = g.add_constant("v", matrix(columns, 4));
        let up = g.apply("up", MatMul::default(), &[x, w]);
        let down = g.apply("down", MatMul::default(), &[up, v]);
        g.outputs.push(down);
        Arc::new(g)
    };
    let mut g = Graph::new("branches");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 4]));
    let go = g.add_input("go", Fact::fixed(DType::Bool, &[]));
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
    let tanh = g.apply("tanh", Unary(UnaryKind::Tanh), &[exp]);
    let op = If {
        then_body: branch(512),
        else_body: branch(8),
    };
    let y = g.apply("if", op, &[go, tanh]);
    g.outputs.push(y);
    let pool = device().allocating(Arc::new(Pool(1024)));
    let mut s = made(g.clone(), pool, fixed()).unwrap();
    let cpu = backend("cpu").unwrap();
    let plain = Session::new(g, vec![cpu.clone()], cpu, fixed());
    let mut plain = pollster::block_on(plain).unwrap();
    for go in [true, false] {
        let inputs = [
            ("x", matrix(4, 4)),
            ("go", Tensor::from_bools(&[], &[go]).unwrap()),
        ];
        let run =
            |s: &mut Session| pollster::block_on(s.run(&inputs, &RunOptions::default())).unwrap();
        assert_eq!(run(&mut s), run(&mut plain));
    }
    let nodes = s.report().nodes.into_iter();
    let products = nodes.filter(|n| n.op != "If" && !n.view);
    let at: Vec<(String, String)> = products.map(|n| (n.name, n.backend)).collect();
    let want = [
        ("exp", "device"),
        ("tanh", "device"),
        ("up", "cpu"),
        ("down", "cpu"),
    ];
    let want = [&want[..], &[("up", "device"), ("down", "device")]].concat();
    let want = want.iter().map(|(n, b)| (n.to_string(), b.to_string()));
    assert_eq!(at, want.collect::<Vec<_>>());
}

/// Kernels for the node 2 cannot be made.
fn unable(code: ErrorCode, named: bool) -> StandIn {
    device().preparing(
        move |stage: &StageSpec| match stage.nodes.iter().find(|n| n.name == "2") {
            Some(_) if named => Err(Error::new(code, "not in this mood").at("2", "Sin")),
            Some(_) => Err(Error::new(code, "not in this mood")),
            None => Ok(()),
        },
    )
}

#[test]
fn kernels_that_cannot_be_made_go_elsewhere() {
    for code in [ErrorCode::Unsupported, ErrorCode::Limit] {
        let graph = || chain(Dim::Known(4));
        let mut s = made(graph(), unable(code, true), fixed()).unwrap();
        assert_eq!(on_device(&mut s, 4), ["0", "1", "3", "4"]);
        assert!(reason(&s, "2").starts_with("not in this mood"));
        let mut s = made(graph(), unable(code, false), fixed()).unwrap();
        assert!(on_device(&mut s, 4).is_empty());
        assert_eq!(reason(&s, "0"), "not in this mood");
        let open = chain(Dim::Symbol("n".into()));
        let mut s = made(open, unable(code, true), fixed()).unwrap();
        for rows in [3, 4, 3] {
            assert_eq!(on_device(&mut s, rows), ["0", "1", "3", "4"]);
        }
        let strict = SessionOptions {
            strict: true,
            ..fixed()
        };
        let error = made(graph(), unable(code, true), strict).err().unwrap();
        assert_eq!((error.code(), error.node()), (code, Some("2")));
        let error = alone(graph(), unable(code, true));
        assert_eq!((error.code(), error.node()), (code, Some("2")));
        let mut pinned = fixed();
        pinned.pins = vec!["node:2=device".parse().unwrap()];
        let error = made(graph(), unable(code, true), pinned).err().unwrap();
        assert_eq!((error.code(), error.node()), (code, Some("2")));
    }
    // A device that failed may not be gone round in silence.
    let failing = made(
        chain(Dim::Known(4)),
        unable(ErrorCode::Device, true),
        fixed(),
    );
    assert_eq!(self::code(failing), ErrorCode::Device);
}

/// What the user allows is allowed to all backends together.
#[test]
fn the_limits_of_the_user_hold() {
    let mut options = fixed();
    options.limits = Limits {
        weight_bytes: 1500,
        ..Limits::default()
    };
    let error = made(chain(Dim::Known(4)), device(), options).err().unwrap();
    assert_eq!(error.limit(), Some("weight_bytes"), "{error}");
}
