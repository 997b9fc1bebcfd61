//! Models with the structure of real ones, without each rule that changes them.

use kilim::core::tensor::AlignedBytes;
use kilim::formats::{ModelFile, load_model};
use kilim_test_support::material;
use kilim_tests::conformance::{Ruled, run_without_rules};
use kilim_tests::files::references;

use super::*;

/// Random graphs that many rules change, one of control flow among them.
const GRAPHS: [&str; 6] = [
    "random_1",
    "random_12",
    "random_44",
    "random_55",
    "random_57",
    "random_64",
];

/// Decoders of language models, networks of convolutions, attention, quantised operators and a model for each rule, with the
/// results that other runtimes recorded.
#[test]
fn recorded_models_are_right_without_each_rule() {
    let cpu = [BackendId::from("cpu")];
    let mut all = Ruled::default();
    for kind in ["language", "ort", "microsoft", "tflite", "graphs", "rules"] {
        let chosen = |name: &str| kind != "graphs" || GRAPHS.contains(&name);
        let cases = references(kind);
        let run = run_without_rules(&cases, &cpu, |case| chosen(&case.name));
        let ruled = pollster::block_on(run).expect("the cases can be read");
        for (rule, models) in ruled.changed {
            all.changed.entry(rule).or_default().extend(models);
        }
        all.failed.extend(ruled.failed);
        all.models += ruled.models;
    }
    for (rule, models) in &all.changed {
        println!("{rule}: {} models", models.len());
    }
    println!("{} models, {} runs without a rule", all.models, all.runs());
    let wrong = all.failed.join("\n");
    assert!(wrong.is_empty(), "{} wrong:\n{wrong}", all.failed.len());
    assert!(all.models >= 210 && all.runs() >= 260);
    for rule in Rule::ALL {
        let models = all.changed.get(rule).map_or(&[][..], Vec::as_slice);
        // No format but TFLite has SpaceToBatch, and its converter writes dilated convolutions as such.
        let named = *rule == Rule::Dilation || models.iter().any(|name| name == rule.name());
        assert!(
            named,
            "the model made for {rule} does not change: {models:?}"
        );
    }
}

/// The embedded model has no recorded scores: it is compared with itself without any rule.
#[test]
fn the_embedded_model_is_the_same_without_each_rule() {
    let file = material::root().join("assets/digits.onnx");
    let bytes = std::fs::read(file).expect("the embedded model");
    let bytes = std::sync::Arc::new(AlignedBytes::copy_of(&bytes).expect("memory"));
    let source = ModelFile::new(bytes, "digits.onnx");
    let mut graph = load_model(&source, &Default::default()).expect("it can be read");
    let image = graph.inputs[0];
    graph.value_mut(image).fact = Fact::fixed(DType::F32, &[2, 1, 28, 28]);
    let (_, rules) = optimised_without(&graph, &[]);
    println!("{rules:?}");
    assert!(rules.len() >= 3, "{rules:?}");
    check(&graph, 1);
}
