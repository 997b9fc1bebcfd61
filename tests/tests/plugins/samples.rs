//! The samples in C and in Rust.

use std::path::Path;

use kilim::core::BackendRegistry;
use kilim::{ErrorCode, Pin};
use kilim_test_support::documents::blocks;

use crate::*;

#[test]
fn a_library_in_c_runs_its_share_of_a_model() {
    let folder = sample_in_c("c");
    let mut session = load(&scaled(), options(&["scale", "cpu"], &folder)).unwrap();
    check_scaled(&mut session);
    let report = session.report();
    assert_eq!(report.backends[0].device, "a sample in C");
    assert!(!report.crossings.is_empty());
}

#[test]
fn nodes_are_pinned_to_a_library_or_away_from_it() {
    let folder = sample_in_c("pins");
    let pinned = |pin: &str| {
        let mut options = options(&["scale", "cpu"], &folder);
        options.pins = vec![pin.parse::<Pin>().unwrap()];
        let mut session = load(&scaled(), options)?;
        run(&mut session, &[1.0, 2.0]).map(|_| at(&session, "Relu"))
    };
    assert_eq!(pinned("op:Relu=cpu").unwrap().as_deref(), Some("cpu"));
    assert_eq!(pinned("node:r=cpu").unwrap().as_deref(), Some("cpu"));
    assert_eq!(pinned("node:r=scale").unwrap().as_deref(), Some("scale"));
    let error = pinned("op:Exp=scale").unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(error.message().contains("only Relu, Add"), "{error}");
    let error = pinned("node:nowhere=cpu").unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert!(error.message().contains("`nowhere`"), "{error}");
}

#[test]
fn a_library_in_rust_runs_its_share_of_a_model() {
    let nodes = [
        node("com.example", "Cube", &["x"], &["c"]),
        node("", "Neg", &["c"], &["y"]),
    ];
    let bytes = model(&nodes, &[("x", &["n"])], &[("y", &["n"])]);
    let folder = sample_in_rust();
    let mut session = load(&bytes, options(&["cube"], &folder)).unwrap();
    assert_eq!(
        run(&mut session, &[1.0, -2.0, 3.0]).unwrap(),
        [-1.0, 8.0, -27.0]
    );
    assert_eq!(at(&session, "Cube").as_deref(), Some("cube"));
    let unknown = load(&bytes, options(&["cpu"], &folder)).err().unwrap();
    assert_eq!(unknown.code(), ErrorCode::Unsupported);
}

#[test]
fn a_library_in_rust_has_options_and_times_its_nodes() {
    let nodes = [
        node("com.example", "Cube", &["x"], &["c"]),
        node("", "Neg", &["c"], &["y"]),
    ];
    let bytes = model(&nodes, &[("x", &["n"])], &[("y", &["n"])]);
    let folder = sample_in_rust();
    let on = |setting: &str| {
        let mut options = options(&["cube"], &folder);
        options.configs.set(&setting.parse().unwrap());
        load(&bytes, options)
    };
    let mut session = on("cube:limit=10").unwrap();
    assert_eq!(run(&mut session, &[2.0, -3.0]).unwrap(), [-8.0, 10.0]);
    let mut session = on("cube:timers=on").unwrap();
    assert_eq!(run(&mut session, &[2.0, -3.0]).unwrap(), [-8.0, 27.0]);
    let times = session.times();
    let ops: Vec<_> = times.iter().map(|t| t.op.as_str()).collect();
    assert_eq!(ops, ["Cube", "Neg"]);
    assert!(times.iter().all(|t| t.seconds > 0.0), "{times:?}");
    let wrong = on("cube:limit=none").err().unwrap();
    assert_eq!(wrong.code(), ErrorCode::InvalidValue);
    assert_eq!(wrong.expected(), Some("NUMBER"));
}

#[test]
fn a_library_in_rust_computes_constants_where_nobody_else_does() {
    let nodes = [
        Node {
            attributes: &[("value_float", Value::Float(-3.0))],
            ..node("", "Constant", &[], &["c"])
        },
        node("", "Neg", &["c"], &["k"]),
        node("", "Neg", &["x"], &["y"]),
    ];
    let bytes = model(&nodes, &[("x", &["1"])], &[("y", &["1"]), ("k", &[])]);
    let runtime = Runtime::new(BackendRegistry::new());
    let loaded = runtime.load(&bytes[..], options(&["cube"], &sample_in_rust()));
    let mut session = pollster::block_on(loaded).unwrap();
    let negs = session.report().nodes.into_iter();
    let ran = negs.filter(|n| n.op == "Neg" && n.backend == "cube");
    assert_eq!(ran.count(), 1);
    let x = Tensor::from_slice(&[1], &[2.0f32]).unwrap();
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [3.0]);
}

#[test]
fn the_walk_through_shows_the_sample() {
    // That each block is a part of the sample is tested for all documents.
    let path = Path::new("examples/plugin-rust/src/lib.rs");
    let shown = blocks()
        .into_iter()
        .filter(|b| b.source.as_deref() == Some(path));
    let shown: usize = shown.map(|block| block.code.lines().count()).sum();
    // All of it but the imports and empty lines.
    let sample = std::fs::read_to_string(root().join(path)).unwrap();
    let code = sample.split_once("struct Cube;").unwrap().1;
    let lines = code.lines().filter(|l| !l.is_empty()).count();
    assert!(shown >= lines, "{shown} lines of {lines}");
}
