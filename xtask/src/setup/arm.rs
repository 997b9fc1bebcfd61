//! What it takes to build for AArch64 and to run it elsewhere: a linker and a C++ compiler, Rust's
//! standard library, an emulator, and Debian's builds of the ARM Compute Library.
//!
//! Nothing for AArch64 is installed into the system: Debian's packages are unpacked into folders,
//! with a state of apt's own, since installing them would upgrade half of the host.

use super::{apt, rust_std};
use crate::sh;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TARGET: &str = "aarch64-unknown-linux-gnu";
pub const COMPILER: &str = "aarch64-linux-gnu-g++";
pub const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
/// Debian's name for the architecture.
pub const TRIPLE: &str = "aarch64-linux-gnu";
/// The folder of the cross compiler's C library.
pub const C_LIBRARY: &str = "/usr/aarch64-linux-gnu";

/// The folder where everything goes.
pub fn folder() -> PathBuf {
    sh::target().join("arm")
}

/// Compiler, standard library and emulator.
pub struct ArmToolchain {
    pub emulator: PathBuf,
    /// Where Debian's standard library was unpacked, if rustup does not have it.
    sysroot: Option<PathBuf>,
}

/// Why there is none, where that is not a failure: another system, or no right to install.
pub type Reason = String;

pub fn toolchain() -> Result<Result<ArmToolchain, Reason>> {
    if !cfg!(target_os = "linux") {
        return Ok(Err("the emulation of AArch64 needs Linux".into()));
    }
    let there = || {
        let found = sh::find(&[COMPILER]).and(sh::find(&["make"]));
        found.and_then(|_| sh::find(&EMULATOR))
    };
    if there().is_none() && !apt::is_root() {
        return Ok(Err(format!(
            "install {COMPILER}, make and {} (Debian: apt-get install g++-aarch64-linux-gnu make qemu-user-static)",
            EMULATOR[0]
        )));
    }
    if there().is_none() {
        let packages = ["g++-aarch64-linux-gnu", "make", "qemu-user-static"];
        apt::install(&packages, "install a cross compiler for AArch64 and qemu")?;
    }
    let emulator =
        there().context("the cross compiler and qemu were installed but are not found")?;
    let sysroot = match rust_std(TARGET) {
        true => None,
        false if apt::is_root() => Some(debian_std()?),
        false => return Ok(Err(format!("run: rustup target add {TARGET}"))),
    };
    Ok(Ok(ArmToolchain { emulator, sysroot }))
}

/// Debian's standard library for its own compiler, which has to be of the same version.
fn debian_std() -> Result<PathBuf> {
    let version = sh::capture(sh::cmd("dpkg-query").args(["-W", "-f", "${Version}", "rustc-web"]));
    let Some(version) = version else {
        bail!(
            "no standard library for {TARGET}: rustup cannot add it, and rustc-web is not installed"
        );
    };
    let sources = Path::new("/etc/apt/sources.list.d");
    let package = format!("libstd-rust-web-dev={version}");
    let root = unpack("std", sources, &[&package])?;
    Ok(root.join("usr"))
}

impl ArmToolchain {
    /// A cargo command that builds for AArch64 and runs what it built under the emulator. The
    /// kernels are lightly optimised: they are quick to build, and the emulator is slow anyway.
    pub fn cargo(&self, run: &Emulation) -> Command {
        let mut cargo = sh::cargo();
        let name = TARGET.to_uppercase().replace('-', "_");
        cargo
            .env(format!("CARGO_TARGET_{name}_LINKER"), LINKER)
            .env(
                format!("CARGO_TARGET_{name}_RUNNER"),
                run.words(self).join(" "),
            );
        if let Some(sysroot) = &self.sysroot {
            let flags = format!("--sysroot={}", sysroot.display());
            cargo.env(format!("CARGO_TARGET_{name}_RUSTFLAGS"), flags);
        }
        cargo
    }
}

/// How a program is run under the emulator.
pub struct Emulation {
    /// In the emulator's words.
    pub cpu: &'static str,
    /// The root of the libraries that programs are linked to.
    pub root: PathBuf,
    /// Variables of the emulated program.
    pub variables: Vec<(&'static str, OsString)>,
    /// A program that hangs ends after so many minutes.
    pub minutes: u32,
}

impl Emulation {
    /// The emulation without the ARM Compute Library.
    pub fn plain() -> Emulation {
        Emulation {
            cpu: "max",
            root: C_LIBRARY.into(),
            variables: Vec::new(),
            minutes: 20,
        }
    }

    /// The emulator with its options.
    fn words(&self, toolchain: &ArmToolchain) -> Vec<String> {
        let mut words = vec!["timeout".into(), format!("{}m", self.minutes)];
        words.push(toolchain.emulator.display().to_string());
        words.extend(["-L".into(), self.root.display().to_string()]);
        words.extend(["-cpu", self.cpu].map(String::from));
        for (name, value) in &self.variables {
            words.extend(["-E".into(), format!("{name}={}", value.to_string_lossy())]);
        }
        words
    }

    /// A command that runs `program`.
    pub fn command(&self, toolchain: &ArmToolchain, program: &Path) -> Command {
        let words = self.words(toolchain);
        let mut command = sh::cmd(&words[0]);
        command.args(&words[1..]).arg(program);
        command
    }
}

/// A release of the ARM Compute Library that Debian has.
pub struct AclRelease {
    pub version: &'static str,
    suite: &'static str,
    packages: &'static [&'static str],
    /// Whether the shim is built with `acl_cl`, which takes twice as long; once is enough.
    pub opencl: bool,
    /// Whether its C library is newer than the cross compiler's, so that programs run on it.
    own_c_library: bool,
}

