use kilim_core::DType;
use kilim_core::error::ErrorCode;
use kilim_test_support::archive::Cases;
use kilim_test_support::tflite::{Field, refer, text};

use super::{import, import_with, model, refused};
use crate::ImporterRegistry;
use crate::shown::{operators, ports};

#[test]
fn models_are_known_by_their_structure_alone() {
    let registry = ImporterRegistry::default();
    let format = |bytes: &[u8], name: &str| registry.probe(bytes, name).map(|i| i.format());
    let bytes = model("network");
    for name in ["m.mnn", "model", "m.onnx", "m.tflite"] {
        assert_eq!(format(&bytes, name), Some("mnn"), "{name}");
    }
    // The beginning is enough, as of a large file.
    assert_eq!(format(&bytes[..200], "m"), Some("mnn"));
    let mut named = bytes.clone();
    named[4..8].copy_from_slice(b"ABCD");
    for other in [
        &[][..],
        &[0; 64],
        &bytes[..8],
        &named,
        b"\x20\0\0\0 other bytes of a file, quite long",
    ] {
        assert_ne!(format(other, "m.mnn"), Some("mnn"), "{other:?}");
    }
    for (kind, file) in [
        ("tflite", "add_int8/model.tflite"),
        ("ncnn", "network/model.bin"),
        ("ncnn", "network_binary/model.param"),
        ("ort", "attributes/model.ort"),
        ("frameworks", "affine_grid_one_2/model.onnx"),
    ] {
        let cases = Cases::of(kind);
        assert_ne!(format(cases.file(file), "m.mnn"), Some("mnn"), "{file}");
    }
}

#[test]
fn layouts_of_memory_leave_nothing_behind() {
    let graph = import(&model("network")).expect("a model");
    let all = operators(&graph);
    assert!(!all.contains(&"Transpose"), "{all:?}");
    assert_eq!(all.iter().filter(|&&name| name == "Conv").count(), 3);
    assert_eq!(ports(&graph), ["x float32[1,3,7,6]", "y float32[1,6]"]);
}

#[test]
fn open_sizes_have_names() {
    let graph = import(&model("open")).expect("a model");
    assert_eq!(ports(&graph), ["x float32[1,3,h,w]", "y float32[1,6]"]);
}

#[test]
fn weights_stay_as_they_are_stored() {
    let dtypes = |case: &str| -> Vec<DType> {
        let graph = import(&model(case)).expect("a model");
        let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
        let large = constants.filter(|t| t.shape() == [8, 3, 3, 3]);
        large.map(|t| t.dtype()).collect()
    };
    assert_eq!(dtypes("halves"), [DType::F16]);
    assert_eq!(dtypes("network"), [DType::F32]);
    // The weights of a plain file are not copied out of it.
    let graph = import(&model("network")).expect("a model");
    let mut buffers = std::collections::HashSet::new();
    for tensor in graph.values.iter().filter_map(|v| v.constant.as_ref()) {
        if tensor.dtype() == DType::F32 && tensor.len() > 1 {
            tensor.buffers(&mut |address, _| {
                buffers.insert(address);
            });
        }
    }
    assert_eq!(buffers.len(), 1);
}

#[test]
fn weights_beside_a_model_are_found_by_name_or_as_the_only_file() {
    let (bytes, cases) = (model("beside"), Cases::of("mnn"));
    let weights = cases.file("beside/model.mnn.weight");
    for files in [
        &[("m.mnn.weight", weights)][..],
        &[("weights", weights)],
        &[("m.mnn.weight", weights), ("other", &[])],
    ] {
        assert!(import_with(&bytes, files, false).is_ok());
    }
    let error = refused(import_with(&bytes, &[], false));
    assert_eq!(
        (error.code(), error.expected()),
        (ErrorCode::Io, Some("m.mnn.weight")),
        "{error}"
    );
    assert!(import_with(&bytes, &[], true).is_ok());
    let short = [("m.mnn.weight", &weights[..weights.len() / 2])];
    let error = refused(import_with(&bytes, &short, false));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
}

