//! An operator is whole: each of the files that CONTRIBUTING.md names has its part, and what the page shows is the code.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use kilim_test_support::material::root;

/// The files below a folder that end in `ending`, without unit tests.
fn sources(folder: &str, ending: &str) -> BTreeMap<PathBuf, String> {
    fn collect(path: &Path, ending: &str, found: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "tests" {
                collect(&path, ending, found);
            } else if path.extension().is_some_and(|e| e == ending) && name != "tests.rs" {
                found.insert(path.clone(), read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(&root().join(folder), ending, &mut found);
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

/// Whether `text` has `word` with nothing of a name before and behind it.
fn has_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

fn has_any(files: &BTreeMap<PathBuf, String>, word: &str) -> bool {
    files.values().any(|text| has_word(text, word))
}

/// The types that are operators, with the names that they give themselves in a text of the code.
fn operators() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for text in sources("crates/core/src/ops", "rs").values() {
        for rest in text.split("\nimpl Operator for ").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap();
            let name = rest.split("fn name(&self)").nth(1).unwrap();
            let body = name.split("\n    }\n").next().unwrap();
            let texts = body.split('"').skip(1).step_by(2).map(str::to_string);
            found.insert(rest[..end].to_string(), texts.collect());
        }
    }
    assert!(found.len() > 100, "{found:?}");
    found
}

#[test]
fn every_operator_is_in_each_of_its_files() {
    let root = root();
    let list = read_to_string(root.join("crates/core/src/testing/operators.rs")).unwrap();
    let mut makers = sources("crates/formats/src", "rs");
    makers.extend(sources("crates/core/src/passes", "rs"));
    let mut kernels = sources("crates/reference-cpu/src", "rs");
    kernels.extend(sources("crates/simd-cpu/src/quantized", "rs"));
    let builtin = sources("crates/core/src/session/builtin", "rs");
    let attributes = read_to_string(root.join("docs/attributes.md")).unwrap();
    let mut missing = Vec::new();
    for (operator, names) in operators() {
        let mut hold = |there: bool, what: &str| {
            if !there {
                missing.push(format!("{operator}: {what}"));
            }
        };
        hold(
            has_word(&list, &operator),
            "crates/core/src/testing/operators.rs does not list it",
        );
        hold(
            has_any(&makers, &operator),
            "nothing makes it: a file of crates/formats/src/onnx/ops/ or crates/formats/src/tflite/ops/ lacks a row",
        );
        let registered = format!("::<{operator}>(");
        hold(
            kernels.values().any(|text| text.contains(&registered)) || has_any(&builtin, &operator),
            "crates/reference-cpu/src/<family>/mod.rs registers no kernel",
        );
        hold(
            names.is_empty() || names.iter().any(|n| has_word(&attributes, n)),
            "docs/attributes.md does not describe it: KILIM_WRITE_DOCS=1 cargo test -p kilim-core attributes",
        );
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Operators that formats make of others, whose names stand in a file of cases.
const OF_OTHERS: &[(&str, &str, &str)] = &[
    ("AffineQuantize", "tools/references/tflite.py", "quantize"),
    ("PairwiseCoupling", "tools/fuzz/learnt.py", "SVMClassifier"),
    ("QuantizedLstm", "tools/references/tflite.py", "lstm"),
    (
        "QuantizedResize",
        "crates/simd-cpu/tests/hostile/tables.rs",
        "QuantizedResize",
    ),
    ("QuantizedSoftmax", "tools/references/tflite.py", "softmax"),
];

#[test]
fn every_operator_has_cases() {
    let root = root();
    let mut cases = sources("crates/conform/src/operators", "rs");
    cases.extend(sources("tests/tests", "rs"));
    cases.extend(sources("tools/references", "py"));
    cases.extend(sources("tools/fuzz", "py"));
    cases.remove(&root.join("tests/tests/new_operator.rs"));
    let suite = read_to_string(root.join("docs/operators.md")).unwrap();
    let mut missing = Vec::new();
    for (operator, names) in operators() {
        let mut words = names.iter().chain([&operator]);
        let other = OF_OTHERS.iter().find(|(o, ..)| *o == operator);
        let there = match other {
            Some((_, file, word)) => read_to_string(root.join(file)).unwrap().contains(word),
            None => words.any(|n| has_any(&cases, n) || suite.contains(&format!("\n| {n} |"))),
        };
        if !there {
            missing.push(format!(
                "{operator}: crates/conform/src/operators/ has no case, and neither has the ONNX suite (docs/operators.md)"
            ));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The blocks of Rust code in CONTRIBUTING.md, each with the path that its first line names.
fn shown() -> Vec<(String, String)> {
    let page = read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let blocks = page.split("```rust\n").skip(1);
    blocks
        .map(|rest| {
            let block = rest.split("```").next().unwrap();
            let lines = block
                .lines()
                .map(|line| line.strip_prefix("   ").unwrap_or(line));
            let mut lines = lines.collect::<Vec<_>>().into_iter();
            let first = lines.next().unwrap();
            let path = first
                .strip_prefix("// ")
                .unwrap_or_else(|| panic!("{first}: no path"));
            (path.to_string(), lines.collect::<Vec<_>>().join("\n"))
        })
        .collect()
}

/// Blank lines of a block stand between pieces, which may be apart in the file.
#[test]
fn the_walk_through_is_the_code() {
    let blocks = shown();
    assert!(blocks.len() >= 4, "{blocks:?}");
    for (path, block) in blocks {
        let file = read_to_string(root().join(&path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        for piece in block.trim_end().split("\n\n") {
            assert!(
                file.contains(piece),
                "CONTRIBUTING.md shows of {path} what it does not have:\n{piece}"
            );
        }
    }
}
