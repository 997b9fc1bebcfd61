//! `kilim check --manifest`: every way to compare outputs, with references that must be met and others that
//! must be missed.

use std::io::Write;
use std::path::PathBuf;

use kilim_tests::onnx::{self, Node, Value};
use serde_json::json;

use crate::support::*;

/// A folder with a manifest of one model, which is changed from check to check.
struct Set {
    dir: PathBuf,
    inputs: Vec<serde_json::Value>,
    tolerance: serde_json::Value,
}

/// An archive with one array `x`.
fn npz(array: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("x.npy", options).expect("an entry");
    archive.write_all(array).expect("its bytes");
    archive.finish().expect("an archive").into_inner()
}

fn floats(shape: &str, values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    array("<f4", false, shape, &bytes)
}

/// A model that gives back tensors `x0`, `x1` … of these shapes as `y0`, `y1` …, in another element type where `to` says so.
fn mirror(shapes: &[&[&str]], to: Option<i64>) -> Vec<u8> {
    let names: Vec<[String; 2]> = (0..shapes.len())
        .map(|i| [format!("x{i}"), format!("y{i}")])
        .collect();
    let ports: Vec<([&str; 1], [&str; 1])> =
        names.iter().map(|[x, y]| ([&x[..]], [&y[..]])).collect();
    let cast = [("to", Value::Int(to.unwrap_or_default()))];
    let nodes: Vec<Node> = ports
        .iter()
        .map(|(x, y)| Node {
            domain: "",
            op: if to.is_some() { "Cast" } else { "Identity" },
            inputs: x,
            outputs: y,
            attributes: if to.is_some() { &cast } else { &[] },
        })
        .collect();
    let port = |at: usize| -> Vec<(&str, &[&str])> {
        let shapes = shapes.iter().copied();
        names.iter().map(|n| n[at].as_str()).zip(shapes).collect()
    };
    onnx::model(&nodes, &port(0), &port(1))
}

impl Set {
    /// A set with a model, and the arrays that the model is given.
    fn new(name: &str, model: &[u8], given: &[Vec<u8>]) -> Set {
        let dir = folder(name);
        std::fs::create_dir_all(dir.join("m")).expect("the folder can be made");
        let set = Set {
            inputs: (0..given.len())
                .map(|i| json!({"name": format!("x{i}"), "file": format!("x{i}.npz"), "key": "x", "dtype": "float32"}))
                .collect(),
            dir,
            tolerance: json!("exact"),
        };
        set.write("model.onnx", model);
        for (i, array) in given.iter().enumerate() {
            set.write(&format!("x{i}.npz"), &npz(array));
        }
        set
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.dir.join("m").join(name), bytes).expect("the file can be written");
    }

    fn by(mut self, tolerance: impl Into<serde_json::Value>) -> Set {
        self.tolerance = tolerance.into();
        self
    }

    /// Checks against these references: the exit code and what was printed.
    fn check(&self, dtype: &str, references: &[Vec<u8>]) -> (Option<i32>, String) {
        let outputs: Vec<_> = (0..references.len())
            .map(|i| json!({"name": format!("y{i}"), "file": format!("y{i}.npz"), "key": "x", "dtype": dtype}))
            .collect();
        for (i, array) in references.iter().enumerate() {
            self.write(&format!("y{i}.npz"), &npz(array));
        }
        self.run(&outputs)
    }

    fn run(&self, outputs: &[serde_json::Value]) -> (Option<i32>, String) {
        let case = json!({"case": "one", "inputs": self.inputs, "outputs": outputs});
        let variant = json!({
            "format": "onnx", "files": ["model.onnx"], "cases": [case], "tolerance": self.tolerance,
        });
        let manifest = json!({"models": [{"name": "m", "variants": [variant]}]});
        let file = self.dir.join("manifest.json");
        std::fs::write(&file, manifest.to_string()).expect("the manifest can be written");
        let file = file.display().to_string();
        let out = kilim(&["check", "--manifest", &file, "--backends", "cpu"]);
        (out.status.code(), text(&out.stdout) + &text(&out.stderr))
    }

    fn passes(&self, references: &[Vec<u8>]) {
        let (code, said) = self.check("float32", references);
        assert_eq!(code, Some(0), "{}: {said}", self.tolerance);
        assert!(said.contains("1 passed, 0 missed, 0 errors"), "{said}");
    }

    fn misses(&self, references: &[Vec<u8>]) {
        let (code, said) = self.check("float32", references);
        assert_eq!(code, Some(1), "{}: {said}", self.tolerance);
        assert!(said.contains("0 passed, 1 missed, 0 errors"), "{said}");
    }

    fn fails(&self, code: i32, outputs: &[serde_json::Value], word: &str) {
        let (got, said) = self.run(outputs);
        assert_eq!(got, Some(code), "{}: {said}", self.tolerance);
        assert!(said.contains("0 passed, 0 missed, 1 errors"), "{said}");
        assert!(said.contains(word), "{said}");
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn numbers_are_compared_as_the_manifest_says() {
    let of = |values: [f32; 4]| vec![floats("4,", &values)];
    let given = [-1.0f32, 2.0, -3.0, 4.0];
    let model = mirror(&[&["4"]], None);
    let by = |tolerance: serde_json::Value| Set::new("numbers", &model, &of(given)).by(tolerance);
    let off = |by: f32| of([-1.0 + by, 2.0, -3.0, 4.0]);
    // The largest magnitude is 4, the root mean square of the reference about 2.74.
    for (tolerance, good, bad) in [
        (json!(0.1), 0.39, 0.41),
        (json!("0.1"), 0.39, 0.41),
        (json!("at most 10 % of the largest magnitude"), 0.39, 0.41),
        (json!("root mean square at most 0.1"), 0.5, 0.6),
        (
            json!("root mean square at most 0.1 of the largest magnitude"),
            0.79,
            0.81,
        ),
        (json!("exact"), 0.0, 1e-6),
        (json!("at least 75 % of the elements equal"), 9.0, f32::NAN),
    ] {
        let set = by(tolerance);
        set.passes(&off(good));
        if bad.is_nan() {
            set.misses(&of([-1.0, 2.0, 0.0, 0.0]));
        } else {
            set.misses(&off(bad));
        }
        // The model's zeros for a reference that has none, and the other way round.
        set.misses(&of([0.0; 4]));
        let zeros = Set::new("zeros", &model, &of([0.0; 4])).by(set.tolerance.clone());
        zeros.misses(&of(given));
        set.misses(&[floats("2, 2", &given)]);
    }
}

#[test]
fn quanta_are_counted() {
    const UINT8: i64 = 2;
    let bytes = |values: [u8; 4]| vec![array("|u1", false, "4,", &values)];
    let given = vec![floats("4,", &[10.0, 20.0, 30.0, 40.0])];
    let model = mirror(&[&["4"]], Some(UINT8));
    for (tolerance, good, bad) in [
        ("at most 2 quanta per element", 12, 13),
        ("root mean square of at most 2 quanta", 14, 15),
    ] {
        let set = Set::new("quanta", &model, &given).by(tolerance);
        let check = |first: u8| set.check("uint8", &bytes([first, 20, 30, 40]));
        assert_eq!(check(good).0, Some(0), "{:?}", check(good));
        assert_eq!(check(bad).0, Some(1), "{:?}", check(bad));
        assert_eq!(set.check("uint8", &bytes([0; 4])).0, Some(1));
        // Of numbers that are no integers nobody knows the quanta.
        let floats = Set::new("floats", &mirror(&[&["4"]], None), &given).by(tolerance);
        let (code, said) = floats.check("float32", &given);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("INVALID_VALUE: quanta"), "{said}");
    }
}

