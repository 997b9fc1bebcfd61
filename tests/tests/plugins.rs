//! Backends in libraries of their own: the samples, built here, and libraries that go wrong.

#![cfg(not(target_arch = "wasm32"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use kilim::{
    BackendId, Error, ErrorCode, Pin, Result, RunOptions, Runtime, Session, SessionOptions,
    Sharing, Tensor,
};
use kilim_tests::libraries::{compile, file_name, root};
use kilim_tests::onnx::{Node, Value, model};

/// A folder of this test's own below the target folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("plugins")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The folder with the sample in C.
fn sample_in_c(name: &str) -> PathBuf {
    let folder = folder(name);
    compile("examples/plugin-c/scale.c", &folder, "scale", &[]);
    folder
}

/// The folder with the sample in Rust.
fn sample_in_rust() -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-rust");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .args(["build", "-p", "backend_cube", "--target-dir"]);
    assert!(cargo.arg(&target).status().unwrap().success());
    target.join("debug")
}

fn options(backends: &[&str], folder: &Path) -> SessionOptions {
    SessionOptions {
        backends: backends.iter().map(|b| BackendId::from(*b)).collect(),
        plugin_path: vec![folder.to_path_buf()],
        ..SessionOptions::default()
    }
}

/// A runtime of its own: a library that was found is kept.
fn load(model: &[u8], options: SessionOptions) -> Result<Session> {
    pollster::block_on(Runtime::default().load(model, options))
}

fn run(session: &mut Session, x: &[f32]) -> Result<Vec<f32>> {
    let x = Tensor::from_slice(&[x.len()], x)?;
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()))?;
    Ok(out[0].1.as_slice::<f32>()?.to_vec())
}

fn node<'a>(
    domain: &'a str,
    op: &'a str,
    inputs: &'a [&'a str],
    outputs: &'a [&'a str],
) -> Node<'a> {
    Node {
        domain,
        op,
        inputs,
        outputs,
        attributes: &[],
    }
}

fn at(session: &Session, op: &str) -> Option<String> {
    let nodes = session.report().nodes;
    nodes.into_iter().find(|n| n.op == op).map(|n| n.backend)
}

/// `y = exp(relu(3 x) + x)`; Scale is the sample's own.
fn scaled() -> Vec<u8> {
    let scale = Node {
        attributes: &[("factor", Value::Float(3.0))],
        ..node("com.example", "Scale", &["x"], &["s"])
    };
    let nodes = [
        scale,
        node("", "Relu", &["s"], &["r"]),
        node("", "Add", &["r", "x"], &["a"]),
        node("", "Exp", &["a"], &["y"]),
    ];
    model(&nodes, &[("x", &["n"])], &[("y", &["n"])])
}

fn check_scaled(session: &mut Session) {
    for x in [vec![1.0f32, -1.0, 0.5, 0.0], vec![0.25f32]] {
        let want: Vec<f32> = x.iter().map(|&x| ((3.0 * x).max(0.0) + x).exp()).collect();
        for (y, want) in run(session, &x).unwrap().iter().zip(&want) {
            assert!((y - want).abs() <= 1e-5 * want.abs(), "{y} is not {want}");
        }
    }
    assert_eq!(at(session, "Scale").as_deref(), Some("scale"));
    assert_eq!(at(session, "Exp").as_deref(), Some("cpu"));
}

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
        options.core.pins = vec![pin.parse::<Pin>().unwrap()];
        let mut session = load(&scaled(), options).unwrap();
        run(&mut session, &[1.0, 2.0]).map(|_| at(&session, "Relu"))
    };
    assert_eq!(pinned("op:Relu=cpu").unwrap().as_deref(), Some("cpu"));
    assert_eq!(pinned("node:r=scale").unwrap().as_deref(), Some("scale"));
    let error = pinned("op:Exp=scale").unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(error.message().contains("only Relu, Add"), "{error}");
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

const BROKEN: &str = "tests/plugins/broken.c";

/// Its numbers.
const CREATION_FAILS: u32 = 1;
const CREATION_GIVES_NOTHING: u32 = 2;
const OTHER_VERSION: u32 = 3;
const SMALL_TABLE: u32 = 4;
const NO_RUN: u32 = 5;
const REFUSES_ALL: u32 = 6;
const RUN_FAILS: u32 = 7;
const PREPARE_FAILS: u32 = 8;
const READ_FAILS: u32 = 9;
const BAD_SPEED: u32 = 10;
const LONGER_TABLE: u32 = 11;
const NO_MEMORY: u32 = 12;
const NO_BIND: u32 = 13;
const TABLE_BEFORE_MEMORY: u32 = 14;
const BIND_FAILS: u32 = 15;
const ABSURD_BYTES: u32 = 16;
const PADS: u32 = 17;
const CREATION_CRASHES: u32 = 18;
const CREATION_ABORTS: u32 = 19;
const NO_DESTROY: u32 = 20;

