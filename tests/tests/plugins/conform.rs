//! The samples and the operator cases: what they take is right, and they say why they refuse the rest.

use std::collections::BTreeSet;

use kilim_tests::scores;

use crate::*;

/// Holds the score of a library; gives the names of the operators that it ran.
fn tried(id: &str, folder: &Path) -> BTreeSet<String> {
    let options = options(&[id, "cpu"], folder);
    let runtime = Runtime::default();
    let score = pollster::block_on(kilim_conform::conform(&runtime, &options, "", |_, _| ()));
    let score = score.unwrap();
    scores::hold(&score);
    assert_eq!(score.backend, id);
    // Someone else's words would be no reason of the library's.
    assert!(
        score
            .refused
            .iter()
            .all(|r| !r.reason.contains("it ran on"))
    );
    score.passed.into_iter().map(|p| p.op).collect()
}

fn names(operators: &[&str]) -> BTreeSet<String> {
    operators.iter().map(ToString::to_string).collect()
}

#[test]
fn the_sample_in_c_is_right_where_it_runs() {
    let folder = sample_in_c("conform");
    assert_eq!(tried("scale", &folder), names(&["Add", "Relu"]));
}

#[test]
fn the_device_in_c_is_right_where_it_runs() {
    let folder = folder("conform-conv");
    compile("examples/plugin-c/conv/conv.c", &folder, "conv", &[]);
    assert_eq!(tried("conv", &folder), names(&["Conv"]));
}

#[test]
fn the_sample_in_rust_is_right_where_it_runs() {
    assert_eq!(tried("cube", &sample_in_rust()), names(&["Neg"]));
}

#[test]
fn the_device_in_rust_is_right_where_it_runs() {
    let folder = built("backend_tile", "plugin-device", "");
    assert_eq!(tried("tile", &folder), names(&["Conv"]));
}
