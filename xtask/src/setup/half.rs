//! A build of the ARM Compute Library with kernels for float16, SVE and bfloat16, which Debian's have not: the one
//! in PyTorch's package for AArch64, 24.09. It has no headers. Debian's of 24.11, the release after it, differ from
//! its own in what stands in `CHANGES`.
//!
//! That was found by comparing the two libraries: of the 502 virtual tables in both, each has the same functions in
//! the same order; names of enumerators, sizes of classes and the places of their members agree, but for the
//! `MemoryGroup` and the classes that contain one; and two symbols that the shim needs are not in 24.09.

use super::arm::{self, ACL, Acl};
use crate::sh;
use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::Path;

const VERSION: &str = "24.09";
/// What `pip` downloads, and nothing else.
const PACKAGE: &str =
    "torch==2.6.0 --hash=sha256:ccbd0320411fe1a3b3fec7b4d3185aa7d0c52adac94480ab024b5c8f74a0bf1d";
const PLATFORM: [&str; 4] = [
    "--platform",
    "manylinux_2_28_aarch64",
    "--python-version",
    "311",
];
const LIBRARY: &str = "libarm_compute-42ab2994.so";
const MEMBERS: [&str; 2] = [LIBRARY, "libgomp-98df74fd.so.1.0.0"];

/// A text that stands once in a header of 24.11, and what it is in 24.09.
type Change = (&'static str, &'static str);

const CHANGES: [(&str, &[Change]); 3] = [
    // Functions had no memory manager of their own.
    (
        "MemoryManagerOnDemand.h",
        &[("make_default();", "make_default() { return nullptr; }")],
    ),
    (
        "NEON/functions/NEMatMul.h",
        &[
            (
                "NEMatMul(std::shared_ptr<IMemoryManager> memory_manager);",
                "",
            ),
            (
                "NEMatMul() : NEMatMul(MemoryManagerOnDemand::make_default())\n    {\n    }",
                "NEMatMul();",
            ),
        ],
    ),
    (
        "MemoryGroup.h",
        &[
            ("bool                            _auto_clear;", ""),
            (", _auto_clear(false)", ""),
            ("_auto_clear = true;", ""),
            ("if (_auto_clear)", "if (false)"),
            ("_auto_clear = false;", ""),
        ],
    ),
];

/// The package index does not give the package.
#[derive(Debug)]
pub struct NotThere;

impl fmt::Display for NotThere {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "the package index does not give PyTorch for AArch64")
    }
}

/// The library and its headers.
///
/// # Errors
/// [`NotThere`], and others where Debian's mirror cannot be reached or what came is something else.
pub fn unpack() -> Result<Acl> {
    let newest = ACL.last().context("no release of the library")?.unpack()?;
    let dir = arm::folder().join(format!("acl-{VERSION}"));
    let (libraries, headers) = (dir.join("lib"), dir.join("include"));
    let recipe = format!("{PACKAGE} {CHANGES:?}");
    let outputs = [
        libraries.join(LIBRARY),
        libraries.join(MEMBERS[1]),
        headers.join("arm_compute/runtime/MemoryGroup.h"),
    ];
    let fingerprint = sh::fingerprint(&recipe, &[])?;
    sh::up_to_date(&dir.join("stamp"), &fingerprint, &outputs, || {
        for folder in [&libraries, &headers] {
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
            fs::create_dir_all(folder)?;
        }
        download(&dir, &libraries)?;
        for part in ["arm_compute", "half", "support"] {
            sh::run(
                sh::cmd("cp")
                    .arg("-r")
                    .arg(newest.headers.join(part))
                    .arg(&headers),
            )?;
        }
        CHANGES.iter().try_for_each(|(file, changes)| {
            change(&headers.join("arm_compute/runtime").join(file), changes)
        })
    })?;
    Ok(Acl {
        version: VERSION,
        headers,
        libraries,
        root: arm::C_LIBRARY.into(),
        opencl: false,
    })
}

/// The members of the package, and the library under the name that the linker looks for.
fn download(dir: &Path, libraries: &Path) -> Result<()> {
    let python = super::python()?;
    let (requirements, wheels) = (dir.join("requirements.txt"), dir.join("wheels"));
    fs::write(&requirements, PACKAGE)?;
    let mut pip = sh::cmd(&python);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
    ])
    .args([
        "--no-cache-dir",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
    ])
    .args(PLATFORM)
    .arg("-r")
    .arg(&requirements)
    .arg("-d")
    .arg(&wheels);
    sh::run_quiet("download an ACL with float16", &mut pip).context(NotThere)?;
    let wheel = fs::read_dir(&wheels)?.flatten().next();
    let wheel = wheel.context("pip has downloaded nothing")?.path();
    let extract = "import os, sys, zipfile\n\
        wheel = zipfile.ZipFile(sys.argv[1])\n\
        for name in sys.argv[3:]:\n    \
            open(os.path.join(sys.argv[2], name), 'wb').write(wheel.read('torch.libs/' + name))\n";
    let mut unzip = sh::cmd(&python);
    unzip
        .args(["-c", extract])
        .arg(&wheel)
        .arg(libraries)
        .args(MEMBERS);
    sh::run(&mut unzip)?;
    fs::remove_dir_all(&wheels)?;
    fs::copy(libraries.join(LIBRARY), libraries.join("libarm_compute.so"))?;
    Ok(())
}

fn change(file: &Path, changes: &[Change]) -> Result<()> {
    let mut text = fs::read_to_string(file)?;
    for (from, to) in changes {
        let (before, after) = text
            .split_once(from)
            .with_context(|| format!("`{from}` is not in {}", file.display()))?;
        text = [before, to, after].concat();
    }
    Ok(fs::write(file, text)?)
}
