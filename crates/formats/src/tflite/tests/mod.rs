//! What the importer makes of small TFLite files.

mod circle;
mod garbage;
mod metadata;

use std::sync::Arc;

use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{
    Activation, Attribute, Binary, Conv, Custom, CustomOperator, CustomOperators, MatMul, Padding,
};
use kilim_core::tensor::AlignedBytes;

use super::{load, probe};
use crate::ModelFile;
use kilim_core::Limits;
use kilim_test_support::tflite::{
    CUSTOM, Field, TestOp, TestTensor, constant, file, ints, op, tensor, text,
};

fn import(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    load(&ModelFile::new(bytes, "m"), &Limits::default())
}

/// A convolution, a depthwise convolution, an addition, a reshape and a dense layer.
fn network() -> Vec<u8> {
    use Field::{I8, I32};
    let weights: Vec<f32> = (0..2 * 3 * 3 * 2).map(|i| i as f32).collect();
    let tensors = [
        TestTensor {
            signature: vec![-1, 4, 4, 2],
            ..tensor("input", &[1, 4, 4, 2])
        },
        constant("w", &[2, 3, 3, 2], &weights),
        constant("b", &[2], &[0.5, -0.5]),
        tensor("conv", &[1, 2, 2, 2]),
        constant("dw", &[1, 3, 3, 4], &weights),
        tensor("depthwise", &[1, 2, 2, 4]),
        tensor("sum", &[1, 2, 2, 4]),
        ints("shape", &[2], &[-1, 16]),
        tensor("flat", &[1, 16]),
        constant("fc", &[3, 16], &[1.0; 48]),
        tensor("output", &[1, 3]),
    ];
    let conv = [I8(0), I32(2), I32(2), I8(3), I32(1), I32(1)];
    let depthwise = [I8(0), I32(1), I32(1), I32(2), I8(0), I32(1), I32(1)];
    file(
        &tensors,
        &[0],
        &[10],
        &[
            op(3, &[0, 1, 2], &[3], &conv),
            op(4, &[3, 4, -1], &[5], &depthwise),
            op(0, &[5, 5], &[6], &[I8(1)]),
            op(22, &[6, 7], &[8], &[]),
            op(9, &[8, 9, -1], &[10], &[I8(0)]),
        ],
    )
}

#[test]
fn maps_a_network_without_transposes() {
    let bytes = network();
    assert!(probe(&bytes));
    let g = import(&bytes).unwrap();
    let names: Vec<_> = g.nodes.iter().map(|n| n.op.name()).collect();
    assert_eq!(names, ["Conv", "Conv", "Add", "Reshape", "MatMul"]);
    let input = g.value(g.inputs[0]);
    assert_eq!(input.name, "input");
    let dims = &input.fact.shape.as_ref().unwrap().0;
    assert_eq!(dims[0], Dim::Symbol("input[0]".into()));
    assert_eq!(dims[1], Dim::Known(4));
    assert_eq!(g.value(g.outputs[0]).name, "output");

    let conv = g.nodes[0].op.downcast_ref::<Conv>().unwrap();
    assert!(conv.channels_last && conv.groups == 1 && conv.strides == [2, 2]);
    assert_eq!(conv.padding, Padding::SameUpper);
    assert_eq!(conv.activation, Activation::Clip { min: 0.0, max: 6.0 });
    let weights = g.value(g.nodes[0].inputs[1].unwrap());
    let weights = weights.constant.as_ref().unwrap();
    assert_eq!(weights.shape(), [2, 2, 3, 3]);
    // [m, h, w, c] = [0, 1, 2, 1] is number 11; now [m, c, h, w].
    assert_eq!(weights.as_slice::<f32>().unwrap()[9 + 5], 11.0);

    let depthwise = g.nodes[1].op.downcast_ref::<Conv>().unwrap();
    assert_eq!(depthwise.groups, 2);
    assert_eq!(depthwise.padding, Padding::SameUpper);
    let weights = g.value(g.nodes[1].inputs[1].unwrap());
    let weights = weights.constant.as_ref().unwrap();
    assert_eq!(weights.shape(), [4, 1, 3, 3]);
    assert_eq!(weights.as_slice::<f32>().unwrap()[9], 1.0);

    let sum = g.nodes[2].op.downcast_ref::<Binary>().unwrap();
    assert_eq!(sum.activation, Activation::Relu);
    let product = g.nodes[4].op.downcast_ref::<MatMul>().unwrap();
    assert!(product.transpose_b);
}

/// What is read has to be assigned before, by the subgraph that CALL_ONCE names or by a node.
#[test]
fn a_variable_without_a_first_value_is_refused() {
    let name = [Field::None, text("v")];
    let variable = |ops: &[TestOp]| {
        let tensors = [
            TestTensor {
                kind: 13,
                ..tensor("handle", &[])
            },
            tensor("x", &[2]),
            tensor("y", &[2]),
        ];
        let mut all = vec![op(142, &[], &[0], &name)];
        all.extend(
            ops.iter()
                .map(|o| op(o.code, &o.inputs, &o.outputs, &o.options)),
        );
        import(&file(&tensors, &[1], &[2], &all))
    };
    let read = op(143, &[0], &[2], &[]);
    let error = variable(&[read]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidModel);
    assert!(error.message().contains("`v` is read"), "{error}");

    // What is assigned in each run before it is read needs not stay.
    let given = variable(&[op(144, &[0, 1], &[], &[]), op(143, &[0], &[2], &[])]).unwrap();
    assert!(given.variables.is_empty());
    assert_eq!((given.inputs.len(), given.outputs.len()), (1, 1));

    let no_handle = variable(&[op(143, &[1], &[2], &[])]).unwrap_err();
    assert_eq!(no_handle.code(), ErrorCode::InvalidModel);
}

