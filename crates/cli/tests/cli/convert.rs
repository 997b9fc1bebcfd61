//! `kilim convert`.

use std::path::Path;

use crate::support::*;

/// Bytes of a file.
fn size(file: &Path) -> u64 {
    std::fs::metadata(file).expect("the file is there").len()
}

/// The best of the digits by a model, on the picture of a three.
fn best(model: &Path) -> String {
    let input = format!("image={}", asset("digit-3.png").display());
    let model = model.display().to_string();
    let out = ok(&[
        "run",
        &model,
        "--backends",
        "cpu",
        "--input",
        &input,
        "--top",
        "1",
    ]);
    let line = out.lines().nth(1).and_then(|l| l.split_whitespace().next());
    line.expect("a digit").to_string()
}

/// Converts the digits with these options: what is printed, and the file.
fn convert(dir: &Path, name: &str, more: &[&str]) -> (String, std::path::PathBuf) {
    let file = dir.join(name);
    let (digits, path) = (digits(), file.display().to_string());
    let mut args = vec!["convert", &digits, &path, "--backends", "cpu"];
    args.extend(more);
    (ok(&args), file)
}

#[test]
fn a_converted_model_says_the_same() {
    let dir = folder("convert");
    let (out, file) = convert(&dir, "plain.onnx", &[]);
    assert!(out.contains("operator set 21"), "{out}");
    assert!(out.contains("output"), "{out}");
    assert_eq!(best(&file), "3");
    let (out, _) = convert(&dir, "old.onnx", &["--opset", "17"]);
    assert!(out.contains("operator set 17"), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn what_the_file_says_of_itself_stays() {
    let dir = folder("metadata");
    let (_, file) = convert(&dir, "said.onnx", &["--unchecked"]);
    let file = file.display().to_string();
    let said = |file: &str| -> serde_json::Value {
        let view = ok(&["inspect", file, "--backends", "cpu", "--json"]);
        let mut view: serde_json::Value = serde_json::from_str(&view).expect("JSON");
        view["metadata"].take()
    };
    let (before, after) = (said(&digits()), said(&file));
    assert_eq!(before["producer"], "kilim train_digits");
    assert_eq!(after["producer"], "kilim");
    assert_eq!(after["name"], before["name"]);
    let kept = &after["entries"]["original_producer"];
    assert_eq!(kept, "kilim train_digits");
    let out = ok(&["inspect", &file, "--backends", "cpu"]);
    let line = "  original_producer: kilim train_digits\n";
    assert!(out.starts_with("metadata\n") && out.contains(line), "{out}");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn weights_go_beside_the_model() {
    let dir = folder("beside");
    let (_, inside) = convert(&dir, "inside.onnx", &["--unchecked"]);
    let (_, file) = convert(&dir, "outside.onnx", &["--external"]);
    let data = dir.join("outside.onnx.data");
    assert!(size(&file) < size(&data), "{} bytes inside", size(&file));
    assert!(size(&data) < size(&inside));
    assert_eq!(best(&file), "3");
    let left = std::fs::read_dir(&dir)
        .expect("the folder is there")
        .count();
    assert_eq!(left, 3, "something was left behind");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn smaller_weights_are_smaller_and_the_loss_is_said() {
    let dir = folder("smaller");
    let (_, plain) = convert(&dir, "plain.onnx", &["--unchecked"]);
    let samples = dir.join("samples");
    std::fs::create_dir_all(&samples).expect("the folder can be made");
    let sample = image_as_npy(&asset("digit-3.png"));
    std::fs::write(samples.join("three.npy"), sample).expect("it can be written");
    let folder = samples.display().to_string();
    let cases: [(&str, &[&str], f64); 4] = [
        ("half.onnx", &["--fp16"], 0.6),
        ("dynamic.onnx", &["--int8"], 0.4),
        ("static.onnx", &["--int8", "--samples", &folder], 0.4),
        ("packed.onnx", &["--int4"], 1.0),
    ];
    for (name, args, share) in cases {
        let (out, file) = convert(&dir, name, args);
        let part = size(&file) as f64 / size(&plain) as f64;
        assert!(part < share, "{name}: {part} of the size");
        assert!(out.contains("apart, relative"), "{name}: {out}");
        assert!(out.contains("nodes that lose most"), "{name}: {out}");
        assert_eq!(best(&file), "3", "{name}");
    }
    let (out, file) = convert(&dir, "all.onnx", &["--fp16=all"]);
    assert!(out.contains("output"), "{out}");
    assert_eq!(best(&file), "3");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let dir = folder("refused");
    let file = dir.join("x.onnx").display().to_string();
    let wrong = fails(2, &["convert", &digits(), "x.txt"]);
    assert!(wrong.contains("written as .onnx"), "{wrong}");
    let wrong = fails(2, &["convert", &digits(), &file, "--opset", "9"]);
    assert!(wrong.contains("17..=26"), "{wrong}");
    let wrong = fails(2, &["convert", &digits(), &file, "--int8", "--int4"]);
    assert!(wrong.contains("cannot be used with"), "{wrong}");
    let empty = dir.display().to_string();
    let wrong = fails(
        2,
        &["convert", &digits(), &file, "--int8", "--samples", &empty],
    );
    assert!(wrong.contains("holds no files"), "{wrong}");
    // Gelu came with operator set 20.
    let gelu = dir.join("gelu.onnx");
    let nodes: [(&str, &[&str], &str); 1] = [("Gelu", &["x"], "y")];
    std::fs::write(&gelu, model(&nodes, &["4"])).expect("it can be written");
    let gelu = gelu.display().to_string();
    let wrong = fails(3, &["convert", &gelu, &file, "--opset", "17"]);
    assert!(wrong.contains("operator set 20"), "{wrong}");
    assert!(!Path::new(&file).exists(), "a part of a model is there");
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
}
