use kilim_core::error::ErrorCode;

use super::{file, import, refused};
use crate::ImporterRegistry;
use crate::shown::ports;

/// The word at an offset.
fn word(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes) as usize
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Where the graph of a file lies.
fn graph_of(bytes: &[u8]) -> usize {
    let graphs = word(bytes, word(bytes, 8) + 8);
    word(bytes, graphs + 4)
}

/// Where the tensor number `i` lies.
fn tensor_of(bytes: &[u8], i: usize) -> usize {
    let tensors = word(bytes, graph_of(bytes) + 24);
    word(bytes, tensors + 4 + 4 * i)
}

#[test]
fn networks_are_known_by_their_content() {
    let formats = ImporterRegistry::default();
    for case in ["products", "first_version"] {
        let bytes = file(case);
        for name in ["m.tmfile", "m", "m.onnx"] {
            let found = formats
                .probe(&bytes, name)
                .map(|importer| importer.format());
            assert_eq!(found, Some("tengine"), "{case} as {name}");
        }
    }
    // Two bytes alone are no version.
    let found = formats.probe(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "m");
    assert!(found.is_none());
}

#[test]
fn another_version_says_what_it_is() {
    let mut bytes = file("products");
    bytes[0] = 1;
    let error = refused(import(&bytes));
    assert_eq!(
        (error.code(), error.got(), error.expected()),
        (ErrorCode::Unsupported, Some("1.0"), Some("0.1 or 2.0")),
        "{error}"
    );
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn the_first_version_is_read_as_the_second() {
    let graph = import(&file("first_version")).expect("a graph");
    let ports = ports(&graph);
    assert_eq!(ports[0], "x float32[1,4,7,6]");
    assert!(
        ports.iter().any(|port| port.ends_with(" float32[1,2,7,6]")),
        "{ports:?}"
    );
}

#[test]
fn an_element_type_that_the_first_version_lacks_is_refused() {
    let mut bytes = file("first_version");
    let graph = word(&bytes, word(&bytes, word(&bytes, 8)) + 4);
    let input = word(&bytes, word(&bytes, graph + 16) + 4);
    bytes[input + 17] = 4;
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
}

#[test]
fn channels_that_lie_last_are_refused() {
    let mut bytes = file("products");
    let graph = graph_of(&bytes);
    set(&mut bytes, graph + 8, 1);
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    assert!(error.message().contains("channels lie last"), "{error}");
}

#[test]
fn inputs_without_a_size_have_the_channels_of_the_first_convolution() {
    let mut bytes = file("convolutions");
    let input = tensor_of(&bytes, 0);
    set(&mut bytes, input + 8, 0);
    let graph = import(&bytes).expect("a graph");
    assert_eq!(ports(&graph)[0], "x float32[1,4,h,w]");
}

#[test]
fn weights_that_are_not_there_are_zeros() {
    let mut bytes = file("products");
    let buffers = word(&bytes, graph_of(&bytes) + 28);
    for i in 0..word(&bytes, buffers) {
        let buffer = word(&bytes, buffers + 4 + 4 * i);
        set(&mut bytes, buffer + 4, 0);
    }
    let graph = import(&bytes).expect("a graph");
    let mut constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let weights = constants.find(|t| t.shape() == [7, 60]).expect("weights");
    let first = weights.as_slice::<f32>().expect("floats")[0];
    assert_eq!(first, 0.0);
}

#[test]
fn everything_that_is_refused_is_listed() {
    let mut bytes = file("products");
    let nodes = word(&bytes, graph_of(&bytes) + 20);
    let mut operators = Vec::new();
    for i in 0..word(&bytes, nodes) {
        let node = word(&bytes, nodes + 4 + 4 * i);
        let operator = word(&bytes, node + 12) + 4;
        if word(&bytes, operator) == 11 || word(&bytes, operator) == 91 {
            operators.push(operator);
        }
    }
    set(&mut bytes, operators[0], 34);
    set(&mut bytes, operators[1], 200);
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    for part in [
        "LSTM: a recurrent operator",
        "operator number 200: unknown operator",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn numbers_of_8_bits_are_refused() {
    let mut bytes = file("products");
    let weights = tensor_of(&bytes, 3);
    set(&mut bytes, weights + 28, 2);
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    assert!(error.message().contains("numbers of 8 bits"), "{error}");
}

#[test]
fn offsets_that_lead_out_of_the_file_are_errors() {
    let bytes = file("products");
    let graph = graph_of(&bytes);
    for at in [8, graph + 16, graph + 20, graph + 24, graph + 28] {
        let mut bytes = bytes.clone();
        set(&mut bytes, at, 0xffff_fff0);
        let error = refused(import(&bytes));
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{at}: {error}");
    }
}
