//! Movement, and parts of other scales.

use kilim::Tensor;
use kilim::core::ops::{Concat, MaxPool, Padding, Reshape, Slice, Transpose, Window};

use super::*;

#[test]
fn movement_works_on_bytes() {
    for seed in 400..440 {
        let mut b = Builder::new(seed, false);
        let (mut x, scale) = b.input(&[2, 4, 6, 6], 0.02);
        let mut more = vec![];
        for _ in 0..3 {
            x = match b.random.below(4) {
                0 => {
                    let perm = vec![0, 1, 3, 2];
                    b.op(Transpose { perm }, &[x])
                }
                1 => {
                    let window = Window {
                        kernel: vec![2, 2],
                        strides: vec![1, 1],
                        dilations: vec![1, 1],
                        padding: Padding::Explicit(vec![1, 0, 0, 1]),
                        ceil_mode: false,
                    };
                    let pool = MaxPool {
                        window,
                        column_major: false,
                        channels_last: false,
                    };
                    b.op(pool, &[x])
                }
                2 => {
                    let shape = b.constant(Tensor::from_slice(&[4], &[2i64, 4, 6, 6]).unwrap());
                    b.op(Reshape { allow_zero: false }, &[x, shape])
                }
                _ => b.op(Concat { axis: 1 }, &[x, x]),
            };
            let channels = 4 << more.len();
            // A Concat doubles the channels: cut back to what a Reshape can take.
            let (from, to) = (
                b.constant(Tensor::from_slice(&[1], &[0i64]).unwrap()),
                b.constant(Tensor::from_slice(&[1], &[4i64]).unwrap()),
            );
            let axis = b.constant(Tensor::from_slice(&[1], &[1i64]).unwrap());
            x = b.op(Slice, &[x, from, to, axis]);
            more.push(channels);
        }
        let y = b.quantise_as(x, scale);
        let (_, count) = difference(&mut b, &[y]);
        assert_eq!(count, 0, "seed {seed}");
        let left = remaining(&b.g);
        let real = left
            .iter()
            .any(|n| n.ends_with("quantizeLinear") || n == "QuantizeLinear");
        assert!(!real, "seed {seed}: {left:?}");
    }
}

#[test]
fn parts_of_other_scales_are_brought_to_one() {
    for seed in 500..520 {
        let mut b = Builder::new(seed, false);
        let (x, _) = b.input(&[2, 3, 5], 0.02);
        let (y, _) = b.input(&[2, 4, 5], 0.05);
        let both = b.op(Concat { axis: 1 }, &[x, y]);
        let dtype = b.random.of_bytes();
        let both = b.quantise(both, dtype, 0.03).0;
        let (_, count) = difference(&mut b, &[both]);
        assert_eq!(count, 0, "seed {seed}");
        assert_eq!(remaining(&b.g), ["TableLookup", "TableLookup", "Concat"]);
    }
}
