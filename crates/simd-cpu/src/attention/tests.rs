use kilim_core::backend::{Backend, NodeSpec, TensorSpec};
use kilim_core::ops::{Align, Attention};
use kilim_core::{DType, Interrupt, Tensor};
use kilim_host::testing::{noise, tensor};

use super::*;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;
use crate::testing::{assert_within, run_kernel};

/// Batch, heads and their group, numbers of queries and keys, of a key and of a value.
type Shape = (usize, [usize; 2], [usize; 2], [usize; 2]);

struct Node {
    op: Attention,
    output: Vec<usize>,
    inputs: Vec<Option<Tensor>>,
}

impl Node {
    fn new(
        op: &Attention,
        (batch, [heads, key_heads], [queries, keys], [size, value]): Shape,
    ) -> Node {
        let random = |shape: &[usize], seed| tensor(shape, &noise(shape.iter().product(), seed));
        let query = random(&[batch, heads, queries, size], 1);
        let key = random(&[batch, key_heads, keys, size], 2);
        let value_ = random(&[batch, key_heads, keys, value], 3);
        Node {
            op: op.clone(),
            output: vec![batch, heads, queries, value],
            inputs: vec![Some(query), Some(key), Some(value_)],
        }
    }

    fn with(mut self, i: usize, input: Tensor) -> Node {
        self.inputs.resize(self.inputs.len().max(i + 1), None);
        self.inputs[i] = Some(input);
        self
    }

    fn run(&self, isa: Isa) -> Vec<f32> {
        let inputs: Vec<_> = self.inputs.iter().map(Option::as_ref).collect();
        run_kernel(&self.op, &inputs, &self.output, |node, _| {
            kernel(&self.op, node, isa)
        })
    }

    /// What the reference kernel gives in `float64`.
    fn want(&self) -> Vec<f64> {
        let wide = |t: &Tensor| match t.dtype() {
            DType::F32 => tensor(t.shape(), &t.to_f64s().unwrap()),
            _ => t.clone(),
        };
        let inputs: Vec<_> = self.inputs.iter().map(|i| i.as_ref().map(wide)).collect();
        let inputs: Vec<_> = inputs
            .iter()
            .map(|i| i.as_ref().map(TensorSpec::of))
            .collect();
        let node = NodeSpec {
            name: "test",
            op: &self.op,
            inputs: &inputs,
            outputs: &[TensorSpec::new(DType::F64, &self.output)],
        };
        let backend = kilim_reference_cpu::backend();
        let out = backend.evaluate(&node, &Interrupt::NEVER).unwrap().unwrap();
        out[0].to_f64s().unwrap()
    }

    fn check(&self, what: &str) {
        let want = self.want();
        for isa in Isa::available() {
            assert_within(&self.run(isa), &want, 4e-6, &format!("{what}, {isa:?}"));
        }
    }
}

/// Few rows and many, in one part and in several, in one piece and in several.
const SHAPES: [Shape; 10] = [
    (1, [1, 1], [1, 1], [1, 1]),
    (2, [9, 3], [1, 129], [64, 64]),
    (1, [4, 1], [3, 1300], [8, 20]),
    (2, [5, 5], [1, 517], [19, 70]),
    (1, [2, 1], [6, 40], [33, 5]),
    (2, [6, 3], [17, 33], [5, 7]),
    (1, [2, 1], [150, 150], [64, 64]),
    (1, [3, 3], [270, 301], [16, 24]),
    (1, [16, 1], [1, 260], [24, 40]),
    (1, [6, 2], [200, 333], [12, 65]),
];

fn forms() -> Vec<Attention> {
    let plain = Attention {
        scale: 1.5,
        ..Attention::default()
    };
    let causal = Attention {
        causal: true,
        ..plain.clone()
    };
    vec![
        plain.clone(),
        causal.clone(),
        Attention {
            align: Align::End,
            ..causal.clone()
        },
        Attention {
            align: Align::End,
            left: 37,
            zeros: true,
            ..causal
        },
        Attention {
            left: 3,
            right: 150,
            zeros: true,
            softcap: Some(0.7),
            ..plain
        },
    ]
}

#[test]
fn all_ways_to_cut_it() {
    for shape in SHAPES {
        for op in forms() {
            Node::new(&op, shape).check(&format!("{op:?} {shape:?}"));
        }
    }
}

#[test]
fn everything_that_a_node_may_have() {
    for shape in SHAPES {
        let (batch, [heads, _], [queries, keys], _) = shape;
        for (i, op) in forms().into_iter().enumerate() {
            let biases = [
                vec![batch, heads, queries, keys],
                vec![queries, keys],
                vec![batch, 1, 1, keys],
                vec![heads, 1, 1],
                vec![],
            ];
            let bias = &biases[i];
            let count = bias.iter().product();
            let places: Vec<i64> = (0..batch as i64).map(|b| 5 + 3 * b).collect();
            let lengths: Vec<i64> = (0..batch as i64).map(|b| keys as i64 - b * 9).collect();
            let mut node = Node::new(&op, shape)
                .with(3, tensor(bias, &noise(count, 7)))
                .with(5, tensor(&[batch], &lengths));
            if op.align == Align::Start {
                node = node.with(4, tensor(&[batch], &places));
            }
            if i != 1 {
                node = node.with(6, tensor(&[heads], &noise(heads, 8)));
            }
            node.check(&format!("{op:?} {shape:?}"));
        }
    }
}

/// A bias of minus infinity hides keys: some of them, all of a block, all.
#[test]
fn what_a_bias_hides() {
    for (queries, keys) in [(1, 700), (40, 300)] {
        for zeros in [false, true] {
            for hidden in [0..3, 0..200, 150..290, 0..keys] {
                let mut bias = noise(keys, 3);
                bias[hidden.clone()].fill(f32::NEG_INFINITY);
                let op = Attention {
                    zeros,
                    ..Attention::default()
                };
                let node = Node::new(&op, (1, [2, 1], [queries, keys], [8, 8]));
                let node = node.with(3, tensor(&[keys], &bias));
                node.check(&format!("{queries} {keys} {zeros} {hidden:?}"));
                let sinks = tensor(&[2], &[0.5f32, f32::NEG_INFINITY]);
                node.with(6, sinks).check(&format!("with sinks {hidden:?}"));
            }
        }
    }
}

/// Scores that are far apart, and grow from block to block.
#[test]
fn large_scores() {
    for queries in [2, 33] {
        let node = Node::new(&Attention::default(), (1, [1, 1], [queries, 600], [1, 4]));
        let keys: Vec<f32> = (0..600).map(|j| j as f32 * 0.7 - 90.0).collect();
        let node = node.with(1, tensor(&[1, 1, 600, 1], &keys));
        let query: Vec<f32> = (0..queries)
            .map(|i| if i % 2 == 0 { 3.0 } else { -3.0 })
            .collect();
        let node = node.with(0, tensor(&[1, 1, queries, 1], &query));
        node.check("growing and falling scores");
        for strange in [f32::NAN, f32::INFINITY] {
            let mut keys = keys.clone();
            keys[400] = strange;
            let node = Node::new(&Attention::default(), (1, [1, 1], [queries, 600], [1, 4]));
            let node = node.with(1, tensor(&[1, 1, 600, 1], &keys));
            let ones = vec![1.0f32; queries];
            let node = node.with(0, tensor(&[1, 1, queries, 1], &ones));
            node.check("a score that is no number");
        }
    }
}
