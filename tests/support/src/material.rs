//! The material that tests read. Each function gives `None` where its material is missing, after it has said that
//! the calling test is skipped.

use crate::skip;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The ONNX suite as `tools/conformance/export.py` writes it: the folder that `KILIM_CONFORMANCE` names.
#[track_caller]
pub fn suite() -> Option<PathBuf> {
    named("KILIM_CONFORMANCE", "")
}

/// Collected models with references: the folder `models` in the one that `KILIM_SHARED` names.
#[track_caller]
pub fn models() -> Option<PathBuf> {
    named("KILIM_SHARED", "models")
}

/// The Python of `cargo xtask setup`, which has the packages of `tools/requirements.txt`.
#[track_caller]
pub fn python() -> Option<PathBuf> {
    let venv = root().join(".venv");
    let mut names = ["bin/python", "Scripts/python.exe"].iter();
    let found = names.find_map(|name| Some(venv.join(name)).filter(|file| file.exists()));
    if found.is_none() {
        skip("there is no .venv; `cargo xtask setup` makes it");
    }
    found
}

/// The folder `inside` the one that a variable of the environment names.
#[track_caller]
fn named(variable: &str, inside: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(|folder| Path::new(&folder).join(inside));
    let found = folder.filter(|folder| folder.is_dir());
    if found.is_none() {
        skip(format_args!("{variable} names no such folder"));
    }
    found
}
