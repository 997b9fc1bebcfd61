//! wasm-bindgen of the version in Cargo.lock: programs of the crate in `xtask/bindgen`, built when a job needs them.

use crate::sh;
use anyhow::Result;
use std::path::PathBuf;

/// What makes a script and a binary of what the compiler made.
pub fn bindgen() -> Result<PathBuf> {
    build("xtask-bindgen", &[])
}

/// Cargo's runner for tests of wasm32, which runs them in a browser.
pub fn browser_test_runner() -> Result<PathBuf> {
    build("xtask-browser-tests", &["--features", "browser-tests"])
}

/// Cargo is asked only where sources differ: it waits for whoever else builds in this folder, to find that nothing is to be done.
fn build(program: &str, features: &[&str]) -> Result<PathBuf> {
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let file = sh::target().join("debug").join(file);
    let root = sh::root();
    let mut inputs = sh::files(&[root.join("xtask/bindgen")]);
    inputs.extend(["Cargo.lock", "Cargo.toml"].map(|name| root.join(name)));
    let stamp = sh::target().join("xtask").join(program);
    sh::up_to_date(
        &stamp,
        &sh::fingerprint(program, &inputs)?,
        std::slice::from_ref(&file),
        || {
            let mut cargo = sh::cargo();
            cargo.args(["build", "-p", "xtask-bindgen", "--bin", program]);
            sh::run_quiet(&format!("build {program}"), cargo.args(features))
        },
    )?;
    Ok(file)
}
