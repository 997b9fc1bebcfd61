//! Imports name what they import.

use std::fs;
use std::path::Path;

use super::files;

/// Files that take all that a module has: the list of all operators, and tests of operators on symbolic shapes.
const WHOLE: &[&str] = &[
    "crates/core/src/testing/operators.rs",
    "crates/core/src/ops/tests/mod.rs",
];

/// Modules that tests share; they take all of them.
const SHARED: &[&str] = &["harness", "writer", "support", "broken"];

/// Why a line may import all of a module; `None` where it has to name what it takes.
fn reason(line: &str, of_tests: bool) -> Option<&'static str> {
    let import = line.trim_start();
    let path = import.strip_suffix("::*;")?.rsplit("use ").next()?;
    let last = path.rsplit("::").next().unwrap_or(path);
    if import.starts_with("pub use ") {
        return Some("it gives a module on");
    }
    if path.starts_with("std::arch::") {
        return Some("the instructions of a processor");
    }
    if path.starts_with("wasm_bindgen_test") {
        return Some("what its macros need");
    }
    if line.starts_with(' ') && last.starts_with(char::is_uppercase) {
        return Some("variants, inside a function");
    }
    let own = path == "crate" || path.split("::").all(|step| step == "super");
    let shared = own || SHARED.contains(&last);
    // A module of unit tests is indented where it shares a file with what it tests.
    (shared && (of_tests || line.starts_with(' '))).then_some("what tests share")
}

/// The imports of a file that do not name what they import.
fn globs(text: &str, of_tests: bool) -> Vec<&str> {
    let lines = text.lines().filter(|line| {
        let import = line.trim_start();
        let used = import.starts_with("use ") || import.starts_with("pub use ");
        used && import.ends_with("::*;")
    });
    lines
        .filter(|line| reason(line, of_tests).is_none())
        .collect()
}

#[test]
fn imports_name_what_they_import() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for folder in ["crates", "tests/src", "tests/tests", "xtask/src"] {
        for path in files(&root.join(folder)) {
            let own = path.strip_prefix(&root).expect("it is below");
            let own = own.to_string_lossy().replace('\\', "/");
            if !own.ends_with(".rs") || own.contains("/target/") || WHOLE.contains(&&*own) {
                continue;
            }
            let of_tests = own.split(['/', '.']).any(|part| part == "tests");
            let text = fs::read_to_string(&path).expect("a file is text");
            let found = globs(&text, of_tests);
            wrong.extend(
                found
                    .into_iter()
                    .map(|line| format!("{own}: {}", line.trim())),
            );
        }
    }
    assert!(wrong.is_empty(), "name what is imported: {wrong:#?}");
}

#[test]
fn globs_are_found() {
    let wrong = |text, of_tests| globs(text, of_tests).len();
    assert_eq!(wrong("use kilim_core::ops::*;", false), 1);
    assert_eq!(wrong("use kilim::core::ops::*;", true), 1);
    assert_eq!(wrong("    use kilim_core::ops::*;", true), 1);
    assert_eq!(wrong("use super::*;", false), 1);
    assert_eq!(wrong("use crate::BinaryKind::*;", false), 1);
    assert_eq!(wrong("use super::*;", true), 0);
    assert_eq!(wrong("    use super::*;", false), 0);
    assert_eq!(wrong("use super::super::harness::*;", true), 0);
    assert_eq!(wrong("    use BinaryKind::*;", false), 0);
    assert_eq!(wrong("pub use graph::*;", false), 0);
    assert_eq!(wrong("use std::arch::wasm32::*;", false), 0);
    assert_eq!(wrong("let x = 1; // use crate::*;", false), 0);
}
