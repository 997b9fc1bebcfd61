//! The suites of operators and conformance in a browser, on WebAssembly SIMD and on WebGPU.

#![cfg(target_arch = "wasm32")]

use kilim::{BackendId, Runtime};
use kilim_tests::conformance::{self, Exclusions, Outcome};
use kilim_tests::files::{REFERENCES, Suite, references as cases_of};
use kilim_tests::operators;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

/// Says that a suite does not run, in the form of `kilim_test_support::skip`.
fn skip(suite: &str, backends: &[&str], reason: impl std::fmt::Display) {
    console_log!("skipped: {suite} on {}: {reason}", backends.join("+"));
}

async fn ids(suite: &str, backends: &[&str]) -> Option<Vec<BackendId>> {
    let ids: Vec<BackendId> = backends.iter().map(|&b| BackendId::from(b)).collect();
    for id in &ids {
        if let Err(e) = Runtime::shared().backend(id).await {
            skip(suite, backends, e);
            return None;
        }
    }
    Some(ids)
}

async fn operator_suite(backends: &[&str]) {
    let Some(ids) = ids("operators", backends).await else {
        return;
    };
    let (mut passed, mut wrong) = (0, Vec::new());
    for case in operators::all() {
        match operators::run(&case, &ids).await {
            operators::Outcome::Passed(_) => passed += 1,
            operators::Outcome::Refused(why) | operators::Outcome::Wrong(why) => {
                wrong.push(format!("{}: {why}", case.name));
            }
        }
    }
    console_log!("{}: {passed} operator cases passed", backends.join("+"));
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

async fn onnx_suite(backends: &[&str], kinds: &[&str], floor_key: &str) {
    let Some(archive) = Suite::embedded() else {
        return skip("ONNX suite", backends, "built without KILIM_CONFORMANCE");
    };
    let Some(ids) = ids("ONNX suite", backends).await else {
        return;
    };
    let floors: serde_json::Value =
        serde_json::from_str(include_str!("../floors.json")).expect("floors.json is JSON");
    let exclusions = Exclusions::parse(include_str!("../exclusions.txt"));
    let chosen = conformance::of_kinds(kinds);
    let scores = conformance::run(&archive, &chosen, &ids, |case, outcome| {
        if let Outcome::Failed(why) = outcome {
            console_log!("{}", exclusions.describe(case, why));
        }
    })
    .await
    .expect("the suite can be read");
    let mut wrong = Vec::new();
    for (kind, score) in &scores {
        console_log!(
            "{} in the browser: {kind}: {}",
            backends.join("+"),
            exclusions.counts(score)
        );
        if backends.len() > 1 {
            let floor = floors[floor_key]["wholly"][kind.as_str()].as_u64();
            console_log!(
                "  {} of them wholly on {}, {} with nothing to compute",
                score.wholly.len(),
                backends[0],
                score.idle
            );
            assert!(
                score.wholly.len() as u64 >= floor.unwrap_or(0),
                "{kind} wholly on {}: {}",
                backends[0],
                score.wholly.len()
            );
        }
        wrong.extend(exclusions.wrong(score));
        let floor = floors[floor_key][kind.as_str()].as_u64().unwrap_or(0);
        assert!(
            score.passed.len() as u64 >= floor,
            "{kind}: {} of {floor}",
            score.passed.len()
        );
    }
    assert!(wrong.is_empty(), "wrong results:\n{}", wrong.join("\n"));
}

/// What other runtimes make of small models: quantised results to the byte.
async fn references(backends: &[&str]) {
    let Some(ids) = ids("references", backends).await else {
        return;
    };
    let (mut passed, mut wrong) = (0, Vec::new());
    for kind in REFERENCES {
        let kinds = [*kind];
        let chosen = conformance::of_kinds(&kinds);
        let run = conformance::run(&cases_of(kind), &chosen, &ids, |_, _| {}).await;
        let score = &run.expect("the cases can be read")[*kind];
        passed += score.passed.len();
        let others = score.failed.iter().chain(&score.refused);
        wrong.extend(others.map(|(name, why)| format!("{name}: {why}")));
    }
    console_log!(
        "{} in the browser: {passed} references passed",
        backends.join("+")
    );
    assert!(
        passed > 0 && wrong.is_empty(),
        "{passed} right, wrong:\n{}",
        wrong.join("\n")
    );
}

#[wasm_bindgen_test]
async fn reference_suite_on_wasm() {
    references(&["cpu"]).await;
}

#[wasm_bindgen_test]
async fn reference_suite_on_webgpu() {
    references(&["wgpu", "cpu"]).await;
}

#[wasm_bindgen_test]
async fn operators_on_wasm() {
    operator_suite(&["cpu"]).await;
}

#[wasm_bindgen_test]
async fn operators_on_webgpu() {
    operator_suite(&["wgpu", "cpu"]).await;
}

#[wasm_bindgen_test]
async fn onnx_suite_on_wasm() {
    onnx_suite(&["cpu"], &conformance::KINDS, "browser-cpu").await;
}

#[wasm_bindgen_test]
async fn onnx_suite_on_webgpu() {
    onnx_suite(&["wgpu", "cpu"], &conformance::KINDS, "browser-wgpu").await;
}
