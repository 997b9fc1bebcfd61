//! Where `libkilim_acl.so` is looked for, and what is said where it is not there: seen by `kilim devices`.

use super::kilim;
use crate::setup::arm::{self, ArmToolchain, Emulation, LINKER};
use crate::sh;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "libkilim_acl.so";

/// Where it is absent, the backends say so and everything else works.
pub fn absent(toolchain: &ArmToolchain) -> Result<()> {
    let plain = Emulation::plain();
    for backend in ["acl_neon", "acl_cl"] {
        let line = said(toolchain, &plain, &kilim(), backend)?;
        if !(line.contains("not available") && line.contains(FILE)) {
            bail!("the reason is not said: {line}");
        }
    }
    let mut run = plain.command(toolchain, &kilim());
    run.args([
        "run",
        "assets/digits.onnx",
        "--input",
        "image=assets/digit-3.png",
    ]);
    sh::capture_or_error(&mut run).map(drop)
}

/// What `program devices` says of a backend.
fn said(
    toolchain: &ArmToolchain,
    emulation: &Emulation,
    program: &Path,
    backend: &str,
) -> Result<String> {
    let mut command = emulation.command(toolchain, program);
    let devices = sh::capture_or_error(command.arg("devices"))?;
    let start = format!("{backend}: ");
    let line = devices.lines().find(|l| l.starts_with(&start));
    let line = line.with_context(|| format!("`kilim devices` does not list {backend}"))?;
    Ok(line.to_string())
}

/// The file that `KILIM_ACL` names and no other; else the one beside the program; else the loader's. A file
/// with another interface, which is refused, stands where the next one must not be reached.
pub fn order(toolchain: &ArmToolchain, with: &Emulation) -> Result<()> {
    let dir = arm::folder().join("search");
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = dir.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let shim = variable(with, "KILIM_ACL").context("there is no shim to look for")?;
    let libraries = variable(with, "LD_LIBRARY_PATH").unwrap_or_default();
    let (whole, other, bare) = (folder("whole")?, folder("other")?, folder("bare")?);
    for folder in [&whole, &other, &bare] {
        fs::copy(kilim(), folder.join("kilim"))?;
    }
    fs::copy(shim, whole.join(FILE))?;
    other_interface(&dir, &other.join(FILE))?;

    let found = "ARM Compute Library v";
    let refused = "has interface 0";
    let missing = "no-such-library.so";
    for (named, beside, loader, want) in [
        (Some(whole.join(FILE)), &other, &other, found),
        (Some(other.join(FILE)), &whole, &whole, refused),
        (Some(dir.join(missing)), &whole, &whole, missing),
        (None, &whole, &other, found),
        (None, &other, &whole, refused),
        (None, &bare, &whole, found),
        (None, &bare, &bare, FILE),
    ] {
        let search =
            [loader.clone().into_os_string(), libraries.clone()].join(&OsString::from(":"));
        let mut variables = vec![("LD_LIBRARY_PATH", search), ("RUST_BACKTRACE", "0".into())];
        variables.extend(
            named
                .clone()
                .map(|file| ("KILIM_ACL", file.into_os_string())),
        );
        let emulation = Emulation {
            root: with.root.clone(),
            variables,
            ..*with
        };
        let line = said(toolchain, &emulation, &beside.join("kilim"), "acl_neon")?;
        if !line.contains(want) || (want != found && !line.contains("not available")) {
            bail!(
                "KILIM_ACL {named:?}, beside the program {}, for the loader {}: {line}",
                beside.display(),
                loader.display()
            );
        }
    }
    Ok(())
}

fn variable(emulation: &Emulation, name: &str) -> Option<OsString> {
    let mut all = emulation.variables.iter();
    all.find(|(n, _)| *n == name)
        .map(|(_, value)| value.clone())
}

/// A library that says of itself that its interface is another one.
fn other_interface(dir: &Path, file: &Path) -> Result<()> {
    let source = dir.join("other.c");
    fs::write(&source, "unsigned kilim_acl_abi(void) { return 0; }\n")?;
    let mut compiler = sh::cmd(LINKER);
    compiler
        .args(["-shared", "-fPIC"])
        .arg(source)
        .arg("-o")
        .arg(file);
    sh::run(&mut compiler)
}
