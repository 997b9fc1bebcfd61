//! Kilim beside onnxruntime-web in one browser, by the driver in ../shared/peers.

use crate::{build, setup, sh, test};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// Model files; without any, the four that docs/performance.md reports
    models: Vec<PathBuf>,
    /// Engines, comma-separated, the first is what the others are compared to
    #[arg(long, default_value = "ort-wasm1,kilim-wasm1,ort-webgpu,kilim-webgpu")]
    engines: String,
    /// Timed runs of each
    #[arg(long, default_value_t = 15)]
    runs: usize,
}

pub fn run(args: &Args) -> Result<()> {
    let Some(shared) = sh::shared() else {
        bail!("the driver is in ../shared/peers, and there is no ../shared here")
    };
    let browser = setup::browser()?;
    browser.require_playwright()?;
    build::wasm()?;
    build::www()?;
    let peers = peers(&shared)?;
    let models = if args.models.is_empty() {
        standard_models(&shared)?
    } else {
        args.models.clone()
    };
    let records = sh::target().join("bench");
    fs::create_dir_all(&records)?;
    for model in &models {
        let name = name(model);
        let mut node = sh::cmd("node");
        browser.tell(&mut node);
        node.arg(peers.join("bench.mjs"))
            .arg("--modules")
            .arg(peers.join("node_modules"));
        node.args([
            "--engine",
            "kilim=bench/kilim.mjs",
            "--root",
            ".",
            "--engines",
            &args.engines,
        ]);
        node.arg("--runs")
            .arg(args.runs.to_string())
            .arg("--model")
            .arg(model);
        node.arg("--json").arg(records.join(format!("{name}.json")));
        sh::run(&mut node)?;
        println!();
    }
    println!("records are in {}", records.display());
    Ok(())
}

/// A record's name: the model's folder and file, since many are called model.onnx.
fn name(model: &Path) -> String {
    let folder = model
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    format!(
        "{folder}-{}",
        model.file_stem().unwrap_or_default().to_string_lossy()
    )
}

/// A copy of the driver with its npm packages installed beside it; ../shared itself is left as it is.
fn peers(shared: &Path) -> Result<PathBuf> {
    let dir = sh::target().join("peers");
    fs::create_dir_all(dir.join("adapters"))?;
    for file in sh::files(&[shared.join("peers")]) {
        let relative = file.strip_prefix(shared.join("peers"))?.to_path_buf();
        fs::write(dir.join(relative), fs::read(&file)?)?;
    }
    setup::npm(
        dir.to_str()
            .context("the target folder's name is not UTF-8")?,
    )?;
    Ok(dir)
}

fn standard_models(shared: &Path) -> Result<Vec<PathBuf>> {
    let light = test::conformance()?.join("light");
    let models = shared.join("models");
    let mut out = vec![
        light.join("test_squeezenet/model.onnx"),
        light.join("test_resnet50/model.onnx"),
    ];
    for folder in ["ultraface-rfb-320", "super-resolution"] {
        let file = sh::files(&[models.join(folder)]).into_iter().find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "onnx")
        });
        out.push(file.with_context(|| format!("no ONNX file in {folder}"))?);
    }
    Ok(out)
}
