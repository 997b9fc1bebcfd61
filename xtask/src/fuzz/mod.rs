//! Random models against float64 references, and importers under libFuzzer.

mod importers;

use crate::{setup, sh};
use anyhow::Result;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Give the importers of all formats inputs that libFuzzer makes, and no random models
    #[arg(long)]
    importers: bool,
    #[command(flatten)]
    options: importers::Options,
    /// What `--help` lists: --cases, --seed, --backends, --ops, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    if args.importers {
        return importers::run(&args.options);
    }
    let python = setup::python()?;
    setup::vulkan()?;
    // What the whole workspace is built with; `cargo run` would build its dependencies once more.
    let mut build = sh::cargo();
    build.args(["build", "--workspace", "--example", "fuzz"]);
    sh::run(&mut build)?;
    let name = format!("fuzz{}", std::env::consts::EXE_SUFFIX);
    let program = sh::target().join("debug/examples").join(name);
    let mut fuzz = sh::cmd(program);
    fuzz.arg("--python").arg(python).args(&args.rest);
    sh::run(&mut fuzz)
}
