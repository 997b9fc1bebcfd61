//! `kilim bench`, `devices` and `verify`.

use std::process::Command;

use kilim_test_support::skip;

use crate::support::*;

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
    let memory = |key: &str| figures["memory"][key].as_u64();
    let held = memory("weights").zip(memory("planned")).map(|(w, p)| w + p);
    if cfg!(target_os = "linux") {
        assert!(memory("peak") > held && held > Some(0), "{json}");
    }
    let nodes = figures["nodes"].as_array().expect("a list");
    assert!(
        nodes
            .iter()
            .any(|n| n["op"] == "Conv" && n["seconds"].as_f64() > Some(0.0))
    );
}

#[test]
fn two_forms_of_a_model_are_timed_in_turns() {
    let args = ["bench", &digits(), "--against", &digits(), "--runs", "3"];
    let cpu = ["--backends", "cpu"];
    let json = ok(&[&args[..], &cpu, &["--json"]].concat());
    let figures: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let against = &figures["against"];
    assert!(against["ratio"].as_f64() > Some(0.0), "{json}");
    assert!(figures["graph"]["nodes"].as_u64() > Some(0), "{json}");
    for key in ["nodes", "transposes"] {
        assert_eq!(against[key], figures["graph"][key], "{json}");
    }
    let text = ok(&[&args[..], &cpu].concat());
    assert!(text.contains("times as long"), "{text}");
}

#[test]
fn devices_lists_the_cpu() {
    let out = ok(&["devices"]);
    assert!(out.contains("cpu: ") && out.contains("builtin: "), "{out}");
}

#[test]
fn verify_compares_node_by_node() {
    let out = ok(&["verify", &digits(), "--backends", "cpu", "--all"]);
    assert!(out.contains("0 differ, 0 were skipped"), "{out}");
    assert!(out.contains("Conv"), "{out}");
    // One whose weights would go once kernels have them.
    let dir = folder("verify");
    let file = dir.join("fixed.onnx").display().to_string();
    let scaled: [(&str, &[&str], &str); 5] = [
        ("Shape", &["x"], "shape"),
        ("ConstantOfShape", &["shape"], "zeros"),
        ("Exp", &["zeros"], "ones"),
        ("Exp", &["ones"], "weights"),
        ("Mul", &["x", "weights"], "y"),
    ];
    std::fs::write(&file, model(&scaled, &["2"])).expect("the file can be written");
    let out = ok(&["verify", &file, "--backends", "cpu"]);
    assert!(
        out.contains("1 nodes agree, 0 differ, 0 were skipped"),
        "{out}"
    );
    ok(&["run", &file, "--backends", "cpu", "--runs", "2"]);
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
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

/// Two devices add up in other orders: without a tolerance something differs.
#[test]
fn verify_names_the_first_node_that_differs() {
    if ok(&["devices"]).contains("wgpu: not available") {
        return skip("there is no GPU");
    }
    let digits = digits();
    let verify = |more: &[&'static str]| {
        let args = ["verify", &digits, "--backends", "wgpu,cpu"];
        let out = kilim(&[&args[..], &["--tolerance", "0"], more].concat());
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    let found: serde_json::Value = serde_json::from_str(&verify(&["--json"])).expect("JSON");
    let nodes = found["nodes"].as_array().expect("a list of nodes");
    let first = nodes.iter().find(|n| n["agreement"] == "differs");
    let first = first.expect("a node that differs");
    assert_eq!(found["first"], *first);
    let name = first["name"].as_str().expect("nodes have names");
    let said = format!("the first node that differs: {name}\n");
    assert!(verify(&[]).contains(&said), "{said}");
    let wide = ["verify", &digits, "--backends", "wgpu,cpu"];
    assert!(ok(&wide).contains(" 0 differ"));
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
    // Without a file of that name, the user's cache folder has it; an empty name is for none.
    let cache = dir.join("cache");
    std::fs::create_dir_all(cache.join("kilim")).expect("the folder can be made");
    let kept = cache.join("kilim").join("calibration.json");
    std::fs::copy(&file, kept).expect("the file can be copied");
    let in_cache = |name: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kilim"));
        command.args(inspect).env("XDG_CACHE_HOME", &cache);
        match name {
            Some(name) => command.env("KILIM_CALIBRATION", name),
            None => command.env_remove("KILIM_CALIBRATION"),
        };
        let out = command.output().expect("the binary can be started");
        calibrated(&text(&out.stdout))
    };
    if cfg!(target_os = "linux") {
        assert_eq!(in_cache(None), true);
        assert_eq!(in_cache(Some("")), false);
    }
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn what_was_tuned_is_kept() {
    let dir = folder("tuning");
    let file = dir.join("kilim.cache");
    let cache = file.to_str().expect("the folder has a name");
    let digits = digits();
    let tuned = [
        "run",
        &digits,
        "--backends",
        "cpu",
        "--tune",
        "--cache",
        cache,
    ];
    let measured = ok(&tuned);
    assert!(measured.contains("cpu: Conv 3x3"), "{measured}");
    assert!(!measured.contains("known before"), "{measured}");
    let again = ok(&tuned);
    assert!(again.contains("known before"), "{again}");
    let plain = ok(&["run", &digits, "--backends", "cpu"]);
    assert!(!plain.contains("cpu: Conv 3x3"), "{plain}");
    // One that is of no use is replaced.
    let mut damaged = std::fs::read(&file).expect("the file is there");
    damaged[20] ^= 1;
    std::fs::write(&file, damaged).expect("the file can be written");
    let out = kilim(&tuned);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let (out, warning) = (text(&out.stdout), text(&out.stderr));
    assert!(warning.contains("the cache is damaged"), "{warning}");
    assert!(!out.contains("known before"), "{out}");
    assert!(ok(&tuned).contains("known before"));
    // What is no cache stays what it is.
    std::fs::write(&file, "something else").expect("the file can be written");
    fails(3, &tuned);
    let left = std::fs::read(&file).expect("the file is there");
    assert_eq!(left, b"something else");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
