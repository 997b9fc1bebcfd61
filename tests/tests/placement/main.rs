//! Where nodes go and what the report says of it: control flow on the GPU, prices, and backends side by side
//! ([`verify`]), and names that nothing has ([`names`]).

#![cfg(not(target_arch = "wasm32"))]

mod fallback;
mod layouts;
mod names;
mod verify;

use std::sync::Arc;

use kilim::core::backend::{Description, Memory, Speed};
use kilim::core::ops::{
    Binary, BinaryKind, Distribution, If, Loop, Random, Squeeze, Unary, UnaryKind,
};
use kilim::core::{Backend, Calibration, Session, calibrate};
use kilim::{
    BackendId, DType, ErrorCode, Fact, Graph, LoadOptions, Placement, Report, RunOptions, Runtime,
    Tensor,
};
use kilim_test_support::{material, skip_part};
use kilim_tests::machine::{backend, gpu};
use kilim_tests::stand_in::StandIn;

fn on(backends: &[&str]) -> LoadOptions {
    let mut options = LoadOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    options
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

/// Control is on `builtin`, and of the bodies' nodes so many are on the GPU.
fn assert_control(report: &Report, at_least: usize) {
    for node in &report.nodes {
        let control = ["If", "Loop", "Scan"].contains(&node.op.as_str());
        assert_eq!(
            control,
            node.backend == "builtin",
            "{} {}",
            node.op,
            node.name
        );
    }
    let inside = report.nodes.iter().filter(|n| !n.scope.is_empty());
    let on_gpu = inside.filter(|n| n.backend == "wgpu").count();
    assert!(
        on_gpu >= at_least,
        "{on_gpu} nodes of bodies are on the GPU"
    );
}

/// `while |x| < limit: x = x + x`, then `if x > 0: -x else: |x|`.
fn controlled() -> Graph {
    let mut body = Graph::new("double");
    let _ = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let _ = body.add_input("going", Fact::fixed(DType::Bool, &[]));
    let x = body.add_input("x", Fact::fixed(DType::F32, &[1]));
    let limit = body.add_input("limit", Fact::fixed(DType::F32, &[1]));
    let twice = body.apply("twice", Binary::new(BinaryKind::Add), &[x, x]);
    let size = body.apply("size", Unary(UnaryKind::Abs), &[twice]);
    let less = body.apply("less", Binary::new(BinaryKind::Less), &[size, limit]);
    let axes = body.add_constant("axes", Tensor::from_slice(&[1], &[0i64]).unwrap());
    let go = body.apply("go", Squeeze, &[less, axes]);
    body.outputs.extend([go, twice]);
    let branch = |name: &str, kind| {
        let mut g = Graph::new(name);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
        let out = g.apply(name, Unary(kind), &[x]);
        g.outputs.push(out);
        Arc::new(g)
    };
    let mut g = Graph::new("controlled");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[1]));
    let limit = g.add_input("limit", Fact::fixed(DType::F32, &[1]));
    let last = g.add_value("last", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[None, None, Some(x), Some(limit)], &[last]);
    let zero = g.add_constant("zero", f32s(&[0.0]));
    let positive = g.apply("positive", Binary::new(BinaryKind::Greater), &[last, zero]);
    let op = If {
        then_body: branch("negate", UnaryKind::Neg),
        else_body: branch("absolute", UnaryKind::Abs),
    };
    let out = g.apply("if", op, &[positive, last]);
    g.outputs.push(out);
    g
}

#[test]
fn bodies_run_on_the_gpu_and_control_on_builtin() {
    if gpu().is_none() {
        return;
    }
    let options = on(&["wgpu", "cpu"]);
    let mut s = pollster::block_on(Runtime::shared().session(controlled(), options)).unwrap();
    for (x, want) in [(3.0, -12.0), (-3.0, 12.0)] {
        let inputs = [("x", f32s(&[x])), ("limit", f32s(&[10.0]))];
        let out = pollster::block_on(s.run(&inputs, &RunOptions::default())).unwrap();
        assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [want]);
    }
    assert_control(&s.report(), 5);
}

/// A voice detector whose whole network is in the branches of an If.
#[test]
fn silero_runs_its_branches_on_the_gpu() {
    let Some(models) = material::models() else {
        return;
    };
    if gpu().is_none() {
        return;
    }
    let file = models.join("silero-vad/silero_vad.onnx");
    let wave: Vec<f32> = (0..512).map(|i| (i as f32 * 0.05).sin() * 0.3).collect();
    let inputs = [
        ("input", Tensor::from_slice(&[1, 512], &wave).unwrap()),
        ("state", Tensor::zeros(DType::F32, &[2, 1, 128]).unwrap()),
        ("sr", Tensor::scalar(16000i64).unwrap()),
    ];
    let run = |backends: &[&str]| {
        let mut s = pollster::block_on(kilim::load(file.as_path(), on(backends))).unwrap();
        let out = pollster::block_on(s.run(&inputs, &RunOptions::default())).unwrap();
        (out, s.report())
    };
    let (want, _) = run(&["cpu"]);
    let (got, report) = run(&["wgpu", "cpu"]);
    // What moves no element has no kernel: two Transposes and three Slices.
    assert_control(&report, 19);
    assert!(report.nodes.iter().all(|node| node.backend != "cpu"));
    let by = kilim::compare::Comparison::Relative(1e-3);
    for ((name, got), (_, want)) in got.iter().zip(&want) {
        let v = by.verdict(got, want, None).unwrap();
        assert!(v.passed, "{name}: {v:?}");
    }
}

