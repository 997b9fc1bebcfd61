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

fn build(program: &str, features: &[&str]) -> Result<PathBuf> {
    let mut cargo = sh::cargo();
    cargo.args(["build", "-p", "xtask-bindgen", "--bin", program]);
    sh::run_quiet(&format!("build {program}"), cargo.args(features))?;
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    Ok(sh::target().join("debug").join(file))
}
