//! Names, order and refusals.

use kilim_core::Limits;
use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{ErrorCode, Result};

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
