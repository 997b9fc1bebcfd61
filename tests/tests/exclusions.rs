//! The proofs of `exclusions.txt`: where the right answer itself is further from the suite's
//! reference than the suite allows.

#![cfg(not(target_arch = "wasm32"))]

use std::f64::consts::TAU;

use kilim::formats::onnx::read_tensor;
use kilim::{BackendId, LoadOptions, RunOptions, Tensor};
use kilim_test_support::material::suite;

/// The inverse transform along axis 1 of `[1, n, m, 2]`, from its definition in float64.
fn inverse_dft(x: &[f32], n: usize, m: usize) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for (out, (k, j)) in (0..n).flat_map(|k| (0..m).map(move |j| (k, j))).enumerate() {
        for t in 0..n {
            let at = (t * m + j) * 2;
            let (re, im) = (f64::from(x[at]), f64::from(x[at + 1]));
            // The angle is reduced in integers, so that it loses nothing.
            let (sin, cos) = (TAU * (k * t % n) as f64 / n as f64).sin_cos();
            y[out * 2] += (re * cos - im * sin) / n as f64;
            y[out * 2 + 1] += (re * sin + im * cos) / n as f64;
        }
    }
    y
}

/// The elements that are further from `reference` than the tolerance.
fn misses(y: &[f64], reference: &[f32], rtol: f64, atol: f64) -> Vec<usize> {
    let far = |(y, r): (&f64, &f32)| (y - f64::from(*r)).abs() > atol + rtol * f64::from(r.abs());
    let pairs = y.iter().zip(reference);
    let far = pairs.enumerate().filter(|(_, pair)| far(*pair));
    far.map(|(i, _)| i).collect()
}

#[test]
fn the_exact_inverse_dft_is_not_what_the_suite_asks_for() {
    let Some(root) = suite() else { return };
    let index = std::fs::read(root.join("index.json")).expect("the suite's index");
    let index: serde_json::Value = serde_json::from_slice(&index).expect("JSON");
    for name in ["test_dft_inverse", "test_dft_inverse_opset19"] {
        let cases = index["cases"].as_array().expect("cases");
        let case = cases.iter().find(|c| c["name"] == name).expect(name);
        let tolerance = |which: &str| case[which].as_f64().expect("a tolerance");
        let (rtol, atol) = (tolerance("rtol"), tolerance("atol"));
        let folder = root.join("node").join(name);
        let tensor = |file: &str| {
            let path = folder.join("test_data_set_0").join(file);
            read_tensor(&std::fs::read(path).expect(file)).expect(file)
        };
        let (_, reference) = tensor("output_0.pb");
        let reference = reference.as_slice::<f32>().expect("float32");
        let &[1, n, m, 2] = tensor("input_0.pb").1.shape() else {
            panic!("{name}: another shape")
        };
        let x = tensor("input_0.pb").1;
        let exact = inverse_dft(x.as_slice::<f32>().expect("float32"), n, m);

        // Rounded to float32, as no answer can be better, it fails: where it is 0, but for what float64
        // itself loses, the reference is not.
        let rounded: Vec<f64> = exact.iter().map(|&y| f64::from(y as f32)).collect();
        let failing = misses(&rounded, reference, rtol, atol);
        assert!(
            !failing.is_empty(),
            "{name} can be met: take it off the list"
        );
        assert!(
            failing
                .iter()
                .all(|&i| exact[i].abs() < 1e-12 && reference[i].abs() > 1e-7)
        );

        // Kilim's answer is the exact one.
        let options = LoadOptions {
            backends: vec![BackendId::from("cpu")],
            ..LoadOptions::default()
        };
        let model = folder.join("model.onnx");
        let mut session = pollster::block_on(kilim::load(model.as_path(), options)).expect(name);
        let feeds: Vec<(String, Tensor)> = (0..session.inputs().len())
            .map(|i| tensor(&format!("input_{i}.pb")))
            .collect();
        let feeds: Vec<(&str, Tensor)> =
            feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let options = RunOptions::default();
        let outputs = pollster::block_on(session.run(&feeds, &options)).expect(name);
        let ours = outputs[0].1.as_slice::<f32>().expect("float32");
        assert_eq!(misses(&exact, ours, rtol, atol), [0usize; 0], "{name}");
    }
}
