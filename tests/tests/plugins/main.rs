//! Backends in libraries of their own: the samples, built here ([`samples`]), their memory ([`memory`]), what the table
//! has beside ([`grown`], [`rewriting`]), tensors in memory of the user's ([`user_memory`], [`handles`], [`lent`]), a device with all of it in C and in Rust
//! ([`conv`]), what libraries in Rust do otherwise ([`rust`]), the samples and the operator cases ([`conform`]), importers in libraries ([`importing`]), and libraries that go wrong ([`wrong`]) in the ways of [`broken`], where another backend takes
//! their share or not ([`fallback`]).

#![cfg(not(target_arch = "wasm32"))]

mod broken;
mod conform;
mod conv;
mod fallback;
mod grown;
#[cfg(target_os = "linux")]
mod handles;
mod importing;
#[cfg(target_os = "linux")]
mod lent;
mod memory;
mod rewriting;
mod rust;
mod samples;
mod telling;
#[cfg(target_os = "linux")]
mod user_memory;
mod wrong;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use kilim::{BackendId, LoadOptions, Result, RunOptions, Runtime, Session, Tensor};
use kilim_test_support::material::root;
use kilim_tests::libraries::{compile, compile_to, importer_file_name};
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

/// The folder with a package of a library in Rust, which is built with these features in a target folder of this name.
fn built(package: &str, target: &str, features: &str) -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target);
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .args(["build", "-p", package, "--features", features])
        .arg("--target-dir");
    assert!(cargo.arg(&target).status().unwrap().success());
    target.join("debug")
}

/// The folder with the sample in Rust.
fn sample_in_rust() -> PathBuf {
    built("backend_cube", "plugin-rust", "")
}

fn options(backends: &[&str], folder: &Path) -> LoadOptions {
    LoadOptions {
        backends: backends.iter().map(|b| BackendId::from(*b)).collect(),
        plugin_path: vec![folder.to_path_buf()],
        ..LoadOptions::default()
    }
}

/// A runtime of its own: a library that was found is kept.
fn load(model: &[u8], options: LoadOptions) -> Result<Session> {
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
