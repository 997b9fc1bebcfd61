//! Products of rows that each choose the matrix of an expert, computed route by route in `float64`.

use std::sync::Arc;

use kilim::Tensor;
use kilim::core::ops::{ExpertMatMul, ExpertMatMulNBits};

use super::packed::Numbers;
use super::{Case, Input, Random};

/// A mixture's layer.
#[derive(Clone, Copy, Debug)]
struct Layer {
    rows: usize,
    routes: usize,
    experts: usize,
    k: usize,
    n: usize,
    /// The routes of a row begin with the same numbers.
    shared: bool,
    bias: bool,
    constant: bool,
}

impl Layer {
    /// An expert of each route: all are asked, some of them often, and those of a row differ.
    fn choose(&self, random: &mut Random) -> Vec<i32> {
        let mut chosen = Vec::new();
        for _ in 0..self.rows {
            let first = ((random.unit() + 1.0) * self.experts as f32) as usize;
            chosen.extend((0..self.routes).map(|r| ((first + r) % self.experts) as i32));
        }
        chosen
    }

    /// The case, with the number `weight` gives for an expert's row and column and the inputs that hold the weights.
    fn case(
        &self,
        random: &mut Random,
        name: String,
        op: Arc<dyn kilim::core::Operator>,
        weights: Vec<Input>,
        weight: impl Fn(usize, usize, usize) -> f64,
    ) -> Case {
        let (k, n) = (self.k, self.n);
        let of_row = if self.shared { 1 } else { self.routes };
        let a = random.array(&[self.rows, of_row, k]);
        let routes = self.choose(random);
        let bias = random.array(&[self.experts, n]);
        let mut want = Vec::new();
        for (i, &expert) in routes.iter().enumerate() {
            let row = if self.shared { i / self.routes } else { i };
            let (row, expert) = (&a.data[row * k..][..k], expert as usize);
            for j in 0..n {
                let products = row.iter().enumerate();
                let products = products.map(|(p, &a)| f64::from(a) * weight(expert, j, p));
                let bias = match self.bias {
                    true => f64::from(bias.data[expert * n + j]),
                    false => 0.0,
                };
                want.push(products.sum::<f64>() + bias);
            }
        }
        let shape = vec![self.rows, self.routes, n];
        let routes = Tensor::from_slice(&shape[..2], &routes).expect("a matrix");
        let mut inputs = vec![a.fed(), Input::Fed(routes)];
        inputs.extend(weights);
        inputs.push(match self.bias {
            true => self.weights(bias.tensor()),
            false => Input::Absent,
        });
        Case {
            name,
            op,
            inputs,
            want: vec![(shape, want)],
            tolerance: 1e-5,
        }
    }

    fn weights(&self, tensor: Tensor) -> Input {
        match self.constant {
            true => Input::Constant(tensor),
            false => Input::Fed(tensor),
        }
    }

    fn plain(&self, random: &mut Random) -> Case {
        let (k, n) = (self.k, self.n);
        let w = random.array(&[self.experts, n, k]);
        let inputs = vec![self.weights(w.tensor())];
        let name = format!("ExpertMatMul, {self:?}");
        self.case(random, name, Arc::new(ExpertMatMul), inputs, |e, j, p| {
            w.data[(e * n + j) * k + p].into()
        })
    }

    fn packed(&self, random: &mut Random, bits: usize, block: usize, zeros: bool) -> Case {
        let Layer { experts, k, n, .. } = *self;
        let blocks = k.div_ceil(block);
        let numbers = Numbers::new(random, bits, experts * n, blocks * block);
        let scales = random.array(&[experts, n, blocks]);
        let points = Numbers::new(random, bits, experts * n, blocks);
        let bytes = blocks * block * bits / 8;
        let inputs = vec![
            self.weights(numbers.packed(&[experts, n, bytes])),
            self.weights(scales.tensor()),
            match zeros {
                true => self.weights(points.packed(&[experts, n, (blocks * bits).div_ceil(8)])),
                false => Input::Absent,
            },
        ];
        let op = Arc::new(ExpertMatMulNBits { k, n, bits, block });
        let name = format!("ExpertMatMulNBits {bits} bits, blocks of {block}, {zeros}, {self:?}");
        self.case(random, name, op, inputs, |e, j, p| {
            let (row, at) = (e * n + j, p / block);
            let zero = match zeros {
                true => points.get(row, at),
                false => f64::from(1u16 << (bits - 1)),
            };
            (numbers.get(row, p) - zero) * f64::from(scales.data[row * blocks + at])
        })
    }
}

pub fn cases() -> Vec<Case> {
    let random = &mut Random::new(71);
    let mut cases = Vec::new();
    // A word, a prompt in which an expert has many rows, odd sizes, and nothing at all.
    let sizes = [
        (1, 2, 4, 64, 40),
        (37, 3, 5, 96, 33),
        (9, 1, 2, 50, 7),
        (0, 2, 3, 32, 8),
    ];
    for (i, (rows, routes, experts, k, n)) in sizes.into_iter().enumerate() {
        for shared in [true, false] {
            let layer = Layer {
                rows,
                routes,
                experts,
                k,
                n,
                shared,
                bias: shared || i % 2 == 0,
                constant: i != 2,
            };
            cases.push(layer.plain(random));
            for (bits, block, zeros) in
                [(4, 32, false), (4, 16, true), (8, 32, true), (2, 16, false)]
            {
                cases.push(layer.packed(random, bits, block, zeros));
            }
        }
    }
    cases
}
