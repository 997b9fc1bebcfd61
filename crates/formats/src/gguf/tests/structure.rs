use kilim_core::dtype::DType;
use kilim_core::error::ErrorCode;
use kilim_core::graph::Graph;
use kilim_core::ops::{GatherBlockQuantized, MatMulNBits};

use super::{decoder, import, refused, with};
use crate::gguf::architecture::ARCHITECTURES;

fn names(graph: &Graph, values: &[kilim_core::graph::ValueId]) -> Vec<String> {
    values
        .iter()
        .map(|&v| graph.value(v).name.clone())
        .collect()
}

#[test]
fn architectures_are_sorted() {
    assert_eq!(ARCHITECTURES.misplaced(), None);
}

#[test]
fn a_decoder_has_the_ports_of_language_models() {
    let graph = import(&decoder("llama-f32")).expect("a graph");
    let past = ["past_key_values.0.key", "past_key_values.0.value"];
    let inputs = [["input_ids", "attention_mask"], past].concat();
    assert_eq!(names(&graph, &graph.inputs), inputs);
    let outputs = ["logits", "present.0.key", "present.0.value"];
    assert_eq!(names(&graph, &graph.outputs), outputs);
}

#[test]
fn an_encoder_gives_vectors_of_words_and_of_the_text() {
    let graph = import(&decoder("bert-f16")).expect("a graph");
    let inputs = ["input_ids", "attention_mask"];
    assert_eq!(names(&graph, &graph.inputs), inputs);
    let outputs = ["last_hidden_state", "sentence_embedding"];
    assert_eq!(names(&graph, &graph.outputs), outputs);
}

#[test]
fn packed_weights_stay_packed() {
    let graph = import(&decoder("llama-supers")).expect("a graph");
    let products = graph
        .nodes
        .iter()
        .filter(|n| n.op.downcast_ref::<MatMulNBits>().is_some());
    // Seven of the layer, and the head.
    assert_eq!(products.count(), 8);
    let gathers = graph
        .nodes
        .iter()
        .filter(|n| n.op.downcast_ref::<GatherBlockQuantized>().is_some());
    assert_eq!(gathers.count(), 1);
    let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let of = |dtype| move |t: &&kilim_core::Tensor| t.dtype() == dtype;
    let packed: usize = constants
        .clone()
        .filter(of(DType::U8))
        .map(|t| t.byte_len())
        .sum();
    // The rows of the embedding, which are those of the head, are there once: 32 rows of 256 numbers of four bits, and the layer's.
    assert_eq!(
        packed,
        32 * 128 + 32 * 64 + 16 * 128 + 16 * 256 + 256 * 32 + 32 * 256 + 32 * 256 + 256 * 16
    );
}

#[test]
fn what_a_file_has_and_kilim_does_not_is_refused_by_name() {
    let bytes = decoder("llama-bf16");
    let cases: [(&[u8], &[u8], &str); 3] = [
        (b"llama", b"mamba", "mamba"),
        (
            b"blk.1.attn_norm.weight",
            b"blk.1.attn_norm.others",
            "no tensor",
        ),
        (
            b"rope_freqs.weight",
            b"rope_other.weight",
            "tensors that this",
        ),
    ];
    for (from, to, says) in cases {
        let error = refused(import(&with(&bytes, from, to)));
        let codes = [ErrorCode::Unsupported, ErrorCode::InvalidModel];
        assert!(codes.contains(&error.code()), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let linear = decoder("gemma3-f16");
    let error = refused(import(&with(&linear, b"linear", b"yarn12")));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("rope.scaling.type"), "{error}");
}

#[test]
fn elements_that_cannot_be_read_are_listed_together() {
    let mut bytes = decoder("llama-supers");
    // Behind the name: the number of dimensions, two of them, and the type, which becomes NVFP4.
    for name in ["token_embd.weight", "blk.0.attn_q.weight"] {
        let at = bytes
            .windows(name.len())
            .position(|part| part == name.as_bytes());
        let at = at.expect("the tensor is there") + name.len() + 4 + 16;
        bytes[at] = 40;
    }
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let says = "elements of type NVFP4 at `blk.0.attn_q.weight`, `token_embd.weight`";
    assert!(error.message().contains(says), "{error}");
}