#[test]
fn lists_everything_it_cannot_run() {
    let quantised = |name| TestTensor {
        kind: 9,
        scale: vec![0.1],
        ..tensor(name, &[1, 4])
    };
    let tensors = [
        quantised("a"),
        quantised("b"),
        quantised("c"),
        tensor("d", &[1, 4]),
        tensor("e", &[1, 4]),
    ];
    let bytes = file(
        &tensors,
        &[0],
        &[4],
        &[
            op(11, &[0], &[1], &[]),
            op(11, &[1], &[2], &[]),
            op(6, &[2], &[3], &[]),
            op(137, &[3], &[4], &[]),
        ],
    );
    let error = import(&bytes).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let message = error.message();
    assert!(
        message.contains("L2_NORMALIZATION: quantised int8 tensors at `b`, `c`"),
        "{message}"
    );
    assert!(
        message.contains("builtin operator number 137: unknown operator at `e`"),
        "{message}"
    );
    assert!(!message.contains("DEQUANTIZE"), "{message}");
}

#[test]
fn custom_operators_are_those_of_the_session() {
    let options = Field::Bytes(vec![7, 0, 255]);
    let tensors = [tensor("x", &[1, 4]), tensor("y", &[1, 4])];
    let bytes = file(&tensors, &[0], &[1], &[op(CUSTOM, &[0], &[1], &[options])]);
    let error = import(&bytes).unwrap_err();
    assert!(
        error
            .message()
            .contains("custom operator `Scale`: unknown operator at"),
        "{error}"
    );
    let mut operators = CustomOperators::default();
    operators.add(CustomOperator::new("tflite", "Scale", |_, ctx| {
        Ok(vec![ctx.fact(0)?.clone()])
    }));
    let bytes = Arc::new(AlignedBytes::copy_of(&bytes).unwrap());
    let source = ModelFile::new(bytes, "m");
    let graph = load(&source.with_operators(&operators), &Limits::default()).unwrap();
    let custom = graph.nodes[0].op.downcast_ref::<Custom>().unwrap();
    let given = custom.attributes().get("custom_options");
    assert_eq!(given, Some(&Attribute::Bytes(vec![7, 0, 255])));
}

#[test]
fn half_precision_weights_become_single() {
    let half: Vec<u8> = [1.5f32, -2.0]
        .iter()
        .flat_map(|&v| half::f16::from_f32(v).to_le_bytes())
        .collect();
    let tensors = [
        tensor("x", &[2]),
        TestTensor {
            kind: 1,
            data: half,
            ..tensor("h", &[2])
        },
        tensor("w", &[2]),
        tensor("y", &[2]),
    ];
    let ops = [op(6, &[1], &[2], &[]), op(18, &[0, 2], &[3], &[])];
    let g = import(&file(&tensors, &[0], &[3], &ops)).unwrap();
    assert_eq!(g.nodes.len(), 1);
    let w = g.value(g.nodes[0].inputs[1].unwrap()).constant.as_ref();
    assert_eq!(w.unwrap().as_slice::<f32>().unwrap(), [1.5, -2.0]);
}

#[test]
fn quantised_weights_of_a_float_layer_are_widened() {
    let tensors = [
        tensor("x", &[1, 2]),
        TestTensor {
            kind: 9,
            data: vec![1, 2, 255, 4],
            scale: vec![0.5],
            ..tensor("w", &[2, 2])
        },
        tensor("y", &[1, 2]),
    ];
    let g = import(&file(
        &tensors,
        &[0],
        &[2],
        &[op(9, &[0, 1, -1], &[2], &[])],
    ))
    .unwrap();
    let w = g.value(g.nodes[0].inputs[1].unwrap()).constant.as_ref();
    assert_eq!(w.unwrap().as_slice::<f32>().unwrap(), [0.5, 1.0, -0.5, 2.0]);
}

/// The collected models, where they are there.
#[test]
fn reads_the_collection() {
    let Some(models) = kilim_test_support::material::models() else {
        return;
    };
    let folders = std::fs::read_dir(models).unwrap();
    let files = folders
        .flatten()
        .filter_map(|f| std::fs::read_dir(f.path()).ok())
        .flat_map(|folder| folder.flatten().map(|f| f.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "tflite"));
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let g = import(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let quantised = ["quant", "int8", "kws_ref_model.tflite"];
        let quantised = quantised.iter().any(|q| name.contains(q));
        for &v in &g.inputs {
            let single = g.value(v).fact.dtype == Some(DType::F32);
            assert_eq!(single, !quantised, "{name}");
        }
        if !name.contains("nmp") {
            let moved = g.nodes.iter().filter(|n| n.op.name() == "Transpose");
            assert_eq!(moved.count(), 0, "{name}");
        }
        let step = bytes.len() / 200 + 1;
        for len in (0..bytes.len()).step_by(step) {
            let _ = import(&bytes[..len]);
        }
    }
}
