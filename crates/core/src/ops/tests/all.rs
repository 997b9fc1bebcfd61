//! The list of operators for tests is whole.

use std::collections::BTreeSet;
use std::path::Path;

use crate::testing::operators;

/// The types that a source file makes operators.
fn implemented(text: &str) -> Vec<String> {
    let heads = text
        .lines()
        .filter_map(|line| line.strip_prefix("impl Operator for "));
    let name = |rest: &str| {
        rest.split(|c: char| !c.is_alphanumeric())
            .next()
            .map(str::to_string)
    };
    heads.filter_map(name).collect()
}

fn in_sources(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            in_sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.extend(implemented(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_operator_is_missing() {
    let mut found = BTreeSet::new();
    in_sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut found,
    );
    let listed = operators()
        .iter()
        .map(|o| o.type_name.to_string())
        .collect();
    assert_eq!(
        found, listed,
        "the list in testing/operators.rs is not that of the sources",
    );
    assert!(found.len() > 100, "{found:?}");
}
