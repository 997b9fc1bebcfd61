//! Where and how nodes run: options of a session, with the sample plug-in in C beside `cpu`.

use std::path::PathBuf;

use kilim_tests::libraries::compile;
use serde_json::Value;

use crate::support::*;

/// A model in a folder with the plug-in `scale`, which runs Relu and Add alone.
struct Case {
    dir: PathBuf,
    model: String,
}

impl Case {
    fn new(name: &str, nodes: &[(&str, &[&str], &str)], dim: &str) -> Case {
        let dir = folder(name);
        compile("examples/plugin-c/scale.c", &dir, "scale", &[]);
        let file = dir.join("model.onnx");
        std::fs::write(&file, model(nodes, &[dim])).expect("the file can be written");
        let model = file.display().to_string();
        Case { dir, model }
    }

    fn call(&self, command: &str, more: &[&str]) -> Vec<String> {
        let dir = self.dir.to_str().expect("a folder of ASCII");
        let session = ["--backends", "scale,cpu", "--plugin-path", dir];
        let args = [&[command, &self.model][..], &session, more].concat();
        args.into_iter().map(str::to_string).collect()
    }

    fn ok(&self, command: &str, more: &[&str]) -> String {
        let args = self.call(command, more);
        ok(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn fails(&self, command: &str, more: &[&str]) -> String {
        let args = self.call(command, more);
        fails(3, &args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The backends of the nodes, in order.
    fn backends(&self, more: &[&str]) -> Vec<String> {
        let text = self.ok("inspect", &[more, &["--json"]].concat());
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        let nodes = report["report"]["nodes"].as_array().expect("nodes");
        let backends = nodes.iter().filter_map(|n| n["backend"].as_str());
        backends.map(str::to_string).collect()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        // A folder that stays is no fault of the test.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn placement() {
    let small = [("Relu", &["x"][..], "y")];
    let case = Case::new("place", &small, "2");
    assert_eq!(case.backends(&[]), ["scale"]);
    assert_eq!(case.backends(&["--place", "priced"]), ["cpu"]);
    let island = [
        ("Exp", &["x"][..], "e"),
        ("Relu", &["e"], "r"),
        ("Exp", &["r"], "y"),
    ];
    let case = Case::new("island", &island, "2");
    assert_eq!(case.backends(&["--place", "prefer"]), ["cpu"; 3]);
    let fixed = case.backends(&["--place", "fixed"]);
    assert_eq!(fixed, ["cpu", "scale", "cpu"]);
    let error = case.fails("inspect", &["--strict"]);
    assert!(error.contains("NO_BACKEND: the preferred"), "{error}");
}

#[test]
fn without_optimisation() {
    let nodes = [("Add", &["x", "x"][..], "r"), ("Relu", &["r"], "y")];
    let case = Case::new("plain", &nodes, "2");
    assert_eq!(case.backends(&[]).len(), 1);
    assert_eq!(case.backends(&["--no-optimise"]).len(), 2);
}

#[test]
fn time_limit() {
    let case = Case::new("limit", &[("Relu", &["x"], "y")], "2");
    let error = case.fails("run", &["--timeout", "0.000001"]);
    assert!(error.contains("ABORTED"), "{error}");
    case.ok("run", &["--timeout", "1000"]);
}

#[test]
fn reference_of_verify() {
    let case = Case::new("reference", &[("Relu", &["x"], "y")], "2");
    assert!(case.ok("verify", &[]).starts_with("scale against cpu"));
    let swapped = case.ok("verify", &["--reference", "scale", "--candidate", "cpu"]);
    assert!(swapped.starts_with("cpu against scale"), "{swapped}");
}

/// Two branches of some milliseconds each, in several runs.
#[test]
fn schedule() {
    let branches = [
        ("Exp", &["x"][..], "e"),
        ("Relu", &["x"], "r"),
        ("Mul", &["e", "r"], "y"),
    ];
    let case = Case::new("schedule", &branches, "2000000");
    let file = case.dir.join("trace.json").display().to_string();
    let overlaps = |schedule: &str| {
        let options = ["--place", "fixed", "--schedule", schedule];
        let trace = ["--runs", "8", "--trace", &file];
        case.ok("run", &[&options[..], &trace].concat());
        let text = std::fs::read_to_string(&file).expect("the trace was written");
        let trace: Value = serde_json::from_str(&text).expect("the trace is JSON");
        let events = trace["traceEvents"].as_array().expect("events");
        let span = |e: &Value| {
            let (from, run) = (e["ts"].as_f64()?, e["pid"].as_u64()?);
            let backend = e["cat"].as_str()?.to_string();
            Some((run, backend, from, from + e["dur"].as_f64()?))
        };
        let spans: Vec<_> = events.iter().filter_map(span).collect();
        assert!(spans.len() > 8, "{text}");
        spans.iter().any(|(run, backend, from, to)| {
            let mut beside = spans.iter().filter(|o| o.0 == *run && o.1 != *backend);
            // Times are in microseconds, and rounded.
            beside.any(|o| o.2 + 1.0 < *to && *from + 1.0 < o.3)
        })
    };
    assert!(overlaps("overlapped"));
    assert!(!overlaps("sync"));
}
