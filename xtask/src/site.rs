//! The documentation site: the repository's documents and the package's types as pages for any server of files.

use crate::{serve, setup, sh};
use anyhow::Result;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Serve it on this port of the loopback address until Ctrl-C (0 picks a free one)
    #[arg(long, value_name = "PORT")]
    serve: Option<u16>,
}

pub fn run(args: &Args) -> Result<()> {
    let site = build()?;
    println!("the site is in {}", site.display());
    if let Some(port) = args.serve {
        println!("{}", serve::start(site, port)?);
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

/// Writes it into `target/site`, and looks whether all links lead somewhere.
pub fn build() -> Result<PathBuf> {
    setup::npm("site")?;
    let out = sh::target().join("site");
    let script = sh::root().join("site/build.mjs");
    sh::run(sh::cmd("node").arg(script).arg(&out))?;
    Ok(out)
}
