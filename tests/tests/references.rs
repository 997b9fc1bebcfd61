//! The cases of `references/`: what other runtimes make of small models, by `tools/references`.
//! Quantised results must be the same to the byte on every backend and instruction set.

#![cfg(not(target_arch = "wasm32"))]

use std::path::Path;

use kilim_tests::conformance;
use kilim_tests::files::Folder;
use kilim_tests::machine::opened;

fn score(backends: &[&str]) {
    let Some(ids) = opened(backends) else { return };
    let folder = Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("references"));
    let run = conformance::run(
        &folder,
        &[
            "tflite",
            "microsoft",
            "opsets",
            "graphs",
            "pictures",
            "frameworks",
        ],
        &ids,
        |_, _| {},
    );
    let scores = pollster::block_on(run).expect("the cases can be read");
    let mut wrong = Vec::new();
    let mut passed = 0;
    for score in scores.values() {
        passed += score.passed.len();
        for (name, why) in score.failed.iter().chain(&score.refused) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    assert!(passed > 0, "there are no cases");
    let wrong_count = wrong.len();
    let wrong = wrong.join("\n");
    assert!(
        wrong.is_empty(),
        "{wrong_count} wrong, {passed} right:\n{wrong}"
    );
}

#[test]
fn references_on_cpu() {
    score(&["cpu"]);
}

#[test]
fn references_on_wgpu() {
    score(&["wgpu", "cpu"]);
}
