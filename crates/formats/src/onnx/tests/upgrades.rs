//! Older operator sets, brought to the form of the newest.

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_core::ops::{
    Activation, Binary, BinaryKind, Cast, Gemm, Lstm, Pad, Padding, Reduce, ReduceKind, Resize,
    ResizeMode, Softmax, TopK,
};
use kilim_core::{DType, ops::CellActivation, ops::Conv, ops::NearestMode};

use super::writer::*;

fn one(version: i64, op: &str, dims: &[i64], attributes: &[Bytes]) -> Result<Graph> {
    let graph = [
        input("x", dims),
        node(op, &["x"], &["y"], attributes),
        output("y"),
    ];
    load(&model(version, &graph))
}

/// The integers that input `i` of node `n` holds.
fn ints(graph: &Graph, n: usize, i: usize) -> Option<Vec<i64>> {
    let value = graph.value(graph.nodes[n].input(i)?);
    value.constant.as_ref()?.to_i64s().ok()
}

#[test]
fn softmax_over_several_dimensions() -> Result<()> {
    let axis = |graph: &Graph, n: usize| {
        let op = graph.nodes[n].op.downcast_ref::<Softmax>();
        op.map(|s| s.axis)
    };
    let graph = one(13, "Softmax", &[2, 3, 4], &[])?;
    assert_eq!((ops(&graph), axis(&graph, 0)), (vec!["Softmax"], Some(-1)));
    let graph = one(11, "Softmax", &[2, 3, 4], &[])?;
    assert_eq!(ops(&graph), ["Flatten", "Softmax", "Reshape"]);
    assert_eq!(ints(&graph, 2, 1), Some(vec![2, 3, 4]));
    // Nothing after the axis: the meaning is the same.
    let graph = one(11, "Softmax", &[2, 3], &[])?;
    assert_eq!((ops(&graph), axis(&graph, 0)), (vec!["Softmax"], Some(1)));
    let graph = one(11, "LogSoftmax", &[1, 9, 1, 1], &[])?;
    assert_eq!(ops(&graph), ["LogSoftmax"]);
    let graph = one(11, "Softmax", &[-1, 3, 4], &[])?;
    assert_eq!(ops(&graph), ["Shape", "Flatten", "Softmax", "Reshape"]);
    Ok(())
}

#[test]
fn axes_become_inputs() -> Result<()> {
    let axes = [attr_ints("axes", &[0, 2])];
    for op in ["Squeeze", "ReduceSum", "ReduceMax"] {
        let graph = one(11, op, &[1, 3, 1], &axes)?;
        assert_eq!(ops(&graph), [op]);
        assert_eq!(ints(&graph, 0, 1), Some(vec![0, 2]), "{op}");
    }
    let graph = one(11, "Unsqueeze", &[3], &axes)?;
    assert_eq!(ints(&graph, 0, 1), Some(vec![0, 2]));
    let slice = [attr_ints("starts", &[1]), attr_ints("ends", &[i64::MAX])];
    let graph = one(9, "Slice", &[5], &slice)?;
    assert_eq!(ints(&graph, 0, 1), Some(vec![1]));
    assert_eq!(ints(&graph, 0, 2), Some(vec![i64::MAX]));
    let pad = [attr_ints("pads", &[0, 1, 0, 1]), attr_float("value", 2.0)];
    let graph = one(10, "Pad", &[2, 2], &pad)?;
    assert!(graph.nodes[0].op.is::<Pad>());
    assert_eq!(ints(&graph, 0, 1), Some(vec![0, 1, 0, 1]));
    let graph = one(9, "TopK", &[5], &[attr_int("k", 3)])?;
    assert_eq!(
        graph.nodes[0].op.downcast_ref::<TopK>().map(|t| t.largest),
        Some(true)
    );
    assert_eq!(ints(&graph, 0, 1), Some(vec![3]));
    Ok(())
}

#[test]
fn global_pooling_reduces() -> Result<()> {
    let graph = one(13, "GlobalAveragePool", &[-1, 3, 4, 5, 6], &[])?;
    let op = graph.nodes[0].op.downcast_ref::<Reduce>();
    assert_eq!(
        op.map(|r| (r.kind, r.keep_dims)),
        Some((ReduceKind::Mean, true))
    );
    assert_eq!(ints(&graph, 0, 1), Some(vec![2, 3, 4]));
    Ok(())
}

#[test]
fn broadcast_before_operator_set_seven() -> Result<()> {
    let attributes = [attr_int("broadcast", 1), attr_int("axis", 1)];
    let graph = load(&model(
        6,
        &[
            input("x", &[2, 3, 4, 5]),
            input("b", &[3]),
            node("Add", &["x", "b"], &["y"], &attributes),
            output("y"),
        ],
    ))?;
    assert_eq!(ops(&graph), ["Unsqueeze", "Add"]);
    assert_eq!(ints(&graph, 0, 1), Some(vec![1, 2]));
    Ok(())
}

