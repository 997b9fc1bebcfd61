//! Makes the script and the binary `kilim_bg.wasm` of what the compiler made: `xtask-bindgen INPUT.wasm OUT_FOLDER`.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [input, out] = paths.as_slice() else {
        bail!("usage: xtask-bindgen INPUT.wasm OUT_FOLDER")
    };
    Bindgen::new()
        .web(true)?
        .input_path(input)
        .out_name("kilim")
        .typescript(false)
        .omit_default_module_path(true)
        .generate(out)
        .with_context(|| format!("wasm-bindgen cannot read {}", input.display()))
}