#[test]
fn measured_prices_decide_and_the_report_says_so() {
    let cpu = backend("cpu").unwrap();
    let odd = |i: &str| i.rsplit(' ').next().unwrap().parse::<usize>().unwrap() % 2 == 1;
    let device = Arc::new(StandIn::new(cpu.clone(), "device").taking(move |n| !odd(n.name)));
    let mut g = Graph::new("alternating");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[1000]));
    for i in 0..6 {
        x = g.apply(format!("neg {i}"), Unary(UnaryKind::Sin), &[x]);
    }
    g.outputs.push(x);
    let place = |measured: Option<f64>| {
        let mut options = kilim::core::SessionOptions::default();
        if let Some(flops) = measured {
            let speed = Speed {
                flops_per_second: flops,
                bytes_per_second: flops,
                ..device.describe().speed
            };
            options.calibration.insert(device.describe(), speed);
        }
        let backends: Vec<Arc<dyn Backend>> = vec![device.clone(), cpu.clone()];
        let session = Session::new(g.clone(), backends, cpu.clone(), options);
        pollster::block_on(session).unwrap().report()
    };
    let as_said = place(None);
    assert!(!as_said.backends[0].calibrated);
    assert_eq!(as_said.nodes[0].backend, "device");
    let slow = place(Some(1e3));
    assert!(slow.backends[0].calibrated && !slow.backends[1].calibrated);
    for node in &slow.nodes {
        assert_eq!(node.backend, "cpu", "{}", node.name);
        assert_eq!(node.moved.is_some(), !odd(&node.name), "{}", node.name);
        assert_eq!(node.refusals.is_empty(), !odd(&node.name), "{}", node.name);
    }
    let moved = slow.nodes[0].moved.as_ref().unwrap();
    assert_eq!(moved.from, "device");
    assert!(moved.seconds < moved.instead_of);
}

#[test]
fn figures_belong_to_a_device_with_its_driver() {
    let described = backend("cpu").unwrap().describe().clone();
    let updated = Description {
        device: format!("{}, driver 2", described.device),
        ..described.clone()
    };
    let mut kept = Calibration::default();
    let speed = described.speed;
    kept.insert(&described, speed);
    assert_eq!(kept.speed(&described), Some(speed));
    assert_eq!(kept.speed(&updated), None);
    // The user's go before those that the machine keeps.
    let mut options = on(&["cpu"]);
    options.calibration = kept.clone();
    let runtime = Runtime::shared();
    let session = pollster::block_on(runtime.session(controlled(), options)).unwrap();
    assert!(session.report().backends[0].calibrated);
    // What cannot be was not measured.
    let impossible = Speed {
        flops_per_second: 0.0,
        ..speed
    };
    kept.insert(&described, impossible);
    assert_eq!(kept.speed(&described), None);
}

/// `exp(-x)` on `cpu` and a device before it that takes nodes of one name only.
fn strict(takes: &'static str, pins: &[&str]) -> kilim::Result<Report> {
    let cpu = backend("cpu").unwrap();
    let device = StandIn::new(cpu.clone(), "device").taking(move |n| n.name.contains(takes));
    let mut g = Graph::new("two");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let neg = g.apply("first neg", Unary(UnaryKind::Neg), &[x]);
    let exp = g.apply("second exp", Unary(UnaryKind::Exp), &[neg]);
    g.outputs.push(exp);
    let mut options = kilim::core::SessionOptions {
        strict: true,
        pins: pins.iter().map(|p| p.parse().unwrap()).collect(),
        ..kilim::core::SessionOptions::default()
    };
    // Priced so that everything would go to `cpu`.
    let slow = Speed {
        flops_per_second: 1.0,
        bytes_per_second: 1.0,
        ..device.describe().speed
    };
    options.calibration.insert(device.describe(), slow);
    let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(device), cpu.clone()];
    pollster::block_on(Session::new(g, backends, cpu, options)).map(|s| s.report())
}

