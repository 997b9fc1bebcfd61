//! `kilim check`: cases by hand, and the models of a manifest.

use std::path::PathBuf;

use kilim_test_support::{material, skip};

use crate::support::*;

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

#[test]
fn references_may_be_stored_in_half_precision() {
    let dir = folder("half");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.join(name), bytes).expect("the file can be written");
        dir.join(name).display().to_string()
    };
    let neg = write("neg.onnx", &model(&[("Neg", &["x"], "y")], &["2"]));
    let singles: Vec<u8> = [1.0f32, -2.5]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let x = write("x.npy", &array("<f4", false, "2,", &singles));
    let halves = |bits: [u16; 2]| array("<f2", false, "2,", &bits.map(u16::to_le_bytes).concat());
    let checked = |y: &str| kilim(&["check", &neg, &format!("{x}:{y}"), "--backends", "cpu"]);
    let right = checked(&write("right.npy", &halves([0xbc00, 0x4100])));
    assert!(right.status.success(), "{}", text(&right.stdout));
    let wrong = checked(&write("wrong.npy", &halves([0xbc00, 0x4200])));
    assert_eq!(wrong.status.code(), Some(1), "{}", text(&wrong.stdout));
    let integers = checked(&write("integers.npy", &array("<i2", false, "2,", &[0; 4])));
    assert_eq!(
        integers.status.code(),
        Some(1),
        "{}",
        text(&integers.stdout)
    );
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn a_comparison_with_nothing_does_not_pass() {
    let dir = folder("nothing");
    let path = |name: &str| dir.join(name).display().to_string();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(dir.join(name), bytes).expect("the file can be written");
        path(name)
    };
    let given = write("in.npy", &npy(&[0.0; 784]));
    // An archive without entries is an end of its directory alone.
    let none = write("none.npz", &[&b"PK\x05\x06"[..], &[0; 18]].concat());
    let case = format!("{given}:{none}");
    let out = kilim(&["check", &digits(), &case, "--backends", "cpu"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("no reference"));

    for case in [given.as_str(), "no-such-folder"] {
        let error = fails(2, &["check", &digits(), case, "--backends", "cpu"]);
        assert!(error.contains("neither a folder nor"), "{error}");
    }
    let empty = write("manifest.json", br#"{"models": []}"#);
    assert!(fails(2, &["check", "--manifest", &empty]).contains("nothing was compared"));
    let absent = ["check", "--manifest", &empty, "--backends", "abacus"];
    assert!(fails(3, &absent).contains("NO_BACKEND"));
    assert!(fails(4, &["check", "--manifest", &given]).contains("is not a manifest"));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// The manifest of the collected models, if they are there.
fn manifest() -> Option<PathBuf> {
    Some(material::models()?.join("manifest.json"))
}

fn is_gpu_there() -> bool {
    let there = !text(&kilim(&["devices"]).stdout).contains("wgpu: not available");
    if !there {
        skip("there is no GPU");
    }
    there
}

/// Whether a file of the manifest, or the line of one, is of a quantised model.
fn is_quantised(file: &str) -> bool {
    let names = [
        "quant",
        "int8",
        "model_quantized",
        "micro_speech",
        "kws_ref_model.tflite",
    ];
    names.iter().any(|name| file.contains(name))
}

/// Every model of the manifest in a format that is read, against its references.
fn references(backends: &str) {
    let Some(file) = manifest() else { return };
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
    for line in printed.lines().filter(|l| l.starts_with("refused")) {
        assert!(is_quantised(line), "a float model is refused: {line}");
    }
}

#[test]
fn models_match_their_references_on_cpu() {
    references("cpu");
}

#[test]
fn models_match_their_references_on_wgpu() {
    if is_gpu_there() {
        references("wgpu,cpu");
    }
}

/// Every float model is on the GPU, control flow and shape arithmetic aside, in fewer dispatches than the
/// file has nodes.
#[test]
fn float_models_are_whole_on_the_gpu_in_few_dispatches() {
    let Some(file) = manifest().filter(|_| is_gpu_there()) else {
        return;
    };
    let bytes = std::fs::read(&file).expect("the manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let mut seen = 0;
    for model in list(&manifest["models"]) {
        let folder = file.with_file_name(model["name"].as_str().expect("a name"));
        for variant in list(&model["variants"]) {
            let name = variant["files"][0].as_str().expect("a file");
            let format = variant["format"].as_str().expect("a format");
            if !["onnx", "tflite"].contains(&format) || is_quantised(name) {
                continue;
            }
            let path = folder.join(name).display().to_string();
            if list(&variant["cases"]).is_empty() {
                continue;
            }
            let gpu = ["--backends", "wgpu,cpu", "--place", "fixed", "--json"];
            let view = ok(&[&["inspect", &path][..], &gpu].concat());
            let report =
                serde_json::from_str::<serde_json::Value>(&view).expect("JSON")["report"].take();
            for node in list(&report["nodes"]) {
                assert_ne!(node["backend"], "cpu", "{name}: {node}");
            }
            let launches = list(&report["backends"])
                .iter()
                .find(|b| b["id"] == "wgpu")
                .and_then(|b| b["launches"].as_u64());
            let nodes = report["nodes_loaded"].as_u64();
            assert!(launches < nodes, "{name}: {launches:?} for {nodes:?} nodes");
            seen += 1;
        }
    }
    assert!(seen > 0);
}
