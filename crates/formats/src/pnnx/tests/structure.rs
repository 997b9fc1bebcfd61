use kilim_core::DType;
use kilim_core::error::ErrorCode;

use super::{file, import_with, network, refused, structure};
use crate::shown::{operators, ports};
use crate::{Importer, ImporterRegistry};

const PICTURE: &str = "pnnx.Input in0 0 1 0 #0=(1,3,8,6)f32";
const CONV: &str = "nn.Conv2d c 1 1 0 1 bias=True dilation=(1,1) groups=1 padding=(1,1) padding_mode=zeros stride=(1,1) @bias=(4)f32 @weight=(4,3,3,3)f32";
const OUTPUT: &str = "pnnx.Output out0 1 0 1";

/// Reads a network of one operator that only has to be looked at.
fn of_one(operator: &str) -> kilim_core::error::Result<kilim_core::graph::Graph> {
    structure(&network(&[PICTURE, operator, OUTPUT]))
}

#[test]
fn a_network_is_told_from_one_of_ncnn() {
    let known = ImporterRegistry::default();
    let format = |text: &str| {
        known
            .probe(text.as_bytes(), "m.param")
            .map(Importer::format)
    };
    assert_eq!(format(&network(&[PICTURE])), Some("pnnx"));
    assert_eq!(format("7767517\n1 1\nprim::Constant a 0 1 a"), Some("pnnx"));
    assert_eq!(
        format("7767517\n1 1\nInput data.1 0 1 data.1"),
        Some("ncnn")
    );
}

#[test]
fn a_network_without_weights_is_looked_at() {
    let text = network(&[
        PICTURE,
        CONV,
        "F.relu r 1 1 1 2 $input=1",
        "pnnx.Output out0 1 0 2",
    ]);
    let graph = structure(&text).expect("a graph");
    assert_eq!(
        ports(&graph),
        ["in0 float32[1,3,8,6]", "out0 float32[1,4,8,6]"]
    );
    assert_eq!(operators(&graph), ["Conv", "Relu"]);
    let error = refused(import_with(text.as_bytes(), &[]));
    assert_eq!(
        (error.code(), error.expected()),
        (ErrorCode::Io, Some("m.pnnx.bin")),
        "{error}"
    );
}

#[test]
fn archives_of_32_and_of_64_bits_say_the_same() {
    let read = |case| {
        let weights = file(case, "model.pnnx.bin");
        let network = file(case, "model.pnnx.param");
        import_with(&network, &[("m.pnnx.bin", &weights)]).expect("a graph")
    };
    let (wide, old) = (read("convolutions"), read("convolutions_old"));
    let numbers = |graph: &kilim_core::graph::Graph| {
        let constants = graph.values.iter().filter_map(|v| v.constant.clone());
        let bytes = constants.map(|t| t.read().expect("numbers").to_vec());
        bytes.collect::<Vec<_>>()
    };
    assert_eq!(numbers(&wide), numbers(&old));
    assert!(
        !file("convolutions", "model.pnnx.bin")
            .starts_with(&file("convolutions_old", "model.pnnx.bin")[..64])
    );
}

#[test]
fn halves_stay_halves() {
    let weights = file("halves", "model.pnnx.bin");
    let network = file("halves", "model.pnnx.param");
    let graph = import_with(&network, &[("m.pnnx.bin", &weights)]).expect("a graph");
    let mut constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    assert!(constants.any(|t| t.dtype() == DType::F16 && t.shape() == [4, 6]));
}

#[test]
fn weights_are_those_of_the_network() {
    let network = file("convolutions", "model.pnnx.param");
    let others = file("norms", "model.pnnx.bin");
    let error = refused(import_with(&network, &[("m.pnnx.bin", &others)]));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    assert!(error.hint().is_some(), "{error}");
    let error = refused(import_with(&network, &[("m.pnnx.bin", b"no archive")]));
    assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
}

#[test]
fn element_types_become_common() {
    for (other, expr, dtype) in [
        ("i64", "add(@0,@1)", DType::F32),
        ("f64", "add(@0,@1)", DType::F64),
        ("i64", "add(@1,1)", DType::I64),
        ("i32", "mul(@1,2)", DType::I32),
        ("i32", "mul(@1,5.000000e-01)", DType::F32),
        ("i32", "div(@1,2)", DType::F32),
        ("f16", "mul(@1,5.000000e-01)", DType::F16),
        ("f16", "mul(@1,size(@0,3))", DType::F16),
        ("u8", "sub(@1,1)", DType::U8),
    ] {
        let other = format!("pnnx.Input in1 0 1 2 #2=(1,3,8,6){other}");
        let expression = format!("pnnx.Expression e 2 1 0 2 1 expr={expr}");
        let graph = structure(&network(&[PICTURE, &other, &expression, OUTPUT]));
        let graph = graph.expect(expr);
        let found = graph.value(graph.outputs[0]).fact.dtype;
        assert_eq!(found, Some(dtype), "{expr}");
    }
    // A tensor without dimensions counts less, whatever its size in bits.
    let scalar = "pnnx.Attribute a 0 1 2 @data=()f64";
    let sum = "pnnx.Expression e 2 1 0 2 1 expr=add(@0,@1)";
    let graph = structure(&network(&[PICTURE, scalar, sum, OUTPUT])).expect("a graph");
    assert_eq!(graph.value(graph.outputs[0]).fact.dtype, Some(DType::F32));
}

