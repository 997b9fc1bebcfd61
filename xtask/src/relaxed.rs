//! The relaxed instructions of a web binary. What one gives may be left to the machine, so each is to be written
//! on purpose; LLVM makes others by itself, of floats that are clamped in a loop for instance.

use crate::{setup, sh};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The fused multiplication and addition of `crates/simd-cpu/src/isa/wasm.rs`, and the products of bytes of
/// `crates/simd-cpu/src/isa/bytes/wasm.rs`, which are used where every machine gives the exact sum.
const MEANT: [&str; 2] = ["f32x4.relaxed_madd", "i32x4.relaxed_dot_i8x16_i7x16_add_s"];

/// Refuses a binary that holds others; it must not have lost the names of its functions.
pub fn check(wasm: &Path) -> Result<()> {
    let text = wasm.with_extension("wat");
    let program = setup::npm("tools")?.join("binaryen/bin/wasm-dis");
    let mut node = sh::cmd("node");
    let features = ["--all-features", "-o"];
    node.arg(program).arg(wasm).args(features).arg(&text);
    sh::run_quiet("wasm-dis", &mut node)?;
    let found = others(BufReader::new(File::open(&text)?))?;
    fs::remove_file(&text)?;
    if !found.is_empty() {
        let list: Vec<String> = found.into_iter().collect();
        bail!(
            "relaxed instructions that nobody wrote:\n{}",
            list.join("\n")
        );
    }
    Ok(())
}

/// A module with `f32x4.relaxed_madd`, as JavaScript.
const PROBE: &str = "new Uint8Array([0,97,115,109,1,0,0,0,1,5,1,96,0,1,123,3,2,1,0,10,17,1,15,0,65,0,253,15,65,0,253,15,65,0,253,15,253,133,2,11])";

/// The option by which Node takes relaxed instructions, where it does not without.
pub fn node_flag() -> Option<&'static str> {
    let mut node = sh::cmd("node");
    let probe = format!("process.exit(WebAssembly.validate({PROBE}) ? 0 : 1)");
    let takes = sh::capture(node.args(["-e", &probe])).is_some();
    (!takes).then_some("--experimental-wasm-relaxed-simd")
}

/// The relaxed instructions in a binary's text that are not meant, each with its function.
fn others(text: impl BufRead) -> std::io::Result<BTreeSet<String>> {
    let (mut function, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        let line = line?;
        if let Some(rest) = line.trim_start().strip_prefix("(func ") {
            function = rest.split(" (").next().unwrap_or(rest).to_owned();
        }
        for word in line.split(['(', ' ']) {
            let vector = word.split_once(".relaxed_").map(|(shape, _)| shape);
            if vector.is_some_and(|s| s.contains('x') && s.len() <= 5) && !MEANT.contains(&word) {
                found.insert(format!("{word} in {function}"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_not_meant_is_found() {
        let text = " (func $\"<kilim::A as B>::c::relaxed_d\" (param $0 i32)\n  (f32x4.relaxed_madd\n   (f32x4.relaxed_min\n \
                    (func $e (i16x8.relaxed_dot_i8x16_i7x16_s (local.get $f.relaxed_g)\n";
        let found = super::others(text.as_bytes()).expect("a text can be read");
        let found: Vec<String> = found.into_iter().collect();
        assert_eq!(
            found,
            [
                "f32x4.relaxed_min in $\"<kilim::A as B>::c::relaxed_d\"",
                "i16x8.relaxed_dot_i8x16_i7x16_s in $e",
            ]
        );
    }
}
