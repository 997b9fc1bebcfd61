//! The binary as a user calls it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../assets")
        .join(name)
}

fn kilim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kilim"))
        .args(args)
        .output()
        .expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs with success and gives what it printed.
fn ok(args: &[&str]) -> String {
    let out = kilim(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs, expects this exit code, and gives the error.
fn fails(code: i32, args: &[&str]) -> String {
    let out = kilim(args);
    assert_eq!(
        out.status.code(),
        Some(code),
        "{args:?}: {}",
        text(&out.stderr)
    );
    text(&out.stderr)
}

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("kilim-cli-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the folder can be made");
    dir
}

fn digits() -> String {
    asset("digits.onnx").display().to_string()
}

#[test]
fn run_reads_a_picture_and_names_the_digit() {
    let input = format!("image={}", asset("digit-3.png").display());
    let out = ok(&[
        "run",
        &digits(),
        "--backends",
        "cpu",
        "--input",
        &input,
        "--top",
        "1",
    ]);
    let best = out.lines().nth(1).and_then(|l| l.split_whitespace().next());
    assert_eq!(best, Some("3"), "{out}");
}

#[test]
fn inspect_draws_the_memory_plan() {
    let dir = folder("memory");
    let file = dir.join("plan.svg");
    let path = file.display().to_string();
    let out = ok(&["inspect", &digits(), "--backends", "cpu", "--memory", &path]);
    assert!(out.contains("arena of"), "{out}");
    let svg = std::fs::read_to_string(&file).expect("the picture is there");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    let report = ok(&["inspect", &digits(), "--backends", "cpu", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let tensors = view["report"]["memory"][0]["tensors"].as_array();
    let count = tensors.expect("a plan").len();
    assert_eq!(svg.matches("<title>").count(), count);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn limit_holds_less_and_says_the_same() {
    let held = |mode: &str| {
        let args = [
            "inspect",
            &digits(),
            "--backends",
            "cpu",
            "--json",
            "--memory-mode",
            mode,
        ];
        let view: serde_json::Value = serde_json::from_str(&ok(&args)).expect("JSON");
        let cpu = &view["report"]["backends"][0];
        let bytes = |name: &str| cpu[name].as_u64().expect("a number");
        bytes("constant_bytes") + bytes("planned_bytes")
    };
    assert!(held("limit") <= held("normal"));
    let input = format!("image={}", asset("digit-3.png").display());
    let run = |mode: &str| {
        let digits = digits();
        let mut args = vec!["run", &digits, "--backends", "cpu", "--input", &input];
        args.extend(["--top", "1", "--memory-mode", mode]);
        let out = ok(&args);
        let best = out.lines().nth(1).and_then(|l| l.split_whitespace().next());
        best.map(str::to_string)
    };
    assert_eq!(run("limit"), run("normal"));
}

#[test]
fn run_saves_what_check_then_accepts() {
    let dir = folder("save");
    let first = dir.join("out.npz").display().to_string();
    let input = format!("image={}", asset("digit-3.png").display());
    ok(&[
        "run",
        &digits(),
        "--backends",
        "cpu",
        "--input",
        &input,
        "--save",
        &first,
    ]);
    let image = asset("digit-3.png");
    let array = dir.join("in.npy");
    let picture = image_as_npy(&image);
    std::fs::write(&array, picture).expect("the array can be written");
    let case = format!("{}:{first}", array.display());
    let out = ok(&["check", &digits(), &case, "--backends", "cpu"]);
    assert!(out.contains("1 passed, 0 missed"), "{out}");
    let wrong = format!("{}:{first}", dir.join("zeros.npy").display());
    std::fs::write(dir.join("zeros.npy"), npy(&[0.0; 784])).expect("the array can be written");
    let out = kilim(&["check", &digits(), &wrong, "--backends", "cpu"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// A `.npy` file of a [1, 1, 28, 28] float32 array.
fn npy(values: &[f32]) -> Vec<u8> {
    let mut header =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }".to_string();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    file
}

fn image_as_npy(file: &Path) -> Vec<u8> {
    let gray = image::open(file)
        .expect("the picture can be read")
        .to_luma8();
    let values: Vec<f32> = gray.pixels().map(|p| f32::from(p.0[0]) / 255.0).collect();
    npy(&values)
}

#[test]
fn inspect_shows_inputs_placement_and_memory() {
    let out = ok(&["inspect", &digits(), "--backends", "cpu"]);
    assert!(
        out.contains("image: float32[") && out.contains("cpu"),
        "{out}"
    );
    let json = ok(&["inspect", &digits(), "--backends", "cpu", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(view["inputs"][0]["name"], "image");
    let nodes = view["report"]["nodes"].as_array().expect("a list");
    assert!(
        nodes
            .iter()
            .any(|n| n["op"] == "Conv" && n["backend"] == "cpu"),
        "{json}"
    );
    assert!(view["report"]["backends"][0]["planned_bytes"].as_u64() > Some(0));
}

#[test]
fn bench_gives_every_figure() {
    let json = ok(&[
        "bench",
        &digits(),
        "--backends",
        "cpu",
        "--runs",
        "3",
        "--json",
    ]);
    let figures: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    for key in ["load_ms", "first_ms", "median_ms"] {
        assert!(figures[key].as_f64() > Some(0.0), "{key}: {json}");
    }
    let nodes = figures["nodes"].as_array().expect("a list");
    assert!(
        nodes
            .iter()
            .any(|n| n["op"] == "Conv" && n["seconds"].as_f64() > Some(0.0))
    );
}

#[test]
fn devices_lists_the_cpu() {
    let out = ok(&["devices"]);
    assert!(out.contains("cpu: ") && out.contains("builtin: "), "{out}");
}

#[test]
fn bad_files_are_typed_errors_with_their_exit_code() {
    let dir = folder("bad");
    let model = std::fs::read(asset("digits.onnx")).expect("the embedded model");
    let write = |name: &str, bytes: &[u8]| {
        let file = dir.join(name);
        std::fs::write(&file, bytes).expect("the file can be written");
        file.display().to_string()
    };
    let cpu = |file: &str| fails(3, &["run", file, "--backends", "cpu"]);
    assert!(cpu(&write("garbage.onnx", &[0x5a; 300])).contains("UNKNOWN_FORMAT"));
    assert!(cpu(&write("empty.onnx", &[])).contains("UNKNOWN_FORMAT"));
    assert!(cpu(&write("cut.onnx", &model[..model.len() / 2])).contains("INVALID_MODEL"));
    let picture = format!("image={}", write("not-a-picture.png", b"hello"));
    let run = ["run", &digits(), "--backends", "cpu", "--input", &picture];
    assert!(fails(4, &run).contains("IO: "));
    assert!(fails(4, &["run", "there-is-none.onnx", "--backends", "cpu"]).contains("IO: "));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn wrong_use_exits_with_2() {
    fails(2, &["run"]);
    let none = [
        "run",
        &digits(),
        "--backends",
        "cpu",
        "--input",
        "nothing=random",
    ];
    assert!(fails(2, &none).contains("has no input `nothing`"));
    let unknown = fails(3, &["run", &digits(), "--backends", "abacus"]);
    assert!(
        unknown.contains("NO_BACKEND") && unknown.contains("abacus"),
        "{unknown}"
    );
}

/// The models beside the repository, if they are there, against their references.
fn manifest(backends: &str) {
    let shared = std::env::var_os("KILIM_SHARED").map(PathBuf::from);
    let file = shared
        .map(|s| s.join("models/manifest.json"))
        .filter(|f| f.exists());
    let Some(file) = file else {
        println!("skipped: KILIM_SHARED has no models/manifest.json");
        return;
    };
    let file = file.display().to_string();
    let args = [
        "check",
        "--manifest",
        &file,
        "--format",
        "onnx,tflite",
        "--backends",
        backends,
    ];
    let out = kilim(&args);
    let printed = text(&out.stdout);
    print!("{printed}");
    assert!(out.status.success(), "{printed}");
    let refused: Vec<&str> = printed
        .lines()
        .filter(|l| l.starts_with("refused"))
        .collect();
    for line in refused {
        let quantised = [
            "quant",
            "int8",
            "model_quantized",
            "micro_speech",
            "kws_ref_model.tflite",
        ];
        assert!(
            quantised.iter().any(|q| line.contains(q)),
            "a float model is refused: {line}"
        );
    }
}

#[test]
fn models_match_their_references_on_cpu() {
    manifest("cpu");
}

#[test]
fn models_match_their_references_on_wgpu() {
    if text(&kilim(&["devices"]).stdout).contains("wgpu: not available") {
        println!("skipped: there is no GPU device");
        return;
    }
    manifest("wgpu,cpu");
}

#[test]
fn pins_and_plugin_folders_are_options() {
    let digits = digits();
    let inspect = ["inspect", &digits, "--backends", "cpu"];
    let inspect = |more: &[&'static str]| [&inspect[..], more].concat();
    ok(&inspect(&[
        "--pin",
        "op:Conv=cpu",
        "--pin",
        "node:none=cpu",
    ]));
    let error = fails(3, &inspect(&["--pin", "op:Conv=wgpu"]));
    assert!(
        error.contains("NO_BACKEND") && error.contains("pinned"),
        "{error}"
    );
    fails(2, &inspect(&["--pin", "Conv=cpu"]));
    let empty = folder("no-plugins");
    let empty = empty.to_str().expect("a folder of ASCII");
    let run = [
        "run",
        &digits,
        "--backends",
        "other",
        "--plugin-path",
        empty,
    ];
    let error = fails(3, &run);
    assert!(
        error.contains("backend_other") && error.contains(empty),
        "{error}"
    );
}

#[test]
fn runs_are_traced() {
    let dir = folder("trace");
    let file = dir.join("trace.json");
    let path = file.display().to_string();
    let more = ["--runs", "3", "--schedule", "overlapped", "--trace", &path];
    ok(&[&["run", &digits(), "--backends", "cpu"][..], &more].concat());
    let text = std::fs::read_to_string(&file).expect("the trace was written");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("the trace is JSON");
    let events = trace["traceEvents"].as_array().expect("there are events");
    let runs: std::collections::BTreeSet<_> = events
        .iter()
        .filter(|e| e["ph"] == "X" && e["cat"] == "cpu")
        .filter_map(|e| e["pid"].as_u64())
        .collect();
    assert_eq!(runs.len(), 3, "{text}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn verify_compares_node_by_node() {
    let out = ok(&["verify", &digits(), "--backends", "cpu", "--all"]);
    assert!(out.contains("0 differ, 0 were skipped"), "{out}");
    assert!(out.contains("Conv"), "{out}");
    fails(
        3,
        &[
            "verify",
            &digits(),
            "--backends",
            "cpu",
            "--candidate",
            "abacus",
        ],
    );
}

#[test]
fn measured_speeds_are_kept() {
    let dir = folder("calibration");
    let file = dir.join("new").join("calibration.json");
    let with_file = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_kilim"))
            .args(args)
            .env("KILIM_CALIBRATION", &file)
            .output()
            .expect("the binary can be started");
        assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
        text(&out.stdout)
    };
    let inspect = ["inspect", &digits(), "--backends", "cpu", "--json"];
    let calibrated = |text: &str| {
        let report: serde_json::Value = serde_json::from_str(text).expect("the report is JSON");
        report["report"]["backends"][0]["calibrated"].clone()
    };
    assert_eq!(calibrated(&with_file(&inspect)), false);
    let out = with_file(&["devices", "--calibrate"]);
    assert!(out.contains("speed (measured)"), "{out}");
    assert_eq!(calibrated(&with_file(&inspect)), true);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn values_that_are_no_tensors_come_in_and_go_out() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = |name: &str| here.join(name).display().to_string();
    let model = path("tests/values/optional_sequence.onnx");
    let cpu = ["--backends", "cpu"];
    let saved = folder("values").join("out.npz").display().to_string();
    let input = path("tests/values/optional_sequence.pb");
    let save = ["run", &model, "--input", &input, "--save", &saved];
    let out = ok(&[&save[..], &cpu].concat());
    assert!(out.contains("output: a sequence of 1"), "{out}");
    assert!(out.contains("output.0: int32[4]"), "{out}");
    // What was saved is a sequence that can be given again.
    let again = ok(&[&["run", &model, "--input", &saved][..], &cpu].concat());
    assert!(again.contains("[1.000000, 2.000000"), "{again}");
    // The model needs what is absent.
    let error = fails(3, &[&["run", &model, "--input", "none"][..], &cpu].concat());
    assert!(error.contains("OptionalGetElement"), "{error}");
    ok(&[
        &["bench", &model, "--runs", "1", "--input", &input][..],
        &cpu,
    ]
    .concat());
    ok(&[&["verify", &model, "--input", &input][..], &cpu].concat());

    let model = path("../../tests/ml/logistic_strings_zipmap/model.onnx");
    let out = ok(&[&["run", &model, "--save", &saved][..], &cpu].concat());
    assert!(out.contains("a sequence of 1 maps"), "{out}");
    assert!(
        out.contains("output_probability.0.keys: string[3]"),
        "{out}"
    );
}

#[test]
fn precision_is_an_option() {
    let input = format!("image={}", asset("digit-3.png").display());
    let best = |more: &[&str]| {
        let digits = digits();
        let mut args = vec!["run", &digits, "--backends", "cpu", "--input", &input];
        args.extend(["--top", "1"]);
        args.extend(more);
        let out = ok(&args);
        let best = out.lines().nth(1).and_then(|l| l.split_whitespace().next());
        assert_eq!(best, Some("3"), "{out}");
        out
    };
    let out = best(&["--precision", "op:Conv=float16"]);
    assert!(out.contains("computes in float16"), "{out}");
    let out = best(&[
        "--mixed-precision",
        "0.01",
        "--sample",
        "random",
        "--sample",
        &input,
    ]);
    assert!(out.contains("mixed precision: 0 of 0 nodes"), "{out}");
    assert!(
        out.contains("in float32: cpu: float16 is not faster"),
        "{out}"
    );
    let out = best(&["--config", "cpu:timers=on"]);
    assert!(out.contains("share"), "{out}");

    let digits = digits();
    let wrong = |more: &[&str]| {
        let mut args = vec!["run", &digits, "--backends", "cpu"];
        args.extend(more);
        args.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (code, more) in [
        (2, &["--mixed-precision", "0.01"][..]),
        (2, &["--precision", "op:Conv=int8"]),
        (2, &["--config", "cpu:speed=on"]),
        (3, &["--precision", "node:none=float16"]),
        (3, &["--config", "cpu:f16=kept"]),
    ] {
        let args = wrong(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        fails(code, &args);
    }
}
