//! The operator suite natively: on the CPU, on wgpu, on AArch64 on the ARM Compute Library.

#![cfg(not(target_arch = "wasm32"))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use kilim::BackendId;
use kilim_test_support::{say, skip, skip_part};
use kilim_tests::machine::{backend, cpu};
use kilim_tests::operators::{self, Outcome};

fn suite(backends: &[&str]) {
    let ids: Vec<BackendId> = backends.iter().map(|&b| BackendId::from(b)).collect();
    for id in &ids {
        if let Err(e) = backend(id.as_str()) {
            // The library that is named must be there; OpenCL need not.
            let named = backends[0] == "acl_neon" && std::env::var_os("KILIM_ACL").is_some();
            assert!(!named, "{e}");
            return skip(e);
        }
    }
    let (mut first, mut fallen, mut wrong) = (0, 0, Vec::new());
    for case in operators::all() {
        let run = || pollster::block_on(operators::run(&case, &ids));
        let ran = catch_unwind(AssertUnwindSafe(run));
        match ran.unwrap_or_else(|_| Outcome::Wrong("it panicked".into())) {
            Outcome::Passed(ran) if ran.on == backends[0] => first += 1,
            Outcome::Passed(ran) => {
                println!("{}: ran on {}", case.name, ran.on);
                fallen += 1;
            }
            Outcome::Refused(why) | Outcome::Wrong(why) => {
                wrong.push(format!("{}: {why}", case.name));
            }
        }
    }
    let names = backends.join("+");
    say(format_args!(
        "{names}: {first} operator cases there, {fallen} elsewhere"
    ));
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

/// Each instruction set in a process of its own; those that the machine lacks say so.
#[test]
fn operators_on_every_instruction_set() {
    let binary = std::env::current_exe().expect("the tests are a program");
    for name in ["portable", "avx2+fma", "avx512", "neon"] {
        let run = std::process::Command::new(&binary)
            .args(["--exact", "operators_on_one_instruction_set", "--ignored"])
            .env("KILIM_ISA", name)
            .output()
            .expect("the tests can be started");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "{name}:\n{said}");
        let ran = said.contains(&format!("{name}: ran"));
        if !ran {
            skip_part(format_args!("this machine has no {name}"));
        }
        assert!(ran || name != "portable", "{said}");
    }
}

/// Runs the cases on the instruction set that `KILIM_ISA` names.
#[test]
#[ignore = "started by operators_on_every_instruction_set"]
fn operators_on_one_instruction_set() {
    let Ok(name) = std::env::var("KILIM_ISA") else {
        return;
    };
    if cpu().describe().device.contains(&format!(", {name},")) {
        suite(&["cpu"]);
        say(format_args!("{name}: ran"));
    }
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
