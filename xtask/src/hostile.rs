//! Files that are made to break the runtime: each ends in a result or a typed error.

use crate::{build, setup, sh};
use anyhow::Result;

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

pub fn run(args: &Args) -> Result<()> {
    let python = setup::python()?;
    let scripts = sh::root().join("tools/hostile");
    let files = sh::target().join("hostile");
    sh::run(sh::cmd(&python).arg(scripts.join("main.py")).arg(&files))?;
    sh::run(sh::cargo().args(["build", "--release", "-p", "kilim-cli"]))?;
    let name = format!("kilim{}", std::env::consts::EXE_SUFFIX);
    let program = sh::target().join("release").join(name);
    let mut native = sh::cmd(python);
    native.arg(scripts.join("native.py")).arg(&files);
    sh::run(native.arg(program).args(&args.rest))?;
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