#[test]
fn sizes_that_are_known_are_numbers() {
    let size = "Tensor.size s 1 1 0 2 dim=2 $input=0";
    let list = "pnnx.Expression e 2 1 0 2 3 expr=[size(@0,0),-1,int(div(@1,2))]";
    let view = "Tensor.view v 2 1 0 3 1 $input=0 $shape=3";
    let graph = structure(&network(&[PICTURE, size, list, view, OUTPUT])).expect("a graph");
    assert_eq!(operators(&graph), ["Reshape"]);
    assert_eq!(ports(&graph)[1], "out0 float32[1,36,4]");
}

#[test]
fn everything_that_is_refused_is_listed() {
    let error = refused(structure(&network(&[
        PICTURE,
        "torch.twirl w 1 1 0 2 $input=0",
        "F.relu r 1 1 2 1 $input=2",
        "torch.stft s 1 1 0 3",
        "models.yolo.Detect d 1 1 0 4",
        "F.interpolate u 1 1 0 5 mode=wavy scale_factor=(2.0,2.0) $input=0",
        "nn.MaxPool2d p 1 2 0 6 7 kernel_size=(2,2) return_indices=True",
        "pnnx.Expression e 1 1 0 8 expr=atan2(@0,@0)",
        OUTPUT,
    ])));
    assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    for part in [
        "torch.twirl: unknown operator at `w`",
        "torch.stft: the spectrum of sound at `s`",
        "models.yolo.Detect: unknown operator at `d`",
        "F.interpolate: the interpolation `wavy` at `u`",
        "nn.MaxPool2d: outputs beside the first at `p`",
        "pnnx.Expression: the function `atan2` of an expression at `e`",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(!error.message().contains("`r`"), "{error}");
}

#[test]
fn garbled_operators_are_errors() {
    let deep = format!(
        "pnnx.Expression e 1 1 0 1 expr={}@0{}",
        "neg(".repeat(500),
        ")".repeat(500)
    );
    for (operator, why) in [
        ("F.relu r 1 1 9 1", "no operator before writes"),
        ("F.relu r 1 1 0 0", "two operators write"),
        ("F.relu r 1 one 0 1", "a number is missing"),
        ("F.relu r 9 1 0", "ends within its operands"),
        ("F.relu r 1 1 0 1 noise", "has no value"),
        ("F.relu r 1 1 0 1 #0=8,6f32", "a shape is garbled"),
        (
            "F.softmax s 1 1 0 1 dim=wide",
            "something else than PyTorch takes",
        ),
        (
            "nn.Conv2d c 1 1 0 1 stride=(0,1) @weight=(4,3,3,3)f32",
            "must not be 0",
        ),
        (
            "nn.Conv2d c 1 1 0 1 stride=(1,1,1) @weight=(4,3,3,3)f32",
            "another number of axes",
        ),
        ("nn.Conv2d c 1 1 0 1 bias=False", "are missing"),
        (
            "F.pad p 1 1 0 1 pad=(1,1,1) mode=constant",
            "another number of axes",
        ),
        (
            "nn.PixelUnshuffle p 1 1 0 1 downscale_factor=1000000000",
            "does not divide",
        ),
        (
            "pnnx.Expression e 1 1 0 1 expr=add(@0,@7)",
            "no such operand",
        ),
        ("pnnx.Expression e 1 1 0 1 expr=add(@0,", "garbled"),
        ("pnnx.Expression e 1 1 0 1 expr=add(@0,1))", "garbled"),
        (deep.as_str(), "too deep"),
    ] {
        let error = refused(of_one(operator));
        let known = [
            ErrorCode::InvalidModel,
            ErrorCode::InvalidGraph,
            ErrorCode::Limit,
        ];
        assert!(known.contains(&error.code()), "{error}");
        assert!(error.message().contains(why), "{operator}: {error}");
    }
    let count = network(&[PICTURE, OUTPUT]).replace("\n2 9", "\n3 9");
    assert_eq!(refused(structure(&count)).code(), ErrorCode::InvalidModel);
}

#[test]
fn lists_in_lists_stay_small() {
    let mut lines = vec![
        PICTURE.to_string(),
        "prim::ListConstruct l 2 1 0 0 1".to_string(),
    ];
    for i in 2..60 {
        let before = i - 1;
        lines.push(format!(
            "prim::ListConstruct l{i} 2 1 {before} {before} {i}"
        ));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(
        refused(structure(&network(&lines))).code(),
        ErrorCode::Limit
    );
}
