//! Models of every format, written as ONNX and read again, give what they gave before.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use kilim_test_support::archive::Cases;
use kilim_test_support::material::{python, root, suite};
use kilim_tests::conformance::{Exclusions, run_converted};
use kilim_tests::files::{Files, Folder, REFERENCES};
use kilim_tests::machine::opened;

/// Cases that ONNX cannot say whole, with what it cannot say.
const UNSAID: &str = include_str!("../unsaid.txt");

/// A folder of this test's own: `KILIM_CONVERTED` where that names one, which is left as it is then.
fn folder(name: &str) -> PathBuf {
    let named = std::env::var_os("KILIM_CONVERTED").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("kilim-converted-{}-{name}", std::process::id()))
    });
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn converted(cases: &[(&str, &dyn Files)], folder: &Path) {
    let Some(ids) = opened(&["cpu"]) else { return };
    let unsaid = Exclusions::parse(UNSAID);
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
    for (kind, files) in cases {
        let run = pollster::block_on(run_converted(*files, &ids, folder));
        let run = run.expect("the cases can be read");
        wrong.extend(run.failed.iter().map(|why| format!("{kind} {why}")));
        let known = |name: &str| unsaid.reason(name).is_some();
        let refused = run.refused.iter().filter(|(name, _)| !known(name));
        wrong.extend(refused.map(|(name, why)| format!("{kind} {name}: refused: {why}")));
        counts.insert((*kind).to_string(), (run.runs, run.refused.len()));
    }
    println!("written and read again, refused: {counts:?}");
    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
    let empty = |(runs, refused): &(usize, usize)| runs + refused == 0;
    assert!(!counts.values().any(empty), "{counts:?}");
}

/// Holds the files of a folder against ONNX's own checker, and removes it.
fn checked(folder: &Path) {
    if let Some(python) = python() {
        let script = root().join("tools/convert/check.py");
        let run = Command::new(python).arg(script).arg(folder).output();
        let run = run.expect("the script can be started");
        let said = String::from_utf8_lossy(&run.stdout);
        let why = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{said}{why}");
    }
    if std::env::var_os("KILIM_CONVERTED").is_none() {
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
    }
}

#[test]
fn the_cases_of_every_format_are_the_same_in_onnx() {
    let folder = folder("formats");
    let cases: Vec<_> = REFERENCES
        .iter()
        .map(|kind| (*kind, Cases::of(kind)))
        .collect();
    let cases: Vec<_> = cases
        .iter()
        .map(|(kind, cases)| (*kind, cases as &dyn Files))
        .collect();
    converted(&cases, &folder);
    checked(&folder);
}

#[test]
fn the_cases_of_the_onnx_suite_are_the_same() {
    let folder = folder("suite");
    if let Some(root) = suite() {
        converted(&[("suite", &Folder(root))], &folder);
    }
    if std::env::var_os("KILIM_CONVERTED").is_none() {
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
    }
}
