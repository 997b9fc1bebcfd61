//! The shared suites inside headless Chromium.

use super::{Counts, conformance, counted, rare, tell_material};
use crate::setup;
use anyhow::Result;
use std::process::Command;

/// What ends the names of the tests that compute whole suites by shaders. They take minutes in a browser without a GPU, which
/// compiles each shader for the CPU.
const ON_WEBGPU: &str = "suite_on_webgpu";

/// The shaders, and what gives them to the browser.
pub const WEBGPU: rare::Rare = rare::Rare {
    name: "webgpu",
    sources: &["crates/wgpu-backend", "shaders"],
};

/// All suites on the CPU, the operator cases on WebGPU, and the tests of the CPU's kernels.
pub fn tests() -> Result<Counts> {
    let mut counts = run(&["--skip", ON_WEBGPU])?;
    for features in [SIMD, RELAXED] {
        let kernels = ["-p", "kilim-simd-cpu", "--lib"];
        counts.add(counted(cargo(features)?.args(kernels).args(TARGET))?);
    }
    Ok(counts)
}

/// The ONNX suite and the references on WebGPU.
pub fn webgpu() -> Result<Counts> {
    run(&[ON_WEBGPU])
}

fn run(chosen: &[&str]) -> Result<Counts> {
    conformance()?;
    let mut cargo = cargo(SIMD)?;
    tell_material(&mut cargo)?;
    cargo.args(["-p", "kilim-tests", "-p", "kilim-web"]);
    cargo.args(TARGET).args(["--test", "browser"]);
    counted(cargo.args(["--", "--nocapture"]).args(chosen))
}

/// Features of machines that the package has builds for.
const SIMD: &str = "+simd128";
const RELAXED: &str = "+simd128,+relaxed-simd";

const TARGET: [&str; 2] = ["--target", "wasm32-unknown-unknown"];

/// `cargo test` whose tests run in the browser.
fn cargo(features: &str) -> Result<Command> {
    let toolchain = setup::wasm_toolchain()?;
    let runner = setup::browser_test_runner()?;
    let browser = setup::browser()?;
    let mut cargo = toolchain.cargo(features);
    browser.tell(&mut cargo);
    cargo
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        // Tests that do not say where they run would do so in Node.
        .env("WASM_BINDGEN_USE_BROWSER", "1")
        .env("WASM_BINDGEN_TEST_TIMEOUT", "1800");
    cargo.args(["test", "--profile", "browser"]);
    Ok(cargo)
}