#[test]
fn keypoints_are_compared() {
    let points = |values: [f32; 6]| vec![floats("1, 2, 3", &values)];
    let given = points([0.5, 0.5, 0.9, 0.1, 0.1, 0.2]);
    let model = mirror(&[&["1", "2", "3"]], None);
    let set = Set::new("keypoints", &model, &given)
        .by("keypoints with a score of at least 0.3 within 0.02");
    set.passes(&given);
    set.passes(&points([0.51, 0.51, 0.9, 0.6, 0.6, 0.2]));
    set.misses(&points([0.53, 0.5, 0.9, 0.1, 0.1, 0.2]));
    set.misses(&points([0.5, 0.5, 0.8, 0.1, 0.1, 0.2]));
    let zeros = Set::new("no-keypoints", &model, &points([0.0; 6])).by(set.tolerance.clone());
    zeros.misses(&given);
    let (code, said) = zeros.check("float32", &points([0.0; 6]));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no keypoint"), "{said}");
}

#[test]
fn detections_are_compared_together() {
    let of = |corners: [f32; 8], classes: [f32; 2], scores: [f32; 2], count: f32| {
        vec![
            floats("1, 2, 4", &corners),
            floats("1, 2", &classes),
            floats("1, 2", &scores),
            floats("1,", &[count]),
        ]
    };
    let boxes = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0];
    let given = of(boxes, [1.0, 2.0], [0.9, 0.8], 2.0);
    let shapes: [&[&str]; 4] = [&["1", "2", "4"], &["1", "2"], &["1", "2"], &["1"]];
    let model = mirror(&shapes, None);
    let set = Set::new("detections", &model, &given).by(
        "detections with a score of at least 0.5 overlap by at least 0.9 with scores within 0.05",
    );
    set.passes(&given);
    let swapped = [0.5, 0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 0.49];
    set.passes(&of(swapped, [2.0, 1.0], [0.82, 0.9], 2.0));
    set.misses(&of(boxes, [1.0, 1.0], [0.9, 0.8], 2.0));
    set.misses(&of(boxes, [1.0, 2.0], [0.9, 0.7], 2.0));
    set.misses(&of(boxes, [1.0, 2.0], [0.9, 0.8], 1.0));
    set.misses(&given[..3]);
}

#[test]
fn what_is_not_understood_is_an_error_and_no_miss() {
    let given = vec![floats("4,", &[1.0; 4])];
    let set = |tolerance: serde_json::Value| {
        let set = Set::new("errors", &mirror(&[&["4"]], None), &given);
        set.write("y0.npz", &npz(&given[0]));
        set.by(tolerance)
    };
    let output = |name: &str, file: &str| json!({"name": name, "file": file, "key": "x", "dtype": "float32"});
    let good = [output("y0", "y0.npz")];
    for tolerance in [
        json!("at most 14 quanta and the same top class"),
        json!("roughly equal"),
        json!(null),
        json!({"y0": 0.1}),
        json!(-0.1),
    ] {
        let named = tolerance.as_str().unwrap_or_default().to_string();
        set(tolerance).fails(3, &good, &named);
    }
    let exact = || set(json!("exact"));
    exact().fails(3, &[output("z", "y0.npz")], "no output `z`");
    exact().fails(3, &[], "no reference");
    exact().fails(4, &[output("y0", "none.npz")], "none.npz");
    let broken = exact();
    std::fs::remove_file(broken.dir.join("m/model.onnx")).expect("the model is there");
    broken.fails(4, &good, "model.onnx");
}