#[test]
fn variadic_operators_take_two_at_a_time() -> Result<()> {
    let graph = load(&model(
        13,
        &[
            input("a", &[2]),
            input("b", &[2]),
            input("c", &[2]),
            node("Max", &["a", "b", "c"], &["m"], &[]),
            node("Mean", &["m", "a"], &["y"], &[]),
            output("y"),
        ],
    ))?;
    assert_eq!(ops(&graph), ["Max", "Max", "Add", "Div"]);
    let max = graph.nodes[1].op.downcast_ref::<Binary>();
    assert_eq!(max.map(|b| b.kind), Some(BinaryKind::Max));
    Ok(())
}

#[test]
fn bounds_and_types() -> Result<()> {
    let graph = one(6, "Clip", &[2], &[attr_float("max", 6.0)])?;
    let clip = &graph.nodes[0];
    assert_eq!(clip.inputs.len(), 3);
    assert_eq!(clip.inputs[1], None);
    let graph = one(1, "Cast", &[2], &[attr_text("to", "INT32")])?;
    let to = graph.nodes[0].op.downcast_ref::<Cast>().map(|c| c.to);
    assert_eq!(to, Some(DType::I32));
    Ok(())
}

#[test]
fn upsampling_is_resizing() -> Result<()> {
    let scales = tensor_of_floats("s", &[1.0, 1.0, 2.0, 2.0]);
    let graph = load(&model(
        9,
        &[
            input("x", &[1, 1, 2, 2]),
            initializer(&scales),
            node(
                "Upsample",
                &["x", "s"],
                &["y"],
                &[attr_text("mode", "nearest")],
            ),
            output("y"),
        ],
    ))?;
    let resize = graph.nodes[0].op.downcast_ref::<Resize>();
    let mode = resize.map(|r| r.mode);
    assert_eq!(mode, Some(ResizeMode::Nearest(NearestMode::Floor)));
    assert_eq!(graph.nodes[0].inputs.len(), 3);
    assert_eq!(graph.nodes[0].inputs[1], None);
    Ok(())
}

fn tensor_of_floats(name: &str, data: &[f32]) -> Bytes {
    floats(name, &[data.len() as i64], data)
}

#[test]
fn windows_and_products() -> Result<()> {
    let graph = load(&model(
        13,
        &[
            input("x", &[1, 4, 8, 8]),
            initializer(&floats("w", &[4, 1, 3, 3], &[0.0; 36])),
            node(
                "Conv",
                &["x", "w"],
                &["c"],
                &[
                    attr_text("auto_pad", "SAME_UPPER"),
                    attr_int("group", 4),
                    attr_ints("strides", &[2, 2]),
                ],
            ),
            node("Flatten", &["c"], &["f"], &[]),
            initializer(&floats("v", &[64, 2], &[0.0; 128])),
            node("Gemm", &["f", "v"], &["y"], &[attr_float("alpha", 0.5)]),
            output("y"),
        ],
    ))?;
    let conv = graph.nodes[0].op.downcast_ref::<Conv>();
    let want = Conv {
        strides: vec![2, 2],
        dilations: vec![1, 1],
        padding: Padding::SameUpper,
        groups: 4,
        channels_last: false,
        activation: Activation::None,
    };
    assert_eq!(conv, Some(&want));
    let gemm = graph.nodes[2].op.downcast_ref::<Gemm>();
    assert_eq!(
        gemm.map(|g| (g.alpha, g.beta, g.transpose_b)),
        Some((0.5, 1.0, false))
    );
    Ok(())
}

#[test]
fn cell_activations_take_their_parameters_in_order() -> Result<()> {
    let names = ["HardSigmoid", "Tanh", "LeakyRelu"];
    let names: Vec<Bytes> = names.iter().map(|n| text(9, n)).collect();
    let activations = join(&[text(1, "activations"), join(&names)]);
    let alphas = [float(7, 0.1), float(7, 0.3)];
    let alphas = join(&[text(1, "activation_alpha"), join(&alphas)]);
    let graph = load(&model(
        14,
        &[
            input("x", &[5, 1, 2]),
            initializer(&floats("w", &[1, 12, 2], &[0.0; 24])),
            initializer(&floats("r", &[1, 12, 3], &[0.0; 36])),
            node("LSTM", &["x", "w", "r"], &["", "h"], &[activations, alphas]),
            output("h"),
        ],
    ))?;
    let lstm = graph.nodes[0].op.downcast_ref::<Lstm>().expect("an LSTM");
    assert_eq!(lstm.cell.hidden, 3);
    let want = [
        CellActivation::HardSigmoid {
            alpha: 0.1,
            beta: 0.5,
        },
        CellActivation::Tanh,
        CellActivation::LeakyRelu { alpha: 0.3 },
    ];
    assert_eq!(lstm.cell.activations, want);
    assert_eq!(graph.nodes[0].outputs[1], graph.outputs[0]);
    Ok(())
}
