//! One place along an axis is taken before what computes each place apart, and only there.

use super::*;
use kilim::core::ops::LayerNorm;
use kilim::core::{Dim, Shape};

/// The nodes of a graph whose operator has this name, each with the shape of its first output.
fn shapes(g: &Graph, name: &str) -> Vec<Vec<usize>> {
    let nodes = g.nodes.iter().filter(|n| n.op.name() == name);
    let shape = |n: &kilim::core::Node| g.value(n.outputs[0]).fact.concrete().unwrap();
    nodes.map(shape).collect()
}

fn product(b: &mut Builder, x: V, from: usize, to: usize) -> V {
    let weight = b.floats(&[from, to]);
    b.op(
        MatMul {
            transpose_b: false,
            alpha: None,
            activation: Activation::None,
        },
        &[x, weight],
    )
}

/// A block of a transformer behind its attention, and a head: `[batch, words, 8]` becomes `[batch, words, 12]`.
fn block(b: &mut Builder, x: V) -> V {
    let scale = b.floats(&[8]);
    let norm = |b: &mut Builder, x| {
        b.op(
            RmsNorm {
                axis: -1,
                epsilon: 1e-5,
            },
            &[x, scale],
        )
    };
    let y = norm(b, x);
    let (gate, up) = (product(b, y, 8, 20), product(b, y, 8, 20));
    let gate = b.unary(UnaryKind::Sigmoid, gate);
    let y = b.binary(BinaryKind::Mul, gate, up);
    let y = product(b, y, 20, 8);
    let y = b.binary(BinaryKind::Add, x, y);
    let y = norm(b, y);
    product(b, y, 8, 12)
}

#[test]
fn the_last_place_goes_before_a_whole_block() {
    let mut b = Builder::new(1);
    let x = b.input("x", &[2, 5, 8]);
    let x = b.unary(UnaryKind::Tanh, x);
    let y = block(&mut b, x);
    let at = b.ints(&[-1]);
    let y = b.op(Gather { axis: 1 }, &[y, at]);
    b.g.outputs.push(y);
    let g = check(&b.g, 1);
    // Tanh goes place by place as well.
    assert_eq!(shapes(&g, "Gather"), [[2, 1, 8]]);
    let products = [[2, 1, 20], [2, 1, 20], [2, 1, 8], [2, 1, 12]];
    assert_eq!(shapes(&g, "MatMul"), products);
}

#[test]
fn a_place_that_leaves_its_axis_goes_too() {
    let mut b = Builder::new(2);
    let x = b.input("x", &[2, 5, 8]);
    let y = block(&mut b, x);
    let at = b.constant(Tensor::scalar(0i64).unwrap());
    let y = b.op(Gather { axis: 1 }, &[y, at]);
    let y = product(&mut b, y, 12, 3);
    b.g.outputs.push(y);
    let g = check(&b.g, 2);
    assert_eq!(shapes(&g, "Gather"), [[2, 1, 8]]);
    assert_eq!(shapes(&g, "MatMul").last().unwrap(), &[2, 3]);
}

#[test]
fn slices_of_one_place_go_too() {
    for (start, end, moves) in [
        (-1, i64::MAX, true),
        (2, 3, true),
        (-2, -1, true),
        (4, 9, false),
        (0, 2, false),
        (-1, 0, false),
    ] {
        let mut b = Builder::new(3);
        let x = b.input("x", &[2, 5, 8]);
        let y = product(&mut b, x, 8, 12);
        let inputs = [y, b.ints(&[start]), b.ints(&[end]), b.ints(&[-2])];
        let y = b.op(Slice, &inputs);
        b.g.outputs.push(y);
        let g = check(&b.g, 3);
        let rows = shapes(&g, "MatMul").first().map(|shape| shape[1]);
        assert_eq!(rows == Some(1), moves, "{start} to {end}: {rows:?}");
    }
}

#[test]
fn what_others_read_is_computed_whole() {
    let mut b = Builder::new(4);
    let x = b.input("x", &[2, 5, 8]);
    let y = product(&mut b, x, 8, 12);
    let at = b.ints(&[-1]);
    let last = b.op(Gather { axis: 1 }, &[y, at]);
    let others = b.unary(UnaryKind::Exp, y);
    b.g.outputs.extend([last, others]);
    let g = check(&b.g, 4);
    assert_eq!(shapes(&g, "MatMul"), [[2, 5, 12]]);
}

