//! Kilim beside other engines, by the drivers in `bench/`. Figures go into records in `target/bench` and, if wanted, into docs/bench.md.

use crate::{build, setup, sh, test};
use anyhow::Result;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// onnxruntime-web, LiteRT.js and Kilim in one Chromium
    Web(Web),
}

#[derive(clap::Args)]
struct Web {
    /// Engines, the first is what others are compared with
    #[arg(long, default_value = "onnxruntime-web,litert,kilim")]
    engines: String,
    /// Where they compute: numbers of threads, `all`, `webgpu`
    #[arg(long, default_value = "1")]
    on: String,
    /// How often each loads a model
    #[arg(long, default_value_t = 3)]
    loads: usize,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    /// Names in bench/models.json, comma-separated; without any, all models that are here
    #[arg(long, default_value = "")]
    models: String,
    /// Samples of each engine
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Puts the table into docs/bench.md
    #[arg(long)]
    write: bool,
}

pub fn run(args: &Args) -> Result<()> {
    match &args.kind {
        Kind::Web(args) => web(args),
    }
}

fn web(args: &Web) -> Result<()> {
    let browser = setup::browser()?;
    browser.require_playwright()?;
    build::wasm()?;
    build::www()?;
    setup::npm("bench")?;
    let models = models(&args.common)?;
    let record = folder().join("web.json");
    let mut node = sh::cmd("node");
    browser.tell(&mut node);
    node.arg("bench/web/run.mjs").arg("--models").arg(models);
    node.args(["--kilim", "www/dist/kilim", "--engines", &args.engines]);
    node.args(["--on", &args.on, "--loads", &args.loads.to_string()]);
    node.args(["--runs", &args.common.runs.to_string(), "--out"]);
    sh::run(node.arg(&record))?;
    println!();
    let mut table = sh::cmd("node");
    table.arg("bench/table.mjs").arg(&record);
    if args.common.write {
        table.args(["--write", "docs/bench.md"]);
    }
    sh::run(&mut table)?;
    println!("\nthe record is {}", record.display());
    Ok(())
}

fn folder() -> PathBuf {
    sh::target().join("bench")
}

/// Finds or makes the models, and gives the list of them.
fn models(args: &Common) -> Result<PathBuf> {
    let list = folder().join("models.json");
    let mut python = sh::cmd(setup::python()?);
    python.args(["bench/models.py", "--names", &args.models]);
    python.arg("--suite").arg(test::conformance()?);
    python.arg("--made").arg(folder().join("models"));
    if let Some(shared) = sh::shared() {
        python.arg("--shared").arg(shared);
    }
    sh::run(python.arg("--out").arg(&list))?;
    Ok(list)
}
