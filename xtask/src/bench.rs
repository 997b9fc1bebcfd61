//! Kilim beside other engines, by the drivers in `bench/`. Figures go into records in `target/bench` and, if wanted, into docs/bench.md.

use crate::{build, setup, sh, test};
use anyhow::Result;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// onnxruntime-web, LiteRT.js and Kilim in one Chromium
    Web(Web),
    /// onnxruntime-web and Kilim in one Chromium, going on with a text word by word
    Decode(Decode),
    /// onnxruntime, RTen, tract and Kilim on the CPU of this machine
    Native(Native),
    /// Kilim's kernels of the CPU in Chromium, beside the peak of the same machine there
    Kernels(Kernels),
}

#[derive(clap::Args)]
struct Web {
    /// Engines, the first is what others are compared with
    #[arg(long, default_value = "onnxruntime-web,litert,kilim")]
    engines: String,
    /// Where they compute: numbers of threads, `all`, `webgpu`
    #[arg(long, default_value = "1")]
    on: String,
    /// The folder of another package of Kilim, an earlier state for example, which takes part as the engine `before`
    #[arg(long)]
    before: Option<PathBuf>,
    /// How often each loads a model
    #[arg(long, default_value_t = 3)]
    loads: usize,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Decode {
    /// A folder of onnxruntime-genai's builder, such as tools/builders/build.py writes, or a decoder's ONNX file
    model: PathBuf,
    /// Engines, the first is what others are compared with
    #[arg(long, default_value = "onnxruntime-web,kilim")]
    engines: String,
    /// Where they compute: numbers of threads, `all`, `webgpu`
    #[arg(long, default_value = "1")]
    on: String,
    /// Words of the prompts, which are what the caches know when words are timed
    #[arg(long, default_value = "128,1024")]
    prompts: String,
    /// Words behind each prompt
    #[arg(long, default_value_t = 100)]
    words: usize,
    /// How often each loads the model, and reads each prompt
    #[arg(long, default_value_t = 3)]
    loads: usize,
    /// Puts the table into docs/bench.md
    #[arg(long)]
    write: bool,
}

#[derive(clap::Args)]
struct Native {
    /// Engines, the first is what others are compared with
    #[arg(long, default_value = "onnxruntime,rten,tract,kilim")]
    engines: String,
    /// Where they compute: numbers of threads, `all`
    #[arg(long, default_value = "1,all")]
    on: String,
    /// How many processes of each
    #[arg(long, default_value_t = 3)]
    loads: usize,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Kernels {
    /// Builds of WebAssembly: `relaxed`, `simd`
    #[arg(long, default_value = "relaxed,simd")]
    builds: String,
    /// Shapes whose names contain this text; without any, all
    #[arg(long, default_value = "")]
    shapes: String,
    /// Samples of each kernel
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Fail where another kernel is faster than the chosen one by more than 5 %
    #[arg(long)]
    check: bool,
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
        Kind::Decode(args) => decode(args),
        Kind::Native(args) => native(args),
        Kind::Kernels(args) => kernels(args),
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
    let mut engines = args.engines.clone();
    if let Some(before) = &args.before {
        engines = format!("before,{engines}");
        node.arg("--before").arg(before.canonicalize()?);
    }
    node.args(["--kilim", "www/dist/kilim", "--engines", &engines]);
    node.args(["--on", &args.on, "--loads", &args.loads.to_string()]);
    node.args(["--runs", &args.common.runs.to_string(), "--out"]);
    sh::run(node.arg(&record))?;
    table(&record, args.common.write)
}

fn decode(args: &Decode) -> Result<()> {
    let browser = setup::browser()?;
    browser.require_playwright()?;
    build::wasm()?;
    build::www()?;
    setup::npm("bench")?;
    let record = folder().join("decode.json");
    let mut node = sh::cmd("node");
    browser.tell(&mut node);
    node.arg("bench/web/decode.mjs")
        .arg("--model")
        .arg(args.model.canonicalize()?);
    node.args(["--kilim", "www/dist/kilim", "--engines", &args.engines]);
    node.args(["--on", &args.on, "--loads", &args.loads.to_string()]);
    node.args(["--prompts", &args.prompts]);
    node.args(["--words", &args.words.to_string(), "--out"]);
    sh::run(node.arg(&record))?;
    table(&record, args.write)
}

fn native(args: &Native) -> Result<()> {
    build::release_cli()?;
    let peers = folder().join("peers");
    let mut cargo = sh::cargo();
    cargo.args(["build", "--release", "--locked", "--manifest-path"]);
    cargo.args(["bench/native/peers/Cargo.toml", "--target-dir"]);
    sh::run(cargo.arg(&peers))?;
    let program = format!("bench-peers{}", std::env::consts::EXE_SUFFIX);
    let python = setup::venv("bench/native/requirements.txt", &folder().join("venv"))?;
    let models = models(&args.common)?;
    let record = folder().join("native.json");
    let mut node = sh::cmd("node");
    node.arg("bench/native/run.mjs").arg("--models").arg(models);
    node.arg("--kilim").arg(build::native_cli("release"));
    node.arg("--peers").arg(peers.join("release").join(program));
    node.arg("--python").arg(python);
    node.args(["--engines", &args.engines]);
    node.args(["--on", &args.on, "--loads", &args.loads.to_string()]);
    node.args(["--runs", &args.common.runs.to_string(), "--out"]);
    sh::run(node.arg(&record))?;
    table(&record, args.common.write)
}

fn kernels(args: &Kernels) -> Result<()> {
    let browser = setup::browser()?;
    browser.require_playwright()?;
    let tools = build::Tools::find()?;
    for binary in &build::KERNELS {
        binary.finish(&binary.compile()?, &tools)?;
    }
    setup::npm("bench")?;
    let record = folder().join("kernels.json");
    let mut node = sh::cmd("node");
    browser.tell(&mut node);
    node.args(["bench/web/kernels.mjs", "--pkg", "www/pkg"]);
    node.args(["--builds", &args.builds, "--shapes", &args.shapes]);
    node.args(["--runs", &args.runs.to_string(), "--out"]);
    node.arg(&record);
    if args.check {
        node.arg("--check");
    }
    sh::run(&mut node)?;
    println!("\nthe record is {}", record.display());
    Ok(())
}

/// Prints the table of a record.
fn table(record: &Path, write: bool) -> Result<()> {
    println!();
    let mut table = sh::cmd("node");
    table.arg("bench/table.mjs").arg(record);
    if write {
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
