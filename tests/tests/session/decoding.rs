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

/// Places of the caches: more than the steps of a case take.
const ROOM: usize = 40;

fn loaded(cases: &Cases, name: &str) -> Session {
    let mut options = LoadOptions {
        backends: vec![BackendId::from("wgpu"), BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    let model = cases.file(&format!("{name}/model.onnx")).to_vec();
    pollster::block_on(kilim::load(ModelSource::from(model), options)).unwrap()
}

/// Runs the first `steps` steps of a case with caches that have room and stay where they are; gives the scores of the last, and the caches.
fn decode(cases: &Cases, name: &str, session: &mut Session, steps: usize) -> Vec<(String, Datum)> {
    let ports: Vec<String> = session.inputs().iter().map(|i| i.name.clone()).collect();
    let options = RunOptions {
        keep: Keep::new(["present*"]),
        ..RunOptions::default()
    };
    let mut out: Vec<(String, Datum)> = Vec::new();
    for step in 0..steps {
        let given = |(i, port): (usize, &String)| {
            let is_its =
                |(name, _): &&(String, Datum)| *port == name.replace("present", "past_key_values");
            match out.iter().find(is_its) {
                Some((_, cache)) => cache.clone(),
                None => {
                    let given = stored(cases, &format!("{name}/test_data_set_{step}/input_{i}.pb"));
                    match port.starts_with("past") {
                        true => with_room(&given),
                        false => given,
                    }
                }
            }
        };
        let data: Vec<Datum> = ports.iter().enumerate().map(given).collect();
        let names = ports.iter().map(String::as_str);
        let inputs: Vec<(&str, Datum)> = names.zip(data).collect();
        out = pollster::block_on(session.run_data(&inputs, &options)).unwrap();
    }
    out
}

/// A cache with room, where `given` is one of the same heads.
fn with_room(given: &Datum) -> Datum {
    let given = given.tensor().unwrap();
    let &[batch, heads, _, size] = given.shape() else {
        panic!("no cache: {given:?}");
    };
    let empty = Tensor::zeros(given.dtype(), &[batch, heads, ROOM, size]);
    empty.unwrap().into()
}

fn stored(cases: &Cases, path: &str) -> Datum {
    read_datum(cases.file(path), Kind::default()).unwrap().1
}

/// Nothing crosses between devices but the numbers of words and their scores: every node is on the GPU, with the launches that the two
/// layers of each model have, for a prompt and for a word. Caches take no launch of their own.
#[test]
fn a_step_of_a_packed_model_stays_on_the_gpu() {
    if gpu().is_none() {
        return;
    }
    let cases = Cases::of("language");
    for (name, prompt, word) in [
        ("llama-int4", 33, 27),
        ("llama-int4-asymmetric", 33, 27),
        ("llama-int8", 33, 27),
        ("phi3-int4", 33, 27),
        ("qwen2-int4", 33, 27),
        ("qwen3-int4", 58, 50),
        ("smollm3-int4", 33, 27),
    ] {
        let mut launches = Vec::new();
        for steps in [1, STEPS] {
            let mut session = loaded(&cases, name);
            let out = decode(&cases, name, &mut session, steps);
            let last = format!("{name}/test_data_set_{}/output_0.pb", steps - 1);
            let close = Comparison::Close {
                rtol: 1e-4,
                atol: 1e-5,
            };
            let verdict = close.data_verdict(&out[0].1, &stored(&cases, &last), None);
            assert!(verdict.unwrap().passed, "{name}");
            for (cache, datum) in &out[1..] {
                let stays =
                    matches!(datum, Datum::Device(tensor) if tensor.backend.as_str() == "wgpu");
                assert!(stays, "{name}: {cache} is {datum:?}");
            }
            let elsewhere = wholly::elsewhere(&session);
            assert!(elsewhere.is_empty(), "{name}: {elsewhere:?}");
            let report = session.report();
            assert!(report.crossings.is_empty(), "{:?}", report.crossings);
            let [gpu, cpu] = [0, 1].map(|i| report.backends[i].launches);
            assert_eq!(cpu, 0, "{name}");
            launches.push(gpu);
        }
        assert_eq!(launches, [prompt, word], "{name}");
    }
}
