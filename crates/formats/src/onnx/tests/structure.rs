//! Names, order and refusals.

use kilim_core::Limits;
use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::ops::TreeEnsemble;

use super::names;
use super::writer::*;

#[test]
fn inputs_outputs_and_initializers() -> Result<()> {
    let w = initializer(&floats("w", &[1], &[2.0]));
    let graph = load(&model(
        13,
        &[
            input("x", &[-1, 3]),
            input("w", &[1]),
            w,
            node("Mul", &["x", "w"], &["y"], &[]),
            output("y"),
        ],
    ))?;
    assert_eq!(names(&graph, &graph.inputs), ["x"]);
    assert_eq!(names(&graph, &graph.outputs), ["y"]);
    let x = &graph.value(graph.inputs[0]).fact;
    assert_eq!(x.dtype, Some(DType::F32));
    let dims = x.shape.as_ref().map(|s| s.0.clone());
    assert_eq!(dims, Some(vec![Dim::Symbol("n".into()), Dim::Known(3)]));
    Ok(())
}

#[test]
fn outputs_keep_their_names() -> Result<()> {
    let graph = load(&model(
        13,
        &[
            input("x", &[2]),
            node("Identity", &["x"], &["a"], &[]),
            node("Dropout", &["a"], &["b"], &[]),
            output("x"),
            output("a"),
            output("b"),
        ],
    ))?;
    assert_eq!(names(&graph, &graph.outputs), ["x", "a", "b"]);
    Ok(())
}

#[test]
fn nodes_in_any_order() -> Result<()> {
    let graph = load(&model(
        13,
        &[
            input("x", &[2]),
            node("Exp", &["a"], &["y"], &[]),
            node("Neg", &["x"], &["a"], &[]),
            output("y"),
        ],
    ))?;
    let real: Vec<_> = ops(&graph)
        .into_iter()
        .filter(|o| *o != "Identity")
        .collect();
    assert_eq!(real, ["Neg", "Exp"]);
    Ok(())
}

#[test]
fn broken_graphs() {
    let code = |parts: &[Bytes]| load(&model(13, parts)).err().map(|e| e.code());
    let x = input("x", &[2]);
    let cycle = [
        x.clone(),
        node("Add", &["x", "b"], &["a"], &[]),
        node("Neg", &["a"], &["b"], &[]),
        output("b"),
    ];
    assert_eq!(code(&cycle), Some(ErrorCode::InvalidGraph));
    let missing = [node("Neg", &["nobody"], &["y"], &[]), output("y")];
    assert_eq!(code(&missing), Some(ErrorCode::InvalidGraph));
    let twice = [
        x.clone(),
        node("Neg", &["x"], &["y"], &[]),
        node("Exp", &["x"], &["y"], &[]),
        output("y"),
    ];
    assert_eq!(code(&twice), Some(ErrorCode::InvalidGraph));
    assert_eq!(code(&[x, output("y")]), Some(ErrorCode::InvalidGraph));
    assert_eq!(
        code(&[node("Neg", &[], &["y"], &[]), output("y")]),
        Some(ErrorCode::InvalidModel)
    );
}

#[test]
fn what_stands_twice_is_refused_where_it_differs() {
    let code = |parts: &[Bytes]| load(&model(13, parts)).err().map(|e| e.code());
    let refused = Some(ErrorCode::InvalidModel);
    let with = |a: &[f32], b: &[f32]| {
        [
            input("x", &[1]),
            initializer(&floats("w", &[1], a)),
            initializer(&floats("w", &[1], b)),
            node("Mul", &["x", "w"], &["y"], &[]),
            output("y"),
        ]
    };
    assert_eq!(code(&with(&[2.0], &[2.0])), None);
    assert_eq!(code(&with(&[2.0], &[3.0])), refused);
    let with = |more: &str| {
        let alpha = attr_float("alpha", 0.5);
        let attributes = [alpha, attr_float(more, 0.5)];
        [
            input("x", &[1]),
            node("Selu", &["x"], &["y"], &attributes),
            output("y"),
        ]
    };
    assert_eq!(code(&with("gamma")), None);
    assert_eq!(code(&with("alpha")), refused);
}