#[test]
fn what_mixes_places_is_computed_whole() {
    let at = |b: &mut Builder, y, axis| {
        let at = b.ints(&[1]);
        let y = b.op(Gather { axis }, &[y, at]);
        b.g.outputs.push(y);
        check(&b.g, 5)
    };
    let norm = |axis| LayerNorm {
        axis,
        epsilon: 1e-5,
    };
    for (axis, moves) in [(2, true), (1, false)] {
        let mut b = Builder::new(5);
        let x = b.input("x", &[2, 5, 8]);
        let dims = if axis == 2 { &[8][..] } else { &[5, 8] };
        let scale = b.floats(dims);
        let y = b.op(norm(axis), &[x, scale]);
        let g = at(&mut b, y, 1);
        let whole = shapes(&g, "LayerNormalization") == [[2, 5, 8]];
        assert_eq!(whole, !moves, "from axis {axis}");
    }
    // Columns of a product, and places along which numbers are shares.
    let mut b = Builder::new(6);
    let x = b.input("x", &[2, 5, 8]);
    let y = product(&mut b, x, 8, 12);
    let g = at(&mut b, y, 2);
    assert_eq!(shapes(&g, "MatMul"), [[2, 5, 12]]);
    let mut b = Builder::new(7);
    let x = b.input("x", &[2, 5]);
    let y = b.op(softmax(), &[x]);
    let g = at(&mut b, y, 1);
    assert_eq!(shapes(&g, "Softmax"), [[2, 5]]);
}

/// Factors that are broadcast along the axis stay whole, and those of fewer dimensions are taken along their own.
#[test]
fn broadcast_inputs_are_taken_along_their_own_axes() {
    let mut b = Builder::new(8);
    let x = b.input("x", &[2, 5, 8]);
    let places = b.input("places", &[5, 1]);
    let channels = b.input("channels", &[8]);
    let batch = b.input("batch", &[2, 1, 8]);
    let y = b.binary(BinaryKind::Mul, x, places);
    let y = b.binary(BinaryKind::Sub, channels, y);
    let y = b.binary(BinaryKind::Mul, batch, y);
    let at = b.ints(&[3]);
    let y = b.op(Gather { axis: 1 }, &[y, at]);
    b.g.outputs.push(y);
    let g = check(&b.g, 8);
    assert_eq!(shapes(&g, "Gather"), [vec![2, 1, 8], vec![1, 1]]);
    assert_eq!(shapes(&g, "Sub"), [[2, 1, 8]]);
}

/// Each of two products of many matrices has its own.
#[test]
fn products_of_batches_are_computed_apart() {
    for (axis, left, right) in [
        (0, [3, 5, 8], [3, 8, 4]),
        (1, [3, 5, 8], [3, 8, 4]),
        (0, [3, 5, 8], [1, 8, 4]),
    ] {
        let mut b = Builder::new(9);
        let x = b.input("x", &left);
        let y = b.input("y", &right);
        let op = MatMul {
            transpose_b: false,
            alpha: None,
            activation: Activation::None,
        };
        let y = b.op(op, &[x, y]);
        let at = b.ints(&[2]);
        let y = b.op(Gather { axis }, &[y, at]);
        b.g.outputs.push(y);
        let g = check(&b.g, 9);
        let mut wanted = [3, 5, 4];
        wanted[axis as usize] = 1;
        assert_eq!(shapes(&g, "MatMul"), [wanted], "axis {axis}");
    }
}

#[test]
fn dimensions_may_be_open() {
    let open = Shape(vec![
        Dim::Known(1),
        Dim::Symbol("words".into()),
        Dim::Known(8),
    ]);
    let mut b = Builder::new(10);
    let x = b.g.add_input("x", Fact::new(DType::F32, open));
    let y = block(&mut b, x);
    let at = b.ints(&[-1]);
    let y = b.op(Gather { axis: 1 }, &[y, at]);
    b.g.outputs.push(y);
    let g = optimised(&b.g);
    for shape in shapes(&g, "MatMul") {
        assert_eq!(shape[1], 1);
    }
    let mut random = Random(11);
    for words in [1, 4, 1, 7] {
        let inputs = [("x", random.floats(&[1, words, 8]))];
        let case = format!("{words} words");
        assert_alike(&run(&b.g, false, &inputs), &run(&b.g, true, &inputs), &case);
    }
}
