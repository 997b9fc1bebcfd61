//! A writer of small TFLite files, and what the interpreter makes of them.

use std::path::Path;
use std::sync::Arc;

use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{
    Activation, Attribute, Binary, Conv, Custom, CustomOperator, CustomOperators, MatMul, Padding,
};
use kilim_core::tensor::AlignedBytes;

use super::ops::CUSTOM;
use super::{load, probe};

/// A field of a table, or an element.
#[derive(Clone)]
enum Field {
    None,
    I8(i8),
    I32(i32),
    Bytes(Vec<u8>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Table(Vec<Field>),
    Tables(Vec<Field>),
}

fn text(s: &str) -> Field {
    Field::Bytes(s.as_bytes().to_vec())
}

/// Writes parents before children, so that every offset points forward.
fn write(file: &mut Vec<u8>, field: &Field) -> usize {
    file.resize(file.len().next_multiple_of(4), 0);
    let start = file.len();
    match field {
        Field::Bytes(bytes) => {
            file.extend((bytes.len() as u32).to_le_bytes());
            file.extend(bytes);
        }
        Field::I32s(v) => {
            file.extend((v.len() as u32).to_le_bytes());
            v.iter().for_each(|n| file.extend(n.to_le_bytes()));
        }
        Field::F32s(v) => {
            file.extend((v.len() as u32).to_le_bytes());
            v.iter().for_each(|n| file.extend(n.to_le_bytes()));
        }
        Field::Tables(tables) => {
            file.extend((tables.len() as u32).to_le_bytes());
            file.resize(file.len() + 4 * tables.len(), 0);
            for (i, table) in tables.iter().enumerate() {
                refer(file, start + 4 + 4 * i, table);
            }
        }
        Field::Table(fields) => {
            // Every field takes four bytes after the offset to the vtable.
            let vtable = 4 + 2 * fields.len();
            file.extend((vtable as u16).to_le_bytes());
            file.extend((4 + 4 * fields.len() as u16).to_le_bytes());
            for (i, f) in fields.iter().enumerate() {
                let there = !matches!(f, Field::None);
                let offset = if there { 4 + 4 * i as u16 } else { 0 };
                file.extend(offset.to_le_bytes());
            }
            file.resize(file.len().next_multiple_of(4), 0);
            let table = file.len();
            file.extend(((table - start) as i32).to_le_bytes());
            file.resize(file.len() + 4 * fields.len(), 0);
            for (i, f) in fields.iter().enumerate() {
                let at = table + 4 + 4 * i;
                match f {
                    Field::None => {}
                    Field::I8(n) => file[at] = *n as u8,
                    Field::I32(n) => file[at..at + 4].copy_from_slice(&n.to_le_bytes()),
                    other => refer(file, at, other),
                }
            }
            return table;
        }
        _ => unreachable!("scalars stand in tables"),
    }
    start
}

fn refer(file: &mut Vec<u8>, at: usize, field: &Field) {
    let target = write(file, field);
    file[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
}

struct TestTensor {
    name: &'static str,
    kind: i8,
    shape: Vec<i32>,
    signature: Vec<i32>,
    data: Vec<u8>,
    scale: Vec<f32>,
}

fn tensor(name: &'static str, shape: &[i32]) -> TestTensor {
    TestTensor {
        name,
        kind: 0,
        shape: shape.to_vec(),
        signature: Vec::new(),
        data: Vec::new(),
        scale: Vec::new(),
    }
}

fn constant(name: &'static str, shape: &[i32], data: &[f32]) -> TestTensor {
    let data = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    TestTensor {
        data,
        ..tensor(name, shape)
    }
}

fn ints(name: &'static str, shape: &[i32], data: &[i32]) -> TestTensor {
    let data = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    TestTensor {
        data,
        kind: 2,
        ..tensor(name, shape)
    }
}

struct TestOp {
    code: i32,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    options: Vec<Field>,
}

fn op(code: i32, inputs: &[i32], outputs: &[i32], options: &[Field]) -> TestOp {
    TestOp {
        code,
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        options: options.to_vec(),
    }
}

fn file(tensors: &[TestTensor], inputs: &[i32], outputs: &[i32], ops: &[TestOp]) -> Vec<u8> {
    use Field::*;
    let mut buffers = vec![Table(vec![None])];
    let tensors = tensors
        .iter()
        .map(|t| {
            let buffer = if t.data.is_empty() {
                0
            } else {
                buffers.push(Table(vec![Bytes(t.data.clone())]));
                buffers.len() as i32 - 1
            };
            let quantization = if t.scale.is_empty() {
                None
            } else {
                Table(vec![None, None, F32s(t.scale.clone())])
            };
            Table(vec![
                I32s(t.shape.clone()),
                I8(t.kind),
                I32(buffer),
                text(t.name),
                quantization,
                None,
                None,
                I32s(t.signature.clone()),
            ])
        })
        .collect();
    let codes = ops
        .iter()
        .map(|o| {
            let custom = if o.code == CUSTOM {
                text("Scale")
            } else {
                None
            };
            Table(vec![I8(o.code.min(127) as i8), custom, I32(1), I32(o.code)])
        })
        .collect();
    let operators = ops
        .iter()
        .enumerate()
        .map(|(i, o)| {
            Table(vec![
                I32(i as i32),
                I32s(o.inputs.clone()),
                I32s(o.outputs.clone()),
                I8(1),
                match o.code {
                    CUSTOM => None,
                    _ => Table(o.options.clone()),
                },
                match o.code {
                    CUSTOM => o.options[0].clone(),
                    _ => None,
                },
            ])
        })
        .collect();
    let subgraph = Table(vec![
        Tables(tensors),
        I32s(inputs.to_vec()),
        I32s(outputs.to_vec()),
        Tables(operators),
        text("main"),
    ]);
    let model = Table(vec![
        I32(3),
        Tables(codes),
        Tables(vec![subgraph]),
        text("test"),
        Tables(buffers),
    ]);
    let mut bytes = vec![0; 8];
    bytes[4..8].copy_from_slice(b"TFL3");
    refer(&mut bytes, 0, &model);
    bytes
}

fn import(bytes: &[u8]) -> Result<Graph> {
    load(
        Arc::new(AlignedBytes::copy_of(bytes)?),
        &CustomOperators::default(),
    )
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
    let depthwise = [I8(1), I32(1), I32(1), I32(2), I8(0), I32(1), I32(1)];
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
    assert_eq!((depthwise.groups, &depthwise.padding), (2, &Padding::Valid));
    let weights = g.value(g.nodes[1].inputs[1].unwrap());
    let weights = weights.constant.as_ref().unwrap();
    assert_eq!(weights.shape(), [4, 1, 3, 3]);
    assert_eq!(weights.as_slice::<f32>().unwrap()[9], 1.0);

    let sum = g.nodes[2].op.downcast_ref::<Binary>().unwrap();
    assert_eq!(sum.activation, Activation::Relu);
    let product = g.nodes[4].op.downcast_ref::<MatMul>().unwrap();
    assert!(product.transpose_b);
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
            op(131, &[3], &[4], &[]),
        ],
    );
    let error = import(&bytes).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let message = error.message();
    assert!(
        message.contains("L2_NORMALIZATION: quantised int8 tensors (at b, c)"),
        "{message}"
    );
    assert!(
        message.contains("builtin operator number 131 (at e)"),
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
        error.message().contains("custom operator `Scale`"),
        "{error}"
    );
    let mut operators = CustomOperators::default();
    operators.add(CustomOperator::new("tflite", "Scale", |_, ctx| {
        Ok(vec![ctx.fact(0)?.clone()])
    }));
    let bytes = Arc::new(AlignedBytes::copy_of(&bytes).unwrap());
    let graph = load(bytes, &operators).unwrap();
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

#[test]
fn truncated_and_garbled_files_are_errors() {
    let whole = network();
    for len in 0..whole.len() {
        // What lies at the very end may be padding that nobody reads.
        let _ = import(&whole[..len]);
    }
    assert!(import(&whole[..whole.len() / 2]).is_err());
    // What still imports must go through the passes without a panic as well.
    let attempt = |bytes: &[u8]| {
        if let Ok(mut graph) = import(bytes) {
            let layout = kilim_core::backend::DataLayout::ChannelsLast;
            let _ = kilim_core::passes::optimise(&mut graph, &|_| None, &|_| false, layout);
        }
    };
    let mut bytes = whole.clone();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            attempt(&bytes);
            bytes[at] ^= 1 << bit;
        }
        for value in [0, 0x7f, 0x80, 0xff] {
            let old = std::mem::replace(&mut bytes[at], value);
            attempt(&bytes);
            bytes[at] = old;
        }
    }
    assert_eq!(import(b"").unwrap_err().code(), ErrorCode::UnknownFormat);
}

