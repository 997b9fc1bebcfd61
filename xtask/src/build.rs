//! The web binaries (one per set of wasm features), the npm package and the app; natively the command-line tool.

use crate::{glue, names, parts, relaxed, setup, sh};
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

#[derive(clap::Args)]
pub struct Args {
    /// Build the `kilim` binary in release mode instead of the web parts
    #[arg(long)]
    native: bool,
    /// Build the web binaries only, without the npm package and the app
    #[arg(long)]
    wasm_only: bool,
    /// Build the one web binary that every browser with SIMD runs, into `www/pkg`
    #[arg(long, conflicts_with = "native")]
    portable: bool,
}

/// One web binary: `www/pkg/kilim.NAME.wasm` with its glue `kilim.NAME.js`.
pub struct Binary {
    name: &'static str,
    package: &'static str,
    rustc_features: &'static str,
    wasm_opt: &'static [&'static str],
    /// Whether threads share its memory.
    threads: bool,
    /// Whether it is split into parts.
    split: bool,
    /// Held by who makes it: steps of tests run side by side.
    making: Mutex<()>,
}

/// The runtime in three variants, and the decoders that it has fetched for models with ImageDecoder.
static BINARIES: [Binary; 4] = [
    Binary {
        name: "simd",
        package: "kilim-web",
        rustc_features: "+simd128",
        wasm_opt: &[],
        threads: false,
        split: true,
        making: Mutex::new(()),
    },
    Binary {
        name: "pictures",
        package: "kilim-web-pictures",
        rustc_features: "+simd128",
        wasm_opt: &[],
        threads: false,
        split: false,
        making: Mutex::new(()),
    },
    Binary {
        name: "relaxed",
        package: "kilim-web",
        rustc_features: "+simd128,+relaxed-simd",
        wasm_opt: &["--enable-relaxed-simd"],
        threads: false,
        split: true,
        making: Mutex::new(()),
    },
    Binary {
        name: "threads",
        package: "kilim-web",
        rustc_features: "+simd128,+relaxed-simd",
        wasm_opt: &["--enable-relaxed-simd", "--enable-threads"],
        threads: true,
        split: true,
        making: Mutex::new(()),
    },
];

/// The variant of the runtime that every browser with SIMD runs. The package whose only variant it is takes a third of the time.
pub static PORTABLE: &Binary = &BINARIES[0];

/// The roofline of the kernels in a page, with the instructions of two variants of the runtime; `cargo xtask bench kernels` alone
/// makes them.
pub static KERNELS: [Binary; 2] = [
    Binary {
        name: "kernels-relaxed",
        package: "kilim-web-kernels",
        rustc_features: "+simd128,+relaxed-simd",
        wasm_opt: &["--enable-relaxed-simd"],
        threads: false,
        split: false,
        making: Mutex::new(()),
    },
    Binary {
        name: "kernels-simd",
        package: "kilim-web-kernels",
        rustc_features: "+simd128",
        wasm_opt: &[],
        threads: false,
        split: false,
        making: Mutex::new(()),
    },
];

