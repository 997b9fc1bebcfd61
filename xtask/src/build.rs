//! The web binaries (one per set of wasm features), the npm package and the app; natively the command-line tool.

use crate::{setup, sh};
use anyhow::{Context, Result, bail};
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// Build the `kilim` binary in release mode instead of the web parts
    #[arg(long)]
    native: bool,
    /// Build the web binaries only, without the npm package and the app
    #[arg(long)]
    wasm_only: bool,
}

/// One web binary: `www/pkg/kilim.NAME.wasm` with its glue `kilim.NAME.js`.
struct Variant {
    name: &'static str,
    rustc_features: &'static str,
    wasm_opt: &'static [&'static str],
}

const VARIANTS: [Variant; 2] = [
    Variant {
        name: "simd",
        rustc_features: "+simd128",
        wasm_opt: &[],
    },
    Variant {
        name: "relaxed",
        rustc_features: "+simd128,+relaxed-simd",
        wasm_opt: &["--enable-relaxed-simd"],
    },
];

/// What every variant's compiler output uses: rustc's defaults for wasm32, and SIMD.
const WASM_OPT: &[&str] = &[
    "-O3",
    "--enable-simd",
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// The optimised binary that holds both backends must stay below this.
const MAX_WASM_BYTES: usize = 2_500_000;

pub fn run(args: &Args) -> Result<()> {
    if args.native {
        sh::run(sh::cargo().args(["build", "--release", "-p", "kilim-cli"]))?;
        println!("{}", native_cli("release").display());
        return Ok(());
    }
    wasm()?;
    if !args.wasm_only {
        www()?;
    }
    Ok(())
}

/// The command-line tool as cargo leaves it.
pub fn native_cli(profile_dir: &str) -> PathBuf {
    sh::target()
        .join(profile_dir)
        .join(format!("kilim{}", std::env::consts::EXE_SUFFIX))
}

/// Builds every web binary into `www/pkg`, prints their sizes and refuses one that is too large.
pub fn wasm() -> Result<()> {
    let toolchain = setup::wasm_toolchain()?;
    let bindgen = setup::bindgen()?;
    let wasm_opt = setup::npm("tools")?.join("binaryen/bin/wasm-opt");
    let pkg = sh::root().join("www/pkg");
    fs::create_dir_all(&pkg)?;
    for variant in &VARIANTS {
        println!("build kilim.{}.wasm", variant.name);
        let mut cargo = toolchain.cargo(variant.rustc_features);
        sh::run(cargo.args([
            "build",
            "-p",
            "kilim-web",
            "--profile",
            "web",
            "--target",
            "wasm32-unknown-unknown",
        ]))?;
        let built = toolchain
            .target_dir()
            .join("wasm32-unknown-unknown/web/kilim_web.wasm");
        let wasm = pkg.join(format!("kilim.{}.wasm", variant.name));
        let recipe = format!("{} {WASM_OPT:?} {:?}", bindgen.version, variant.wasm_opt);
        let stamp = sh::target().join(format!("xtask/wasm-{}", variant.name));
        let outputs = [wasm.clone(), wasm.with_extension("js")];
        sh::up_to_date(
            &stamp,
            &sh::fingerprint(&recipe, std::slice::from_ref(&built))?,
            &outputs,
            || {
                bind(&bindgen.wasm_bindgen, &built, &wasm, variant.name)?;
                let raw = wasm.with_extension("raw.wasm");
                fs::rename(&wasm, &raw)?;
                let mut optimise = sh::cmd("node");
                optimise
                    .arg(&wasm_opt)
                    .args(WASM_OPT)
                    .args(variant.wasm_opt)
                    .arg(&raw)
                    .arg("-o")
                    .arg(&wasm);
                sh::run_quiet("wasm-opt", &mut optimise)?;
                Ok(fs::remove_file(&raw)?)
            },
        )?;
    }
    for variant in &VARIANTS {
        report_size(&pkg.join(format!("kilim.{}.wasm", variant.name)))?;
    }
    Ok(())
}

/// Runs wasm-bindgen and gives its binary the short name, in the glue as well.
fn bind(wasm_bindgen: &Path, built: &Path, wasm: &Path, name: &str) -> Result<()> {
    let pkg = wasm.parent().context("the web binary has no folder")?;
    let mut command = sh::cmd(wasm_bindgen);
    command
        .args([
            "--target",
            "web",
            "--out-name",
            &format!("kilim.{name}"),
            "--out-dir",
        ])
        .arg(pkg)
        .arg(built);
    sh::run_quiet("wasm-bindgen", &mut command)?;
    let long = format!("kilim.{name}_bg.wasm");
    fs::rename(pkg.join(&long), wasm)?;
    let glue = wasm.with_extension("js");
    fs::write(
        &glue,
        fs::read_to_string(&glue)?.replace(&long, &format!("kilim.{name}.wasm")),
    )?;
    Ok(fs::remove_file(pkg.join(format!("{long}.d.ts")))?)
}

fn report_size(wasm: &Path) -> Result<()> {
    let bytes = fs::read(wasm)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&bytes)?;
    let name = wasm.file_name().unwrap_or_default().to_string_lossy();
    println!(
        "{name:20} {:>9} bytes, {:>8} gzipped",
        bytes.len(),
        gzip.finish()?.len()
    );
    if bytes.len() > MAX_WASM_BYTES {
        bail!("{name} is larger than {MAX_WASM_BYTES} bytes");
    }
    Ok(())
}

/// Builds the npm package and the app into `www/dist`.
pub fn www() -> Result<()> {
    setup::npm("www")?;
    let root = sh::root();
    let dir = root.join("www");
    let inputs = sh::files(&[dir.clone(), root.join("assets")]);
    let stamp = sh::target().join("xtask/www");
    let outputs = [dir.join("dist")];
    let fresh = sh::up_to_date(
        &stamp,
        &sh::fingerprint("npm run build", &inputs)?,
        &outputs,
        || sh::run_quiet("npm run build in www", sh::npm(&dir).args(["run", "build"])),
    )?;
    println!("www/dist {}", if fresh { "is up to date" } else { "built" });
    Ok(())
}
