//! The operators of the pinned `onnx` package, which itself lists them: each must be known, those with a
//! function body too. Whether they are right is the suite's to say.

#![cfg(not(target_arch = "wasm32"))]

use std::process::Command;

use kilim::{LoadOptions, ModelSource};
use kilim_test_support::material::python;
use kilim_tests::onnx::{Node, model};

/// Domain and name of every operator that is not deprecated.
const LIST: &str = "
import onnx
for s in onnx.defs.get_all_schemas():
    if not s.deprecated:
        print(s.domain or '-', s.name)
";

/// The one operator that Kilim does not know. It differentiates the graph around it, which is nothing for a
/// runtime for inference.
const UNKNOWN: &str = "Gradient";

#[test]
fn every_operator_of_the_standard_is_known() {
    let Some(python) = python() else { return };
    let listed = Command::new(python).args(["-c", LIST]).output();
    let listed = listed.expect("Python runs");
    assert!(listed.status.success(), "Python has onnx");
    let listed = String::from_utf8(listed.stdout).expect("names are text");
    let mut unknown = Vec::new();
    let mut count = 0;
    for line in listed.lines() {
        let (domain, op) = line.split_once(' ').expect("a domain and a name");
        let node = Node {
            domain: domain.trim_matches('-'),
            op,
            inputs: &[],
            outputs: &["y"],
            attributes: &[],
        };
        let file = model(&[node], &[], &[("y", &[])]);
        let source = ModelSource::from(file);
        let loaded = pollster::block_on(kilim::load(source, LoadOptions::default()));
        // Most lack inputs; what counts is that this is what they are refused for.
        count += 1;
        if loaded.is_err_and(|e| e.to_string().contains("unknown operator")) {
            unknown.push(op);
        }
    }
    assert!(count > 200, "only {count} operators are listed");
    assert_eq!(unknown, [UNKNOWN]);
}
