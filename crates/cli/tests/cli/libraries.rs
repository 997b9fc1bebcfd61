//! Backends in libraries as the command line has them: listed, measured, timed, and closed at the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use kilim_tests::libraries::{compile, compile_to, importer_file_name};

use crate::support::*;

/// The numbers of `tests/plugins/broken.c`.
const REFUSES_ALL: u32 = 6;
const LONGER_TABLE: u32 = 11;
const CREATION_EXITS: u32 = 21;
const CREATION_HANGS: u32 = 22;
#[cfg(feature = "conform")]
const WRONG_RESULTS: u32 = 50;

/// A library that goes wrong, with a log of what is created and destroyed.
fn broken(dir: &Path, how: u32) -> PathBuf {
    let log = dir.join("log");
    let defines = [
        format!("BROKEN={how}"),
        format!("LOG=\"{}\"", log.display()),
    ];
    compile("tests/plugins/broken.c", dir, "broken", &defines);
    log
}

/// `y = exp(relu(x))`: the sample in C runs Relu alone.
fn rectified(dir: &Path) -> String {
    let file = dir.join("rectified.onnx");
    let nodes: [(&str, &[&str], &str); 2] = [("Relu", &["x"], "r"), ("Exp", &["r"], "y")];
    std::fs::write(&file, model(&nodes, &["4"])).expect("the file can be written");
    file.display().to_string()
}

fn with_library(dir: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kilim"));
    command.args(args).arg("--plugin-path").arg(dir);
    command.envs(environment.iter().copied());
    command.output().expect("the binary can be started")
}

