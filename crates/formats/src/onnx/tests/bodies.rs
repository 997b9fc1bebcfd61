//! Graphs in graphs: control flow, functions, sequences.

use kilim_core::error::{ErrorCode, Result};
use kilim_core::ops::{If, Loop, Unary, UnaryKind};

use super::names;
use super::writer::*;

/// Both branches use `x` of the graph around; one of them two levels deep.
#[test]
fn captures_become_inputs() -> Result<()> {
    let inner_then = [node("Exp", &["x"], &["t"], &[]), output("t")];
    let inner_else = [node("Add", &["k", "x"], &["t"], &[]), output("t")];
    let branches = |then_branch: &[Bytes], else_branch: &[Bytes]| {
        [
            attr_graph("then_branch", then_branch),
            attr_graph("else_branch", else_branch),
        ]
    };
    let outer_then = [
        node("If", &["c2"], &["r"], &branches(&inner_then, &inner_else)),
        output("r"),
    ];
    let outer_else = [node("Neg", &["z"], &["r"], &[]), output("r")];
    let graph = load(&model(
        16,
        &[
            value(11, "c1", 9, &[]),
            value(11, "c2", 9, &[]),
            input("x", &[2]),
            input("z", &[2]),
            initializer(&floats("k", &[1], &[5.0])),
            node("If", &["c1"], &["y"], &branches(&outer_then, &outer_else)),
            output("y"),
        ],
    ))?;
    let node = &graph.nodes[0];
    let inputs: Vec<_> = node.present_inputs().collect();
    assert_eq!(names(&graph, &inputs), ["c1", "c2", "x", "z"]);
    let op = node.op.downcast_ref::<If>().expect("an If");
    for body in [&op.then_body, &op.else_body] {
        assert_eq!(names(body, &body.inputs), ["c2", "x", "z"]);
    }
    let inner = &op.then_body.nodes[0];
    let op = inner.op.downcast_ref::<If>().expect("an If");
    // The constant is not passed but stands in the body itself.
    assert_eq!(names(&op.else_body, &op.else_body.inputs), ["x"]);
    assert!(op.else_body.values.iter().any(|v| v.constant.is_some()));
    Ok(())
}

#[test]
fn a_constant_condition_leaves_no_branch() -> Result<()> {
    let bool_true = tensor("c", 9, &[], bytes(9, &[1]));
    let branches = [
        attr_graph(
            "then_branch",
            &[node("Exp", &["x"], &["t"], &[]), output("t")],
        ),
        attr_graph(
            "else_branch",
            &[node("Nope", &["x"], &["t"], &[]), output("t")],
        ),
    ];
    let graph = load(&model(
        16,
        &[
            input("x", &[2]),
            initializer(&bool_true),
            node("If", &["c"], &["y"], &branches),
            output("y"),
        ],
    ))?;
    assert_eq!(ops(&graph), ["Exp"]);
    assert_eq!(names(&graph, &graph.outputs), ["y"]);
    Ok(())
}

#[test]
fn loops_carry_and_capture() -> Result<()> {
    let body = [
        value(11, "i", 7, &[]),
        value(11, "c", 9, &[]),
        input("s", &[2]),
        node("Add", &["s", "x"], &["s2"], &[]),
        node("Identity", &["c"], &["c2"], &[]),
        output("c2"),
        output("s2"),
        output("s2"),
    ];
    let trips = tensor("m", 7, &[], bytes(7, &varint(3)));
    let graph = load(&model(
        16,
        &[
            input("x", &[2]),
            initializer(&trips),
            node(
                "Loop",
                &["m", "", "x"],
                &["y", "all"],
                &[attr_graph("body", &body)],
            ),
            output("y"),
            output("all"),
        ],
    ))?;
    let node = &graph.nodes[0];
    let op = node.op.downcast_ref::<Loop>().expect("a Loop");
    assert_eq!(op.carried, 1);
    assert_eq!(names(&op.body, &op.body.inputs), ["i", "c", "s", "x"]);
    assert_eq!(node.inputs.len(), 4);
    assert_eq!(node.inputs[1], None);
    Ok(())
}

