//! The operator suite natively: on the CPU, on wgpu, on AArch64 on the ARM Compute Library.

#![cfg(not(target_arch = "wasm32"))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use kilim::{BackendId, LoadOptions, Runtime};
use kilim_conform::Score;
use kilim_conform::operators::{Case, Input};
use kilim_test_support::{say, skip, skip_part};
use kilim_tests::machine::{backend, cpu};
use kilim_tests::scores;

/// The score of the first of these backends, which is held; `None` where this machine lacks one of them.
fn suite(backends: &[&str]) -> Option<Score> {
    let ids: Vec<BackendId> = backends.iter().map(|&b| BackendId::from(b)).collect();
    for id in &ids {
        if let Err(e) = backend(id.as_str()) {
            // The library that is named must be there; OpenCL need not.
            let named = backends[0] == "acl_neon" && std::env::var_os("KILIM_ACL").is_some();
            assert!(!named, "{e}");
            skip(e);
            return None;
        }
    }
    let options = LoadOptions {
        backends: ids,
        ..LoadOptions::default()
    };
    let mut last = String::new();
    let mut conform = || {
        let runtime = Runtime::shared();
        let done = |case: &Case, _: &_| last.clone_from(&case.name);
        pollster::block_on(kilim_conform::conform(&runtime, &options, "", done))
    };
    let score = catch_unwind(AssertUnwindSafe(&mut conform));
    let score = score.unwrap_or_else(|_| panic!("the case behind {last} panicked"));
    let score = score.expect("all backends are there");
    scores::hold(&score);
    Some(score)
}

/// The backend `cpu` has every case right.
fn whole_suite_on_cpu() {
    let score = suite(&["cpu"]).expect("the CPU is always there");
    assert!(score.refused.is_empty(), "{:#?}", score.refused);
}

#[test]
fn operators_on_cpu() {
    whole_suite_on_cpu();
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
        whole_suite_on_cpu();
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

#[test]
fn cases_have_the_inputs_and_outputs_of_their_operators() {
    for case in kilim_conform::operators::all() {
        let signature = case.op.signature();
        let absent = |input: &Input| matches!(input, Input::Absent);
        let inputs: Vec<bool> = case.inputs.iter().map(|i| !absent(i)).collect();
        assert!(
            signature.fits(&inputs, case.want.len()),
            "{}: {inputs:?} and {} outputs are not {signature:?}",
            case.name,
            case.want.len()
        );
    }
}
