//! wasm-bindgen of the version in Cargo.lock: programs of the crate in `xtask/bindgen`, built when a job needs them.
//! Cargo is asked only where sources differ: it waits for whoever else builds in this folder, to find that nothing is to be done.

use crate::sh;
use anyhow::Result;
use std::path::PathBuf;

/// Programs that are built together.
struct Build {
    stamp: &'static str,
    programs: &'static [&'static str],
    /// Arguments of cargo.
    args: &'static [&'static str],
}

const ALONE: Build = Build {
    stamp: "bindgen",
    programs: &["xtask-bindgen"],
    args: &["--bin", "xtask-bindgen"],
};

/// The runner brings many packages, and other features of those that both have.
const WITH_RUNNER: Build = Build {
    stamp: "bindgen-and-runner",
    programs: &["xtask-bindgen", "xtask-browser-tests"],
    args: &["--bins", "--features", "browser-tests"],
};

/// What makes a script and a binary of what the compiler made.
pub fn bindgen() -> Result<PathBuf> {
    let fingerprint = fingerprint()?;
    if !WITH_RUNNER.is_up_to_date(&fingerprint) {
        ALONE.make(&fingerprint)?;
    }
    Ok(program(ALONE.programs[0]))
}

/// Cargo's runner for tests of wasm32, which runs them in a browser.
pub fn browser_test_runner() -> Result<PathBuf> {
    WITH_RUNNER.make(&fingerprint()?)?;
    Ok(program(WITH_RUNNER.programs[1]))
}

/// A fingerprint of what the programs are made of. Their bytes say less: they differ with the features of packages that
/// were built beside them.
pub fn fingerprint() -> Result<String> {
    let root = sh::root();
    let mut inputs = sh::files(&[root.join("xtask/bindgen")]);
    inputs.extend(["Cargo.lock", "Cargo.toml"].map(|name| root.join(name)));
    sh::fingerprint("bindgen", &inputs)
}

fn program(name: &str) -> PathBuf {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    sh::target().join("debug").join(file)
}

impl Build {
    fn stamp(&self) -> PathBuf {
        sh::target().join("xtask").join(self.stamp)
    }

    fn outputs(&self) -> Vec<PathBuf> {
        self.programs.iter().map(|name| program(name)).collect()
    }

    fn is_up_to_date(&self, fingerprint: &str) -> bool {
        sh::is_up_to_date(&self.stamp(), fingerprint, &self.outputs())
    }

    fn make(&self, fingerprint: &str) -> Result<()> {
        sh::up_to_date(&self.stamp(), fingerprint, &self.outputs(), || {
            let mut cargo = sh::cargo();
            cargo.args(["build", "-p", "xtask-bindgen"]).args(self.args);
            let label = format!("build {}", self.programs.join(" and "));
            sh::run_quiet(&label, &mut cargo)
        })?;
        Ok(())
    }
}