/// The type of an operator stands in its table as an `i32`.
#[test]
fn operators_of_later_versions_are_refused_with_that_version() {
    // Softmax becomes an operator that nobody knows, then one that is known and refused.
    let softmax = 85_i32.to_le_bytes();
    let bytes = model("reductions");
    let places: Vec<usize> = (0..bytes.len() - 4)
        .step_by(4)
        .filter(|&at| bytes[at..at + 4] == softmax)
        .collect();
    assert!(!places.is_empty());
    for (number, why) in [
        (999, "unknown operator of MNN 3."),
        (299, "a cache of keys"),
    ] {
        let mut changed = bytes.clone();
        for &at in &places {
            changed[at..at + 4].copy_from_slice(&i32::to_le_bytes(number));
        }
        let error = refused(import(&changed));
        assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
        assert!(error.message().contains(why), "{error}");
    }
}

#[test]
fn an_output_that_is_no_tensor_is_an_error() {
    // The names of the output: that of its tensor, and that in the list of outputs.
    let mut bytes = model("open");
    let name = [1, 0, 0, 0, b'y', 0, 0, 0];
    let place = bytes.windows(8).position(|w| w == name).expect("the name");
    bytes[place + 4] = b'q';
    let error = refused(import(&bytes));
    assert_eq!(error.code(), ErrorCode::InvalidGraph, "{error}");
}

#[test]
fn loops_have_bodies() {
    let graph = import(&model("loop")).expect("a model");
    assert_eq!(
        operators(&graph)
            .iter()
            .filter(|&&name| name == "Loop")
            .count(),
        1
    );
    // The name that the loop calls, or that of the body.
    let mut bytes = model("loop");
    let name = b"last/Loop/body";
    let place = bytes
        .windows(name.len())
        .position(|w| w == name)
        .expect("the name");
    bytes[place] = b'q';
    let error = refused(import(&bytes));
    assert!(
        error.message().contains("a graph that is not there"),
        "{error}"
    );
}

/// A network of an input and of TanH, which reads a tensor of a number; with what `described` says of a tensor.
fn written(read: i32, described: Vec<Field>) -> Vec<u8> {
    let op = |kind: i32, inputs: Vec<i32>, output: i32| {
        Field::Table(vec![
            Field::I32s(inputs),
            Field::None,
            Field::None,
            text("name"),
            Field::I32s(vec![output]),
            Field::I32(kind),
        ])
    };
    let net = Field::Table(vec![
        Field::None,
        Field::Tables(vec![Field::Table(described)]),
        Field::None,
        Field::Tables(vec![op(34, Vec::new(), 0), op(95, vec![read], 1)]),
        Field::None,
        Field::None,
        Field::I8(3),
        Field::Tables(vec![text("x"), text("y")]),
    ]);
    let mut file = vec![0; 4];
    refer(&mut file, 0, &net);
    file
}

#[test]
fn models_whose_data_has_8_bits_are_refused() {
    let graph = import(&written(0, Vec::new())).expect("a model");
    assert_eq!(operators(&graph), ["Tanh"]);
    let quantized = [const { Field::None }; 4]
        .into_iter()
        .chain([Field::Table(Vec::new())]);
    let error = refused(import(&written(0, quantized.collect())));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    assert!(error.message().contains("8 bits"), "{error}");
}

#[test]
fn an_operator_reads_tensors_that_are_there() {
    for (number, code) in [
        (2, ErrorCode::InvalidModel),
        (-1, ErrorCode::InvalidModel),
        // A tensor that no operator has written yet.
        (1, ErrorCode::InvalidGraph),
    ] {
        let error = refused(import(&written(number, Vec::new())));
        assert_eq!(error.code(), code, "{error}");
    }
}

#[test]
fn a_file_says_which_converter_made_it() {
    let graph = import(&model("network")).expect("a model");
    let metadata = &graph.metadata;
    assert_eq!(metadata.producer, "MNN");
    assert!(metadata.producer_version.starts_with("3."), "{metadata:?}");
    assert_eq!(metadata.entry("bizCode"), Some("kilim"), "{metadata:?}");
}
