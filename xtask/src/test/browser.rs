//! The shared suites inside headless Chromium.

use super::{Counts, conformance, counted, rare, tell_material};
use crate::setup;
use anyhow::Result;

/// What ends the names of the tests that compute whole suites by shaders. They take minutes in a browser without a GPU, which
/// compiles each shader for the CPU.
const ON_WEBGPU: &str = "suite_on_webgpu";

/// The shaders, and what gives them to the browser.
pub const WEBGPU: rare::Rare = rare::Rare {
    name: "webgpu",
    sources: &["crates/wgpu-backend", "shaders"],
};

/// All suites on the CPU, and the operator cases on WebGPU.
pub fn tests() -> Result<Counts> {
    run(&["--skip", ON_WEBGPU])
}

/// The ONNX suite and the references on WebGPU.
pub fn webgpu() -> Result<Counts> {
    run(&[ON_WEBGPU])
}

fn run(chosen: &[&str]) -> Result<Counts> {
    conformance()?;
    let toolchain = setup::wasm_toolchain()?;
    let runner = setup::browser_test_runner()?;
    let browser = setup::browser()?;
    let mut cargo = toolchain.cargo("+simd128");
    browser.tell(&mut cargo);
    tell_material(&mut cargo)?;
    cargo
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner)
        .env("WASM_BINDGEN_TEST_TIMEOUT", "1800");
    cargo.args(["test", "--profile", "browser"]);
    cargo.args(["-p", "kilim-tests", "-p", "kilim-web"]);
    cargo.args(["--target", "wasm32-unknown-unknown", "--test", "browser"]);
    counted(cargo.args(["--", "--nocapture"]).args(chosen))
}
