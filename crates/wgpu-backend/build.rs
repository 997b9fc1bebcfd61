//! Copies the shaders without comments and needless blanks, which the browser's binary would carry.

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

/// WGSL has no strings, so `//` always begins a comment. Lines stay lines: the preprocessor reads them.
fn strip(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        if code.starts_with('#') {
            out.push_str(code);
        } else {
            squeeze(code, &mut out);
        }
        if !code.is_empty() {
            out.push('\n');
        }
    }
    out
}

/// Leaves out the blanks that part neither two words nor two operators (`a - -b`).
fn squeeze(code: &str, out: &mut String) {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let operator = |c: char| "+-*/%<>=&|^!~".contains(c);
    let mut before = None;
    let mut blank = false;
    for c in code.chars() {
        if c.is_whitespace() {
            blank = true;
            continue;
        }
        if blank && before.is_some_and(|b| word(b) && word(c) || operator(b) && operator(c)) {
            out.push(' ');
        }
        out.push(c);
        before = Some(c);
        blank = false;
    }
}
