//! Files that are made to break the runtime: each ends in a result or a typed error.

use crate::test::{self, Counts};
use crate::{build, setup, sh};
use anyhow::Result;
use std::process::Command;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Give the models to the package as well, in Node and in Chromium
    #[arg(long)]
    web: bool,
    /// For the native run: --every, --seconds, --bytes, --jobs
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Makes the files. Gives the command that gives them to the command line of a profile.
fn native(profile: &str) -> Result<Command> {
    let python = setup::python()?;
    let scripts = sh::root().join("tools/hostile");
    let files = sh::target().join("hostile");
    sh::run(sh::cmd(&python).arg(scripts.join("main.py")).arg(&files))?;
    let name = format!("kilim{}", std::env::consts::EXE_SUFFIX);
    let mut native = sh::cmd(python);
    native.arg(scripts.join("native.py")).arg(&files);
    native.arg(sh::target().join(profile).join(name));
    Ok(native)
}

/// A step of the tests: each tenth file, with the debug build that the tests use.
pub fn sample() -> Result<Counts> {
    if cfg!(not(unix)) {
        return Ok(test::skip(
            "hostile files",
            "memory is measured on Unix alone",
        ));
    }
    // The tests of the command line build it so; a build of its own would have other features.
    sh::run(sh::cargo().args(["test", "--workspace", "--no-run", "--test", "*"]))?;
    let mut native = native("debug")?;
    native.args([
        "--every",
        "10",
        "--most-seconds",
        "60",
        "--seconds",
        DEBUG_SECONDS,
    ]);
    test::counted(&mut native)
}

/// What a debug build may take for a file: its loops take several times as long, and other steps may run beside it.
const DEBUG_SECONDS: &str = "15";

pub fn run(args: &Args) -> Result<()> {
    let scripts = sh::root().join("tools/hostile");
    let files = sh::target().join("hostile");
    sh::run(sh::cargo().args(["build", "--release", "-p", "kilim-cli"]))?;
    sh::run(native("release")?.args(&args.rest))?;
    if args.web {
        let browser = setup::browser()?;
        browser.require_playwright()?;
        build::wasm()?;
        build::www()?;
        let mut web = sh::cmd("node");
        browser.tell(&mut web);
        sh::run(web.arg(scripts.join("web.mjs")).arg(&files))?;
    }
    Ok(())
}
