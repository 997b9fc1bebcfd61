//! AArch64 under emulation: the NEON kernels of the `cpu` backend, the backends of the ARM Compute
//! Library against its oldest and newest release and a build with float16, and whole models on them.

mod library;

use crate::setup::arm::{self, ACL, ArmToolchain, Emulation};
use crate::setup::{half, opencl, rust_std};
use crate::sh;
use crate::test::{Counts, component, counted, skip};
use anyhow::{Context, Result, anyhow, bail};
use std::path::PathBuf;
use std::process::Command;

/// The crates of the backend `cpu`.
const HOST: [&str; 3] = ["kilim-host", "kilim-reference-cpu", "kilim-simd-cpu"];

/// Models of the shared material that an emulator runs in seconds, and the formats they are in.
const MODELS: [(&str, &str); 6] = [
    ("angle-net", "onnx"),
    ("mnist-int8-onnx", "onnx"),
    ("mnist-tengine", "onnx"),
    ("resnet8-cifar", "tflite"),
    ("kws-dscnn", "tflite"),
    ("mobilenet-v1-025", "tflite"),
];

/// The models that are there in int8, too. In ACL's own arithmetic all nodes run on `acl_neon`.
const QUANTISED: [(&str, &str); 3] = [MODELS[3], MODELS[4], MODELS[5]];

pub fn tests() -> Result<Counts> {
    let toolchain = match arm::toolchain()? {
        Ok(toolchain) => toolchain,
        Err(reason) => return Ok(skip("AArch64", &reason)),
    };
    let mut counts = Counts::default();
    let mut newest = None;
    for release in &ACL {
        match release.unpack() {
            Err(e) => counts.add(skip(&format!("ACL {}", release.version), &format!("{e:#}"))),
            Ok(acl) => {
                let emulation = acl.emulation(&acl.shim()?);
                println!("on ACL {}", release.version);
                let mut cargo = test(&toolchain, &emulation);
                cargo.args([
                    "--test", "neon", "--test", "cl", "--test", "table", "--test", "threads",
                ]);
                counts.add(counted(&mut cargo)?);
                // Other instructions multiply bytes there.
                let plain = Emulation {
                    cpu: "cortex-a53",
                    ..acl.emulation(&acl.shim()?)
                };
                let mut cargo = test(&toolchain, &plain);
                let filters = ["quantization", "pooling", "native"];
                cargo.args(["--test", "neon", "--"]).args(filters);
                counts.add(counted(&mut cargo)?);
                newest = Some(emulation);
            }
        }
    }
    counts.add(half_tests(&toolchain)?);
    let emulation = newest.unwrap_or_else(Emulation::plain);
    let mut cargo = test(&toolchain, &emulation);
    cargo.arg("--lib");
    // Quantised results are the same bytes on every instruction set.
    cargo.args(["--test", "embedded", "--test", "references"]);
    cargo.args(["--test", "operators"]);
    // The kernels of `cpu` have their own tests.
    cargo.args(["--", "--skip", "operators_on_cpu"]);
    // A program cannot start itself under the emulator, and NEON is all there is.
    cargo.args(["--skip", "operators_on_every_instruction_set"]);
    counts.add(counted(&mut cargo)?);
    counts.add(Counts::of(library::absent(&toolchain)));
    if emulation
        .variables
        .iter()
        .any(|(name, _)| *name == "KILIM_ACL")
    {
        counts.add(Counts::of(library::order(&toolchain, &emulation)));
    }
    counts.add(models(&toolchain, &emulation)?);
    Ok(counts)
}

/// The tests of the operators on a build of ACL that has float16, SVE and bfloat16.
fn half_tests(toolchain: &ArmToolchain) -> Result<Counts> {
    let acl = match half::unpack() {
        Ok(acl) => acl,
        Err(e) if e.is::<half::NotThere>() => {
            return Ok(skip("ACL with float16", &format!("{e:#}")));
        }
        Err(e) => return Err(e),
    };
    println!("on ACL {} with float16", acl.version);
    let shim = acl.shim()?;
    // There, what has no float16 fails.
    let asked = |cpu| {
        let mut emulation = acl.emulation(&shim);
        emulation.variables.push(("KILIM_HALF", "1".into()));
        Emulation { cpu, ..emulation }
    };
    let mut cargo = test(toolchain, &asked("max"));
    cargo.args(["--test", "neon", "--test", "table"]);
    let mut counts = counted(&mut cargo)?;
    // float16 without SVE, whose kernels ACL prefers.
    let mut cargo = test(toolchain, &asked("neoverse-n1"));
    cargo.args(["--test", "neon", "--", "float16"]);
    counts.add(counted(&mut cargo)?);
    Ok(counts)
}