/// Names of ports, by which values are found, are distinct; a body's outputs are found by their places.
#[test]
fn ports_have_names_of_their_own() {
    let refused = Some(ErrorCode::InvalidModel);
    let code = |parts: &[Bytes]| load(&model(13, parts)).err().map(|e| e.code());
    let neg = [input("x", &[1]), node("Neg", &["x"], &["y"], &[])];
    let [x, y] = neg.clone();
    assert_eq!(code(&[x.clone(), y.clone(), output("y")]), None);
    assert_eq!(
        code(&[x.clone(), y.clone(), output("y"), output("y")]),
        refused
    );
    assert_eq!(code(&[x.clone(), x.clone(), y, output("y")]), refused);
    let function = |inputs: &[&str], outputs: &[&str]| {
        let ports =
            |field, names: &[&str]| names.iter().map(|n| text(field, n)).collect::<Vec<_>>();
        let body = bytes(7, &strip(&node("Sub", &["a", "b"], &["c"], &[])));
        let parts = [
            vec![text(1, "Local"), text(10, "local")],
            ports(4, inputs),
            ports(5, outputs),
            vec![body, bytes(9, &join(&[text(1, ""), int(2, 13)]))],
        ];
        let call = node_in("local", "Local", &["x", "x"], &["y"], &[]);
        let graph = [x.clone(), call, output("y")];
        load(&model_with(13, &graph, &[join(&parts.concat())]))
            .err()
            .map(|e| e.code())
    };
    assert_eq!(function(&["a", "b"], &["c"]), None);
    assert_eq!(function(&["a", "a"], &["c"]), refused);
    assert_eq!(function(&["a", "b"], &["c", "c"]), refused);
    // What is passed on is no second definition.
    assert_eq!(function(&["a", "b"], &["a"]), None);
}

#[test]
fn a_tree_that_leads_back_to_itself_is_refused_and_one_whose_branches_meet_is_not() {
    let load = |on: [i64; 2]| {
        let attributes = [
            attr_ints("nodes_treeids", &[0; 4]),
            attr_ints("nodes_nodeids", &[0, 1, 2, 3]),
            attr_ints("nodes_featureids", &[0; 4]),
            attr_texts("nodes_modes", &["BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"]),
            attr_floats("nodes_values", &[0.5, 1.5, 0.0, 0.0]),
            attr_ints("nodes_truenodeids", &[on[0], 2, 0, 0]),
            attr_ints("nodes_falsenodeids", &[1, on[1], 0, 0]),
            attr_ints("target_treeids", &[0, 0]),
            attr_ints("target_nodeids", &[2, 3]),
            attr_ints("target_ids", &[0, 0]),
            attr_floats("target_weights", &[1.0, 2.0]),
            attr_int("n_targets", 1),
        ];
        let trees = "TreeEnsembleRegressor";
        let parts = [
            input("x", &[1, 1]),
            node_in("ai.onnx.ml", trees, &["x"], &["y"], &attributes),
            output("y"),
        ];
        load(&model(13, &parts))
    };
    let code = |on| load(on).err().map(|e| e.code());
    let refused = Some(ErrorCode::InvalidModel);
    assert_eq!(code([0, 3]), refused);
    assert_eq!(code([2, 0]), refused);
    // LightGBM asks for members of a set by nodes whose branches of equality lead to one node.
    for on in [[2, 3], [1, 3]] {
        let graph = load(on).unwrap();
        let trees = graph
            .nodes
            .iter()
            .find_map(|n| n.op.downcast_ref::<TreeEnsemble>());
        let trees = &trees.expect("an ensemble").trees;
        assert_eq!((trees.roots.len(), trees.nodes.len()), (1, 2), "{on:?}");
    }
}

#[test]
fn one_error_lists_everything() {
    let graph = [
        input("x", &[2]),
        node("Frobnicate", &["x"], &["a"], &[]),
        node_in("com.acme", "Twist", &["a"], &["b"], &[]),
        node("Frobnicate", &["b"], &["c"], &[]),
        node(
            "Cast",
            &["c"],
            &["d"],
            &[attr_int("to", 24), attr_text("round_mode", "away")],
        ),
        node("Gelu", &["d"], &["y"], &[attr_text("approximate", "erf")]),
        output("y"),
    ];
    let error = load(&model(20, &graph)).expect_err("the operators are unknown");
    assert_eq!(error.code(), ErrorCode::Unsupported);
    let message = error.message();
    for part in [
        "ai.onnx::Frobnicate (opset 20): unknown operator at `a`, `c`",
        "com.acme::Twist (opset 1): unknown operator at `b`",
        "ai.onnx::Cast (opset 20): the attribute round_mode = `away` at `d`",
        "ai.onnx::Gelu (opset 20): the attribute approximate = `erf` at `y`",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn later_operator_sets_are_read_as_the_newest() -> Result<()> {
    let graph = [
        input("x", &[2]),
        node("Softmax", &["x"], &["y"], &[]),
        output("y"),
    ];
    assert_eq!(ops(&load(&model(99, &graph))?), ["Softmax"]);
    Ok(())
}

#[test]
fn limits() {
    let graph = [
        input("x", &[2]),
        node("Exp", &["x"], &["a"], &[]),
        node("Exp", &["a"], &["y"], &[]),
        output("y"),
    ];
    let file = model(13, &graph);
    let code = |limits: Limits| load_limited(&file, &limits).err().map(|e| e.code());
    let limit = Some(ErrorCode::Limit);
    let base = Limits::default();
    assert_eq!(code(base.clone()), None);
    assert_eq!(
        code(Limits {
            nodes: 1,
            ..base.clone()
        }),
        limit
    );
    assert_eq!(
        code(Limits {
            file_bytes: 10,
            ..base.clone()
        }),
        limit
    );
    assert_eq!(code(Limits { depth: 0, ..base }), limit);
}
