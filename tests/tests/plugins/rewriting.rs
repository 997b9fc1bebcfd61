//! A library that looks at connected nodes, computes constants and works in host memory: `tests/plugins/rewriting.c`.

use kilim::core::BackendRegistry;
use kilim::core::backend::Memory;
use kilim::{Error, ErrorCode, Placement};

use crate::*;

/// The folder of the library, compiled with `defines`, and the file that it writes.
fn rewriting(name: &str, defines: &[&str]) -> (PathBuf, PathBuf) {
    let folder = folder(&format!("rewriting-{name}"));
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    let mut defines: Vec<_> = defines.iter().map(ToString::to_string).collect();
    defines.push(format!("LOG=\"{}\"", log.display()));
    compile("tests/plugins/rewriting.c", &folder, "rewriting", &defines);
    (folder, log)
}

fn told(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let _ = std::fs::remove_file(log);
    text.lines().map(str::to_string).collect()
}

/// Nodes stay with the library, however cheap they are elsewhere.
fn beside_cpu(folder: &Path) -> LoadOptions {
    let mut options = options(&["rewriting", "cpu"], folder);
    options.placement = Placement::Fixed;
    options
}

/// `y = exp(relu(-|x|))`.
fn chain() -> Vec<u8> {
    let nodes = [
        node("", "Abs", &["x"], &["a"]),
        node("", "Neg", &["a"], &["n"]),
        node("", "Relu", &["n"], &["r"]),
        node("", "Exp", &["r"], &["y"]),
    ];
    model(&nodes, &[("x", &["2"])], &[("y", &["2"])])
}

#[test]
fn a_library_merges_nodes_and_gives_others_back() {
    let (folder, log) = rewriting("chain", &[]);
    let mut session = load(&chain(), beside_cpu(&folder)).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 2.0]).unwrap(), [1.0, 1.0]);
    assert_eq!(told(&log), ["write", "Part", "read"]);
    assert_eq!(at(&session, "Part").as_deref(), Some("rewriting"));
    assert_eq!(at(&session, "Abs").as_deref(), Some("cpu"));
    let nodes = session.report().nodes;
    let abs = nodes.iter().find(|n| n.op == "Abs").unwrap();
    let reasons: Vec<_> = abs.refusals.iter().map(|r| r.reason.as_str()).collect();
    assert_eq!(reasons, ["not worth it"]);
}

#[test]
fn what_others_read_is_not_merged_away() {
    let (folder, log) = rewriting("escapes", &[]);
    let nodes = [
        node("", "Neg", &["x"], &["n"]),
        node("", "Relu", &["n"], &["y"]),
    ];
    let bytes = model(&nodes, &[("x", &["2"])], &[("y", &["2"]), ("n", &["2"])]);
    let mut session = load(&bytes, beside_cpu(&folder)).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 2.0]).unwrap(), [1.0, 0.0]);
    let ran: Vec<_> = told(&log)
        .into_iter()
        .filter(|t| t != "read" && t != "write")
        .collect();
    assert_eq!(ran, ["Neg", "Relu"]);
}

#[test]
fn a_node_that_is_no_operator_of_the_librarys_is_an_error() {
    let (folder, _) = rewriting("wrong", &["WRONG"]);
    let error = load(&chain(), beside_cpu(&folder)).err();
    let error: Error = error.unwrap();
    assert_eq!(error.code(), ErrorCode::State);
    assert!(
        error.to_string().contains("`com.example::Nobody`"),
        "{error}"
    );
}

#[test]
fn a_library_computes_constants_where_nobody_else_does() {
    let (folder, log) = rewriting("constants", &[]);
    let nodes = [
        Node {
            attributes: &[("value_float", Value::Float(-3.0))],
            ..node("", "Constant", &[], &["c"])
        },
        node("", "Abs", &["c"], &["k"]),
        node("", "Relu", &["x"], &["y"]),
    ];
    let bytes = model(&nodes, &[("x", &["2"])], &[("y", &["2"]), ("k", &[])]);
    let runtime = Runtime::new(BackendRegistry::new());
    let loaded = runtime.load(&bytes[..], options(&["rewriting"], &folder));
    let mut session = pollster::block_on(loaded).unwrap();
    assert_eq!(told(&log), ["evaluate"]);
    let x = Tensor::from_slice(&[2], &[-1.0f32, 2.0]).unwrap();
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [0.0, 2.0]);
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [3.0]);
}

#[test]
fn a_library_on_the_host_reads_and_writes_in_place() {
    let (folder, log) = rewriting("host", &["HOST"]);
    let mut session = load(&chain(), beside_cpu(&folder)).unwrap();
    assert_eq!(session.backends()[0].describe().memory, Memory::Host);
    for x in [[-1.0, 2.0], [0.0, 0.5]] {
        assert_eq!(run(&mut session, &x).unwrap(), [1.0, 1.0]);
        // The result stays in the stage, where `cpu` goes on with it.
        assert_eq!(told(&log), ["attach", "Part", "read"]);
    }
    let nodes = [node("", "Neg", &["x"], &["y"])];
    let alone = model(&nodes, &[("x", &["n"])], &[("y", &["n"])]);
    let mut session = load(&alone, options(&["rewriting"], &folder)).unwrap();
    let first = run(&mut session, &[1.0, -2.0, 3.0]).unwrap();
    assert_eq!(told(&log), ["attach", "attach", "Neg"]);
    assert_eq!(run(&mut session, &[4.0]).unwrap(), [-4.0]);
    assert_eq!(first, [-1.0, 2.0, -3.0], "results are the caller's");
}
