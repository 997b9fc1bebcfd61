//! Operators of `com.microsoft`.

use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{DequantizeLinear, MatMul};

use super::writer::*;

fn constant(graph: &Graph, n: usize, i: usize) -> Option<kilim_core::Tensor> {
    let value = graph.value(graph.nodes[n].input(i)?);
    value.constant.clone()
}

fn scalar(name: &str, n: f32) -> Bytes {
    initializer(&floats(name, &[], &[n]))
}

fn zero_point(name: &str, n: u8) -> Bytes {
    initializer(&tensor(name, 2, &[], bytes(9, &[n])))
}

#[test]
fn sums_of_quantised_tensors_have_one_offset() -> Result<()> {
    let graph = load(&model_of(&[
        value(11, "a", 2, &[4]),
        value(11, "b", 2, &[4]),
        scalar("as", 0.5),
        zero_point("az", 10),
        scalar("bs", 0.25),
        zero_point("bz", 20),
        scalar("cs", 0.5),
        zero_point("cz", 128),
        node_in(
            "com.microsoft",
            "QLinearAdd",
            &["a", "as", "az", "b", "bs", "bz", "cs", "cz"],
            &["y"],
            &[],
        ),
        output("y"),
    ]))?;
    let sum = match &graph.nodes[..] {
        [node] => node.op.downcast_ref::<kilim_core::ops::QLinearBinary>(),
        _ => None,
    };
    // 128 - (1 * 10 + 0.5 * 20)
    assert_eq!(sum.map(|s| s.offset), Some(108.0));
    assert_eq!(sum.map(|s| s.operands.map(|o| o.scale)), Some([1.0, 0.5]));
    Ok(())
}

fn model_of(graph: &[Bytes]) -> Bytes {
    let mut file = model(17, graph);
    file.extend(opset("com.microsoft", 1));
    file
}

/// Two rows of 24 numbers in blocks of 16, so that the last 8 of a row are padding.
fn packed_product(weights: &[u8], zeros: &[u8], attributes: &[(&str, i64)]) -> Result<Graph> {
    let attributes: Vec<Bytes> = attributes.iter().map(|(n, v)| attr_int(n, *v)).collect();
    load(&model_of(&[
        input("a", &[1, 24]),
        initializer(&tensor("w", 2, &[2, 2, 8], bytes(9, weights))),
        initializer(&floats("s", &[4], &[0.5; 4])),
        initializer(&tensor("z", 2, &[2], bytes(9, zeros))),
        node_in(
            "com.microsoft",
            "MatMulNBits",
            &["a", "w", "s", "z"],
            &["y"],
            &attributes,
        ),
        output("y"),
    ]))
}

#[test]
fn packed_weights_are_blocks_of_bytes() -> Result<()> {
    let packed: Vec<u8> = (0..32).map(|i| i * 7).collect();
    let attributes = [("K", 24), ("N", 2), ("bits", 4), ("block_size", 16)];
    let graph = packed_product(&packed, &[0x21, 0x43], &attributes)?;
    let dequantize = &graph.nodes[ops(&graph).len() - 2];
    let op = dequantize.op.downcast_ref::<DequantizeLinear>();
    assert_eq!(op, Some(&DequantizeLinear { axis: 1, block: 16 }));
    let at = graph.nodes.len() - 2;
    let weights = constant(&graph, at, 0).expect("the weights are constant");
    assert_eq!(weights.shape(), [2, 24]);
    // The second row begins at byte 16.
    let second = packed[16..28].iter().flat_map(|b| [b & 15, b >> 4]);
    assert_eq!(weights.as_slice::<u8>()?[24..], second.collect::<Vec<_>>());
    let zeros = constant(&graph, at, 2).expect("the zero points are constant");
    assert_eq!(zeros.as_slice::<u8>()?, [1, 2, 3, 4]);
    let product = graph.nodes[at + 1].op.downcast_ref::<MatMul>();
    assert_eq!(product.map(|m| m.transpose_b), Some(true));
    Ok(())
}

#[test]
fn packed_weights_must_fit() {
    let good = [("K", 24), ("N", 2), ("bits", 4), ("block_size", 16)];
    let code = |weights: &[u8], attributes: &[(&str, i64)]| {
        let result = packed_product(weights, &[0; 2], attributes);
        result.err().map(|e| e.code())
    };
    assert_eq!(code(&[0; 32], &good), None);
    assert_eq!(code(&[0; 31], &good), Some(ErrorCode::InvalidModel));
    for wrong in [
        ("K", i64::MAX),
        ("N", i64::MAX),
        ("block_size", i64::MAX),
        ("bits", 3),
    ] {
        let mut attributes = good;
        for a in &mut attributes {
            if a.0 == wrong.0 {
                *a = wrong;
            }
        }
        assert!(code(&[0; 32], &attributes).is_some(), "{wrong:?}");
    }
}

/// With one sequence a cache of open length is appended to; with several, each has its own length, and a cache of fixed
/// length may have room.
#[test]
fn caches_of_grouped_attention() -> Result<()> {
    let graph = |batch: i64, keys: i64| {
        let attributes = [attr_int("num_heads", 4), attr_int("kv_num_heads", 2)];
        load(&model_of(&[
            input("q", &[batch, 1, 32]),
            input("k", &[batch, 1, 16]),
            input("v", &[batch, 1, 16]),
            input("pk", &[batch, 2, keys, 8]),
            input("pv", &[batch, 2, keys, 8]),
            value(11, "lens", 6, &[batch]),
            value(11, "total", 6, &[]),
            node_in(
                "com.microsoft",
                "GroupQueryAttention",
                &["q", "k", "v", "pk", "pv", "lens", "total"],
                &["y", "k2", "v2"],
                &attributes,
            ),
            output("y"),
            output("k2"),
            output("v2"),
        ]))
    };
    let count = |graph: &Graph, op: &str| ops(graph).iter().filter(|o| **o == op).count();
    let (one, room, several) = (graph(1, -1)?, graph(1, 5)?, graph(3, -1)?);
    assert_eq!(count(&one, "TensorScatter"), 0);
    assert_eq!(count(&room, "TensorScatter"), 2);
    assert_eq!(count(&several, "TensorScatter"), 2);
    assert_eq!(one.value(one.outputs[0]).fact.rank(), Some(3));
    for graph in [one, room, several] {
        assert_eq!(count(&graph, "Expand"), 0);
    }
    Ok(())
}