#[test]
fn what_a_library_ran_is_timed_by_its_calls() {
    let dir = folder("bench-library");
    compile("examples/plugin-c/scale.c", &dir, "scale", &[]);
    let model = rectified(&dir);
    let bench = [
        "bench",
        &model,
        "--backends",
        "scale,cpu",
        "--place",
        "fixed",
        "--runs",
        "2",
    ];
    let out = text(&with_library(&dir, &bench, &[]).stdout);
    let (timed, untimed) = out
        .split_once("`scale` does not time its 1 nodes")
        .unwrap_or_else(|| panic!("{out}"));
    assert!(timed.contains("Exp") && !timed.contains("Relu"), "{out}");
    // Nodes are called like their outputs.
    let row = untimed
        .lines()
        .find(|line| line.trim_start().starts_with("r "));
    assert!(row.is_some(), "{out}");
    let json = text(&with_library(&dir, &[&bench[..], &["--json"]].concat(), &[]).stdout);
    let figures: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let scale = &figures["untimed"][0];
    assert_eq!(
        (&scale["backend"], &scale["nodes"]),
        (&"scale".into(), &1.into()),
        "{json}"
    );
    assert!(scale["steps"][0]["seconds"].as_f64() > Some(0.0), "{json}");
    // Where everything is timed, nothing is said.
    let out = ok(&["bench", &model, "--backends", "cpu", "--runs", "2"]);
    assert!(!out.contains("does not time"), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn libraries_are_listed_and_measured() {
    let dir = folder("devices-library");
    let kept = dir.join("calibration.json").display().to_string();
    let here = [("KILIM_CALIBRATION", kept.as_str())];
    compile("examples/plugin-c/scale.c", &dir, "scale", &[]);
    let out = text(&with_library(&dir, &["devices"], &here).stdout);
    assert!(out.contains("scale: a sample in C"), "{out}");
    assert!(!ok(&["devices"]).contains("scale: "));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kilim"));
    command.arg("devices").env("KILIM_BACKEND_PATH", &dir);
    let out = text(&command.output().expect("it starts").stdout);
    assert!(out.contains("scale: a sample in C"), "{out}");

    broken(&dir, REFUSES_ALL);
    let out = with_library(&dir, &["devices", "--calibrate"], &here);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = text(&out.stdout);
    let (_, scale) = out
        .split_once("scale: a sample in C")
        .expect("it is listed");
    let speed = scale.lines().find(|line| line.contains("speed ("));
    assert!(speed.is_some_and(|s| s.contains("(measured)")), "{out}");
    let (_, refuses) = out.split_once("broken: ").expect("it is listed");
    assert!(refuses.contains("not measured: it runs neither"), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn options_of_backends_are_listed_and_nodes_timed() {
    let dir = folder("grown-library");
    let defines = [
        format!("LOG=\"{}\"", dir.join("log").display()),
        "TIME=0.25".to_string(),
        "INITIAL=\"4\"".to_string(),
    ];
    compile("tests/plugins/grown.c", &dir, "grown", &defines);
    let out = text(&with_library(&dir, &["devices"], &[]).stdout);
    let option = "--config grown:mode=fast|exact  what counts more";
    assert!(out.contains(option), "{out}");
    if !out.contains("wgpu: not available") && out.contains("wgpu: ") {
        assert!(out.contains("device 0: "), "{out}");
        assert!(out.contains("--config wgpu:power=high|low"), "{out}");
    }
    let model = rectified(&dir);
    let bench = [
        "bench",
        &model,
        "--backends",
        "grown,cpu",
        "--place",
        "fixed",
        "--runs",
        "2",
        "--config",
        "grown:mode=exact",
    ];
    let out = text(&with_library(&dir, &bench, &[]).stdout);
    assert!(out.contains("Relu") && out.contains("Exp"), "{out}");
    assert!(!out.contains("does not time"), "{out}");
    let wrong = with_library(
        &dir,
        &[
            "run",
            &model,
            "--backends",
            "grown,cpu",
            "--config",
            "grown:node=1",
        ],
        &[],
    );
    assert_eq!(wrong.status.code(), Some(3));
    assert!(
        text(&wrong.stderr).contains("did you mean `mode`?"),
        "{}",
        text(&wrong.stderr)
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn a_library_is_closed_at_the_end() {
    for (name, code, args) in [
        ("closed", 0, &["run", "MODEL"][..]),
        (
            "closed-verify",
            0,
            &["verify", "MODEL", "--candidate", "broken"],
        ),
        ("closed-devices", 0, &["devices"]),
        (
            "closed-error",
            3,
            &["run", "MODEL", "--pin", "op:Exp=broken"],
        ),
    ] {
        let dir = folder(name);
        let log = broken(&dir, LONGER_TABLE);
        let file = dir.join("relu.onnx");
        std::fs::write(&file, model(&[("Relu", &["x"], "y")], &["4"])).expect("it can be written");
        let file = file.display().to_string();
        let mut args: Vec<&str> = args
            .iter()
            .map(|&arg| if arg == "MODEL" { &file[..] } else { arg })
            .collect();
        if args[0] != "devices" {
            args.extend(["--backends", "broken,cpu"]);
        }
        let out = with_library(&dir, &args, &[("KILIM_BACKEND_TRIAL", "off")]);
        assert_eq!(
            out.status.code(),
            Some(code),
            "{name}: {}",
            text(&out.stderr)
        );
        let log = std::fs::read_to_string(log).expect("it was opened");
        assert_eq!(log, "+-", "{name}");
        std::fs::remove_dir_all(dir).expect("the folder can be removed");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_ends_the_process_or_hangs_is_an_error() {
    let dir = folder("trials");
    let model = rectified(&dir);
    let run = ["run", &model, "--backends", "broken,cpu"];
    for (how, word) in [
        (
            CREATION_EXITS,
            "ends the process as it creates its backend: got exit status 0",
        ),
        (
            CREATION_HANGS,
            "hangs as it creates its backend: got nothing for 1s",
        ),
    ] {
        broken(&dir, how);
        let start = Instant::now();
        let out = with_library(&dir, &run, &[("KILIM_BACKEND_TRIAL", "1")]);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{error}");
        assert!(
            error.contains("error: DEVICE: ") && error.contains(word),
            "{error}"
        );
        assert!(start.elapsed() < Duration::from_secs(9), "{error}");
    }
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[cfg(feature = "conform")]
#[test]
fn a_library_is_tried_with_the_operator_cases() {
    let dir = folder("conform");
    compile("examples/plugin-c/scale.c", &dir, "scale", &[]);
    rectified(&dir);
    std::fs::write(dir.join("notes.txt"), "no model").expect("it can be written");
    let models = dir.display().to_string();
    let conform = ["conform", "--backends", "scale", "--models", &models];
    let json = with_library(&dir, &[&conform[..], &["--json"]].concat(), &[]);
    assert!(json.status.success(), "{}", text(&json.stderr));
    let found: serde_json::Value = serde_json::from_str(&text(&json.stdout)).expect("it is JSON");
    let operators = &found["operators"];
    let count = |what: &str| operators[what].as_array().map_or(0, Vec::len);
    assert!(count("passed") > 0 && count("refused") > 100, "{operators}");
    assert_eq!(count("wrong"), 0, "{operators}");
    let passed = operators["passed"].as_array().expect("a list");
    assert!(
        passed
            .iter()
            .all(|p| p["error"].as_f64() <= p["tolerance"].as_f64())
    );
    let models = found["models"].as_array().expect("a list");
    assert_eq!(models.len(), 1, "{models:?}");
    assert_eq!(models[0]["model"], "rectified.onnx");

    let out = with_library(
        &dir,
        &["conform", "--backends", "scale", "--cases", "relu"],
        &[],
    );
    let out = text(&out.stdout);
    assert!(out.contains("scale (a sample in C): "), "{out}");
    let all = text(&with_library(&dir, &conform, &[]).stdout);
    assert!(
        all.contains("model rectified.onnx: 1 nodes agree, 0 differ"),
        "{all}"
    );
    assert!(
        all.contains(": only Relu, Add and com.example::Scale"),
        "{all}"
    );

    // A backend that is wrong has no good score.
    broken(&dir, WRONG_RESULTS);
    let out = with_library(
        &dir,
        &["conform", "--backends", "broken", "--cases", "Relu"],
        &[],
    );
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    assert!(
        text(&out.stdout).contains("wrong: "),
        "{}",
        text(&out.stdout)
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// The exit code of `examples/plugin-c/conform.sh`, as authors of libraries in C call it.
#[cfg(all(feature = "conform", target_os = "linux"))]
#[test]
fn a_script_tries_a_library_in_c() {
    let script = asset("../examples/plugin-c/conform.sh");
    let conform = |id: &str, source: &str, flags: String| {
        let mut command = Command::new(&script);
        command.args([id, source, "--cases", "Relu"]);
        command.current_dir(asset("..")).env("CFLAGS", flags);
        command.env("KILIM", env!("CARGO_BIN_EXE_kilim"));
        let out = command.output().expect("the script can be started");
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    };
    let (code, out) = conform("scale", "examples/plugin-c/scale.c", String::new());
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("scale (a sample in C): "), "{out}");
    let broken = "tests/plugins/broken.c";
    let (code, out) = conform("broken", broken, format!("-DBROKEN={WRONG_RESULTS}"));
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("wrong: "), "{out}");
    let (code, out) = conform(
        "other",
        "examples/plugin-c/scale.c",
        "-Dkilim_backend_create=none".into(),
    );
    assert_eq!(code, Some(3), "{out}");
    let (code, out) = conform("scale", "examples/plugin-c/none.c", String::new());
    assert_eq!(code, Some(5), "{out}");
}

#[test]
fn a_format_is_read_by_a_library() {
    let dir = folder("importer");
    let library = dir.join(importer_file_name("chain"));
    compile_to("examples/plugin-c/chain.c", &library, &[]);
    let file = dir.join("model.mine");
    std::fs::write(&file, "chain 1\nscale -0.5\nrelu\n").expect("the file can be written");
    let model = file.display().to_string();
    let out = with_library(&dir, &["inspect", &model, "--backends", "cpu"], &[]);
    let shown = text(&out.stdout);
    assert!(shown.contains("line 2"), "{shown}{}", text(&out.stderr));

    let mut run = Command::new(env!("CARGO_BIN_EXE_kilim"));
    run.args(["run", &model, "--backends", "cpu", "--dim", "n=3"]);
    let without = run.output().expect("the binary can be started");
    assert!(text(&without.stderr).contains("UNKNOWN_FORMAT"));
    run.env("KILIM_BACKEND_PATH", &dir);
    let with = run.output().expect("the binary can be started");
    assert!(with.status.success(), "{}", text(&with.stderr));
}
