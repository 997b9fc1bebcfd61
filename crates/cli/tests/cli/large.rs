//! Much of something: nodes, weights, runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kilim_tests::onnx::{self, Node, Weights};

use super::support::{folder, model, ok};

/// The most memory that the binary held while it ran with success, in kB. A run of a moment may end unseen: `args` must
/// keep the binary busy.
#[cfg(target_os = "linux")]
fn peak(args: &[&str]) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kilim"))
        .args(args)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary can be started");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let end = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(size.unwrap_or(0));
        if let Some(end) = child.try_wait().expect("it can be waited for") {
            break end;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(end.success(), "{args:?}");
    most
}

/// Enough runs of one node to be seen on a busy machine.
#[cfg(target_os = "linux")]
const SOME_RUNS: &str = "20000";

/// What the binary itself takes, in kB: runs without weights.
#[cfg(target_os = "linux")]
fn program() -> u64 {
    let dir = folder("program");
    let file = dir.join("neg.onnx");
    std::fs::write(&file, model(&[("Neg", &["x"], "y")], &["2"])).expect("it can be written");
    let file = file.display().to_string();
    let most = peak(&["run", &file, "--backends", "cpu", "--runs", SOME_RUNS]);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
    most
}

/// A run that waits takes memory: however many are asked for, few wait at a time.
#[cfg(target_os = "linux")]
#[test]
fn many_runs_take_the_memory_of_few() {
    let dir = folder("many");
    let file = dir.join("neg.onnx");
    std::fs::write(&file, model(&[("Neg", &["x"], "y")], &["2"])).expect("it can be written");
    let file = file.display().to_string();
    for schedule in ["sync", "overlapped"] {
        let most = |runs| {
            let run = ["run", &file, "--backends", "cpu"];
            peak(&[&run[..], &["--schedule", schedule, "--runs", runs]].concat())
        };
        let (few, many) = (most(SOME_RUNS), most("60000"));
        // Each of those that waited took about 1 kB.
        assert!(many < few + 20_000, "{schedule}: {few} kB, then {many} kB");
    }
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

const TENSORS: usize = 300;
/// Rows of a square matrix: 300 such matrices have 85 MB.
const WIDTH: usize = 266;
const MATRIX: usize = 4 * WIDTH * WIDTH;

/// A product after the other, the matrices in one file beside the model.
fn products(dir: &Path, rows: &str) -> String {
    let names: Vec<[String; 3]> = (0..TENSORS)
        .map(|i| [format!("x{i}"), format!("w{i}"), format!("x{}", i + 1)])
        .collect();
    let inputs: Vec<[&str; 2]> = names.iter().map(|[x, w, _]| [x.as_str(), w]).collect();
    let outputs: Vec<[&str; 1]> = names.iter().map(|[_, _, y]| [y.as_str()]).collect();
    let nodes = inputs.iter().zip(&outputs).map(|(inputs, outputs)| Node {
        domain: "",
        op: "MatMul",
        inputs,
        outputs,
        attributes: &[],
    });
    let weights = names.iter().enumerate().map(|(i, [_, w, _])| Weights {
        name: w,
        dims: &[WIDTH, WIDTH],
        file: "m.onnx.data",
        offset: i * MATRIX,
    });
    let width = WIDTH.to_string();
    let dims = [rows, &width];
    let (x, y) = ([("x0", &dims[..])], [(outputs[TENSORS - 1][0], &dims[..])]);
    let nodes: Vec<Node> = nodes.collect();
    let bytes = onnx::model_with(&nodes, &x, &y, &weights.collect::<Vec<_>>());
    let file = dir.join("m.onnx");
    std::fs::write(&file, bytes).expect("the model can be written");
    let data = std::fs::File::create(dir.join("m.onnx.data")).expect("a file can be made");
    let mut data = std::io::BufWriter::new(data);
    for i in 0..TENSORS * WIDTH * WIDTH {
        let element = (i % 251) as f32 / 1e5;
        data.write_all(&element.to_le_bytes())
            .expect("it is written");
    }
    data.flush().expect("it is written");
    file.display().to_string()
}

/// Weights are read one by one, and are not kept beside those that kernels read: neither where no other size can come
/// nor where one may ask for another packing.
#[cfg(target_os = "linux")]
#[test]
fn weights_in_one_file_are_in_memory_once() {
    let program = program();
    for rows in ["1", "N"] {
        let dir = folder("products");
        let file = products(&dir, rows);
        let size = (TENSORS * MATRIX) as u64 / 1024;
        let mut args = vec!["run", &file, "--backends", "cpu"];
        args.extend(
            (rows == "N")
                .then_some(["--dim", "N=3"])
                .into_iter()
                .flatten(),
        );
        let most = peak(&args);
        assert!(
            most < program + size * 11 / 10,
            "{rows} rows: {most} kB for weights of {size} kB and a program of {program} kB"
        );
        std::fs::remove_dir_all(dir).expect("the folder can be removed");
    }
}

/// Loading takes steps in proportion to the nodes: a hundred thousand of them would take hours otherwise.
#[test]
fn a_chain_of_many_nodes_loads() {
    let dir = folder("chain");
    let nodes = 100_000;
    let names: Vec<String> = (0..=nodes)
        .map(|i| match i {
            0 => "x".to_string(),
            i if i == nodes => "y".to_string(),
            i => format!("v{i}"),
        })
        .collect();
    let inputs: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
    // No two of one kind in a row, so that none are merged.
    let operators = ["Neg", "Sin"];
    let nodes: Vec<(&str, &[&str], &str)> = (0..nodes)
        .map(|i| (operators[i % 2], &inputs[i][..], names[i + 1].as_str()))
        .collect();
    let file = dir.join("chain.onnx");
    std::fs::write(&file, model(&nodes, &["2"])).expect("it can be written");
    let file = file.display().to_string();
    let limits = "load_seconds=100";
    ok(&["run", &file, "--backends", "cpu", "--limits", limits]);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
