//! The operator suite natively: on the CPU, on wgpu, on AArch64 on the ARM Compute Library.

#![cfg(not(target_arch = "wasm32"))]

use std::io::Write;

use kilim::{BackendId, Runtime};
use kilim_tests::operators::{self, Outcome};

fn suite(backends: &[&str]) {
    let ids: Vec<BackendId> = backends.iter().map(|&b| BackendId::from(b)).collect();
    for id in &ids {
        if let Err(e) = pollster::block_on(Runtime::shared().backend(id)) {
            // The library that is named must be there; OpenCL need not.
            let named = backends[0] == "acl_neon" && std::env::var_os("KILIM_ACL").is_some();
            assert!(!named, "{e}");
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

#[cfg(feature = "wgpu")]
#[test]
fn operators_on_wgpu() {
    suite(&["wgpu", "cpu"]);
}

#[cfg(target_arch = "aarch64")]
#[test]
fn operators_on_acl_neon() {
    suite(&["acl_neon", "cpu"]);
}

#[cfg(target_arch = "aarch64")]
#[test]
fn operators_on_acl_cl() {
    suite(&["acl_cl", "cpu"]);
}
