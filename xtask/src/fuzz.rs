//! Random models against float64 references.

use crate::{setup, sh};
use anyhow::Result;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What `--help` lists: --cases, --seed, --backends, --ops, …
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let python = setup::python()?;
    setup::vulkan()?;
    let mut cargo = sh::cargo();
    cargo.args(["run", "--quiet", "--example", "fuzz", "--"]);
    cargo.arg("--python").arg(python).args(&args.rest);
    sh::run(&mut cargo)
}