/// The kernels of `acl_cl` on PoCL. Compiling them takes minutes the first time, so that this is done
/// where `KILIM_OPENCL` asks for it.
pub fn opencl_tests() -> Result<Counts> {
    if std::env::var_os("KILIM_OPENCL").is_none() {
        return Ok(skip("acl_cl on PoCL", "KILIM_OPENCL is not set"));
    }
    let toolchain = match arm::toolchain()? {
        Ok(toolchain) => toolchain,
        Err(reason) => return Ok(skip("acl_cl on PoCL", &reason)),
    };
    let mut counts = Counts::default();
    for release in ACL.iter().filter(|release| release.opencl) {
        let acl = release.unpack()?;
        println!("on ACL {} with OpenCL", release.version);
        let emulation = opencl::emulation(&acl, &acl.shim()?)?;
        let mut cargo = test(&toolchain, &emulation);
        // One after another: a kernel is compiled for everyone who waits for it.
        cargo.args(["--test", "cl", "--test", "table"]);
        cargo.args(["--", "--test-threads", "1"]);
        // Of another processor: that of the other lane.
        cargo.args(["--skip", "what_acl_neon_runs"]);
        counts.add(counted(&mut cargo)?);
    }
    Ok(counts)
}

/// `cargo test` for the packages that run on AArch64, without wgpu. The kernels are lightly
/// optimised: they are built quickly, and the emulator is slow anyway.
fn test(toolchain: &ArmToolchain, emulation: &Emulation) -> Command {
    let mut cargo = toolchain.cargo(emulation);
    cargo.args(["test", "--no-fail-fast", "--target", arm::TARGET]);
    for package in HOST {
        let light = format!("profile.dev.package.{package}.opt-level=1");
        cargo.args(["--config", &light]);
    }
    // All of them each time: other packages have other features on, and what they share would be compiled once more.
    for package in HOST
        .iter()
        .chain(&["kilim-native-arm", "kilim-tests", "kilim-cli"])
    {
        cargo.args(["-p", package]);
    }
    let features = "kilim-cli/cpu,kilim-cli/arm";
    cargo.args(["--no-default-features", "--features", features]);
    cargo
}

/// Lints the crates with code for AArch64 alone, on any host that has its standard library.
pub fn lint() -> Result<Counts> {
    if !rust_std(arm::TARGET) {
        return Ok(skip(
            "lint for AArch64",
            &format!("run: rustup target add {}", arm::TARGET),
        ));
    }
    let mut args = vec!["--target", arm::TARGET, "--all-targets"];
    for package in HOST.iter().chain(&["kilim-native-arm"]) {
        args.extend(["-p", package]);
    }
    args.extend(["--", "-D", "warnings"]);
    component("clippy", "clippy", &args)
}

/// The binary that `cargo test` has built beside the tests of its package.
fn kilim() -> PathBuf {
    sh::target().join(arm::TARGET).join("debug/kilim")
}

/// Whole models on `acl_neon` against their references.
fn models(toolchain: &ArmToolchain, emulation: &Emulation) -> Result<Counts> {
    let Some(shared) = sh::shared() else {
        return Ok(skip(
            "models on acl_neon",
            "KILIM_SHARED names no such folder",
        ));
    };
    let (mut counts, mut wholly) = (Counts::default(), 0);
    let references = |(model, format): (&str, &str), config: &[&str]| {
        let mut command = emulation.command(toolchain, &kilim());
        command
            .args(["check", "--manifest"])
            .arg(shared.join("models/manifest.json"))
            .args(["--only", model, "--format", format])
            // Whatever acl_neon takes, however the partitioner would price it.
            .args(["--backends", "acl_neon,cpu", "--place", "fixed"])
            .args(config);
        places(&mut command).with_context(|| format!("{model} ({format})"))
    };
    let alone = |place: &String| place.starts_with("acl_neon ");
    for model in MODELS {
        let result = references(model, &[]);
        wholly += usize::from(result.as_ref().is_ok_and(|places| places.iter().any(alone)));
        counts.add(Counts::of(result.map(drop)));
    }
    for model in QUANTISED {
        let result = references(model, &["--config", "acl_neon:quantized=native"]);
        counts.add(Counts::of(result.and_then(
            |places| match places.iter().all(alone) {
                true => Ok(()),
                false => Err(anyhow!("{} is not on acl_neon alone: {places:?}", model.0)),
            },
        )));
    }
    counts.add(Counts::of(match wholly {
        3.. => Ok(()),
        _ => Err(anyhow!("{wholly} models ran on acl_neon alone")),
    }));
    Ok(counts)
}

/// All cases pass, and some have nodes on `acl_neon`; where those are that have.
fn places(check: &mut Command) -> Result<Vec<String>> {
    let text = sh::capture_or_error(check)?;
    let place = |line: &str| {
        let (_, place) = line.strip_prefix("pass ")?.rsplit_once(" on ")?;
        place.contains("acl_neon").then(|| place.to_string())
    };
    let places: Vec<String> = text.lines().filter_map(place).collect();
    println!("{text}");
    if places.is_empty() {
        bail!("no case ran on acl_neon");
    }
    Ok(places)
}