#[test]
fn a_strict_session_runs_on_the_first_backend_or_not_at_all() {
    let report = strict("", &[]).unwrap();
    let on = |report: &Report| -> Vec<String> {
        report.nodes.iter().map(|n| n.backend.clone()).collect()
    };
    assert_eq!(on(&report), ["device"; 2], "whatever the prices");
    let error = strict("neg", &[]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    let said = error.message();
    assert!(
        said.contains("Exp `second exp` (device: not for this stand-in)"),
        "{said}"
    );
    assert!(!said.contains("first neg"), "{said}");
    // Who says of a node where it runs need not have it on the first.
    let report = strict("neg", &["node:second exp=cpu"]).unwrap();
    assert_eq!(on(&report), ["device", "cpu"]);
}

#[test]
fn all_nodes_that_cannot_be_placed_are_listed() {
    let cpu = backend("cpu").unwrap();
    let none: Arc<dyn Backend> = Arc::new(StandIn::new(cpu.clone(), "none").taking(|_| false));
    let mut g = Graph::new("two");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let neg = g.apply("first", Unary(UnaryKind::Neg), &[x]);
    let exp = g.apply("second", Unary(UnaryKind::Exp), &[neg]);
    g.outputs.push(exp);
    let made = |options| {
        let session = Session::new(g.clone(), vec![none.clone()], cpu.clone(), options);
        pollster::block_on(session).err().unwrap()
    };
    let error = made(kilim::core::SessionOptions::default());
    assert_eq!(error.code(), ErrorCode::NoBackend);
    for node in [
        "Neg `first` (none: not for this stand-in)",
        "Exp `second` (none: not for this stand-in)",
    ] {
        assert!(error.message().contains(node), "{error}");
    }
    // A pin to a backend that the session does not have is one before anything is asked.
    let error = made(kilim::core::SessionOptions {
        pins: vec!["op:Neg=cpu".parse().unwrap()],
        ..kilim::core::SessionOptions::default()
    });
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.expected(), Some("none"), "{error}");
}

#[test]
fn the_order_of_backends_is_the_order_of_preference() {
    let cpu = backend("cpu").unwrap();
    let refused = |id: &'static str, op: &'static str| {
        let device = StandIn::new(cpu.clone(), id);
        Arc::new(device.taking(move |n| n.op.name() != op)) as Arc<dyn Backend>
    };
    let mut g = Graph::new("two");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let neg = g.apply("neg", Unary(UnaryKind::Neg), &[x]);
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[neg]);
    g.outputs.push(exp);
    let placed = |backends: Vec<Arc<dyn Backend>>| {
        let options = kilim::core::SessionOptions {
            placement: Placement::Fixed,
            ..kilim::core::SessionOptions::default()
        };
        let session = Session::new(g.clone(), backends, cpu.clone(), options);
        let nodes = pollster::block_on(session).unwrap().report().nodes;
        nodes.into_iter().map(|n| n.backend).collect::<Vec<_>>()
    };
    let (a, b) = (refused("a", "Exp"), refused("b", "Neg"));
    assert_eq!(placed(vec![a.clone(), b.clone()]), ["a", "b"]);
    assert_eq!(
        placed(vec![a.clone(), cpu.clone(), b.clone()]),
        ["a", "cpu"]
    );
    assert_eq!(placed(vec![cpu.clone(), a, b]), ["cpu", "cpu"]);
}

#[test]
fn devices_are_measured() {
    let clock = LoadOptions::default().clock;
    for id in ["cpu", "wgpu"] {
        let Ok(backend) = backend(id) else {
            skip_part(format_args!("there is no {id}"));
            continue;
        };
        let speed = pollster::block_on(calibrate::measure(&backend, clock)).unwrap();
        assert!(speed.is_possible(), "{id}: {speed:?}");
        let said = backend.describe().speed;
        assert_ne!(speed.flops_per_second, said.flops_per_second);
        assert_ne!(speed.bytes_per_second, said.bytes_per_second);
        // A thousandth and a thousandfold of a desktop processor.
        assert!(
            (1e7..1e14).contains(&speed.flops_per_second),
            "{id}: {speed:?}"
        );
        assert!(
            (1e7..1e13).contains(&speed.bytes_per_second),
            "{id}: {speed:?}"
        );
        if backend.describe().memory == Memory::Device {
            assert!(speed.transfer_start > 1e-7, "{id}: {speed:?}");
        }
    }
}

/// A device that runs few operators is measured by those; the rest stays as it says itself.
#[test]
fn what_a_device_runs_is_measured() {
    let clock = LoadOptions::default().clock;
    let cpu = backend("cpu").unwrap();
    let only = |ops: &'static [&'static str]| {
        let device = StandIn::new(cpu.clone(), "few").taking(|n| ops.contains(&n.op.name()));
        let device: Arc<dyn Backend> = Arc::new(device);
        pollster::block_on(calibrate::measure(&device, clock))
    };
    let said = cpu.describe().speed;
    let relu = only(&["Relu"]).unwrap();
    assert_eq!(relu.flops_per_second, said.flops_per_second);
    assert_ne!(relu.bytes_per_second, said.bytes_per_second);
    let product = only(&["MatMul"]).unwrap();
    assert_ne!(product.flops_per_second, said.flops_per_second);
    assert_eq!(product.bytes_per_second, said.bytes_per_second);
    let error = only(&["Exp"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend, "{error}");
}
