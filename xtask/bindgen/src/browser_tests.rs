//! Cargo's runner for tests of wasm32: wasm-bindgen's, which runs them in a browser.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
