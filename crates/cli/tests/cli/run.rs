//! `kilim run`: inputs, outputs, and the options of a session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kilim_test_support::archive::Cases;
use kilim_tests::libraries::compile;
use kilim_tests::onnx::{self, Node};

use kilim::formats::onnx::read_tensor;

use crate::support::*;

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

/// The bytes are those that libjpeg-turbo gives, as the operator ImageDecoder has them.
#[test]
fn a_jpeg_is_read_as_the_operator_reads_it() {
    let cases = Cases::of("pictures");
    let stored = |name: &str| {
        let file = cases.file(&format!("jpeg_420_30/test_data_set_0/{name}"));
        read_tensor(file).expect("a tensor").1
    };
    let dir = folder("jpeg");
    let write = |name: &str, bytes: &[u8]| {
        let file = dir.join(name);
        std::fs::write(&file, bytes).expect("the file can be written");
        file.display().to_string()
    };
    let encoded = stored("input_0.pb");
    let jpeg = write("picture.jpg", encoded.as_slice::<u8>().expect("bytes"));
    let pixels = stored("output_0.pb");
    let [height, width, 3] = *pixels.shape() else {
        panic!("{:?} is no picture", pixels.shape());
    };
    let unit = pixels.as_slice::<u8>().expect("bytes").iter();
    let unit: Vec<u8> = unit
        .flat_map(|&p| (f32::from(p) / 255.0).to_le_bytes())
        .collect();
    let pixels = array("<f4", false, &format!("{height}, {width}, 3"), &unit);
    let (pixels, saved) = (write("pixels.npy", &pixels), write("saved.npz", &[]));
    let relu = model(&[("Relu", &["x"], "y")], &["h", "w", "3"]);
    let relu = write("relu.onnx", &relu);
    let cpu = ["--backends", "cpu"];
    ok(&[&["run", &relu, "-i", &jpeg, "--save", &saved][..], &cpu].concat());
    let case = format!("{pixels}:{saved}");
    let exact = ["--rtol", "0", "--atol", "0"];
    ok(&[&["check", &relu, &case][..], &exact, &cpu].concat());
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
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
        "node:conv1=cpu",
    ]));
    let error = fails(3, &inspect(&["--pin", "op:Conv=wgpu"]));
    assert!(
        error.contains("NO_BACKEND") && error.contains("pinned"),
        "{error}"
    );
    let error = fails(3, &inspect(&["--pin", "node:none=cpu"]));
    assert!(error.contains("no node is called `none`"), "{error}");
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
fn libraries_are_looked_for_in_folders_of_options_and_of_the_environment() {
    let dir = folder("plugin-path");
    let [works, fails_to_open, empty] = ["works", "broken", "empty"].map(|name| {
        let folder = dir.join(name);
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        folder
    });
    compile("examples/plugin-c/scale.c", &works, "scale", &[]);
    let broken = "BROKEN=1".to_string();
    compile("tests/plugins/broken.c", &fails_to_open, "scale", &[broken]);
    let digits = digits();
    let inspect = |options: &[&PathBuf], environment: &[&PathBuf]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kilim"));
        command.args(["inspect", &digits, "--backends", "scale,cpu"]);
        for folder in options {
            command.arg("--plugin-path").arg(folder);
        }
        let folders = std::env::join_paths(environment).expect("the names are plain");
        command.env("KILIM_BACKEND_PATH", folders);
        // What the C library looks up in libraries, in words.
        command.env("LD_DEBUG", "symbols");
        let out = command.output().expect("the binary can be started");
        (out.status.success(), text(&out.stdout) + &text(&out.stderr))
    };
    let works_with = |options: &[&PathBuf], environment: &[&PathBuf]| {
        let (ok, out) = inspect(options, environment);
        let said = |what: &str| out.contains(what);
        assert_eq!(
            ok,
            said("a sample in C") && !said("there is no such device")
        );
        ok
    };
    assert!(works_with(&[], &[&empty, &works]));
    assert!(works_with(&[&works], &[]));
    assert!(!works_with(&[], &[]));
    assert!(!works_with(&[&empty], &[&empty]));
    // Those of the options go first, and in either list the first one that has it.
    assert!(works_with(&[&works], &[&fails_to_open]));
    assert!(!works_with(&[&fails_to_open], &[&works]));
    assert!(works_with(&[&works, &fails_to_open], &[]));
    assert!(!works_with(&[], &[&fails_to_open, &works]));

    let (_, out) = inspect(&[&works], &[]);
    let looked_up = out.split("symbol=").skip(1);
    let names = looked_up.filter_map(|rest| rest.split([';', ' ', '\n']).next());
    let own: BTreeSet<&str> = names.filter(|n| n.contains("kilim")).collect();
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let both = ["kilim_backend_create", "kilim_backend_destroy"];
        assert_eq!(own, BTreeSet::from(both));
    }
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// Which then takes the program along.
#[test]
fn a_library_may_be_loaded_without_a_trial() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let dir = folder("trial");
    let crashes = "BROKEN=18".to_string();
    compile("tests/plugins/broken.c", &dir, "broken", &[crashes]);
    let digits = digits();
    let inspect = |trial: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kilim"));
        command.args(["inspect", &digits, "--backends", "broken", "--plugin-path"]);
        command.arg(&dir).env("KILIM_BACKEND_TRIAL", trial);
        command.output().expect("the binary can be started")
    };
    let tried = inspect("on");
    assert_eq!(tried.status.code(), Some(3));
    assert!(text(&tried.stderr).contains("crashes as it creates its backend"));
    assert_eq!(inspect("off").status.code(), None);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
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

    let model = folder("values").join("maps.onnx").display().to_string();
    let cases = Cases::of("ml");
    let stored = cases.file("logistic_strings_zipmap/model.onnx");
    std::fs::write(&model, stored).expect("the file can be written");
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
        (2, &["--config", "cpu:speed"]),
        (3, &["--config", "cpu:speed=on"]),
        (3, &["--precision", "node:none=float16"]),
        (3, &["--config", "cpu:f16=kept"]),
    ] {
        let args = wrong(more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        fails(code, &args);
    }
}

#[test]
fn run_computes_the_outputs_that_are_named() {
    let node = |op, inputs, outputs| Node {
        domain: "",
        op,
        inputs,
        outputs,
        attributes: &[],
    };
    let nodes = [
        node("Neg", &["x"], &["negated"]),
        node("Exp", &["x"], &["raised"]),
    ];
    let outputs: [(&str, &[&str]); 2] = [("negated", &["2"]), ("raised", &["2"])];
    let file = folder("outputs").join("two.onnx");
    std::fs::write(&file, onnx::model(&nodes, &[("x", &["2"])], &outputs)).expect("a file");
    let file = file.display().to_string();
    let run = ["run", &file, "--backends", "cpu"];
    let out = ok(&[&run[..], &["--outputs", "neg*"]].concat());
    assert!(
        out.contains("negated: ") && !out.contains("raised"),
        "{out}"
    );
    let unknown = fails(3, &[&run[..], &["--outputs", "negated,z"]].concat());
    assert!(unknown.contains("`z`"), "{unknown}");
}