/// The oldest and the newest that the shim is built against.
pub static ACL: [AclRelease; 2] = [
    AclRelease {
        version: "20.08",
        suite: "bookworm",
        packages: &["libarm-compute-dev", "libarm-compute20"],
        opencl: false,
        own_c_library: false,
    },
    AclRelease {
        version: "24.11",
        suite: "trixie",
        packages: &[
            "libarm-compute-dev",
            "libarm-compute43",
            "libc6",
            "libstdc++6",
            "libgcc-s1",
        ],
        opencl: true,
        own_c_library: true,
    },
];

/// A build of the library with its headers.
pub struct Acl {
    pub version: &'static str,
    pub headers: PathBuf,
    pub libraries: PathBuf,
    /// The root of the C library that programs run on.
    pub root: PathBuf,
    /// Whether the shim is built with `acl_cl`.
    pub opencl: bool,
}

impl AclRelease {
    pub fn unpack(&'static self) -> Result<Acl> {
        let name = format!("acl-{}", self.version);
        let dir = folder().join(&name);
        let root = unpack(&name, &sources(&dir, self.suite)?, self.packages)?;
        Ok(Acl {
            version: self.version,
            headers: root.join("usr/include").join(TRIPLE),
            libraries: root.join("usr/lib").join(TRIPLE),
            root: match self.own_c_library {
                true => root,
                false => C_LIBRARY.into(),
            },
            opencl: self.opencl,
        })
    }
}

impl Acl {
    /// Builds the shim against it and gives its path.
    pub fn shim(&self) -> Result<PathBuf> {
        let out = folder().join(format!("shim-{}", self.version));
        let variable = |name: &str, path: &Path| format!("{name}={}", path.display());
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut make = sh::cmd("make");
        make.arg("-C")
            .arg(sh::root().join("crates/native-arm/shim"))
            .arg(format!("-j{jobs}"))
            .arg(format!("CXX={COMPILER}"))
            .arg(format!("CL={}", u8::from(self.opencl)))
            .arg(variable("ACL_INCLUDE", &self.headers))
            .arg(variable("ACL_LIB", &self.libraries))
            .arg(variable("OUT", &out));
        sh::run_quiet(
            &format!("build the shim for ACL {}", self.version),
            &mut make,
        )?;
        Ok(out.join("libkilim_acl.so"))
    }

    /// Running programs with this shim.
    pub fn emulation(&self, shim: &Path) -> Emulation {
        Emulation {
            cpu: "max",
            root: self.root.clone(),
            variables: vec![
                ("LD_LIBRARY_PATH", self.libraries.clone().into()),
                ("KILIM_ACL", shim.into()),
                ("RUST_BACKTRACE", "0".into()),
            ],
            ..Emulation::plain()
        }
    }
}

/// Writes into `dir` where apt finds a suite.
pub fn sources(dir: &Path, suite: &str) -> Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let path = dir.join("debian.sources");
    let text = format!(
        "Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
        mirror()
    );
    fs::write(&path, text)?;
    Ok(path)
}

/// The Debian mirror that the system uses.
fn mirror() -> String {
    let sources = fs::read_to_string("/etc/apt/sources.list.d/debian.sources").unwrap_or_default();
    let uri = sources.lines().find_map(|line| line.strip_prefix("URIs:"));
    uri.map_or("http://deb.debian.org/debian", str::trim).into()
}

/// Downloads packages for AArch64 and unpacks them into `target/arm/NAME/root`, once.
pub fn unpack(name: &str, sources: &Path, packages: &[&str]) -> Result<PathBuf> {
    let dir = folder().join(name);
    let (lists, debs, root) = (dir.join("lists"), dir.join("debs"), dir.join("root"));
    let recipe = packages.join(" ");
    let outputs = [root.join("usr")];
    sh::up_to_date(
        &dir.join("stamp"),
        &sh::fingerprint(&recipe, &[])?,
        &outputs,
        || {
            for part in [&lists.join("partial"), &debs, &root] {
                fs::create_dir_all(part)?;
            }
            fs::write(dir.join("status"), "")?;
            let apt = || {
                let mut apt = sh::cmd("apt-get");
                let option = |name: &str, path: &Path| format!("-o{name}={}", path.display());
                apt.current_dir(&debs)
                    .args([
                        "-qq",
                        "-oAPT::Architecture=arm64",
                        "-oAPT::Architectures=arm64",
                    ])
                    .arg(option("Dir::State::Lists", &lists))
                    .arg(option("Dir::State::status", &dir.join("status")))
                    .args(["-oDir::Cache::pkgcache=", "-oDir::Cache::srcpkgcache="])
                    .arg("-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false")
                    .arg("-oAPT::Sandbox::User=root");
                if sources.is_file() {
                    apt.arg("-oDir::Etc::sourceparts=/dev/null")
                        .arg(option("Dir::Etc::sourcelist", sources));
                }
                apt
            };
            sh::run_quiet(&format!("apt-get update for {name}"), apt().arg("update"))?;
            let label = format!("download {recipe}");
            sh::run_quiet(&label, apt().arg("download").args(packages))?;
            for deb in fs::read_dir(&debs)?.flatten() {
                sh::run(sh::cmd("dpkg").arg("-x").arg(deb.path()).arg(&root))?;
            }
            // The loader is looked for in /lib, which is a link on Debian.
            let lib = root.join("lib");
            if !lib.exists() {
                #[cfg(unix)]
                std::os::unix::fs::symlink("usr/lib", lib)?;
            }
            Ok(())
        },
    )?;
    Ok(root)
}
