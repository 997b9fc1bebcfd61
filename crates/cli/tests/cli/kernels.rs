//! `kilim bench --kernels`.

use serde_json::Value;

use crate::support::*;

fn figures(args: &[&str]) -> Value {
    let args = [
        &["bench", "--runs", "1", "--sample-ms", "0", "--json"],
        args,
    ]
    .concat();
    serde_json::from_str(&ok(&args)).expect("it is JSON")
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().expect("a list")
}

#[test]
fn every_shape_has_every_figure() {
    let figures = figures(&["--kernels", "--threads", "1"]);
    for peak in ["float32", "int16", "int8", "memory"] {
        assert!(figures["peaks"][peak].as_f64() > Some(0.0), "{figures}");
    }
    assert_eq!(figures["peaks"]["threads"], 1);
    let shapes = list(&figures, "shapes");
    assert!(shapes.len() > 40, "{}", shapes.len());
    let families = [
        "MatMul ",
        "MatMulInteger",
        "MatMulNBits",
        "Conv ",
        "QLinearConv",
    ];
    for family in families {
        let name = |row: &Value| row["shape"].as_str().map(|s| s.starts_with(family));
        assert!(shapes.iter().any(|row| name(row) == Some(true)), "{family}");
    }
    for row in shapes {
        assert!(row["operations"].as_f64() > Some(0.0), "{row}");
        assert!(row["bytes"].as_u64() > Some(0), "{row}");
        let loss = row["loss"].as_f64().expect("a share");
        assert!(loss >= 0.0 && row["wrong"] == (loss > 0.05), "{row}");
        let kernels = list(row, "kernels");
        let name = |kernel: &Value| kernel["name"] == row["fastest"];
        assert!(kernels.iter().any(name), "{row}");
        let chosen: Vec<&Value> = kernels.iter().filter(|k| k["chosen"] == true).collect();
        assert_eq!(chosen.len(), 1, "{row}");
        for figure in ["seconds", "rate", "of_peak", "of_memory"] {
            assert!(chosen[0][figure].as_f64() > Some(0.0), "{figure}: {row}");
        }
        // The reference kernels serve every node.
        let last = kernels.last().expect("a kernel");
        assert_eq!(last["name"], "reference", "{row}");
    }
}

#[test]
fn shapes_are_found_by_their_names() {
    let figures = figures(&["--kernels=14, 32 groups"]);
    let shapes = list(&figures, "shapes");
    assert_eq!(shapes.len(), 1);
    assert_eq!(shapes[0]["shape"], "Conv 3x3 256 to 256 at 14, 32 groups");
    let table = ok(&["bench", "--kernels=14, 32 groups", "--runs", "1"]);
    assert!(
        table.contains("* SIMD") && table.contains("GB/s"),
        "{table}"
    );
    let error = fails(2, &["bench", "--kernels=Abacus"]);
    assert!(error.contains("no shape is called `Abacus`"), "{error}");
}

#[test]
fn arguments_of_models_are_none_of_the_kernels() {
    let model = digits();
    fails(2, &["bench", "--kernels", &model]);
    fails(2, &["bench", "--kernels", "--backends", "cpu"]);
    fails(2, &["bench", &model, "--check"]);
    fails(2, &["bench"]);
}