#[test]
fn overlapping_tables_do_not_explode() {
    // Ten thousand subgraphs that are all the same one.
    let mut bytes = network();
    let word = |b: &[u8], at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    let model = word(&bytes, 0);
    let slot = model + 4 + 8;
    let subgraphs = slot + word(&bytes, slot);
    let first = subgraphs + 4;
    let subgraph = first + word(&bytes, first);
    // A copy of the offsets would point backwards, so the model moves to the front of the file.
    let count = 10_000;
    let shift = 4 * (count + 1) + 4 * 8 + 12;
    let mut big = vec![0u8; 8];
    big[4..8].copy_from_slice(b"TFL3");
    let vtable = big.len();
    big.extend([10u16, 16, 0, 0, 4].iter().flat_map(|v| v.to_le_bytes()));
    big.extend([0; 2]);
    let table = big.len();
    big.extend(((table - vtable) as i32).to_le_bytes());
    big.extend(4u32.to_le_bytes());
    big.extend((count as u32).to_le_bytes());
    let base = shift.max(big.len() + 4 * count).next_multiple_of(4);
    for i in 0..count {
        let at = big.len();
        assert_eq!(at, table + 12 + 4 * i);
        big.extend(((base + subgraph - at) as u32).to_le_bytes());
    }
    big.resize(base, 0);
    big.append(&mut bytes);
    big[0..4].copy_from_slice(&(table as u32).to_le_bytes());
    let error = import(&big).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidModel);
    assert!(error.message().contains("overlap"), "{error}");
}

/// The float models of the collection beside the repository, where it is there.
#[test]
fn reads_the_collection() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/models");
    let Ok(folders) = std::fs::read_dir(&root) else {
        eprintln!("skipped: no collection of models beside the repository");
        return;
    };
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
