//! Attention as exporters spell it out becomes one node, and what only looks like it does not.

use super::*;
use kilim::core::ops::Attention;

/// The only Attention of a graph.
fn attention(g: &Graph) -> &Attention {
    let mut found = g.nodes.iter().filter_map(|n| n.op.downcast_ref());
    let one = found.next();
    assert!(found.next().is_none(), "{:?}", names(g));
    one.unwrap_or_else(|| panic!("no attention among {:?}", names(g)))
}

/// `x` `[batch, sequence, heads * size]` as heads in the order of axes `perm`.
fn heads(b: &mut Builder, x: V, count: i64, perm: &[usize]) -> V {
    let shape = b.ints(&[0, 0, count, -1]);
    let x = b.op(Reshape { allow_zero: false }, &[x, shape]);
    b.transpose(x, perm)
}

/// PyTorch's exporter: the root of the scale on both sides, keys turned twice, a mask of queries and keys.
#[test]
fn scaled_on_both_sides() {
    let mut b = Builder::new(41);
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[2, 5, 12]));
    let mask = b.input("mask", &[5, 5]);
    let [q, k, v] = [q, k, v].map(|x| heads(&mut b, x, 3, &[0, 2, 1, 3]));
    let k = b.transpose(k, &[0, 1, 3, 2]);
    let root = b.scalar(0.5f32.sqrt());
    let q = b.binary(BinaryKind::Mul, q, root);
    let k = b.binary(BinaryKind::Mul, k, root);
    let scores = b.op(MatMul::default(), &[q, k]);
    let scores = b.binary(BinaryKind::Add, scores, mask);
    let weights = b.op(softmax(), &[scores]);
    let y = b.op(MatMul::default(), &[weights, v]);
    let y = b.transpose(y, &[0, 2, 1, 3]);
    let g = b.check(&[y], 41);
    assert!((attention(&g).scale - 0.5).abs() < 1e-6);
    assert!(!names(&g).contains(&"Softmax"), "{:?}", names(&g));
}

/// BERT's own code: keys as `[batch, heads, size, sequence]` at once, scores divided, a mask of keys.
#[test]
fn divided_scores_with_a_mask_of_keys() {
    let mut b = Builder::new(42);
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[2, 6, 8]));
    let mask = b.input("mask", &[2, 1, 1, 6]);
    let q = heads(&mut b, q, 2, &[0, 2, 1, 3]);
    let k = heads(&mut b, k, 2, &[0, 2, 3, 1]);
    let v = heads(&mut b, v, 2, &[0, 2, 1, 3]);
    let scores = b.op(MatMul::default(), &[q, k]);
    let eight = b.scalar(8.0);
    let scores = b.binary(BinaryKind::Div, scores, eight);
    let scores = b.binary(BinaryKind::Add, mask, scores);
    let weights = b.op(softmax(), &[scores]);
    let y = b.op(MatMul::default(), &[weights, v]);
    let g = b.check(&[y], 42);
    assert_eq!(attention(&g).scale, 0.125);
}

/// Three dimensions, as of Stable Diffusion's first exports, and one key head for all query heads.
#[test]
fn heads_in_the_batch_and_shared_keys() {
    let mut b = Builder::new(43);
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, &[6, 5, 4]));
    let k = b.transpose(k, &[0, 2, 1]);
    let scores = b.op(MatMul::default(), &[q, k]);
    let half = b.scalar(0.5);
    let scores = b.binary(BinaryKind::Mul, scores, half);
    let weights = b.op(softmax(), &[scores]);
    let y = b.op(MatMul::default(), &[weights, v]);
    let g = b.check(&[y], 43);
    assert_eq!(attention(&g).scale, 0.5);

    let mut b = Builder::new(44);
    let q = b.input("q", &[2, 6, 3, 4]);
    let [k, v] = ["k", "v"].map(|name| b.input(name, &[2, 1, 7, 4]));
    let product = MatMul {
        transpose_b: true,
        alpha: Some(0.25),
        ..MatMul::default()
    };
    let scores = b.op(product, &[q, k]);
    let weights = b.op(softmax(), &[scores]);
    let y = b.op(MatMul::default(), &[weights, v]);
    let g = b.check(&[y], 44);
    assert_eq!(attention(&g).scale, 0.25);
}

/// What changes between the products of [`other`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Difference {
    ScoresRead,
    WeightsRead,
    Axis,
    LargeMask,
    Batch,
    Factors,
}

/// A graph that spells out something else.
fn other(b: &mut Builder, difference: Difference) -> Vec<V> {
    use Difference::*;
    let batch = if difference == Batch { 1 } else { 2 };
    let rows = if difference == LargeMask { 1 } else { 4 };
    let q = b.input("q", &[2, 3, rows, 4]);
    let k = b.input("k", &[batch, 3, 5, 4]);
    let k = b.transpose(k, &[0, 1, 3, 2]);
    let v = b.input("v", &[2, 3, 5, 4]);
    let mut scores = b.op(MatMul::default(), &[q, k]);
    let mut outputs = vec![];
    match difference {
        ScoresRead => outputs.push(b.unary(UnaryKind::Exp, scores)),
        LargeMask => {
            let mask = b.input("mask", &[7, 5]);
            scores = b.binary(BinaryKind::Add, scores, mask);
        }
        Factors => {
            let factors = b.input("factors", &[5]);
            scores = b.binary(BinaryKind::Mul, scores, factors);
        }
        _ => {}
    }
    let axis = if difference == Axis { 2 } else { 3 };
    let weights = b.op(Softmax { axis, ..softmax() }, &[scores]);
    if difference == WeightsRead {
        outputs.push(b.unary(UnaryKind::Neg, weights));
    }
    outputs.push(b.op(MatMul::default(), &[weights, v]));
    outputs
}

#[test]
fn what_is_no_attention_stays() {
    use Difference::*;
    for difference in [ScoresRead, WeightsRead, Axis, LargeMask, Batch, Factors] {
        let mut b = Builder::new(45);
        let outputs = other(&mut b, difference);
        let g = b.check(&outputs, 45);
        assert!(
            names(&g).contains(&"Softmax"),
            "{difference:?}: {:?}",
            names(&g)
        );
    }
}
