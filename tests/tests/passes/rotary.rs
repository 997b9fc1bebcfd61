//! Rotary embedding as exporters spell it out becomes one node, and what only looks like it does not.

use super::*;
use kilim::core::ops::{Angles, RotaryEmbedding};

/// The rotary embeddings of a graph.
fn rotary(g: &Graph) -> Vec<&RotaryEmbedding> {
    let found = g.nodes.iter().filter_map(|n| n.op.downcast_ref());
    found.collect()
}

/// The numbers from `start` to `end`, `step` apart, of the last dimension of `x`.
fn cut(b: &mut Builder, x: V, start: i64, end: i64, step: i64) -> V {
    let inputs = [
        x,
        b.ints(&[start]),
        b.ints(&[end]),
        b.ints(&[-1]),
        b.ints(&[step]),
    ];
    b.op(Slice, &inputs)
}

/// The two halves of the last dimension of `x`.
fn split(b: &mut Builder, x: V) -> [V; 2] {
    let parts = ["first", "second"].map(|half| {
        let name = format!("{half}{}", b.g.values.len());
        b.g.add_value(name, Fact::default())
    });
    let name = format!("Split{}", b.g.nodes.len());
    b.g.push(name, Split { axis: -1 }, &[Some(x)], &parts);
    parts
}

fn concat(b: &mut Builder, x: V, y: V) -> V {
    b.op(Concat { axis: -1 }, &[x, y])
}

/// `x` and `y` beside each other in a last dimension of two.
fn stack(b: &mut Builder, x: V, y: V) -> V {
    let axis = b.ints(&[-1]);
    let [x, y] = [x, y].map(|v| b.op(Unsqueeze, &[v, axis]));
    concat(b, x, y)
}

fn reshape(b: &mut Builder, x: V, shape: &[i64]) -> V {
    let shape = b.ints(shape);
    b.op(Reshape { allow_zero: false }, &[x, shape])
}

/// `a · c - b · s` and `b · c + a · s`.
fn products(b: &mut Builder, x: V, y: V, c: V, s: V) -> [V; 2] {
    let (p, q) = (
        b.binary(BinaryKind::Mul, x, c),
        b.binary(BinaryKind::Mul, y, s),
    );
    let real = b.binary(BinaryKind::Sub, p, q);
    let (p, q) = (
        b.binary(BinaryKind::Mul, s, x),
        b.binary(BinaryKind::Mul, y, c),
    );
    [real, b.binary(BinaryKind::Add, p, q)]
}

/// `x · cos + rotated · sin`.
fn sum(b: &mut Builder, x: V, rotated: V, c: V, s: V) -> V {
    let p = b.binary(BinaryKind::Mul, x, c);
    let q = b.binary(BinaryKind::Mul, rotated, s);
    b.binary(BinaryKind::Add, p, q)
}

/// Transformers' code on an input of these dimensions: the second half negated in front of the first, angles for each number.
pub(super) fn turned_halves(b: &mut Builder, dims: &[usize]) -> V {
    let &[.., length, size] = dims else {
        panic!("{dims:?}");
    };
    let x = b.input("x", dims);
    let [c, s] = ["c", "s"].map(|name| b.input(name, &[length, size]));
    let half = size as i64 / 2;
    let (first, second) = (cut(b, x, 0, half, 1), cut(b, x, half, i64::MAX, 1));
    let negated = b.unary(UnaryKind::Neg, second);
    let turned = concat(b, negated, first);
    sum(b, x, turned, c, s)
}

#[test]
fn halves_that_change_places() {
    let mut b = Builder::new(51);
    let y = turned_halves(&mut b, &[2, 3, 5, 8]);
    let g = b.check(&[y], 51);
    let [op] = rotary(&g)[..] else {
        panic!("{:?}", names(&g))
    };
    assert_eq!((op.interleaved, op.angles), (false, Angles::OfNumbers));
    assert_eq!(names(&g), ["RotaryEmbedding"]);
}

/// Only a part of each head turns, taken apart by Split, as Phi has it.
#[test]
fn a_part_of_a_head() {
    let mut b = Builder::new(52);
    let x = b.input("x", &[2, 3, 5, 10]);
    let [c, s] = ["c", "s"].map(|name| b.input(name, &[5, 6]));
    let (turning, kept) = (cut(&mut b, x, 0, 6, 1), cut(&mut b, x, 6, 10, 1));
    let parts = split(&mut b, turning);
    let minus = b.scalar(-1.0);
    let negated = b.binary(BinaryKind::Mul, parts[1], minus);
    let turned = concat(&mut b, negated, parts[0]);
    let y = sum(&mut b, turning, turned, c, s);
    let y = concat(&mut b, y, kept);
    let g = b.check(&[y], 52);
    assert_eq!(rotary(&g).len(), 1, "{:?}", names(&g));
    assert!(!names(&g).contains(&"Mul"), "{:?}", names(&g));
}

