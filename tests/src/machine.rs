//! What tests find on this machine. What is missing is said, and who needs it is skipped.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kilim::core::Backend;
use kilim::{BackendId, Result, Runtime};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Prints past the test runner, which keeps what passing tests print to itself.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A backend that all sessions share.
///
/// # Errors
/// `NoBackend` where this machine does not have it.
pub fn backend(id: &str) -> Result<Arc<dyn Backend>> {
    pollster::block_on(Runtime::shared().backend(&BackendId::from(id)))
}

/// The backend `cpu`.
///
/// # Panics
/// Never: it is everywhere.
pub fn cpu() -> Arc<dyn Backend> {
    backend("cpu").expect("the CPU is always there")
}

/// The backend `wgpu`, where there is a GPU.
pub fn gpu() -> Option<Arc<dyn Backend>> {
    let found = backend("wgpu");
    found
        .inspect_err(|e| say(format_args!("skipped: {e}")))
        .ok()
}

/// The backends' names, where all of them open.
pub fn opened(backends: &[&str]) -> Option<Vec<BackendId>> {
    for id in backends {
        if let Err(e) = backend(id) {
            say(format_args!("skipped: {e}"));
            return None;
        }
    }
    Some(backends.iter().map(|&id| BackendId::from(id)).collect())
}

/// The Python of `cargo xtask setup`.
pub fn python() -> Option<PathBuf> {
    let venv = root().join(".venv");
    let mut names = ["bin/python", "Scripts/python.exe"].iter();
    let found = names.find_map(|name| Some(venv.join(name)).filter(|p| p.exists()));
    if found.is_none() {
        say("skipped: there is no .venv; `cargo xtask setup` makes it");
    }
    found
}
