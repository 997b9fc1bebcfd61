//! Models of classical machine learning against ONNX Runtime: the cases that `tools/references/ml.py` made.

#![cfg(not(target_arch = "wasm32"))]

use kilim::BackendId;
use kilim_test_support::archive::Cases;
use kilim_tests::conformance;

#[test]
fn models_of_scikit_learn_and_single_operators() {
    let (cases, cpu) = (Cases::of("ml"), [BackendId::from("cpu")]);
    let chosen = conformance::of_kinds(&["ml"]);
    let scores = pollster::block_on(conformance::run(&cases, &chosen, &cpu, |_, _| {}));
    let scores = scores.expect("the cases can be read");
    let score = &scores["ml"];
    assert_eq!(score.failed, []);
    assert_eq!(score.refused, []);
    assert!(score.passed.len() >= 54, "{} cases", score.passed.len());
}
