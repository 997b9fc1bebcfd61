//! `kilim inspect`.

use kilim_test_support::archive::Cases;

use crate::support::*;

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
    for word in ["input", "intermediate", "output", "alive"] {
        assert!(svg.contains(word), "the legend lacks `{word}`");
    }
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn inspect_draws_the_graph() {
    let dir = folder("drawing");
    let file = dir.join("graph.svg");
    let path = file.display().to_string();
    ok(&["inspect", &digits(), "--backends", "cpu", "--svg", &path]);
    let svg = std::fs::read_to_string(&file).expect("the picture is there");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for word in ["image", "Conv conv1", "float32["] {
        assert!(svg.contains(word), "`{word}` is missing");
    }
    assert!(svg.matches("<path").count() > 5, "{svg}");
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
    assert!(held("limit") < held("normal"));
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
fn inspect_shows_inputs_placement_and_memory() {
    let out = ok(&["inspect", &digits(), "--backends", "cpu"]);
    assert!(out.contains("image: float32["), "{out}");
    // The line of a table that begins with a word.
    let row = |first: &str| {
        let lines = out
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let mut rows = lines.filter(|words| words.first() == Some(&first));
        rows.next().unwrap_or_else(|| panic!("no {first} in {out}"))
    };
    assert_eq!(row("conv1")[..3], ["conv1", "Conv", "cpu"]);
    let [nodes, launches] = [row("cpu")[1], row("cpu")[2]].map(|n| n.parse::<usize>());
    assert!(
        nodes.is_ok_and(|n| n > 0) && launches.is_ok_and(|n| n > 0),
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

/// The document of `--nodes json`.
fn nodes(args: &[&str]) -> serde_json::Value {
    let text = ok(&[&["inspect"], args, &["--nodes", "json"]].concat());
    serde_json::from_str(&text).expect("one JSON document")
}

#[test]
fn nodes_are_listed_as_backends_see_them() {
    let digits = digits();
    let seen = nodes(&[&digits, "--backends", "cpu", "--dim", "N=2"]);
    assert_eq!(seen["unplanned_stages"], 0);
    let list = seen["nodes"].as_array().expect("a list");
    let conv = list.iter().find(|n| n["name"] == "conv1").expect("conv1");
    assert_eq!(
        (&conv["op"], &conv["backend"]),
        (&"Conv".into(), &"cpu".into())
    );
    // Relu was fused, and the weights are the file's.
    let attribute = |name: &str| &conv["attributes"][name];
    assert_eq!(attribute("activation")["kind"], "texts");
    assert_eq!(
        attribute("activation")["values"],
        serde_json::json!(["Relu"])
    );
    assert_eq!(attribute("strides")["kind"], "ints");
    assert_eq!(
        attribute("strides")["values"].as_array().map(Vec::len),
        Some(2)
    );
    let constant: Vec<_> = conv["inputs"].as_array().expect("inputs").iter().collect();
    let constant: Vec<_> = constant.iter().map(|t| t["constant"].as_bool()).collect();
    assert_eq!(constant[..2], [Some(false), Some(true)]);
    let slots: Vec<_> = conv["inputs"].as_array().expect("inputs").iter().collect();
    let slots: Vec<_> = slots.iter().map(|t| t["slot"].as_str()).collect();
    assert_eq!(slots, [Some("data"), Some("weights"), Some("bias")]);
    assert_eq!(conv["outputs"][0]["slot"], "output");
    assert_eq!(conv["outputs"][0]["dtype"], "float32");
    // The nodes that the report has on a backend, in the order in which they run.
    let view = ok(&[
        "inspect",
        &digits,
        "--backends",
        "cpu",
        "--dim",
        "N=2",
        "--json",
    ]);
    let view: serde_json::Value = serde_json::from_str(&view).expect("JSON");
    let report = view["report"]["nodes"].as_array().expect("a list");
    let placed = report.iter().filter(|n| n["backend"] != "plan");
    let placed: Vec<_> = placed
        .map(|n| (&n["name"], &n["op"], &n["backend"]))
        .collect();
    let listed: Vec<_> = list
        .iter()
        .map(|n| (&n["name"], &n["op"], &n["backend"]))
        .collect();
    assert!(listed.len() > 3, "{listed:?}");
    assert_eq!(listed, placed);
    let error = fails(2, &["inspect", &digits, "--nodes", "json", "--json"]);
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn stages_without_a_plan_are_counted() {
    let dir = folder("unplanned");
    let file = dir.join("model.onnx");
    std::fs::write(&file, Cases::of("language").file("gemma2-int4/model.onnx")).expect("written");
    let path = file.display().to_string();
    let open = nodes(&[&path, "--backends", "cpu"]);
    assert!(open["unplanned_stages"].as_u64() > Some(0), "{open}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn rules_are_listed_with_their_changes_and_switched_off() {
    let inspect = |more: &[&str]| {
        let digits = digits();
        let mut args = vec!["inspect", &digits, "--backends", "cpu", "--passes"];
        args.extend(more);
        ok(&args)
    };
    let out = inspect(&[]);
    assert!(out.contains("fuse-activation: "), "{out}");
    assert!(out.contains("removed 4 Relu: "), "{out}");
    let off = inspect(&["--without", "fuse-activation"]);
    assert!(!off.contains("fuse-activation: "), "{off}");
    let json = inspect(&["--json"]);
    let view: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rules = view["passes"].as_array().expect("changes");
    assert!(rules.iter().any(|c| c["rule"] == "fuse-activation"));
    let error = fails(2, &["inspect", &digits(), "--without", "fuse"]);
    assert!(error.contains("there is no rule `fuse`"), "{error}");
    assert!(error.contains("common-subexpressions"), "{error}");
}

#[test]
fn networks_of_two_files_are_shown_with_their_weights_or_without() {
    shown_with_weights_or_without("ncnn", "network", ["model.param", "model.bin"]);
    shown_with_weights_or_without("mnn", "beside", ["model.mnn", "model.mnn.weight"]);
    let names = ["model.pnnx.param", "model.pnnx.bin"];
    shown_with_weights_or_without("pnnx", "convolutions", names);
    shown_with_weights_or_without("tnn", "convolutions", ["model.tnnproto", "model.tnnmodel"]);
}

/// Looks at a model of the reference cases that has a convolution, with the file of its weights and without.
fn shown_with_weights_or_without(format: &str, case: &str, names: [&str; 2]) {
    let cases = Cases::of(format);
    let dir = folder(format);
    let [network, weights] = names.map(|name| {
        let file = dir.join(name);
        std::fs::write(&file, cases.file(&format!("{case}/{name}"))).expect("written");
        file
    });
    let path = network.display().to_string();
    let args = ["inspect", &path, "--backends", "cpu"];
    let whole = ok(&args);
    assert!(whole.contains("Conv"), "{whole}");
    ok(&["bench", &path, "--backends", "cpu", "--runs", "1"]);
    std::fs::remove_file(weights).expect("removed");
    let out = kilim(&args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("Conv"));
    assert!(
        text(&out.stderr).contains(names[1]),
        "{}",
        text(&out.stderr)
    );
    let error = fails(4, &["bench", &path, "--backends", "cpu", "--runs", "1"]);
    assert!(error.contains(names[1]), "{error}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn a_tengine_network_is_shown() {
    let dir = folder("tengine");
    let model = dir.join("model.tmfile");
    std::fs::write(
        &model,
        Cases::of("tengine").file("convolutions/model.tmfile"),
    )
    .expect("written");
    let out = ok(&["inspect", &model.display().to_string(), "--backends", "cpu"]);
    assert!(out.contains("Conv"), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

/// The window of this model's caches has more than one place.
#[test]
fn a_model_whose_open_sizes_may_not_be_1_is_shown() {
    let dir = folder("windows");
    let model = dir.join("model.onnx");
    std::fs::write(&model, Cases::of("language").file("gemma2-int4/model.onnx")).expect("written");
    let out = ok(&["inspect", &model.display().to_string(), "--backends", "cpu"]);
    assert!(out.contains("past_sliding_length"), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