fn relu() -> Vec<u8> {
    let nodes = [node("", "Relu", &["x"], &["y"])];
    model(&nodes, &[("x", &["2"])], &[("y", &["2"])])
}

fn broken(how: u32, others: &[&str]) -> Result<Session> {
    let folder = folder(&format!("broken{how}"));
    compile(BROKEN, &folder, "broken", &[format!("BROKEN={how}")]);
    let backends = [&["broken"], others].concat();
    load(&relu(), options(&backends, &folder))
}

fn refused(how: u32) -> Error {
    let error = broken(how, &["cpu"]).err().unwrap();
    // The runtime goes on, whatever the library did.
    let mut other = load(&relu(), options(&["cpu"], Path::new("."))).unwrap();
    assert_eq!(run(&mut other, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    error
}

#[test]
fn a_library_that_cannot_be_used_is_a_typed_error() {
    let error = refused(CREATION_FAILS);
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(
        error.message().contains("there is no such device"),
        "{error}"
    );
    assert_eq!(refused(CREATION_GIVES_NOTHING).code(), ErrorCode::Device);
    let error = refused(OTHER_VERSION);
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!((error.expected(), error.got()), (Some("1"), Some("2")));
    let error = refused(SMALL_TABLE);
    assert_eq!(
        (error.code(), error.got()),
        (ErrorCode::NoBackend, Some("24 bytes"))
    );
    assert!(refused(NO_RUN).message().contains("without `run`"));
    assert!(refused(NO_BIND).message().contains("without `bind`"));
    assert_eq!(refused(BAD_SPEED).code(), ErrorCode::NoBackend);
    let error = refused(PREPARE_FAILS);
    assert_eq!(error.code(), ErrorCode::Limit);
    assert_eq!((error.node(), error.op()), (Some("y"), Some("Relu")));
}

#[test]
fn a_library_that_crashes_its_creation_is_a_typed_error() {
    if !cfg!(target_os = "linux") {
        return;
    }
    for (how, signal) in [
        (CREATION_CRASHES, "signal 11"),
        (CREATION_ABORTS, "signal 6"),
    ] {
        let error = refused(how);
        assert_eq!(error.code(), ErrorCode::Device);
        assert!(error.message().contains("crashes"), "{error}");
        assert_eq!(error.got(), Some(signal));
    }
}

#[test]
fn a_library_has_both_functions_of_the_interface() {
    let error = refused(NO_DESTROY);
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(
        error.hint().unwrap().contains("kilim_backend_destroy"),
        "{error}"
    );
}

#[test]
fn a_library_that_refuses_everything_leaves_its_share_to_others() {
    let mut session = broken(REFUSES_ALL, &["cpu"]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let report = session.report();
    assert_eq!(report.nodes[0].backend, "cpu");
    assert_eq!(report.nodes[0].refusals[0].reason, "I refuse everything");
    let error = broken(REFUSES_ALL, &[]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
}

#[test]
fn a_run_that_fails_names_its_node_and_the_next_one_may_succeed() {
    let mut session = broken(RUN_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("caught fire"), "{error}");
    assert_eq!((error.node(), error.op()), (Some("y"), Some("Relu")));
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let mut session = broken(READ_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("status 99"), "{error}");
}

#[test]
fn a_table_of_a_later_addition_is_read_as_far_as_it_is_known() {
    let mut session = broken(LONGER_TABLE, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
}

#[test]
fn the_memory_of_a_library_in_c_is_planned_and_shared() {
    check_planned_memory("scale", &sample_in_c("memory"), &scaled());
}

#[test]
fn the_memory_of_a_library_in_rust_is_planned_and_shared() {
    let nodes = [
        node("com.example", "Cube", &["x"], &["a"]),
        node("", "Neg", &["a"], &["b"]),
        node("com.example", "Cube", &["b"], &["c"]),
        node("", "Neg", &["c"], &["y"]),
    ];
    let model = model(&nodes, &[("x", &["n"])], &[("y", &["n"])]);
    let folder = sample_in_rust();
    check_planned_memory("cube", &folder, &model);
    let mut session = load(&model, options(&["cube", "cpu"], &folder)).unwrap();
    assert_eq!(
        run(&mut session, &[-1.5, 2.0]).unwrap(),
        [-38.443_36, 512.0]
    );
    // Of five tensors, two are needed at the same time; nothing lies beside the arena.
    let backend = &session.report().backends[0];
    assert_eq!(backend.arena_bytes, 64 + 8);
    assert_eq!(backend.planned_bytes, backend.arena_bytes);
}

fn check_planned_memory(id: &str, folder: &Path, model: &[u8]) {
    let runtime = Runtime::default();
    let open = |sharing: Sharing| {
        let mut options = options(&[id, "cpu"], folder);
        options.core.sharing = sharing;
        pollster::block_on(runtime.load(model, options))
    };
    let arena = |s: &Session| s.report().backends[0].arena_bytes;
    let (short, long) = (vec![0.5f32; 64], vec![-0.5f32; 640]);
    let mut own = open(Sharing::Own).unwrap();
    run(&mut own, &short).unwrap();
    let small = arena(&own);
    let want = run(&mut own, &long).unwrap();
    let needed = arena(&own);
    assert!(small > 0 && needed > small, "{small} {needed}");
    // Both plans are kept; they lie in one block, which is bound anew.
    run(&mut own, &short).unwrap();
    assert_eq!(run(&mut own, &long).unwrap(), want);
    assert_eq!(arena(&own), needed);
    let report = own.report();
    let plans = report.memory.iter().filter(|p| p.backend == id);
    assert_eq!(plans.map(|p| p.bytes).max(), Some(needed));
    own.clear();
    assert_eq!(arena(&own), 0);
    assert_eq!(run(&mut own, &long).unwrap(), want);

    let mut pair = [(); 2].map(|()| open(Sharing::ShareOneThread).unwrap());
    run(&mut pair[0], &long).unwrap();
    run(&mut pair[1], &short).unwrap();
    assert_eq!(run(&mut pair[0], &long).unwrap(), want);
    assert_eq!(pair.each_ref().map(arena), [needed; 2]);

    let backend = pollster::block_on(runtime.backend(&BackendId::from(id))).unwrap();
    let cpu = pollster::block_on(runtime.backend(&BackendId::from("cpu"))).unwrap();
    let give = |bytes| {
        let of_cpu = cpu.create_arena(1 << 20).unwrap();
        Sharing::External(vec![backend.create_arena(bytes).unwrap(), of_cpu])
    };
    let mut given = open(give(needed)).unwrap();
    assert_eq!(run(&mut given, &long).unwrap(), want);
    assert_eq!(given.report().backends[0].arena_owner, "external");
    let mut tight = open(give(small)).unwrap();
    assert_eq!(run(&mut tight, &long).unwrap_err().code(), ErrorCode::Limit);
    run(&mut tight, &short).unwrap();
}

#[test]
fn a_library_says_what_a_tensor_and_its_kernels_take() {
    let mut session = broken(PADS, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    // Two tensors of 8 + 100 bytes, from multiples of 64 on, and scratch.
    let bytes = (128 + 108_usize).next_multiple_of(64) + 1000;
    assert_eq!(session.report().backends[0].arena_bytes, bytes);
}

#[test]
fn a_library_of_before_memory_was_planned_runs_in_its_own() {
    let mut session = broken(TABLE_BEFORE_MEMORY, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let backend = &session.report().backends[0];
    assert_eq!(backend.arena_bytes, 0);
    assert!(backend.planned_bytes > 0);
}

#[test]
fn memory_that_a_library_does_not_have_is_a_typed_error() {
    let error = refused(NO_MEMORY);
    assert_eq!(error.code(), ErrorCode::Limit);
    assert!(error.message().contains("the device is full"), "{error}");
    assert_eq!(refused(ABSURD_BYTES).code(), ErrorCode::Limit);
    let mut session = broken(BIND_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("is not mine"), "{error}");
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
}

#[test]
fn a_backend_that_is_nowhere_says_where_it_was_looked_for() {
    let folder = folder("empty");
    let error = load(&relu(), options(&["nowhere"], &folder)).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(
        error.expected().unwrap().contains(&file_name("nowhere")),
        "{error}"
    );
    // An id is not a path.
    let error = load(&relu(), options(&["../plugins/c/scale"], &folder))
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    std::fs::write(folder.join(file_name("text")), "no library").unwrap();
    let error = load(&relu(), options(&["text"], &folder)).err().unwrap();
    assert!(error.message().contains("cannot be loaded"), "{error}");
}

#[test]
fn the_walk_through_shows_the_sample() {
    let text = std::fs::read_to_string(root().join("docs/backends.md")).unwrap();
    let mut quotes = text.split("<!-- examples/").skip(1);
    let mut shown = 0;
    assert!(quotes.all(|quote| {
        let (path, rest) = quote.split_once(" -->\n```rust\n").unwrap();
        let (code, _) = rest.split_once("\n```").unwrap();
        let file = std::fs::read_to_string(root().join("examples").join(path)).unwrap();
        shown += code.lines().count();
        assert!(file.contains(code), "{path} has no\n{code}");
        true
    }));
    // All of it but the imports and empty lines.
    let sample = root().join("examples/plugin-rust/src/lib.rs");
    let sample = std::fs::read_to_string(sample).unwrap();
    let code = sample.split_once("struct Cube;").unwrap().1;
    let lines = code.lines().filter(|l| !l.is_empty()).count();
    assert!(shown >= lines, "{shown} lines of {lines}");
}
