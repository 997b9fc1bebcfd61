//! The cases of `references/`: what other runtimes make of small models, by `tools/references`.
//! Quantised results must be the same to the byte on every backend and instruction set.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::BTreeMap;

use kilim_test_support::archive::Cases;
use kilim_test_support::material::root;
use kilim_tests::conformance;
use kilim_tests::files::{REFERENCES, references};
use kilim_tests::machine::opened;
use serde_json::Value;

fn score(backends: &[&str]) {
    let Some(ids) = opened(backends) else { return };
    let mut wrong = Vec::new();
    let mut passed = 0;
    for kind in REFERENCES {
        let (cases, kinds) = (references(kind), [*kind]);
        let chosen = conformance::of_kinds(&kinds);
        let run = conformance::run(&cases, &chosen, &ids, |_, _| {});
        let scores = pollster::block_on(run).expect("the cases can be read");
        let score = scores.get(*kind).expect(kind);
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

/// The tolerances of GGUF files with packed weights are those of products that round, as the CPU's do. WebGPU's do not.
#[test]
fn packed_weights_are_exact_where_nothing_rounds() {
    let Some(ids) = opened(&["wgpu", "cpu"]) else {
        return;
    };
    let cases = Cases::of("gguf");
    let mut index: Value = serde_json::from_slice(&cases.index).expect("an index");
    for case in index["cases"].as_array_mut().expect("cases") {
        case["rtol"] = 1e-4.into();
        case["atol"] = 1e-4.into();
    }
    let archive = std::fs::read(root().join("tests/references/gguf.zip")).expect("an archive");
    let strict = Cases::new(archive, index.to_string().into_bytes());
    let chosen = conformance::of_kinds(&["gguf"]);
    let scores = pollster::block_on(conformance::run(&strict, &chosen, &ids, |_, _| {}));
    let score = &scores.expect("the cases can be read")["gguf"];
    assert_eq!(score.failed, [], "{} passed", score.passed.len());
    assert!(!score.passed.is_empty());
}

/// The checksum of zip files (CRC-32 of ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1))
        })
    })
}

/// An index is what a reviewer reads: it must tell of the archive beside it.
#[test]
fn every_index_tells_what_its_archive_holds() {
    for kind in REFERENCES.iter().chain(&["ggml", "ml"]) {
        let cases = Cases::of(kind);
        let index: Value = serde_json::from_slice(&cases.index).expect(kind);
        let mut told = BTreeMap::new();
        for case in index["cases"].as_array().expect("cases") {
            let path = case["path"].as_str().expect("a path");
            for (file, described) in case["files"].as_object().expect("files") {
                let described = described.as_str().unwrap_or_default();
                let (_, crc) = described.rsplit_once("crc32 ").expect("a checksum");
                told.insert(format!("{path}/{file}"), crc.to_string());
            }
        }
        let there = cases.archive.entries().map(|(name, listed)| {
            assert_eq!(crc32(cases.file(name)), listed, "{name} is damaged");
            (name.to_string(), format!("{listed:08x}"))
        });
        assert_eq!(told, there.collect(), "{kind}");
    }
}
