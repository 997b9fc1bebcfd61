//! Passes and sessions ask operators for what they are, and not for their type.

use std::fs;
use std::path::Path;

use super::{code, files};

/// How often each file of core asks an operator for its type, outside of the operators, and what for. All of them are about
/// one operator by their nature.
const ASKS: &[(&str, usize, &str)] = &[
    ("passes/attention.rs", 1, "a pattern"),
    ("passes/dilation.rs", 1, "a pattern"),
    (
        "passes/fold_batch_norm.rs",
        12,
        "where weights have their channels",
    ),
    (
        "passes/fold_constants.rs",
        4,
        "the shape of Reshape, the branch of If, numbers that fill, quantised weights",
    ),
    ("passes/fuse.rs", 6, "pairs of operators"),
    ("passes/patterns.rs", 7, "patterns"),
    ("passes/rotary.rs", 2, "a pattern"),
    (
        "passes/quantized/mod.rs",
        4,
        "the two operators between which it works",
    ),
    (
        "passes/quantized/pointwise.rs",
        1,
        "arithmetic that has a twin on bytes",
    ),
    (
        "passes/quantized/products.rs",
        3,
        "products that have a twin on bytes",
    ),
    ("passes/quantized/real.rs", 1, "a pattern"),
    (
        "passes/quantized/table.rs",
        3,
        "arithmetic that is tabulated",
    ),
    ("passes/repeated_heads.rs", 2, "a pattern"),
    ("passes/selection.rs", 2, "the two operators that select"),
    ("passes/transposes/mod.rs", 1, "transposes"),
    (
        "passes/views.rs",
        1,
        "a padding that a convolution takes in",
    ),
    ("session/builtin/control.rs", 3, "running If, Loop and Scan"),
    (
        "session/builtin/values/mod.rs",
        2,
        "running operators on values",
    ),
    (
        "session/plan/changed.rs",
        1,
        "operators of the session's, which say of shapes what they like",
    ),
    ("session/plan/infer.rs", 1, "operators of the session's"),
];

#[test]
fn operators_are_asked_for_what_they_are_and_not_for_their_type() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/src");
    let apart = ["ops/", "testing/", "graph/operator.rs"];
    let mut found = Vec::new();
    for path in files(&src) {
        let own = path.strip_prefix(&src).expect("it is below");
        let own = own.to_string_lossy().replace('\\', "/");
        let of_tests = own.split(['/', '.']).any(|part| part == "tests");
        if of_tests || apart.iter().any(|a| own.starts_with(a)) {
            continue;
        }
        let text = code(&fs::read_to_string(&path).expect("a file is text"));
        let asks = ["is::<", "downcast_ref::<"].map(|ask| text.matches(ask).count());
        if asks != [0, 0] {
            found.push((own, asks.iter().sum::<usize>()));
        }
    }
    for (file, count) in &found {
        let listed = ASKS.iter().find(|(listed, ..)| listed == file);
        let allowed = listed.map_or(0, |(_, count, _)| *count);
        assert!(
            *count <= allowed,
            "core/src/{file} asks {count} times for the type of an operator, where {allowed} are listed. What a pass must \
             know of an operator stands on it: in its `Flow` (core/src/graph/flow.rs), or in a method of `Operator` \
             (core/src/graph/operator.rs) such as `elements` or `renumbered`. If the rewrite is about this one operator \
             by its nature, list it in tests/tests/rooms/asks.rs"
        );
    }
    for (file, count, _) in ASKS {
        let now = found.iter().find(|(found, _)| found == file);
        let now = now.map_or(0, |(_, count)| *count);
        assert_eq!(
            now, *count,
            "core/src/{file} asks less often than tests/tests/rooms/asks.rs lists"
        );
    }
}
