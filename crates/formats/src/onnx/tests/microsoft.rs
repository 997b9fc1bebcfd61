//! Operators of `com.microsoft`.

use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::ops::{Activation, GatherBlockQuantized, MatMulNBits};

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
fn packed_weights_stay_packed() -> Result<()> {
    let packed: Vec<u8> = (0..32).map(|i| i * 7).collect();
    let sizes = [("K", 24), ("N", 2), ("bits", 4), ("block_size", 16)];
    for (level, int8) in [
        (None, false),
        (Some(0), false),
        (Some(1), false),
        (Some(4), true),
    ] {
        let mut attributes = sizes.to_vec();
        attributes.extend(level.map(|level| ("accuracy_level", level)));
        let graph = packed_product(&packed, &[0x21, 0x43], &attributes)?;
        let [node] = &graph.nodes[..] else {
            panic!("one node, not {:?}", ops(&graph));
        };
        let want = MatMulNBits {
            k: 24,
            n: 2,
            bits: 4,
            block: 16,
            int8,
            activation: Activation::None,
        };
        assert_eq!(node.op.downcast_ref::<MatMulNBits>(), Some(&want));
        for (i, bytes) in [(1, &packed[..]), (3, &[0x21, 0x43])] {
            let tensor = constant(&graph, 0, i).expect("packed numbers are constant");
            assert_eq!(tensor.as_slice::<u8>()?, bytes);
        }
    }
    Ok(())
}

/// The builder of onnxruntime-genai shares one initialiser between the head and, by a Reshape, the embedding.
#[test]
fn an_embedding_may_share_the_weights_of_the_head() -> Result<()> {
    let shape = [4i64, 16].map(i64::to_le_bytes).concat();
    let graph = load(&model_of(&[
        value(11, "i", 7, &[1]),
        initializer(&tensor("w", 2, &[4, 2, 8], bytes(9, &[0x5A; 64]))),
        initializer(&tensor("flat", 7, &[2], bytes(9, &shape))),
        initializer(&floats("s", &[8], &[0.5; 8])),
        initializer(&floats("t", &[4, 2], &[0.5; 8])),
        node("Reshape", &["w", "flat"], &["table"], &[]),
        node_in(
            "com.microsoft",
            "GatherBlockQuantized",
            &["table", "i", "t"],
            &["e"],
            &[attr_int("block_size", 16), attr_int("bits", 4)],
        ),
        node_in(
            "com.microsoft",
            "MatMulNBits",
            &["e", "w", "s"],
            &["y"],
            &[
                attr_int("K", 32),
                attr_int("N", 4),
                attr_int("bits", 4),
                attr_int("block_size", 16),
            ],
        ),
        output("y"),
    ]))?;
    let gathered = graph
        .nodes
        .iter()
        .any(|n| n.op.is::<GatherBlockQuantized>());
    assert!(gathered, "{:?}", ops(&graph));
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

/// A cache of open length is appended to where there is one sequence; with several, each has its own length,
/// and a cache of fixed length may have room.
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
    assert_eq!(count(&room, "Pad") + count(&several, "Pad"), 0);
    assert_eq!(one.value(one.outputs[0]).fact.rank(), Some(3));
    for graph in [one, room, several] {
        assert_eq!(count(&graph, "Expand"), 0);
    }
    Ok(())
}

/// Grouped attention of one word with caches of five places, of elements of a type of ONNX.
fn with_cache(cached: i64, attributes: &[Bytes]) -> Result<Graph> {
    let heads = [attr_int("num_heads", 4), attr_int("kv_num_heads", 2)];
    load(&model_of(&[
        input("q", &[1, 1, 32]),
        input("k", &[1, 1, 16]),
        input("v", &[1, 1, 16]),
        value(11, "pk", cached, &[1, 2, 5, 8]),
        value(11, "pv", cached, &[1, 2, 5, 8]),
        value(11, "lens", 6, &[1]),
        value(11, "total", 6, &[]),
        input("s", &[1]),
        node_in(
            "com.microsoft",
            "GroupQueryAttention",
            &[
                "q", "k", "v", "pk", "pv", "lens", "total", "", "", "", "", "", "s", "s",
            ],
            &["y", "k2", "v2"],
            &[&heads[..], attributes].concat(),
        ),
        output("y"),
        output("k2"),
        output("v2"),
    ]))
}

#[test]
fn a_cache_of_fewer_places_than_its_window_says_so() {
    let attributes = [
        attr_int("local_window_size", 7),
        attr_int("sliding_window_cache", 1),
        attr_text("k_quant_type", "PER_TENSOR"),
        attr_text("v_quant_type", "PER_TENSOR"),
        attr_int("kv_cache_bit_width", 8),
    ];
    let error = with_cache(3, &attributes).expect_err("five places for seven words");
    let text = error.to_string();
    assert!(text.contains("fewer places than its window"), "{text}");
    assert!(text.contains("expected 7; got 5"), "{text}");
}

/// What says of its cache what is not so is refused.
#[test]
fn caches_of_integers_are_what_their_node_says() {
    let kinds = |key: &str, value: &str, bits: i64| {
        [
            attr_text("k_quant_type", key),
            attr_text("v_quant_type", value),
            attr_int("kv_cache_bit_width", bits),
        ]
    };
    let (whole, int8, uint8) = ("PER_TENSOR", 3, 2);
    assert!(with_cache(int8, &kinds(whole, whole, 8)).is_ok());
    for (cached, attributes) in [
        (uint8, kinds(whole, whole, 8)),
        (int8, kinds(whole, whole, 4)),
        (int8, kinds(whole, whole, 2)),
        (int8, kinds(whole, "NONE", 8)),
        (int8, kinds("NONE", "NONE", 8)),
        (int8, kinds(whole, "PER_TOKEN", 8)),
    ] {
        assert!(with_cache(cached, &attributes).is_err());
    }
}

/// A mixture whose two matrices stand in one, with weights of an expert after those of the other.
fn mixture(attributes: &[Bytes]) -> Result<Graph> {
    let known = [attr_int("k", 2), attr_text("activation_type", "swiglu")];
    load(&model_of(&[
        input("x", &[3, 8]),
        input("scores", &[3, 4]),
        input("first", &[4, 12, 8]),
        input("second", &[4, 8, 6]),
        node_in(
            "com.microsoft",
            "MoE",
            &["x", "scores", "first", "", "second"],
            &["y"],
            &[&known[..], attributes].concat(),
        ),
        output("y"),
    ]))
}

#[test]
fn mixtures_that_are_not_there_are_refused() -> Result<()> {
    let fused = |n| attr_int("swiglu_fusion", n);
    let graph = mixture(&[fused(1)])?;
    let products = ops(&graph).iter().filter(|o| **o == "ExpertMatMul").count();
    assert_eq!(products, 2);
    assert_eq!(graph.value(graph.outputs[0]).fact.rank(), Some(2));
    for attributes in [
        vec![],
        vec![fused(3)],
        vec![fused(1), attr_int("use_sparse_mixer", 1)],
        vec![fused(1), attr_text("activation_type", "tanh")],
    ] {
        assert!(mixture(&attributes).is_err());
    }
    Ok(())
}
