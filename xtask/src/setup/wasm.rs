//! A compiler with the wasm32 standard library.

use super::apt;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// A cargo and rustc that can build for wasm32.
pub struct WasmToolchain {
    cargo: PathBuf,
    rustc: PathBuf,
    /// Named only where the compiler brings no linker of its own.
    linker: Option<PathBuf>,
}

/// The compiler's flags for target features. Panics name their source files: those of packages without this machine's folder,
/// so that every machine builds the same bytes.
fn flags(features: &str) -> String {
    let flags = format!("-C target-feature={features}");
    match sh::packages().as_deref().and_then(Path::to_str) {
        // Flags are parted at spaces.
        Some(packages) if !packages.contains(' ') => {
            format!("{flags} --remap-path-prefix={packages}=")
        }
        _ => flags,
    }
}

impl WasmToolchain {
    /// The compiler in words.
    pub fn describe(&self) -> String {
        let version = sh::capture(sh::cmd(&self.rustc).arg("--version")).unwrap_or_default();
        format!("{} ({version})", self.rustc.display())
    }

    /// The toolchain's cargo, with target features `features` for wasm32.
    pub fn cargo(&self, features: &str) -> Command {
        let mut command = clean(&self.cargo);
        command
            .env("RUSTC", &self.rustc)
            .env("CARGO_TARGET_DIR", self.target_dir(features));
        let rustdoc = self.rustc.with_file_name("rustdoc");
        if rustdoc.exists() {
            command.env("RUSTDOC", rustdoc);
        }
        command.env("RUSTFLAGS", flags(features));
        if let Some(linker) = &self.linker {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command
    }

    /// The toolchain's cargo for a module whose memory threads share. The standard library is built with it,
    /// since that of the target is made for one thread. Builds go into `target/web-threads`.
    pub fn cargo_with_threads(&self, features: &str) -> Command {
        let mut command = self.cargo(features);
        let arguments = [
            "--shared-memory",
            "--import-memory",
            "--max-memory=4294967296",
            "--export=__wasm_init_tls",
            "--export=__tls_size",
            "--export=__tls_align",
            "--export=__tls_base",
            "--export=__heap_base",
        ];
        let arguments = arguments.map(|argument| format!(" -C link-arg={argument}"));
        let features = format!("{features},+atomics,+bulk-memory,+mutable-globals");
        let flags = flags(&features) + &arguments.concat();
        command
            .env("RUSTFLAGS", flags)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", self.threads_target_dir())
            .arg("-Zbuild-std=std,panic_abort");
        command
    }

    /// Where builds with threads go.
    pub fn threads_target_dir(&self) -> PathBuf {
        sh::target().join("web-threads")
    }

    /// Whether the source of the standard library is there.
    fn has_std_source(&self) -> bool {
        let sysroot = sh::capture(clean(&self.rustc).args(["--print", "sysroot"]));
        sysroot.is_some_and(|sysroot| Path::new(&sysroot).join(STD_SOURCE).exists())
    }

    /// Where builds with these features go: apart from the native ones, whose flags and compiler may differ, and a folder for each set of flags,
    /// since cargo builds all packages of a folder anew where flags differ.
    pub fn target_dir(&self, features: &str) -> PathBuf {
        sh::target().join(match features.contains("relaxed-simd") {
            true => "web-relaxed",
            false => "web",
        })
    }

    fn std_dir(&self) -> Option<PathBuf> {
        let sysroot = sh::capture(clean(&self.rustc).args(["--print", "sysroot"]))?;
        Some(
            Path::new(&sysroot)
                .join("lib/rustlib")
                .join(TARGET)
                .join("lib"),
        )
    }

    fn has_std(&self) -> bool {
        let entries = self.std_dir().and_then(|dir| fs::read_dir(dir).ok());
        entries.is_some_and(|entries| {
            entries
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
        })
    }

    /// Compiles and links a small library: the only proof that std, compiler and linker belong together.
    fn verify(&self) -> Result<()> {
        let dir = sh::target().join("xtask/verify");
        fs::create_dir_all(&dir)?;
        let source = dir.join("verify.rs");
        fs::write(
            &source,
            "#[unsafe(no_mangle)] pub extern \"C\" fn f() -> usize { std::env::args().count() }\n",
        )?;
        let mut rustc = clean(&self.rustc);
        rustc
            .args([
                "--edition=2024",
                "--crate-type=cdylib",
                "--target",
                TARGET,
                "--out-dir",
            ])
            .arg(&dir)
            .arg(&source);
        if let Some(linker) = &self.linker {
            rustc.arg(format!("-Clinker={}", linker.display()));
        }
        sh::run_quiet("verify the wasm32 target", &mut rustc)
    }
}

/// A command without what `cargo run` and rustup put into the environment for this process' own toolchain.
fn clean(program: &Path) -> Command {
    let mut command = sh::cmd(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO") && text != "CARGO_HOME"
            || matches!(
                &*text,
                "RUSTUP_TOOLCHAIN" | "LD_LIBRARY_PATH" | "RUSTC" | "RUSTDOC" | "RUSTFLAGS"
            )
        {
            command.env_remove(name);
        }
    }
    command
}

/// The toolchain for wasm32: this cargo's own if it has the target or rustup can add it; else Debian's compiler,
/// for which the standard library is built from its source once. `KILIM_WASM_RUSTC` names another rustc.
pub fn wasm_toolchain() -> Result<WasmToolchain> {
    if let Some(rustc) = std::env::var_os("KILIM_WASM_RUSTC").map(PathBuf::from) {
        return if rustc == Path::new(DEBIAN_RUSTC) {
            debian()
        } else {
            ready(beside(&rustc, None))
        };
    }
    let own = own_toolchain();
    if let Some(own) = own.as_ref().filter(|own| own.has_std()) {
        return ready(beside(&own.rustc, None));
    }
    if let (Some(own), Some(rustup)) = (own, sh::find(&["rustup"])) {
        let added = sh::run_quiet(
            &format!("rustup target add {TARGET}"),
            sh::cmd(rustup).args(["target", "add", TARGET]),
        );
        if added.is_ok() && own.has_std() {
            return ready(own);
        }
    }
    debian().with_context(|| {
        format!("no compiler here has the {TARGET} standard library; run: rustup target add {TARGET} (or, on Debian as root, cargo xtask setup)")
    })
}

/// The rustc of the cargo that runs this program, as a file and not as rustup's proxy.
fn own_toolchain() -> Option<WasmToolchain> {
    let mut rustc = sh::cmd(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = sh::capture(rustc.args(["--print", "sysroot"]))?;
    let rustc =
        Path::new(&sysroot)
            .join("bin")
            .join(if cfg!(windows) { "rustc.exe" } else { "rustc" });
    rustc.exists().then(|| beside(&rustc, None))
}

fn beside(rustc: &Path, linker: Option<PathBuf>) -> WasmToolchain {
    let linker = linker.or_else(|| {
        rustc
            .starts_with("/usr/bin")
            .then(distribution_linker)
            .flatten()
    });
    WasmToolchain {
        cargo: rustc.with_file_name(if cfg!(windows) { "cargo.exe" } else { "cargo" }),
        rustc: rustc.to_path_buf(),
        linker,
    }
}

/// The toolchain for wasm32 with shared memory, which has the source of its standard library: that of [`wasm_toolchain`] if
/// rustup can add the source, else Debian's compiler.
pub fn threads_toolchain() -> Result<WasmToolchain> {
    let toolchain = wasm_toolchain()?;
    if toolchain.has_std_source() {
        return Ok(toolchain);
    }
    if let Some(rustup) = sh::find(&["rustup"]) {
        let mut add = sh::cmd(rustup);
        add.args(["component", "add", "rust-src"]);
        if sh::run_quiet("rustup component add rust-src", &mut add).is_ok()
            && toolchain.has_std_source()
        {
            return Ok(toolchain);
        }
    }
    debian().context("no compiler here has the source of its standard library; run: rustup component add rust-src (or, on Debian as root, cargo xtask setup)")
}

/// Returns the toolchain if it was verified before, else verifies it now.
fn ready(toolchain: WasmToolchain) -> Result<WasmToolchain> {
    let stamp = sh::target().join("xtask/wasm-target");
    let version = sh::capture(clean(&toolchain.rustc).arg("-vV")).context("rustc does not run")?;
    let recipe = format!(
        "{version}\n{}\n{:?}",
        toolchain.rustc.display(),
        toolchain.linker
    );
    let std_dir: Vec<PathBuf> = toolchain.std_dir().into_iter().collect();
    sh::up_to_date(&stamp, &sh::fingerprint(&recipe, &[])?, &std_dir, || {
        toolchain.verify()
    })?;
    Ok(toolchain)
}

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Below a compiler's sysroot, which is `/usr` of Debian's.
const STD_SOURCE: &str = "lib/rustlib/src/rust/library/std";

/// Debian's wasm linker of the highest version: `wasm-ld-22`, or `wasm-ld`.
fn distribution_linker() -> Option<PathBuf> {
    let versioned = (14..40)
        .rev()
        .find_map(|version| sh::find(&[&format!("/usr/bin/wasm-ld-{version}")]));
    versioned.or_else(|| sh::find(&["/usr/bin/wasm-ld"]))
}

fn debian() -> Result<WasmToolchain> {
    let complete = Path::new("/usr").join(STD_SOURCE).exists()
        && Path::new("/usr/bin/cargo").exists()
        && distribution_linker().is_some();
    if !Path::new(DEBIAN_RUSTC).exists() || !complete {
        apt::install(
            &["rustc-web", "cargo-web", "rust-web-src", "lld-22"],
            &format!("run: rustup target add {TARGET}"),
        )?;
    }
    let toolchain = beside(Path::new(DEBIAN_RUSTC), distribution_linker());
    let Some(std_dir) = toolchain.std_dir() else {
        bail!("{DEBIAN_RUSTC} does not run")
    };
    let version = sh::capture(clean(&toolchain.rustc).arg("-vV")).unwrap_or_default();
    let stamp = std_dir.join("kilim-stamp");
    sh::up_to_date(&stamp, &sh::fingerprint(&version, &[])?, &[], || {
        build_std(&toolchain, &std_dir)
    })?;
    ready(toolchain)
}

/// Builds std for wasm32 with an otherwise empty crate and copies the libraries into the compiler's sysroot.
fn build_std(toolchain: &WasmToolchain, std_dir: &Path) -> Result<()> {
    let dir = sh::target().join("xtask/wasm-std");
    fs::create_dir_all(dir.join("src"))?;
    fs::write(dir.join("src/lib.rs"), "#![no_std]\n")?;
    fs::write(
        dir.join("Cargo.toml"),
        "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n",
    )?;
    let mut cargo = clean(&toolchain.cargo);
    cargo
        .current_dir(&dir)
        .env("RUSTC", &toolchain.rustc)
        .env("CARGO_TARGET_DIR", dir.join("target"));
    // The standard library builds itself only with nightly features; Debian's compiler is a stable one.
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-C embed-bitcode=yes");
    cargo.args([
        "build",
        "--release",
        "--target",
        TARGET,
        "-Zbuild-std=std,panic_abort,panic_unwind,test,proc_macro",
    ]);
    sh::run_quiet("build the wasm32 standard library", &mut cargo)?;
    let built = dir.join("target").join(TARGET).join("release/deps");
    if std_dir.exists() {
        fs::remove_dir_all(std_dir)?;
    }
    fs::create_dir_all(std_dir).with_context(|| {
        format!(
            "cannot write {}; run cargo xtask setup once as root",
            std_dir.display()
        )
    })?;
    for entry in fs::read_dir(&built)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libempty-") {
            fs::copy(entry.path(), std_dir.join(name))?;
        }
    }
    fs::remove_dir_all(&dir)?;
    Ok(())
}