/// GPT-J's code: every second number, stacked and flattened.
#[test]
fn every_second_number() {
    let mut b = Builder::new(53);
    let x = b.input("x", &[2, 5, 3, 8]);
    let [c, s] = ["c", "s"].map(|name| b.input(name, &[1, 5, 1, 8]));
    let (even, odd) = (cut(&mut b, x, 0, 8, 2), cut(&mut b, x, 1, 8, 2));
    let negated = b.unary(UnaryKind::Neg, odd);
    let turned = stack(&mut b, negated, even);
    let turned = reshape(&mut b, turned, &[0, 0, 0, -1]);
    let y = sum(&mut b, x, turned, c, s);
    let g = b.check(&[y], 53);
    assert_eq!(names(&g), ["RotaryEmbedding"]);
    assert!(rotary(&g)[0].interleaved);
}

/// Complex numbers written out: pairs in a dimension of their own, angles for each pair.
#[test]
fn pairs_in_a_dimension_of_their_own() {
    for gathered in [false, true] {
        let mut b = Builder::new(54);
        let x = b.input("x", &[2, 5, 24]);
        let [c, s] = ["c", "s"].map(|name| b.input(name, &[5, 4]));
        let x = reshape(&mut b, x, &[0, 0, 3, 4, 2]);
        let x = b.transpose(x, &[0, 2, 1, 3, 4]);
        let [first, second] = if gathered {
            [0i64, 1].map(|i| {
                let index = b.constant(Tensor::scalar(i).unwrap());
                b.op(Gather { axis: -1 }, &[x, index])
            })
        } else {
            let parts = split(&mut b, x);
            let axis = b.ints(&[-1]);
            [0, 1].map(|i| b.op(Squeeze, &[parts[i], axis]))
        };
        let [real, imaginary] = products(&mut b, first, second, c, s);
        let pairs = stack(&mut b, real, imaginary);
        let y = reshape(&mut b, pairs, &[0, 0, 0, -1]);
        let g = b.check(&[y], 54);
        assert_eq!(rotary(&g).len(), 1, "{:?}", names(&g));
        assert!(!names(&g).contains(&"Mul"), "{:?}", names(&g));
        assert!(!names(&g).contains(&"Concat"), "{:?}", names(&g));
    }
}

/// The halves computed apart and joined.
#[test]
fn joined_halves() {
    let mut b = Builder::new(55);
    let x = b.input("x", &[3, 1, 6]);
    let [c, s] = ["c", "s"].map(|name| b.input(name, &[3, 1, 3]));
    let parts = split(&mut b, x);
    let sides = products(&mut b, parts[0], parts[1], c, s);
    let y = concat(&mut b, sides[0], sides[1]);
    let g = b.check(&[y], 55);
    assert_eq!(names(&g), ["RotaryEmbedding"]);
    assert_eq!(rotary(&g)[0].angles, Angles::OfPairs);
}

/// Each differs in one thing, and stays as it is.
#[test]
fn what_only_looks_like_it() {
    let halves = |b: &mut Builder, x: V| (cut(b, x, 0, 4, 1), cut(b, x, 4, 8, 1));
    type Write = fn(&mut Builder, V, (V, V), V, V) -> V;
    let forms: [(&str, &[usize], Write); 7] = [
        (
            "the first half is negated",
            &[5, 8],
            |b, x, (p, q), c, s| {
                let negated = b.unary(UnaryKind::Neg, p);
                let turned = concat(b, q, negated);
                sum(b, x, turned, c, s)
            },
        ),
        ("nothing is negated", &[5, 8], |b, x, (p, q), c, s| {
            let turned = concat(b, q, p);
            sum(b, x, turned, c, s)
        }),
        ("a factor of two", &[5, 8], |b, x, (p, q), c, s| {
            let two = b.scalar(-2.0);
            let negated = b.binary(BinaryKind::Mul, q, two);
            let turned = concat(b, negated, p);
            sum(b, x, turned, c, s)
        }),
        (
            "angles of more batches",
            &[7, 1, 5, 8],
            |b, x, (p, q), c, s| {
                let negated = b.unary(UnaryKind::Neg, q);
                let turned = concat(b, negated, p);
                sum(b, x, turned, c, s)
            },
        ),
        ("one angle for all", &[5, 1], |b, x, (p, q), c, s| {
            let negated = b.unary(UnaryKind::Neg, q);
            let turned = concat(b, negated, p);
            sum(b, x, turned, c, s)
        }),
        ("both sines are added", &[5, 4], |b, _, (p, q), c, s| {
            let [_, imaginary] = products(b, p, q, c, s);
            let (u, v) = (
                b.binary(BinaryKind::Mul, p, c),
                b.binary(BinaryKind::Mul, q, s),
            );
            let real = b.binary(BinaryKind::Add, u, v);
            concat(b, real, imaginary)
        }),
        ("halves joined as pairs", &[5, 4], |b, _, (p, q), c, s| {
            let [real, imaginary] = products(b, p, q, c, s);
            let pairs = stack(b, real, imaginary);
            reshape(b, pairs, &[0, 0, 0, -1])
        }),
    ];
    for (what, angles, write) in forms {
        let mut b = Builder::new(56);
        let x = b.input("x", &[1, 3, 5, 8]);
        let [c, s] = ["c", "s"].map(|name| b.input(name, angles));
        let sides = halves(&mut b, x);
        let y = write(&mut b, x, sides, c, s);
        let g = b.check(&[y], 56);
        assert!(rotary(&g).is_empty(), "{what}: {:?}", names(&g));
    }
}
