//! Attention is one node, unless what stands between its products is an output or of another type.

use kilim_core::error::Result;
use kilim_core::graph::{Graph, Node};
use kilim_core::ops::{Align, Attention};

use super::writer::*;

/// The attention of a graph, and its node.
fn attention(graph: &Graph) -> (&Attention, &Node) {
    let mut found = graph.nodes.iter();
    let node = found.find(|n| n.op.is::<Attention>());
    let node = node.unwrap_or_else(|| panic!("no attention among {:?}", ops(graph)));
    (node.op.downcast_ref().expect("it is one"), node)
}

/// Attention behind a cache of open length `n`, with words and keys as given, and these attributes and outputs.
fn behind_a_cache(
    queries: i64,
    keys: i64,
    outputs: &[&str],
    attributes: &[Bytes],
) -> Result<Graph> {
    let mut all = vec![attr_int("is_causal", 1)];
    all.extend_from_slice(attributes);
    let mut parts = vec![
        input("q", &[1, 4, queries, 8]),
        input("k", &[1, 2, keys, 8]),
        input("v", &[1, 2, keys, 8]),
        input("pk", &[1, 2, -1, 8]),
        input("pv", &[1, 2, -1, 8]),
        node("Attention", &["q", "k", "v", "", "pk", "pv"], outputs, &all),
    ];
    parts.extend(outputs.iter().filter(|o| !o.is_empty()).map(|o| output(o)));
    load(&model(24, &parts))
}

#[test]
fn nothing_depends_on_the_length_of_a_cache() -> Result<()> {
    let graph = behind_a_cache(3, 3, &["y", "a", "b"], &[])?;
    assert_eq!(ops(&graph), ["Concat", "Concat", "Attention"]);
    let (op, node) = attention(&graph);
    let want = Attention {
        scale: 1.0 / 8f32.sqrt(),
        causal: true,
        align: Align::End,
        ..Attention::default()
    };
    assert_eq!((op, node.inputs.len()), (&want, 3));
    // Keys of something else stand behind the cache: then its length tells where the queries are.
    let graph = behind_a_cache(3, 5, &["y"], &[])?;
    let (op, node) = attention(&graph);
    assert_eq!((op.align, node.inputs.len()), (Align::Start, 5));
    Ok(())
}

#[test]
fn what_a_model_shows_is_written_out() -> Result<()> {
    let written = |outputs: &[&str], attributes: &[Bytes]| {
        let graph = behind_a_cache(3, 3, outputs, attributes)?;
        let all = ops(&graph);
        Ok(all.contains(&"Softmax") && !all.contains(&"Attention"))
    };
    for mode in 0..4 {
        let mode = attr_int("qk_matmul_output_mode", mode);
        assert!(written(&["y", "", "", "s"], std::slice::from_ref(&mode))?);
        assert!(!written(&["y"], &[mode])?);
    }
    // float64, then the type of the sums.
    assert!(written(&["y"], &[attr_int("softmax_precision", 11)])?);
    assert!(!written(&["y"], &[attr_int("softmax_precision", 1)])?);
    Ok(())
}

#[test]
fn masks_keep_their_shape() -> Result<()> {
    let graph = load(&model(
        24,
        &[
            input("q", &[2, 4, 3, 8]),
            input("k", &[2, 4, 5, 8]),
            input("v", &[2, 4, 5, 8]),
            value(11, "m", 9, &[3, 5]),
            node("Attention", &["q", "k", "v", "m"], &["y"], &[]),
            output("y"),
        ],
    ))?;
    let (op, node) = attention(&graph);
    assert!(op.zeros && !op.causal);
    let bias = node.input(3).expect("a bias");
    assert_eq!(graph.value(bias).fact.to_string(), "float32[3, 5]");
    Ok(())
}

/// GroupQueryAttention with a cache that grows, and one that has room.
#[test]
fn groups_with_a_cache() -> Result<()> {
    let load_with = |past: i64, sinks: bool| {
        let lengths = tensor("l", 6, &[1], bytes(9, &9i32.to_le_bytes()));
        let total = tensor("t", 6, &[], bytes(9, &10i32.to_le_bytes()));
        let inputs = ["q", "k", "v", "pk", "pv", "l", "t"];
        let mut all = inputs.to_vec();
        if sinks {
            all.extend(["", "", "", "", "s"]);
        }
        let mut file = model(
            17,
            &[
                input("q", &[1, 1, 32]),
                input("k", &[1, 1, 16]),
                input("v", &[1, 1, 16]),
                input("pk", &[1, 2, past, 8]),
                input("pv", &[1, 2, past, 8]),
                input("s", &[4]),
                initializer(&lengths),
                initializer(&total),
                node_in(
                    "com.microsoft",
                    "GroupQueryAttention",
                    &all,
                    &["y", "a", "b"],
                    &[
                        attr_int("num_heads", 4),
                        attr_int("kv_num_heads", 2),
                        attr_int("local_window_size", 6),
                        attr_float("softcap", 30.0),
                    ],
                ),
                output("y"),
                output("a"),
                output("b"),
            ],
        );
        file.extend(opset("com.microsoft", 1));
        load(&file)
    };
    let graph = load_with(-1, true)?;
    let (op, node) = attention(&graph);
    let want = Attention {
        scale: 1.0 / 8f32.sqrt(),
        softcap: Some(30.0),
        causal: true,
        left: 5,
        align: Align::End,
        ..Attention::default()
    };
    assert_eq!(op, &want);
    assert!(node.input(4).is_none() && node.input(6).is_some());
    let graph = load_with(16, false)?;
    let (op, node) = attention(&graph);
    assert_eq!((op.align, node.inputs.len()), (Align::Start, 5));
    Ok(())
}
