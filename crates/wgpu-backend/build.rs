//! Copies the shaders without their comments and indentation, which the browser's binary would carry.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let from =
        Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../shaders");
    println!("cargo::rerun-if-changed={}", from.display());
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    copy(&from, &Path::new(&out).join("shaders"))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if target.extension().is_some_and(|e| e == "wgsl") {
            fs::write(target, strip(&fs::read_to_string(entry.path())?))?;
        }
    }
    Ok(())
}

/// WGSL has no strings, so `//` always begins a comment.
fn strip(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        if !code.is_empty() {
            out.push_str(code);
            out.push('\n');
        }
    }
    out
}
