//! The operator suite natively, on the CPU and on wgpu.

#![cfg(not(target_arch = "wasm32"))]

use std::io::Write;

use kilim::{BackendId, Runtime};
use kilim_tests::operators::{self, Outcome};

fn suite(backends: &[&str]) {
    let ids: Vec<BackendId> = backends.iter().map(|&b| BackendId::from(b)).collect();
    for id in &ids {
        if let Err(e) = pollster::block_on(Runtime::shared().backend(id)) {
            println!("skipped: {e}");
            return;
        }
    }
    let (mut first, mut fallen, mut wrong) = (0, 0, Vec::new());
    for case in operators::all() {
        match pollster::block_on(operators::run(&case, &ids)) {
            Outcome::Passed(on) if on == backends[0] => first += 1,
            Outcome::Passed(on) => {
                println!("{}: ran on {on}", case.name);
                fallen += 1;
            }
            Outcome::Refused(why) | Outcome::Wrong(why) => {
                wrong.push(format!("{}: {why}", case.name));
            }
        }
    }
    // Past the test runner, which keeps what passing tests print to itself.
    let names = backends.join("+");
    let _ = writeln!(
        std::io::stdout(),
        "{names}: {first} operator cases there, {fallen} elsewhere"
    );
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn operators_on_cpu() {
    suite(&["cpu"]);
}

#[test]
fn operators_on_wgpu() {
    suite(&["wgpu", "cpu"]);
}