/// `scaled(x; alpha = 0.5) = leaky(x; alpha) + bias`, with functions inside functions.
fn functions() -> [Bytes; 2] {
    let leaky = join(&[
        text(1, "leaky"),
        text(4, "v"),
        text(5, "w"),
        text(6, "slope"),
        // Nodes stand in field 7 of a function, in field 1 of a graph.
        bytes(
            7,
            &strip(&node(
                "LeakyRelu",
                &["v"],
                &["w"],
                &[attr_ref("alpha", "slope")],
            )),
        ),
        bytes(9, &join(&[text(1, ""), int(2, 16)])),
        text(10, "local"),
    ]);
    let inner = node_in(
        "local",
        "leaky",
        &["x"],
        &["h"],
        &[attr_ref("slope", "alpha")],
    );
    let scaled = join(&[
        text(1, "scaled"),
        text(4, "x"),
        text(4, "bias"),
        text(5, "y"),
        bytes(11, &attr_float("alpha", 0.5)),
        bytes(7, &strip(&inner)),
        bytes(7, &strip(&node("Sum", &["h", "bias"], &["y"], &[]))),
        bytes(9, &join(&[text(1, ""), int(2, 16)])),
        bytes(9, &join(&[text(1, "local"), int(2, 1)])),
        text(10, "local"),
    ]);
    [leaky, scaled]
}

#[test]
fn functions_are_written_out() -> Result<()> {
    let graph = load(&model_with(
        16,
        &[
            input("x", &[2]),
            input("y", &[2]),
            node_in(
                "local",
                "scaled",
                &["x", "y"],
                &["a"],
                &[attr_float("alpha", 0.25)],
            ),
            node_in("local", "scaled", &["a", "y"], &["z"], &[]),
            output("z"),
        ],
        &functions(),
    ))?;
    assert_eq!(ops(&graph), ["LeakyRelu", "Add", "LeakyRelu", "Add"]);
    let alphas: Vec<_> = (graph.nodes.iter())
        .filter_map(|n| n.op.downcast_ref::<Unary>())
        .map(|u| u.0)
        .collect();
    let leaky = |alpha| UnaryKind::LeakyRelu { alpha };
    assert_eq!(alphas, [leaky(0.25), leaky(0.5)]);
    assert_eq!(names(&graph, &graph.outputs), ["z"]);
    Ok(())
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let endless = join(&[
        text(1, "f"),
        text(4, "x"),
        text(5, "y"),
        bytes(7, &strip(&node_in("local", "f", &["x"], &["y"], &[]))),
        text(10, "local"),
    ]);
    let graph = [
        input("x", &[2]),
        node_in("local", "f", &["x"], &["y"], &[]),
        output("y"),
    ];
    let error = load(&model_with(16, &graph, &[endless])).err();
    assert_eq!(error.map(|e| e.code()), Some(ErrorCode::Limit));
}

#[test]
fn sequences_are_followed() -> Result<()> {
    let zero = initializer(&tensor("p", 7, &[], bytes(7, &varint(1))));
    let graph = load(&model(
        13,
        &[
            input("x", &[2]),
            input("z", &[2]),
            zero,
            node("SequenceConstruct", &["x", "z"], &["s"], &[]),
            node("SequenceAt", &["s", "p"], &["y"], &[]),
            node(
                "ConcatFromSequence",
                &["s"],
                &["all"],
                &[attr_int("axis", 0)],
            ),
            output("y"),
            output("all"),
        ],
    ))?;
    assert_eq!(ops(&graph), ["Identity", "Concat"]);
    let from = graph.nodes[0].input(0).map(|v| graph.value(v).name.clone());
    assert_eq!(from.as_deref(), Some("z"));
    Ok(())
}

/// A branch for inputs of another rank is no error.
#[test]
fn branches_need_not_fit() -> Result<()> {
    let branch = |axis| {
        [
            node("Softmax", &["x"], &["t"], &[attr_int("axis", axis)]),
            output("t"),
        ]
    };
    let branches = [
        attr_graph("then_branch", &branch(0)),
        attr_graph("else_branch", &branch(3)),
    ];
    let graph = [
        input("x", &[2]),
        value(11, "c", 9, &[]),
        node("If", &["c"], &["y"], &branches),
        output("y"),
    ];
    assert_eq!(ops(&load(&model(16, &graph))?), ["If"]);
    let outside = [
        &graph[..1],
        &[node("Softmax", &["x"], &["y"], &[attr_int("axis", 3)])],
    ]
    .concat();
    assert!(load(&model(16, &outside)).is_err());
    Ok(())
}
