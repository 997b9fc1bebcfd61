//! What the schemas of the pinned `onnx` package allow, on the CPU: every attribute, and every element type
//! but those that `recast.txt` lists as refused, with their reasons.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::{BTreeMap, BTreeSet};

use kilim::BackendId;
use kilim_test_support::material::python;
use kilim_tests::fuzz::{Generator, Outcome};

/// `KILIM_OPS` names the operators, separated by commas, where not all are wanted.
#[test]
fn every_element_type_of_every_operator() {
    let Some(python) = python() else { return };
    let ops = std::env::var("KILIM_OPS").unwrap_or_default();
    let mut generator =
        Generator::of("recast.py", &python, &["--ops", &ops]).expect("Python starts");
    let cpu = [BackendId::from("cpu")];
    let (mut passed, mut wrong) = (0, Vec::new());
    let mut refused: BTreeMap<String, String> = BTreeMap::new();
    while let Some(case) = generator.read().expect("the generator works") {
        let name = case.header.name.clone();
        match pollster::block_on(case.run(&cpu)) {
            Outcome::Passed => passed += 1,
            Outcome::Refused(why) => {
                let subject: Vec<&str> = name.splitn(4, '_').take(3).collect();
                refused.insert(subject.join(" "), why);
            }
            Outcome::Wrong(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    println!(
        "{passed} passed, {} wrong, {} refused",
        wrong.len(),
        refused.len()
    );
    let listed: BTreeSet<&str> = include_str!("../recast.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(':'))
        .map(|(subject, _)| subject)
        .collect();
    let unlisted: Vec<String> = refused
        .iter()
        .filter(|(subject, _)| !listed.contains(subject.as_str()))
        .map(|(subject, why)| format!("{subject}: {why}"))
        .collect();
    assert!(
        wrong.is_empty() && unlisted.is_empty(),
        "{} wrong, {} refused without being listed:\n{}",
        wrong.len(),
        unlisted.len(),
        [wrong, unlisted].concat().join("\n")
    );
    if ops.is_empty() {
        assert!(passed > 4000, "only {passed} cases");
        let stale: Vec<_> = listed
            .iter()
            .filter(|s| !refused.contains_key(**s))
            .collect();
        assert!(stale.is_empty(), "listed, but not refused: {stale:?}");
    }
}

/// Values that are no tensors, control flow and random numbers, in every element type.
#[test]
fn every_element_type_of_every_form_of_value() {
    written_out("forms.py", 400);
}

/// The operators of `ai.onnx.ml` by the tables in their attributes, and TfIdfVectorizer.
#[test]
fn every_element_type_of_what_was_learnt() {
    written_out("learnt.py", 130);
}

/// The suite's cases under every older version of their operators that means the same, or that onnx's converter reaches.
#[test]
fn older_versions_of_every_operator() {
    written_out("older.py", 500);
}

/// Runs all cases of a script that writes models one by one, at least so many.
fn written_out(script: &str, least: usize) {
    let Some(python) = python() else { return };
    let ops = std::env::var("KILIM_OPS").unwrap_or_default();
    let mut generator = Generator::of(script, &python, &[&ops]).expect("Python starts");
    let cpu = [BackendId::from("cpu")];
    let (mut passed, mut wrong) = (0, Vec::new());
    while let Some(case) = generator.read().expect("the generator works") {
        match pollster::block_on(case.run(&cpu)) {
            Outcome::Passed => passed += 1,
            other => wrong.push(format!("{}: {other:?}", case.header.name)),
        }
    }
    println!("{passed} passed, {} not", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!ops.is_empty() || passed >= least, "only {passed} cases");
}

/// Attributes at their defaults change nothing, whether they are written out or not; what no schema has is refused.
#[test]
fn every_attribute_is_read_or_refused() {
    let Some(python) = python() else { return };
    let mut generator = Generator::of("attributes.py", &python, &[]).expect("Python starts");
    let cpu = [BackendId::from("cpu")];
    let (mut right, mut wrong) = (0, Vec::new());
    while let Some(case) = generator.read().expect("the generator works") {
        let name = &case.header.name;
        let outcome = pollster::block_on(case.run(&cpu));
        let refused =
            matches!(&outcome, Outcome::Refused(why) if why.contains("no_schema_has_this"));
        match (name.starts_with("unknown"), &outcome) {
            (true, _) if refused => right += 1,
            (false, Outcome::Passed) => right += 1,
            _ => wrong.push(format!("{name}: {outcome:?}")),
        }
    }
    println!("{right} right, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(right > 500, "only {right} cases");
}
