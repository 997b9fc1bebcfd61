//! Every block of code in a document is compiled, run or parsed by a test.

use std::path::Path;

use kilim_test_support::documents::{Block, blocks};
use kilim_test_support::material::root;

/// The programs that shell blocks may call. Lines with `kilim` are parsed by the tests of `kilim-cli`, lines with
/// `cargo xtask` by those of `xtask`; `conform.sh` is run by those of `kilim-cli`.
const PROGRAMS: &[&str] = &[
    "cargo",
    "cc",
    "conform.sh",
    "cp",
    "kilim",
    "make",
    "node",
    "npm",
    "npx",
    "python",
];

/// Compiles the Rust of documents.
const COMPILED: &str = "tests/src/documents.rs";

/// The documents whose Rust is held by tests of their own, and the files of these.
const ELSEWHERE: &[(&str, &str)] = &[
    ("CONTRIBUTING.md", "tests/tests/new_operator.rs"),
    ("docs/formats.md", "crates/formats/src/lib.rs"),
];

/// Where a block is not checked, and why; nothing where it is.
fn unchecked(block: &Block, compiled: &str) -> Option<String> {
    if let Some(source) = &block.source {
        let text = std::fs::read_to_string(root().join(source)).unwrap_or_default();
        let there = text.contains(block.code.trim_end());
        return (!there).then(|| format!("{} does not hold this block", source.display()));
    }
    match block.language.as_str() {
        "rust" | "rust,no_run" => {
            let own = ELSEWHERE
                .iter()
                .find(|(document, _)| block.document == Path::new(document));
            let (text, file) = match own {
                Some((_, file)) => (std::fs::read_to_string(root().join(file)), *file),
                None => (Ok(compiled.to_owned()), COMPILED),
            };
            let named = block.document.to_string_lossy();
            let there = text.is_ok_and(|text| text.contains(&*named));
            (!there).then(|| format!("{file} does not compile this document"))
        }
        // www/test/documents.test.mjs
        "js" | "ts" | "html" => None,
        "sh" => block.commands().iter().find_map(|words| {
            let program = words.iter().find(|word| !word.contains('='));
            let name = program.and_then(|p| Path::new(p).file_name()?.to_str());
            let known = name.is_some_and(|name| PROGRAMS.contains(&name));
            (!known).then(|| format!("no test knows the program of {words:?}"))
        }),
        // What programs print, and the layout of folders.
        "text" => None,
        other => Some(format!("no test checks blocks of the language `{other}`")),
    }
}

#[test]
fn every_block_is_checked() {
    let compiled = std::fs::read_to_string(root().join(COMPILED)).unwrap();
    let blocks = blocks();
    assert!(blocks.len() > 50, "{} blocks", blocks.len());
    let wrong = |block: &Block| {
        Some(format!(
            "{}: {}",
            block.place(),
            unchecked(block, &compiled)?
        ))
    };
    let wrong: Vec<String> = blocks.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_unchecked_block_is_noticed() {
    let block = |language: &str, code: &str, source: Option<&str>| Block {
        document: Path::new("README.md").into(),
        line: 1,
        language: language.into(),
        code: code.into(),
        source: source.map(Into::into),
    };
    let compiled = "include_str!(\"../../README.md\")";
    for (language, code, source) in [
        ("", "x\n", None),
        ("python", "x\n", None),
        ("sh", "A=1 frobnicate\n", None),
        ("rust", "fn nowhere_else() {}\n", Some("xtask/src/main.rs")),
    ] {
        let block = block(language, code, source);
        assert!(unchecked(&block, compiled).is_some(), "{block:?}");
    }
    let rust = block("rust", "x\n", None);
    assert!(unchecked(&rust, compiled).is_none() && unchecked(&rust, "").is_some());
}
