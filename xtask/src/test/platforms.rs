//! The facade and the command line compile for platforms that no machine here is.

use super::{Counts, counted, rare, skip};
use crate::{setup, sh};
use anyhow::{Result, bail};

/// What is of one system: what the crates are built of, and the crates that ask for the system.
pub const RARE: rare::Rare = rare::Rare {
    name: "platforms",
    sources: &[
        "Cargo.lock",
        "crates/cli/Cargo.toml",
        "crates/host/src/threads",
        "crates/kilim/Cargo.toml",
        "crates/kilim/src/calibration.rs",
        "crates/plugin/src/search.rs",
        "crates/plugin/src/trial.rs",
        "crates/wgpu-backend/Cargo.toml",
        "xtask/src/test/platforms.rs",
    ],
};

/// The targets, and the packages that are for them. There is no command line on phones.
const PLATFORMS: [(&str, &[&str]); 4] = [
    ("x86_64-pc-windows-gnu", &["kilim", "kilim-cli"]),
    ("aarch64-apple-darwin", &["kilim", "kilim-cli"]),
    ("aarch64-apple-ios", &["kilim"]),
    ("aarch64-linux-android", &["kilim"]),
];

/// What compiles C code in a build script.
const C_COMPILERS: [&str; 3] = ["cc", "cmake", "bindgen"];

/// Checks each package for each target with its usual features.
pub fn checks() -> Result<Counts> {
    let mut counts = Counts::default();
    for (target, packages) in PLATFORMS {
        if !setup::rust_std(target) {
            let reason = format!("this toolchain has no {target}, and rustup cannot add it");
            counts.add(skip(target, &reason));
            continue;
        }
        for package in packages {
            println!("{package} for {target}");
            let args = ["-p", package, "--target", target];
            counts.add(Counts::of(without_c(package, &args)));
            counts.add(counted(sh::cargo().arg("check").args(args))?);
        }
    }
    Ok(counts)
}

/// Nothing that the package is built of has C code, which would need a compiler for the target.
fn without_c(package: &str, args: &[&str]) -> Result<()> {
    let mut tree = sh::cargo();
    tree.args(["tree", "--edges", "normal,build", "--prefix", "none"]);
    let crates = sh::capture_or_error(tree.args(args))?;
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    match crates
        .lines()
        .map(name)
        .find(|name| C_COMPILERS.contains(&name.as_str()))
    {
        Some(compiler) => bail!("{package} is built of C code: it depends on `{compiler}`"),
        None => Ok(()),
    }
}
