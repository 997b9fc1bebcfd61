//! Files of `tests/references/whisper.zip`: whole, cut and overwritten. What they hear is in the tests of `kilim-speech`.

use std::sync::Arc;

use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{GatherBlockQuantized, MatMulNBits};
use kilim_core::tensor::{AlignedBytes, Tensor};
use kilim_core::{DType, Limits};
use kilim_test_support::archive::Cases;

use super::{Front, probe};
use crate::shown::ports;
use crate::{FileParts, ImporterRegistry, ModelFile, Parted, load_model};

fn file(name: &str) -> Vec<u8> {
    let cases = Cases::of("whisper");
    cases.file(&format!("{name}/ggml-model.bin")).to_vec()
}

fn import(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    load_model(&ModelFile::new(bytes, "ggml-tiny.bin"), &Limits::default())
}

#[test]
fn a_file_is_two_halves_with_the_ports_of_optimum() {
    let graph = import(&file("floats")).expect("a graph");
    let cache = |name: &str, places: &str| format!("{name} float32[batch_size,2,{places},24]");
    let ports = ports(&graph);
    let begin = [
        "input_features float32[batch_size,80,200]",
        "input_ids int64[batch_size,sequence_length]",
        "attention_mask int64[batch_size,total_sequence_length]",
        "encoder_hidden_states float32[batch_size,encoder_sequence_length,48]",
        "use_cache_branch bool[1]",
    ];
    assert_eq!(ports[..5], begin);
    let heard = "encoder_sequence_length_out";
    assert!(ports.contains(&cache("past_key_values.0.encoder.key", heard)));
    let past = "past_decoder_sequence_length";
    assert!(ports.contains(&cache("past_key_values.1.decoder.value", past)));
    assert_eq!(graph.inputs.len(), 5 + 8);
    let outputs: Vec<_> = graph
        .outputs
        .iter()
        .map(|&v| &*graph.value(v).name)
        .collect();
    let caches = [
        "decoder.key",
        "decoder.value",
        "encoder.key",
        "encoder.value",
    ];
    let caches = [0, 1]
        .into_iter()
        .flat_map(|i| caches.map(|c| format!("present.{i}.{c}")));
    let expected: Vec<_> = ["last_hidden_state", "logits"]
        .map(str::to_string)
        .into_iter()
        .chain(caches)
        .collect();
    assert_eq!(outputs, expected);
    let logits = ports
        .iter()
        .find(|port| port.starts_with("logits float32["));
    assert!(logits.is_some_and(|port| port.ends_with(",416]")));
}

#[test]
fn packed_weights_stay_packed() {
    let graph = import(&file("packed")).expect("a graph");
    let products = graph.nodes.iter().filter(|n| n.op.is::<MatMulNBits>());
    // The second matrix of each layer.
    assert_eq!(products.count(), 4);
    assert!(
        !graph
            .nodes
            .iter()
            .any(|n| n.op.is::<GatherBlockQuantized>())
    );
    let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let packed = constants.filter(|t| t.dtype() == DType::U8);
    assert_eq!(packed.map(Tensor::byte_len).sum::<usize>(), 4 * 48 * 96);
}

#[test]
fn other_models_of_ggml_are_not_taken_for_whisper() {
    let bytes = file("floats");
    assert!(probe(&bytes));
    for cut in [0, 3, 4, 47, 55] {
        assert!(!probe(&bytes[..cut]), "{cut}");
    }
    // LLaMA's sizes are seven numbers, and words stand behind them.
    let mut llama = b"lmgg".to_vec();
    for number in [32000u32, 4096, 256, 32, 32, 128, 1, 5] {
        llama.extend(number.to_le_bytes());
    }
    llama.extend([b"<unk>".as_slice(), &[0; 64]].concat());
    assert!(!probe(&llama));
    let error = import(&llama).expect_err("an error");
    assert_eq!(error.code(), ErrorCode::UnknownFormat);
    assert!(error.to_string().contains("a GGML model"), "{error}");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let bytes = file("floats");
    let number = |at: usize, to: i32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
        import(&bytes).expect_err("an error")
    };
    let at = |field: usize| 4 + 4 * field;
    for (field, to) in [
        (0, 415),
        (0, -1),
        (1, 99),
        (2, 96),
        (3, 0),
        (3, 7),
        (4, 1),
        (4, 3),
        (5, 47),
        (6, 47),
        (7, 5),
        (8, 3),
        (12, 200),
    ] {
        let error = number(at(field), to);
        let codes = [ErrorCode::InvalidModel, ErrorCode::Unsupported];
        assert!(codes.contains(&error.code()), "{field} {to}: {error}");
    }
    let name = b"encoder.ln_post.bias";
    let place = bytes.windows(name.len()).position(|part| part == name);
    let place = place.expect("the tensor is there");
    let mut renamed = bytes.clone();
    renamed[place..][..7].copy_from_slice(b"another");
    let error = import(&renamed).expect_err("an error");
    assert!(
        error.to_string().contains("encoder.ln_post.bias"),
        "{error}"
    );
    // IQ3_XXS needs rows of 256 numbers, and type 15 cannot be read at all.
    let of = place - 4 - 4;
    let error = number(of, 18);
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    let error = number(of, 99);
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
}

#[test]
fn damaged_files_never_panic() {
    let bytes = file("packed");
    let front = Front::read(&bytes).expect("a front").end;
    let behind = bytes.len() - front;
    for len in (0..front)
        .step_by(997)
        .chain((front..bytes.len()).step_by(behind / 100))
    {
        assert!(import(&bytes[..len]).is_err(), "{len}");
    }
    let mut bytes = bytes;
    for at in (0..56).chain((front..front + 300).step_by(3)) {
        for value in [0, 0xff, !bytes[at]] {
            let old = std::mem::replace(&mut bytes[at], value);
            let _ = import(&bytes);
            bytes[at] = old;
        }
    }
}

/// A file that is read part by part.
struct Apart(Vec<u8>);

impl FileParts for Apart {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(&self.0[offset as usize..][..to.len()]);
        Ok(())
    }
}

#[test]
fn large_tensors_need_not_be_in_memory() {
    let bytes = file("floats");
    let front = Front::read(&bytes).expect("a front").end;
    let load = |bytes: &[u8]| {
        let parted = Parted::new(Arc::new(Apart(bytes.to_vec())), true);
        let outline = ImporterRegistry::default().read(parted.file(), "m")?;
        assert_eq!(outline.as_slice(), &bytes[..front]);
        load_model(
            &ModelFile::parted(&parted, outline, "m"),
            &Limits::default(),
        )
    };
    let constants = |graph: &Graph| -> Vec<Option<Tensor>> {
        graph.values.iter().map(|v| v.constant.clone()).collect()
    };
    let apart = load(&bytes).expect("a graph");
    assert!(constants(&apart) == constants(&import(&bytes).expect("a graph")));
    let error = load(&bytes[..bytes.len() - 1]).expect_err("it is cut");
    assert_eq!(error.code(), ErrorCode::InvalidModel);
}
