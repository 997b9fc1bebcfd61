//! Every check of the repository, in order, with its time, and a count at the end.

mod browser;
mod counts;
mod failures;
mod lanes;
mod narrow;
mod platforms;
mod rare;
mod skips;

pub use counts::{Counts, counted};
pub use skips::skip;

use crate::setup::arm::TARGET;
use crate::{arm, build, demo, hostile, setup, sh, site};
use anyhow::{Result, bail};
use lanes::{Lane, Step};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Args {
    /// Run only the steps whose name contains one of these words (`lint`, `unit`, `web` …)
    only: Vec<String>,
}

/// Steps that run where their own sources have changed.
const RARE: &[rare::Rare] = &[
    ARM,
    BUNDLERS,
    CHOICES,
    browser::WEBGPU,
    narrow::RARE,
    platforms::RARE,
];

/// The package in projects of bundlers and frameworks, which depends on how it is laid out and not on what it computes.
const BUNDLERS: rare::Rare = rare::Rare {
    name: "bundlers",
    sources: &[
        "www/fixtures",
        "www/package",
        "www/package.json",
        "www/package-lock.json",
        "www/scripts/build.mjs",
        "www/test/bundlers",
        "www/test/support",
    ],
};

/// What is of AArch64 alone; all else is tested on the machine itself, too.
const ARM: rare::Rare = rare::Rare {
    name: "arm",
    sources: &[
        "crates/native-arm",
        "crates/simd-cpu",
        "crates/host",
        "crates/core/src/backend",
        "xtask/src/arm",
        "xtask/src/setup/arm.rs",
        "xtask/src/setup/half.rs",
    ],
};

/// The facade and the command line without some of their backends, which is about what stands in these two alone.
const CHOICES: rare::Rare = rare::Rare {
    name: "features",
    sources: &["Cargo.toml", "crates/kilim", "crates/cli"],
};

const fn native(name: &'static str, run: fn() -> Result<Counts>) -> Step {
    Step {
        name,
        lane: Lane::Native,
        run,
    }
}

const fn web(name: &'static str, run: fn() -> Result<Counts>) -> Step {
    Step {
        name,
        lane: Lane::Web,
        run,
    }
}

const STEPS: &[Step] = &[
    native("format", || {
        component("fmt", "rustfmt", &["--all", "--check"])
    }),
    native("lint", || {
        let workspace = ["--workspace", "--all-targets", "--", "-D", "warnings"];
        let mut counts = component("clippy", "clippy", &workspace)?;
        counts.add(arm::lint()?);
        counts.add(scripts()?);
        Ok(counts)
    }),
    native("features", features),
    native("conformance export", || {
        Ok(Counts::of(conformance().map(drop)))
    }),
    native("unit tests", || native_tests(&["--lib", "--bins"])),
    native("32-bit", narrow::tests),
    native("integration tests", || native_tests(&["--test", "*"])),
    native("hostile files", hostile::sample),
    native("documentation tests", || native_tests(&["--doc"])),
    native("arm", arm::tests),
    native("opencl", arm::opencl_tests),
    native("platforms", platforms::checks),
    web("web build", || {
        Ok(Counts::of(build::wasm().and_then(|()| build::www())))
    }),
    web("site", documents),
    web("browser tests", browser::tests),
    web("webgpu", browser::webgpu),
    web("web page", || web_page("test")),
    web("bundlers", || web_page("test:bundlers")),
    // Of pages, too, but those take longer than all else.
    native("demo", || Ok(Counts::of(demo::test()))),
];

/// The steps whose names contain one of `words`; without words, all.
fn steps(words: &[String]) -> Result<Vec<&'static Step>> {
    let named = |word: &String, step: &Step| step.name.contains(word.as_str());
    if let Some(word) = words.iter().find(|w| !STEPS.iter().any(|s| named(w, s))) {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!(
            "no step is called `{word}`; there are: {}",
            names.join(", ")
        );
    }
    let chosen = |s: &&Step| words.is_empty() || words.iter().any(|w| named(w, s));
    Ok(STEPS.iter().filter(chosen).collect())
}

pub fn run(args: &Args) -> Result<()> {
    let steps = steps(&args.only)?;
    let start = Instant::now();
    let asked = !args.only.is_empty();
    let outcome = lanes::run(
        &steps,
        &|step| match RARE.iter().find(|rare| rare.name == step.name) {
            Some(rare) => rare.run(asked, step.run),
            None => (step.run)(),
        },
    )?;
    skips::again();
    failures::again();
    println!("\ntime {:.0} s", start.elapsed().as_secs_f64());
    let total = outcome.counts;
    println!(
        "{} passed, {} failed, {} skipped",
        total.passed, total.failed, total.skipped
    );
    if !outcome.failed.is_empty() {
        bail!("failed: {}", outcome.failed.join(", "));
    }
    Ok(())
}

/// A check by a cargo subcommand that not every toolchain brings; rustup adds it where it can.
pub fn component(subcommand: &str, name: &str, args: &[&str]) -> Result<Counts> {
    let there = || sh::capture(sh::cargo().args([subcommand, "--version"])).is_some();
    let add = || {
        sh::run_quiet(
            &format!("rustup component add {name}"),
            sh::cmd("rustup").args(["component", "add", name]),
        )
    };
    if !(there() || add().is_ok() && there()) {
        return Ok(skip(
            &format!("cargo {subcommand}"),
            &format!("this toolchain has no {name}"),
        ));
    }
    counted(sh::cargo().arg(subcommand).args(args))
}

/// Formatter and linter of everything in TypeScript and JavaScript.
fn scripts() -> Result<Counts> {
    setup::npm("www")?;
    counted(sh::npm(&sh::root().join("www")).args(["run", "lint"]))
}

