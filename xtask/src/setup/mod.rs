//! Finds what the jobs need and installs what is missing: the wasm target, wasm-bindgen, a browser and its driver,
//! a Vulkan driver, npm and Python packages. Each part is its own function, called by the job that needs it.

mod apt;
pub mod arm;
mod bindgen;
mod browser;
pub mod half;
pub mod opencl;
mod wasm;

pub use bindgen::{bindgen, browser_test_runner, fingerprint as bindgen_fingerprint};
pub use browser::{Browser, browser};
pub use wasm::{threads_toolchain, wasm_toolchain};

use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Makes everything ready, and says what was found.
pub fn all() -> Result<()> {
    let wasm = wasm_toolchain()?;
    println!("wasm32 target   {}", wasm.describe());
    println!("browser tests   {}", browser_test_runner()?.display());
    println!("wasm-bindgen    {}", bindgen()?.display());
    let browser = browser()?;
    println!("browser         {}", browser.exe.display());
    println!("browser driver  {}", browser.driver.display());
    println!("vulkan          {}", vulkan()?);
    for dir in ["tools", "www"] {
        if sh::root().join(dir).join("package.json").exists() {
            npm(dir)?;
            println!("npm packages    {dir}/node_modules");
        }
    }
    println!("python          {}", python()?.display());
    println!("setup is complete");
    Ok(())
}

/// Installs the packages of `dir`'s package-lock.json unless they are there.
pub fn npm(dir: &str) -> Result<PathBuf> {
    let dir = sh::root().join(dir);
    if sh::find(&["npm", "npm.cmd"]).is_none() {
        apt::install(
            &["nodejs", "npm"],
            "install Node.js 20 or newer: https://nodejs.org",
        )?;
    }
    let lock = dir.join("package-lock.json");
    let inputs: Vec<PathBuf> = [dir.join("package.json"), lock.clone()]
        .into_iter()
        .filter(|file| file.exists())
        .collect();
    let verb = if lock.exists() { "ci" } else { "install" };
    let modules = dir.join("node_modules");
    let stamp = modules.join(".kilim-stamp");
    sh::up_to_date(
        &stamp,
        &sh::fingerprint(verb, &inputs)?,
        std::slice::from_ref(&modules),
        || {
            sh::run_quiet(
                &format!("npm {verb} in {}", dir.display()),
                sh::npm(&dir).arg(verb),
            )
        },
    )?;
    Ok(modules)
}

/// Whether this cargo's compiler has the standard library for `target`, or rustup could add it.
pub fn rust_std(target: &str) -> bool {
    let there = || {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let args = ["--print", "target-libdir", "--target", target];
        let dir = sh::capture(sh::cmd(rustc).args(args)).map(PathBuf::from);
        let entries = dir.and_then(|dir| std::fs::read_dir(dir).ok());
        entries.is_some_and(|mut all| {
            all.any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("libstd-")))
        })
    };
    let add = || {
        let mut rustup = sh::cmd(sh::find(&["rustup"])?);
        let label = format!("rustup target add {target}");
        sh::run_quiet(&label, rustup.args(["target", "add", target])).ok()
    };
    there() || add().is_some() && there()
}

/// A Python with the pinned packages of tools/requirements.txt, in `.venv`.
pub fn python() -> Result<PathBuf> {
    venv("tools/requirements.txt", &sh::root().join(".venv"))
}

/// A Python with the packages of the file `list`, in the environment `venv`.
pub fn venv(list: &str, venv: &Path) -> Result<PathBuf> {
    let requirements = sh::root().join(list);
    let python = venv.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    let stamp = venv.join("kilim-stamp");
    let outputs = std::slice::from_ref(&python);
    sh::up_to_date(
        &stamp,
        &sh::fingerprint("venv", std::slice::from_ref(&requirements))?,
        outputs,
        || {
            if sh::capture(sh::cmd(&python).args(["-m", "pip", "--version"])).is_none() {
                let base = base_python()?;
                sh::run_quiet(
                    &format!("make {}", venv.display()),
                    sh::cmd(&base).args(["-m", "venv", "--clear"]).arg(venv),
                )?;
            }
            let mut pip = sh::cmd(&python);
            pip.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "-r",
            ])
            .arg(&requirements);
            sh::run_quiet(&format!("pip install -r {list}"), &mut pip)
        },
    )?;
    Ok(python)
}

/// A Python 3 that can make virtual environments.
fn base_python() -> Result<PathBuf> {
    let usable = || {
        let names = ["python3", "python", "/usr/bin/python3"];
        names
            .iter()
            .filter_map(|name| sh::find(&[name]))
            .find(|python| {
                sh::capture(sh::cmd(python).args(["-c", "import ensurepip, venv"])).is_some()
            })
    };
    if let Some(python) = usable() {
        return Ok(python);
    }
    apt::install(
        &["python3", "python3-venv"],
        "install Python 3.10 or newer with its venv module: https://www.python.org",
    )?;
    usable().context("no Python 3 here can make a virtual environment")
}

/// Sees to a Vulkan driver on Linux; macOS and Windows bring their own graphics API.
pub fn vulkan() -> Result<String> {
    if !cfg!(target_os = "linux") {
        return Ok("not needed on this system".into());
    }
    let found = || {
        let loader = ["/usr/lib", "/usr/lib64", "/lib"]
            .iter()
            .any(|dir| has_loader(Path::new(dir), 0));
        let drivers = [
            "/usr/share/vulkan/icd.d",
            "/etc/vulkan/icd.d",
            "/usr/local/share/vulkan/icd.d",
        ];
        let drivers: Vec<String> = drivers
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flat_map(|entries| {
                entries
                    .flatten()
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
            })
            .collect();
        (loader && (!drivers.is_empty() || std::env::var_os("VK_DRIVER_FILES").is_some()))
            .then(|| drivers.join(", "))
    };
    if let Some(drivers) = found() {
        return Ok(drivers);
    }
    apt::install(
        &["mesa-vulkan-drivers", "libvulkan1"],
        "install a Vulkan loader and driver (Fedora: dnf install mesa-vulkan-drivers vulkan-loader; Arch: pacman -S vulkan-swrast vulkan-icd-loader)",
    )?;
    match found() {
        Some(drivers) => Ok(drivers),
        None => bail!("no Vulkan driver was found after installing one"),
    }
}

/// Whether libvulkan lies in `dir` or one level below (Debian's multiarch folders).
fn has_loader(dir: &Path, depth: usize) -> bool {
    if dir.join("libvulkan.so.1").exists() {
        return true;
    }
    let below = || std::fs::read_dir(dir).into_iter().flatten().flatten();
    depth == 0
        && below().any(|entry| {
            entry.file_name().to_string_lossy().contains("linux-gnu")
                && has_loader(&entry.path(), 1)
        })
}
