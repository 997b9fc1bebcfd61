//! A fixed slice of the random graphs; `cargo xtask fuzz` runs as many as one likes.

#![cfg(not(target_arch = "wasm32"))]

use kilim_test_support::material::python;
use kilim_tests::fuzz::{Draw, Generator, Outcome};
use kilim_tests::machine::opened;

fn slice(cases: u64, backends: &[&str]) {
    let Some(ids) = opened(backends) else { return };
    let Some(python) = python() else { return };
    let draw = Draw {
        seed: 1,
        first: 0,
        step: 1,
        cases,
        ops: String::new(),
        smaller: false,
        peers: false,
    };
    let mut generator = Generator::start(&python, &draw).expect("Python starts");
    let (mut passed, mut wrong) = (0, Vec::new());
    while let Some(case) = generator.read().expect("the generator works") {
        match pollster::block_on(case.run(&ids)) {
            Outcome::Passed => passed += 1,
            Outcome::Refused(_) => {}
            Outcome::Wrong(why) => wrong.push(format!("{}: {why}", case.header.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed > cases * 9 / 10, "only {passed} of {cases} ran");
}

#[test]
fn random_graphs_on_cpu() {
    slice(1500, &["cpu"]);
}

#[test]
fn random_graphs_on_wgpu() {
    slice(120, &["wgpu", "cpu"]);
}
