//! Models of classical machine learning against ONNX Runtime: the cases that `tools/ml/make.py` made.

#![cfg(not(target_arch = "wasm32"))]

use std::path::PathBuf;

use kilim::BackendId;
use kilim_tests::conformance;
use kilim_tests::files::Folder;

#[test]
fn models_of_scikit_learn_and_single_operators() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("ml");
    let (files, cpu) = (Folder(root), [BackendId::from("cpu")]);
    let scores = pollster::block_on(conformance::run(&files, &["ml"], &cpu, |_, _| {}));
    let scores = scores.expect("the cases can be read");
    let score = &scores["ml"];
    assert_eq!(score.failed, []);
    assert_eq!(score.refused, []);
    assert!(score.passed.len() >= 54, "{} cases", score.passed.len());
}
