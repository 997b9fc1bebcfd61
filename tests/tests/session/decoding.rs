//! The steps of language models with packed weights, on a GPU.

use kilim::compare::Comparison;
use kilim::formats::onnx::read_datum;
use kilim::{Datum, Keep, Kind, ModelSource, Placement};
use kilim_test_support::archive::Cases;
use kilim_tests::machine::gpu;
use kilim_tests::wholly;

use crate::*;

/// Steps of a case: a prompt, then words one by one.
const STEPS: usize = 4;

fn loaded(cases: &Cases, name: &str) -> Session {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("wgpu"), BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    let model = cases.file(&format!("{name}/model.onnx")).to_vec();
    pollster::block_on(kilim::load(ModelSource::from(model), options)).unwrap()
}

/// Runs all steps of a case with caches that stay where they are; gives the scores of the last, and the caches.
fn decode(cases: &Cases, name: &str, session: &mut Session) -> Vec<(String, Datum)> {
    let ports: Vec<String> = session.inputs().iter().map(|i| i.name.clone()).collect();
    let options = RunOptions {
        keep: Keep::new(["present*"]),
        ..RunOptions::default()
    };
    let mut out: Vec<(String, Datum)> = Vec::new();
    for step in 0..STEPS {
        let given = |(i, port): (usize, &String)| {
            let is_its =
                |(name, _): &&(String, Datum)| *port == name.replace("present", "past_key_values");
            match out.iter().find(is_its) {
                Some((_, cache)) => cache.clone(),
                None => stored(cases, &format!("{name}/test_data_set_{step}/input_{i}.pb")),
            }
        };
        let data: Vec<Datum> = ports.iter().enumerate().map(given).collect();
        let names = ports.iter().map(String::as_str);
        let inputs: Vec<(&str, Datum)> = names.zip(data).collect();
        out = pollster::block_on(session.run_data(&inputs, &options)).unwrap();
    }
    out
}

fn stored(cases: &Cases, path: &str) -> Datum {
    read_datum(cases.file(path), Kind::default()).unwrap().1
}

/// Nothing crosses between devices but the numbers of words and their scores: every node is on the GPU, with the launches that the two
/// layers of each model have.
#[test]
fn a_step_of_a_packed_model_stays_on_the_gpu() {
    if gpu().is_none() {
        return;
    }
    let cases = Cases::of("language");
    for (name, launches) in [
        ("llama-int4", 35),
        ("llama-int4-asymmetric", 35),
        ("llama-int8", 35),
        ("phi3-int4", 35),
        ("qwen2-int4", 35),
        ("qwen3-int4", 50),
        ("smollm3-int4", 35),
    ] {
        let mut session = loaded(&cases, name);
        let out = decode(&cases, name, &mut session);
        let last = format!("{name}/test_data_set_{}/output_0.pb", STEPS - 1);
        let close = Comparison::Close {
            rtol: 1e-4,
            atol: 1e-5,
        };
        let verdict = close.data_verdict(&out[0].1, &stored(&cases, &last), None);
        assert!(verdict.unwrap().passed, "{name}");
        for (cache, datum) in &out[1..] {
            let stays = matches!(datum, Datum::Device(tensor) if tensor.backend.as_str() == "wgpu");
            assert!(stays, "{name}: {cache} is {datum:?}");
        }
        let elsewhere = wholly::elsewhere(&session);
        assert!(elsewhere.is_empty(), "{name}: {elsewhere:?}");
        let report = session.report();
        assert!(report.crossings.is_empty(), "{:?}", report.crossings);
        let [gpu, cpu] = [0, 1].map(|i| report.backends[i].launches);
        assert_eq!((gpu, cpu), (launches, 0), "{name}");
    }
}
