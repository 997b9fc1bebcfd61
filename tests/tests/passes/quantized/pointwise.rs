//! Arithmetic on two tensors, and functions of one.

use kilim::core::ops::{Binary, BinaryKind, TableLookup, Unary, UnaryKind};

use super::*;

#[test]
fn arithmetic_on_two_tensors_is_the_same_to_the_byte() {
    use BinaryKind::{Add, Max, Min, Mul, Sub};
    for seed in 200..260 {
        let mut b = Builder::new(seed, false);
        let kind = [Add, Sub, Mul, Max, Min][b.random.below(5)];
        let shapes: [[&[usize]; 2]; 5] = [
            [&[2, 3, 7], &[2, 3, 7]],
            [&[2, 3, 7], &[7]],
            [&[2, 3, 7], &[3, 1]],
            [&[5, 1, 4], &[3, 1]],
            [&[300], &[]],
        ];
        let [left, right] = shapes[b.random.below(5)];
        let (x, _) = b.input(left, 0.02);
        let (y, _) = b.input(right, 0.03);
        let z = b.op(Binary::new(kind), &[x, y]);
        let z = b.clamp(z, 2.0);
        let dtype = b.random.of_bytes();
        let z = b.quantise(z, dtype, 0.03).0;
        let (_, count) = difference(&mut b, &[z]);
        assert_eq!(count, 0, "seed {seed} {kind:?}: {:#?}", b.g);
        assert_eq!(remaining(&b.g), ["QLinearBinary"], "seed {seed}");
    }
}

#[test]
fn functions_of_one_tensor_become_tables() {
    let exact = [
        UnaryKind::Relu,
        UnaryKind::Abs,
        UnaryKind::Neg,
        UnaryKind::Floor,
        UnaryKind::LeakyRelu { alpha: 0.1 },
        UnaryKind::Clip {
            min: -0.7,
            max: 1.3,
        },
    ];
    let close = [
        UnaryKind::Sigmoid,
        UnaryKind::Tanh,
        UnaryKind::HardSwish,
        UnaryKind::Gelu { tanh: false },
    ];
    for (i, &kind) in exact.iter().chain(&close).enumerate() {
        for seed in 300..306 {
            let mut b = Builder::new(seed, false);
            let (x, _) = b.input(&[3, 5, 17], 0.02);
            let mut y = b.op(Unary(kind), &[x]);
            // Swish, spelled out, among others.
            if seed % 3 == 0 {
                y = b.op(Binary::new(BinaryKind::Mul), &[x, y]);
            }
            let dtype = b.random.of_bytes();
            let y = b.quantise(y, dtype, 0.02).0;
            let (most, count) = difference(&mut b, &[y]);
            let same = if i < exact.len() {
                count == 0
            } else {
                most <= 1.0
            };
            assert!(same, "{kind:?} {seed}: {count} differ");
            assert_eq!(remaining(&b.g), ["TableLookup"], "{kind:?} {seed}");
            let graph = optimised(&b.g);
            let of = graph
                .nodes
                .iter()
                .find_map(|n| n.op.downcast_ref::<TableLookup>()?.of);
            // A function of its own, where it is one operator.
            let function = of.map(|of| of.function);
            assert_eq!(function, (seed % 3 != 0).then_some(kind), "{seed}");
        }
    }
}
