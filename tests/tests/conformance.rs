//! The ONNX suite on the CPU and on wgpu, natively. `KILIM_CONFORMANCE` names the folder that
//! `cargo xtask test` exports the suite to; without it these tests are skipped.

#![cfg(not(target_arch = "wasm32"))]

use std::path::{Path, PathBuf};

use kilim::BackendId;
use kilim_test_support::{material::suite, say, skip_part};
use kilim_tests::conformance::{self, Case, Exclusions, Outcome};
use kilim_tests::coverage::Coverage;
use kilim_tests::files::Folder;
use kilim_tests::machine::{opened, software_gpu};

/// Runs the suite, prints the score and holds it against `tests/floors.json` and the exclusions.
fn score(backends: &[&str], floor_key: &str) {
    let (Some(root), Some(ids)) = (suite(), opened(backends)) else {
        return;
    };
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(here.join("exclusions.txt")).expect("exclusions.txt");
    let exclusions = Exclusions::parse(&text);
    let floors = std::fs::read_to_string(here.join("floors.json")).expect("floors.json");
    let floors: serde_json::Value = serde_json::from_str(&floors).expect("floors.json is JSON");
    let verbose = std::env::var_os("KILIM_VERBOSE").is_some();
    let slow = slow_in_software(backends, &SLOWEST);
    let scores = pollster::block_on(conformance::run(
        &Folder(root),
        &|case| !slow.contains(&case.name.as_str()),
        &ids,
        |case, outcome| {
            if verbose {
                say(format_args!("{} {} {outcome:?}", case.kind, case.name));
            } else if let Outcome::Failed(why) = outcome {
                say(format_args!("{}", exclusions.describe(case, why)));
            }
        },
    ))
    .expect("the suite can be read");
    if let Some(node) = scores.get("node").filter(|_| backends[0] == "wgpu") {
        check_document(&here.join("../docs/operators.md"), &node.coverage);
    }
    let mut wrong = Vec::new();
    let mut low = Vec::new();
    for (kind, score) in &scores {
        say(format_args!(
            "{}: {kind}: {}",
            backends.join("+"),
            exclusions.counts(score)
        ));
        if backends.len() > 1 {
            say(format_args!(
                "  {} of them wholly on {}, {} with nothing to compute",
                score.wholly.len(),
                backends[0],
                score.idle
            ));
            for (name, why) in score.partly.iter().filter(|_| verbose) {
                say(format_args!("PARTLY {kind} {name}: {why}"));
            }
            let floor = floors[floor_key]["wholly"][kind.as_str()].as_u64();
            if (score.wholly.len() as u64) < floor.unwrap_or(0) {
                low.push(format!(
                    "{kind} wholly on {}: {}",
                    backends[0],
                    score.wholly.len()
                ));
            }
        }
        for (reason, n) in conformance::reasons(score).iter().take(40) {
            say(format_args!("  refused {n}: {reason}"));
        }
        wrong.extend(exclusions.wrong(score));
        let floor = floors[floor_key][kind.as_str()].as_u64().unwrap_or(0);
        let floor = match kind.as_str() {
            "light" => floor - slow.len() as u64,
            _ => floor,
        };
        if (score.passed.len() as u64) < floor {
            low.push(format!("{kind}: {} of {floor}", score.passed.len()));
        }
    }
    assert!(wrong.is_empty(), "wrong results:\n{}", wrong.join("\n"));
    assert!(
        low.is_empty(),
        "fewer cases pass than before: {}",
        low.join(", ")
    );
}

/// Holds what ran on the GPU against the document that promises it; `KILIM_WRITE_DOCS` writes the
/// document anew.
fn check_document(file: &Path, coverage: &Coverage) {
    let text = std::fs::read_to_string(file).expect("docs/operators.md");
    let head = text.split("| operator |").next().unwrap_or_default();
    if std::env::var_os("KILIM_WRITE_DOCS").is_some() {
        let text = format!("{head}{}", coverage.table());
        return std::fs::write(file, text).expect("docs/operators.md can be written");
    }
    let broken = coverage.broken_promises(&text);
    assert!(
        broken.is_empty(),
        "docs/operators.md promises what does not run: {}",
        broken.join(", ")
    );
}

#[test]
fn onnx_suite_on_cpu() {
    score(&["cpu"], "cpu");
}

/// Each case as of every later operator set, those that are not known yet among them.
#[test]
fn onnx_suite_under_every_operator_set() {
    let Some(root) = suite() else {
        return;
    };
    let (files, cpu) = (Folder(root), [BackendId::from("cpu")]);
    let run = conformance::run_restamped(&files, &cpu);
    let changed = pollster::block_on(run).expect("the suite can be read");
    let (runs, failed) = (changed.runs, changed.failed);
    say(format_args!(
        "cpu: {runs} runs under later operator sets, {} failed",
        failed.len()
    ));
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(
        runs > 0,
        "the suite says nothing of operator sets: export it anew"
    );
}

/// The network whose products take a software adapter longer than all other cases together.
const SLOWEST: [&str; 1] = ["test_vgg19"];

/// The networks that take a software adapter most of its time. Their operators are those of smaller networks.
const SLOW: [&str; 6] = [
    "test_vgg19",
    "test_resnet50",
    "test_densenet121",
    "test_inception_v2",
    "test_inception_v1",
    "test_zfnet512",
];

/// What is left out where the first backend is a GPU that computes on the CPU: `slow`, else nothing.
#[track_caller]
fn slow_in_software<'a>(backends: &[&str], slow: &'a [&'a str]) -> &'a [&'a str] {
    if backends[0] != "wgpu" || !software_gpu() {
        return &[];
    }
    skip_part(format_args!(
        "a software adapter takes minutes for {}",
        slow.join(", ")
    ));
    slow
}

/// Each case with models that tell no dimension of their inputs, outputs and values.
fn open_shapes(backends: &[&str]) {
    let (Some(root), Some(ids)) = (suite(), opened(backends)) else {
        return;
    };
    let files = Folder(root);
    let slow = slow_in_software(backends, &SLOW);
    let chosen = |case: &Case| !slow.contains(&case.name.as_str());
    let run = conformance::run_opened(&files, &chosen, &ids);
    let changed = pollster::block_on(run).expect("the suite can be read");
    let (runs, failed) = (changed.runs, changed.failed);
    say(format_args!(
        "{}: {runs} runs with open shapes, {} failed, {} wholly on {}",
        backends.join("+"),
        failed.len(),
        changed.wholly,
        backends[0]
    ));
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(runs > 1900, "only {runs} runs");
}

#[test]
fn onnx_suite_with_open_shapes_on_cpu() {
    open_shapes(&["cpu"]);
}

#[test]
fn onnx_suite_with_open_shapes_on_wgpu() {
    open_shapes(&["wgpu", "cpu"]);
}

#[test]
fn onnx_suite_on_wgpu() {
    score(&["wgpu", "cpu"], "wgpu");
}
