//! Packs the shaders, without comments and needless blanks, into one compressed file: the browser's
//! binary carries them.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let shaders =
        Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../shaders");
    println!("cargo::rerun-if-changed={}", shaders.display());
    let mut all = String::new();
    append(&shaders, "", &mut all)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(
        Path::new(&out).join("shaders.lz4"),
        lz4_flex::compress_prepend_size(all.as_bytes()),
    )
}

/// Appends path and text of every shader in `dir`, each ended by a zero. `at` is the path of `dir`,
/// with a slash behind it.
fn append(dir: &Path, at: &str, all: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = format!("{at}{}", name.to_string_lossy());
        if entry.file_type()?.is_dir() {
            append(&path, &format!("{name}/"), all)?;
        } else if path.extension().is_some_and(|e| e == "wgsl") {
            let text = strip(&fs::read_to_string(path)?);
            all.push_str(&format!("{name}\0{text}\0"));
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