/// The features that choose backends, and the crates that they bring.
const FEATURES: [(&str, &str); 4] = [
    ("cpu", "kilim-simd-cpu"),
    ("wgpu", "kilim-wgpu"),
    ("arm", "kilim-native-arm"),
    ("plugins", "kilim-plugin"),
];

/// Checks the facade and the command line with no feature that chooses a backend, with one, with all but one and with all: any two
/// of them are there together, apart and not at all.
fn features() -> Result<Counts> {
    let mut counts = Counts::default();
    let few = |choice: &usize| {
        let chosen = choice.count_ones() as usize;
        chosen.min(FEATURES.len() - chosen) < 2
    };
    for choice in (0..1usize << FEATURES.len()).filter(few) {
        let chosen = FEATURES.iter().enumerate();
        let chosen: Vec<&str> = chosen
            .filter_map(|(i, (f, _))| (choice >> i & 1 == 1).then_some(*f))
            .collect();
        let names = chosen.iter().map(|f| format!("kilim/{f},kilim-cli/{f}"));
        let names = names.collect::<Vec<_>>().join(",");
        println!("features: {}", chosen.join(" "));
        let packages = ["-p", "kilim", "-p", "kilim-cli"];
        let features = ["--no-default-features", "--features", &names];
        let strict = ["--", "-D", "warnings"];
        let args = [&packages[..], &features, &strict].concat();
        counts.add(component("clippy", "clippy", &args)?);
        counts.add(Counts::of(only_what_is_chosen(&chosen, &features)));
    }
    Ok(counts)
}

/// A backend that is off is not among what the facade is built of. On AArch64, which alone has all of them.
fn only_what_is_chosen(chosen: &[&str], features: &[&str]) -> Result<()> {
    let mut tree = sh::cargo();
    tree.args(["tree", "-p", "kilim", "-p", "kilim-cli", "--target"]);
    tree.args([TARGET, "--edges", "normal", "--prefix", "none"]);
    let crates = sh::capture_or_error(tree.args(features))?;
    for (feature, package) in FEATURES {
        let there = crates.lines().any(|l| l.split(' ').next() == Some(package));
        if there != chosen.contains(&feature) {
            bail!("with the features {chosen:?}, {package} is there: {there}");
        }
    }
    Ok(())
}

/// Native tests of every crate, in the profile and with the features that all native steps share, so that wgpu is
/// compiled once.
fn native_tests(targets: &[&str]) -> Result<Counts> {
    setup::vulkan()?;
    let mut cargo = sh::cargo();
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(targets);
    tell_material(&mut cargo)?;
    counted(&mut cargo)
}

/// Tells tests where the ONNX suite and the shared models lie.
fn tell_material(command: &mut Command) -> Result<()> {
    command.env("KILIM_CONFORMANCE", conformance_dir());
    if let Some(shared) = sh::shared() {
        command.env("KILIM_SHARED", shared);
    }
    Ok(())
}

fn conformance_dir() -> PathBuf {
    sh::target().join("conformance")
}

/// Exports the ONNX suite from the pinned package into `target/conformance`, once.
pub fn conformance() -> Result<PathBuf> {
    let python = setup::python()?;
    let script = sh::root().join("tools/conformance/export.py");
    let out = conformance_dir();
    let inputs = [script.clone(), sh::root().join("tools/requirements.txt")];
    let stamp = sh::target().join("xtask/conformance");
    sh::up_to_date(
        &stamp,
        &sh::fingerprint("export", &inputs)?,
        &[out.join("index.json")],
        || sh::run(sh::cmd(python).arg(&script).arg(&out)),
    )?;
    println!("the suite is in {}", out.display());
    Ok(out)
}

/// The documentation site, and the tests of what makes it.
fn documents() -> Result<Counts> {
    let mut counts = Counts::of(site::build().map(drop));
    let mut node = sh::cmd("node");
    node.args([
        "--test",
        "--test-reporter=./www/test/support/reporter.mjs",
        "site/links.test.mjs",
    ]);
    counts.add(counted(node.current_dir(sh::root()))?);
    Ok(counts)
}

/// The tests of pages that a script of `www/package.json` names.
fn web_page(script: &str) -> Result<Counts> {
    let browser = setup::browser()?;
    browser.require_playwright()?;
    build::wasm()?;
    build::www()?;
    let mut npm = sh::npm(&sh::root().join("www"));
    browser.tell(&mut npm);
    tell_material(&mut npm)?;
    counted(npm.args(["run", script]))
}

#[cfg(test)]
mod tests {
    use super::{FEATURES, STEPS, steps};

    #[test]
    fn a_word_that_names_no_step_is_an_error() {
        let chosen = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
            steps(&words).map(|steps| steps.iter().map(|step| step.name).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
        assert_eq!(chosen(&["lint", "demo"]).unwrap(), ["lint", "demo"]);
        assert_eq!(chosen(&["tests"]).unwrap().len(), 4);
        assert!(chosen(&["lint", "lnit"]).is_err());
    }

    /// Whatever else the facade can be built without must not be forgotten in the combinations.
    #[test]
    fn every_feature_that_chooses_a_backend_is_combined() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
        let manifest = std::fs::read_to_string(format!("{root}/kilim/Cargo.toml")).unwrap();
        let (_, features) = manifest.split_once("\n[features]\n").unwrap();
        let names = features.lines().filter_map(|l| l.split_once(" = "));
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        // Pictures are no backend.
        let others = ["default", "pictures"];
        let backends = names.iter().filter(|name| !others.contains(name));
        let combined: Vec<&str> = FEATURES.iter().map(|(feature, _)| *feature).collect();
        assert_eq!(backends.copied().collect::<Vec<_>>(), combined);
    }
}
