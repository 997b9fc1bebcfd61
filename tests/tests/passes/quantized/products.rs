//! Convolutions and products.

use kilim::core::ops::{Activation, Gemm, MatMul};

use super::*;

/// A convolution and what is around it, quantised; gives its result and the scale of that.
fn convolution(b: &mut Builder) -> V {
    let r = &mut b.random;
    let depthwise = r.below(3) == 0;
    let (c, m) = match depthwise {
        true => [(5, 5), (16, 16), (33, 33)][r.below(3)],
        false => [(3, 8), (8, 7), (17, 20), (4, 4)][r.below(4)],
    };
    let (h, w) = (4 + r.below(6), 4 + r.below(9));
    let (stride, pad, k) = (1 + r.below(2), r.below(2), 1 + 2 * r.below(2));
    let (x, scale) = b.input(&[1 + b.g.inputs.len() % 2, c, h, w], 0.02);
    let groups = if depthwise { c } else { 1 };
    let (weights, scales) = b.weights(&[m, c / groups, k, k], 0, 0.01);
    let mut inputs = vec![x, weights];
    if b.random.flag() {
        inputs.push(b.bias(m, scale, &scales));
    }
    let y = b.op(conv(stride, groups, pad), &inputs);
    let y = b.clamp(y, 4.0);
    let dtype = b.random.of_bytes();
    b.quantise(y, dtype, 0.05 * (c * k) as f32 / groups as f32)
        .0
}

fn product(b: &mut Builder) -> V {
    let r = &mut b.random;
    let (m, k, n) = (1 + r.below(5), 1 + r.below(40), 1 + r.below(40));
    let gemm = r.flag();
    let turned = gemm && r.flag();
    let (x, scale) = b.input(&[m, k], 0.02);
    let (shape, axis) = if turned { ([n, k], 0) } else { ([k, n], 1) };
    let (weights, scales) = b.weights(&shape, axis, 0.01);
    let y = if gemm {
        let mut inputs = vec![x, weights];
        if b.random.flag() {
            inputs.push(b.bias(n, scale, &scales));
        }
        let gemm = Gemm {
            alpha: 1.0,
            beta: 1.0,
            transpose_a: false,
            transpose_b: turned,
            activation: Activation::None,
        };
        b.op(gemm, &inputs)
    } else {
        b.op(MatMul::default(), &[x, weights])
    };
    let y = b.clamp(y, 4.0);
    let dtype = b.random.of_bytes();
    b.quantise(y, dtype, 0.02 * k as f32).0
}

#[test]
fn products_of_exact_scales_are_the_same_bytes() {
    for seed in 0..60 {
        let mut b = Builder::new(seed, true);
        let y = match seed % 2 {
            0 => convolution(&mut b),
            _ => product(&mut b),
        };
        let (_, count) = difference(&mut b, &[y]);
        assert_eq!(count, 0, "seed {seed}: {:#?}", b.g);
        let left = remaining(&b.g);
        let whole = left.iter().filter(|n| n.starts_with("QLinear")).count();
        let real = [
            "QuantizeLinear",
            "DequantizeLinear",
            "Conv",
            "Gemm",
            "MatMul",
        ];
        let none = !left.iter().any(|n| real.contains(&&n[..]));
        assert!(whole == 1 && none, "seed {seed}: {left:?}");
    }
}

/// Sums of real numbers are rounded, in another order on every machine: a result close to the middle
/// of two steps may be either of them.
#[test]
fn products_of_any_scales_are_at_most_one_step_away() {
    let (mut differ, mut all) = (0, 0);
    for seed in 100..160 {
        let mut b = Builder::new(seed, false);
        let y = match seed % 2 {
            0 => convolution(&mut b),
            _ => product(&mut b),
        };
        let (most, count) = difference(&mut b, &[y]);
        assert!(most <= 1.0, "seed {seed}: {most}\n{:#?}", b.g);
        differ += count;
        let mut facts = b.g.clone();
        kilim::core::passes::infer_graph(&mut facts, &kilim::core::Interrupt::NEVER).unwrap();
        let shape = facts.value(y).fact.concrete().unwrap();
        all += shape.iter().product::<usize>();
    }
    assert!(differ * 1000 <= all, "{differ} of {all} results differ");
}
