//! Crates that compute sizes, on 32 bits: products that fit into 64 bits overflow there, as they do in a page.

use super::{Counts, counted, rare, skip};
use crate::{setup, sh};
use anyhow::Result;

/// The crates of [`PACKAGES`].
pub const RARE: rare::Rare = rare::Rare {
    name: "32-bit",
    sources: &[
        "crates/core",
        "crates/formats",
        "crates/host",
        "crates/reference-cpu",
        "crates/simd-cpu",
    ],
};

/// rustup's standard library for it brings a C library along, so that no package of the system is needed.
const TARGET: &str = "i686-unknown-linux-musl";

const PACKAGES: [&str; 5] = [
    "kilim-core",
    "kilim-formats",
    "kilim-host",
    "kilim-reference-cpu",
    "kilim-simd-cpu",
];

pub fn tests() -> Result<Counts> {
    let reason = match cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        false => "programs of 32 bits need Linux on x86-64".to_string(),
        true if !setup::rust_std(TARGET) => format!("run: rustup target add {TARGET}"),
        true => {
            let mut cargo = sh::cargo();
            let name = TARGET.to_uppercase().replace('-', "_");
            cargo.env(format!("CARGO_TARGET_{name}_LINKER"), "rust-lld");
            cargo.args(["test", "--profile", "narrow", "--no-fail-fast"]);
            cargo.args(["--target", TARGET]);
            for package in PACKAGES {
                cargo.args(["-p", package]);
            }
            return counted(cargo.args(["--lib", "--test", "hostile"]));
        }
    };
    Ok(skip("32-bit", &reason))
}
