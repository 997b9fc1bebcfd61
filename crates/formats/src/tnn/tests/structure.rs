use kilim_core::DType;
use kilim_core::error::ErrorCode;

use super::{file, import_with, network, refused, structure};
use crate::shown::{operators, ports};

const PICTURE: &str = "a 4 1 3 8 6 0";
const CONV: &str = "Convolution c 1 1 a b 1 3 4 3 3 1 1 1 1 1 -1 1 1 1";

#[test]
fn a_network_without_weights_is_looked_at() {
    let text = network(
        PICTURE,
        "d",
        &[CONV, "Pooling p 1 1 b d 0 2 2 2 2 0 0 -1 -1 -1 0"],
    );
    let graph = structure(&text).expect("a graph");
    assert_eq!(ports(&graph), ["a float32[1,3,8,6]", "d float32[1,4,4,3]"]);
    assert_eq!(operators(&graph), ["Conv", "Relu", "MaxPool"]);
    let error = refused(import_with(text.as_bytes(), &[]));
    assert_eq!(
        (error.code(), error.expected()),
        (ErrorCode::Io, Some("m.tnnmodel")),
        "{error}"
    );
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn both_versions_say_the_same() {
    let read = |case| {
        let weights = file(case, "model.tnnmodel");
        import_with(&file(case, "model.tnnproto"), &[("m.tnnmodel", &weights)]).expect("a graph")
    };
    let (new, old) = (read("convolutions"), read("convolutions_old"));
    assert_eq!(operators(&new), operators(&old));
    assert_eq!(ports(&new), ports(&old));
}

#[test]
fn another_version_says_what_it_is() {
    let text = network(PICTURE, "b", &[CONV]).replace("4206624772", "4206624776");
    let error = refused(structure(&text));
    assert_eq!(
        (error.code(), error.got(), error.expected()),
        (
            ErrorCode::Unsupported,
            Some("4206624776"),
            Some("4206624770 or 4206624772")
        ),
        "{error}"
    );
    let mut weights = file("convolutions", "model.tnnmodel");
    weights[0] = 6;
    let network = file("convolutions", "model.tnnproto");
    let error = refused(import_with(&network, &[("m.tnnmodel", &weights)]));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
}

#[test]
fn halves_stay_halves() {
    let weights = file("halves", "model.tnnmodel");
    let graph = import_with(
        &file("halves", "model.tnnproto"),
        &[("m.tnnmodel", &weights)],
    );
    let graph = graph.expect("a graph");
    let mut constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    assert!(constants.any(|t| t.dtype() == DType::F16 && t.shape() == [4, 3, 3, 3]));
}

#[test]
fn weights_of_8_bits_stay_integers() {
    let weights = file("bytes", "model.tnnmodel");
    let graph = import_with(
        &file("bytes", "model.tnnproto"),
        &[("m.tnnmodel", &weights)],
    );
    let graph = graph.expect("a graph");
    let mut constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    assert!(constants.any(|t| t.dtype() == DType::I8 && t.shape() == [6, 4, 3, 3]));
}

#[test]
fn weights_are_those_of_the_layer() {
    let network = file("convolutions", "model.tnnproto");
    let others = file("pairs", "model.tnnmodel");
    let error = refused(import_with(&network, &[("m.tnnmodel", &others)]));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    assert!(error.hint().is_some() || error.op().is_some(), "{error}");
}

#[test]
fn everything_that_is_refused_is_listed() {
    let layers = [
        "Whirl w 1 1 a b",
        "QuantizedTanh q 1 1 a c",
        "DynamicRangeQuantizedMatMul m 1 1 a g 1",
        "PriorBox p 1 1 a d",
        "ReLU r 1 1 b e",
        "Upsample u 1 1 a f 7 2 2 0",
    ];
    let error = refused(structure(&network(PICTURE, "e", &layers)));
    assert_eq!(error.code(), ErrorCode::Unsupported);
    for part in [
        "Whirl: unknown operator at `w`",
        "QuantizedTanh: a layer that TNN does not have in 8 bits at `q`",
        "DynamicRangeQuantizedMatMul: weights of 8 bits for data in floats at `m`",
        "PriorBox: boxes that are only of use to DetectionOutput at `p`",
        "Upsample: interpolation number 7 at `u`",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(!error.message().contains("`r`"), "{error}");
}

#[test]
fn what_stands_in_the_weights_alone_is_refused_without_them() {
    for (layer, why) in [
        (
            "Reshape r 2 1 a s b 0 2 2 0 0 0",
            "a blob that stands in the file of the weights alone",
        ),
        (
            "MatMul m 1 1 a b 1",
            "whose shape stands in the file of the weights alone",
        ),
        (
            "Gather g 1 1 a b 1 0 1",
            "whose shape stands in the file of the weights alone",
        ),
    ] {
        let error = refused(structure(&network(PICTURE, "b", &[layer])));
        assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn garbled_lines_are_errors() {
    for (layer, why) in [
        ("ReLU r 1 1 z b", "no layer before writes"),
        ("ReLU r 1 1 a a", "two layers write"),
        ("ReLU r 1 one a b", "a number is missing"),
        ("ReLU r 2 1 a", "ends within its blobs"),
        ("Clip c 1 1 a b x 1", "no number"),
        ("Permute p 1 1 a b 9 0 1", "longer than the layer's line"),
        (
            "Convolution c 1 1 a b 2 3 3 1 1 1 1 0 0 0 -1",
            "do not divide",
        ),
        (
            "Convolution c 1 1 a b 1 3 3 1 1 0 1 0 0 0 -1",
            "must not be 0",
        ),
        (
            "Pooling p 1 1 a b 0 9 9 1 1 0 0 -1 -1 -1 0",
            "larger than the padded blob",
        ),
    ] {
        let network = network(PICTURE, "b", &[layer]);
        let made = match layer.starts_with("ReLU r 1 1 z") {
            true => import_with(
                network.as_bytes(),
                &[("m.tnnmodel", &[0, 0, 0, 0, 0, 0, 0, 0])],
            ),
            false => structure(&network),
        };
        let error = refused(made);
        assert!(
            matches!(
                error.code(),
                ErrorCode::InvalidModel | ErrorCode::InvalidGraph
            ),
            "{error}"
        );
        assert!(error.message().contains(why), "{layer}: {error}");
    }
}