/// What every binary's compiler output uses: rustc's defaults for wasm32, and SIMD. The tiles of matrix
/// products stay functions of their own (see `simd-cpu/src/isa/`), though each has one caller, as does what reads the tokenizers of
/// GGUF files, for a part of its own. So do functions above 100 bytes that have one caller: inlined they gave 1.3 % more bytes of
/// brotli, and optimising them again took a quarter of the time. No pointer wraps around into the first kilobyte, where the far end of the stack lies.
const WASM_OPT: &[&str] = &[
    "--no-inline=*::tile::*",
    "--no-inline=*GgufText*",
    "-Oz",
    "--one-caller-inline-max-function-size=100",
    "--low-memory-unused",
    "--enable-simd",
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

pub fn run(args: &Args) -> Result<()> {
    if args.native {
        release_cli()?;
        println!("{}", native_cli("release").display());
        return Ok(());
    }
    if args.portable {
        let tools = Tools::find()?;
        return PORTABLE.finish(&PORTABLE.compile()?, &tools);
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

/// Builds the command-line tool as users have it.
pub fn release_cli() -> Result<()> {
    sh::run(sh::cargo().args(["build", "--release", "-p", "kilim-cli"]))
}

/// The command-line tool as the demo wants it: with the backends alone, and compiled for nothing but to be there soon.
pub fn demo_cli() -> Result<PathBuf> {
    let mut cargo = sh::cargo();
    cargo.args(["build", "-p", "kilim-cli", "--profile", "demo"]);
    cargo.args(["--no-default-features", "--features", "cpu,wgpu"]);
    sh::run_quiet("compile kilim-cli", &mut cargo)?;
    Ok(native_cli("demo"))
}

/// The command-line tool of the tests. They have features that a build of its own would not have, so that all would be compiled anew.
pub fn tested_cli() -> Result<PathBuf> {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--workspace", "--test", "cli", "--no-run"]);
    sh::run_quiet("compile kilim-cli", &mut cargo)?;
    Ok(native_cli("debug"))
}

/// Builds every web binary into `www/pkg`.
pub fn wasm() -> Result<()> {
    let tools = Tools::find()?;
    // A binary is optimised, on one core, while the next is compiled, for the most part on one core.
    thread::scope(|scope| {
        let mut finishing = Vec::new();
        for binary in &BINARIES {
            let built = binary.compile()?;
            let tools = &tools;
            finishing.push(scope.spawn(move || binary.finish(&built, tools)));
        }
        for finished in finishing {
            finished
                .join()
                .map_err(|_| anyhow!("a thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    Ok(())
}

/// Programs that work on what the compiler made.
pub struct Tools {
    bindgen: PathBuf,
    wasm_opt: PathBuf,
}

impl Tools {
    /// Builds or installs those that are missing.
    pub fn find() -> Result<Self> {
        Ok(Self {
            bindgen: setup::bindgen()?,
            wasm_opt: setup::npm("tools")?.join("binaryen/bin/wasm-opt"),
        })
    }
}

impl Binary {
    fn alone(&self) -> MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles it. Gives a file that the next binary of the same package does not overwrite.
    pub fn compile(&self) -> Result<PathBuf> {
        let _making = self.alone();
        let (mut cargo, target_dir) = match self.threads {
            true => {
                let toolchain = setup::threads_toolchain()?;
                let cargo = toolchain.cargo_with_threads(self.rustc_features);
                (cargo, toolchain.threads_target_dir())
            }
            false => {
                let toolchain = setup::wasm_toolchain()?;
                let cargo = toolchain.cargo(self.rustc_features);
                (cargo, toolchain.target_dir(self.rustc_features))
            }
        };
        let target = "wasm32-unknown-unknown";
        cargo.args(["rustc", "-p", self.package, "--profile", "web", "--lib"]);
        cargo.args(["--target", target]);
        if self.split {
            // The split reads which data refers to which (`parts::Layout`).
            cargo.args(["--", "-C", "link-arg=--emit-relocs"]);
        }
        sh::run_quiet(&format!("compile kilim.{}.wasm", self.name), &mut cargo)?;
        let library = format!("{}.wasm", self.package.replace('-', "_"));
        let built = target_dir.join(target).join("web").join(library);
        let own = sh::target()
            .join("xtask")
            .join(format!("built-{}", self.name));
        fs::create_dir_all(&own)?;
        let own = own.join("kilim.wasm");
        fs::copy(&built, &own)?;
        Ok(own)
    }

    /// Makes of what was compiled the binary and its script in `www/pkg`, and what it is split into.
    pub fn finish(&self, built: &Path, tools: &Tools) -> Result<()> {
        let _making = self.alone();
        let pkg = &sh::root().join("www/pkg");
        fs::create_dir_all(pkg)?;
        let recipe = format!(
            "{WASM_OPT:?} {} {:?} {} {}",
            setup::bindgen_fingerprint()?,
            self.wasm_opt,
            include_str!("glue.rs"),
            include_str!("names.rs")
        );
        let mut inputs = vec![built.to_path_buf()];
        let stamp = |name: &str| {
            sh::target()
                .join("xtask")
                .join(format!("{name}-{}", self.name))
        };
        let (script, wasm) = (self.file(pkg, "js"), self.file(pkg, "wasm"));
        let named = self.bound().join("named.wasm");
        let (optimised, stamped) = match self.split {
            true => (&named, "optimised"),
            false => (&wasm, "wasm"),
        };
        let fingerprint = sh::fingerprint(&recipe, &inputs)?;
        let outputs = [script.clone(), optimised.clone()];
        sh::up_to_date(&stamp(stamped), &fingerprint, &outputs, || {
            let raw = self.bind(&tools.bindgen, built, &script)?;
            if self.rustc_features.contains("relaxed-simd") {
                relaxed::check(&raw)?;
            }
            // The split reads the names of functions.
            let names: &[&str] = if self.split { &["-g"] } else { &[] };
            self.optimise(&tools.wasm_opt, &raw, optimised, names)
        })?;
        if !self.split {
            return Ok(());
        }
        let root = sh::root();
        let profile = ["xtask/src/parts", "www/scripts/profile", "tests/references"];
        inputs.extend(sh::files(&profile.map(|folder| root.join(folder))));
        let fingerprint = sh::fingerprint(&recipe, &inputs)?;
        let names = parts::PARTS.iter().chain(&["whole"]);
        let mut outputs: Vec<PathBuf> = names
            .map(|part| self.file(pkg, &format!("{part}.wasm")))
            .collect();
        outputs.extend([wasm, self.file(pkg, "needs.js")]);
        sh::up_to_date(&stamp("wasm"), &fingerprint, &outputs, || {
            let binary = parts::Binary::read(fs::read(&named)?)?;
            let passed = self.profile(&binary, &script)?;
            let (binary, profile) = parts::outline(&binary, &passed)?;
            let layout = parts::Layout::read(&fs::read(built)?)?;
            self.split(&binary, &profile, &layout, pkg)
        })?;
        Ok(())
    }

    fn file(&self, pkg: &Path, extension: &str) -> PathBuf {
        pkg.join(format!("kilim.{}.{extension}", self.name))
    }

    /// Which points are passed by what most pages do.
    fn profile(&self, binary: &parts::Binary, script: &Path) -> Result<parts::Profile> {
        let folder = sh::target()
            .join("xtask")
            .join(format!("profile-{}", self.name));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("kilim.wasm"), parts::counting(binary)?)?;
        fs::copy(script, folder.join("kilim.mjs"))?;
        let found = folder.join("profile.txt");
        let mut node = sh::cmd("node");
        if self.rustc_features.contains("relaxed-simd") {
            node.args(relaxed::node_flag());
        }
        node.arg(sh::root().join("www/scripts/profile/run.mjs"));
        let label = format!("profile {}", self.name);
        sh::run_quiet(&label, node.arg(&folder).arg(&found))?;
        parts::Profile::read(&fs::read_to_string(&found)?)
            .with_context(|| format!("{} is not understood", found.display()))
    }

    /// Writes the core, its parts, and a file that holds all of them.
    fn split(
        &self,
        binary: &parts::Binary,
        profile: &parts::Profile,
        layout: &parts::Layout,
        pkg: &Path,
    ) -> Result<()> {
        let mut owners = parts::owners(binary, profile);
        fs::write(self.file(pkg, "needs.js"), parts::needs(profile, &owners))?;
        let moved = parts::follow(binary, layout, profile, &mut owners)?;
        let hidden = parts::hidden(binary, layout, &owners, &moved);
        let split = parts::Split::new(binary, parts::PARTS, &owners, &moved, hidden);
        let core = split.core()?;
        fs::write(self.file(pkg, "wasm"), &core)?;
        let mut whole = core;
        for (number, part) in parts::PARTS.iter().enumerate() {
            let module = split.part(number)?;
            parts::embed(&mut whole, part, &module);
            fs::write(self.file(pkg, &format!("{part}.wasm")), module)?;
        }
        fs::write(self.file(pkg, "whole.wasm"), whole)?;
        Ok(())
    }

    /// The folder of what wasm-bindgen makes.
    fn bound(&self) -> PathBuf {
        sh::target()
            .join("xtask")
            .join(format!("bind-{}", self.name))
    }

    /// Runs wasm-bindgen, whose names cannot hold a dot: its files are renamed. Returns the binary, not
    /// yet optimised.
    fn bind(&self, program: &Path, built: &Path, script_file: &Path) -> Result<PathBuf> {
        let out = self.bound();
        fs::create_dir_all(&out)?;
        let plain = out.join("linked.wasm");
        fs::write(&plain, parts::without_relocations(&fs::read(built)?)?)?;
        let label = format!("wasm-bindgen {}", self.name);
        sh::run_quiet(&label, sh::cmd(program).arg(&plain).arg(&out))?;
        let script = fs::read_to_string(out.join("kilim.js"))?;
        let bound = fs::read(out.join("kilim_bg.wasm"))?;
        let (script, bound) = names::shorten(&script, &bound)?;
        fs::write(script_file, glue::factory(&script)?)?;
        let raw = out.join("bound.wasm");
        fs::write(&raw, bound)?;
        Ok(raw)
    }

    fn optimise(&self, wasm_opt: &Path, raw: &Path, wasm: &Path, more: &[&str]) -> Result<()> {
        let mut node = sh::cmd("node");
        node.arg(wasm_opt)
            .args(WASM_OPT)
            .args(self.wasm_opt)
            .args(more);
        let label = format!("wasm-opt {}", self.name);
        sh::run_quiet(&label, node.arg(raw).arg("-o").arg(wasm))
    }
}

/// The npm package with the variant [`PORTABLE`] alone and the app with it, in a folder of their own: the package in `kilim/`,
/// the app in `app/`.
pub fn portable_www() -> Result<PathBuf> {
    setup::npm("www")?;
    let dir = sh::root().join("www");
    let out = sh::target().join("demo-package");
    let mut npm = sh::npm(&dir);
    npm.args(["run", "build", "--", "--variants", PORTABLE.name, "--out"]);
    npm.arg(&out);
    sh::run_quiet("make the page", &mut npm)?;
    Ok(out)
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
    sh::run(sh::cmd("node").arg(dir.join("scripts/pages.mjs")))
}
