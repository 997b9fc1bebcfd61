//! Attention: groups of heads, biases, places, windows, lengths and sinks.

use std::sync::Arc;

use kilim::core::ops::{Align, Attention};
use kilim::{DType, Tensor};

use super::{Array, Case, Input, Random, each_index, flat};

/// A node without its numbers.
#[derive(Clone, Debug)]
struct Form {
    op: Attention,
    batch: usize,
    /// Heads of queries and of keys.
    heads: [usize; 2],
    /// Numbers of queries and keys.
    lengths: [usize; 2],
    /// Numbers of a key and of a value.
    sizes: [usize; 2],
    bias: Option<&'static [usize]>,
    offset: Option<&'static [i64]>,
    /// Keys of each batch.
    kept: Option<&'static [i64]>,
    sinks: bool,
}

/// The numbers of a node.
struct Data {
    query: Array,
    key: Array,
    value: Array,
    bias: Option<Array>,
    sinks: Option<Array>,
}

impl Array {
    /// The numbers as an input of `dtype` where that is `float64`, else of `float32`.
    fn input(&self, dtype: DType) -> Input {
        match dtype {
            DType::F64 => {
                let wide: Vec<f64> = self.data.iter().map(|&x| x.into()).collect();
                let tensor = Tensor::from_slice(&self.shape, &wide);
                Input::Fed(tensor.expect("the suite's arrays are well formed"))
            }
            _ => self.fed(),
        }
    }
}

impl Form {
    fn new(
        op: Attention,
        batch: usize,
        heads: [usize; 2],
        lengths: [usize; 2],
        sizes: [usize; 2],
    ) -> Form {
        Form {
            op,
            batch,
            heads,
            lengths,
            sizes,
            bias: None,
            offset: None,
            kept: None,
            sinks: false,
        }
    }

    fn data(&self, random: &mut Random) -> Data {
        let ([heads, key_heads], [queries, keys]) = (self.heads, self.lengths);
        let [size, value_size] = self.sizes;
        let mut query = random.array(&[self.batch, heads, queries, size]);
        // Some scores far above the others.
        query.data.iter_mut().for_each(|x| *x *= 3.0);
        Data {
            query,
            key: random.array(&[self.batch, key_heads, keys, size]),
            value: random.array(&[self.batch, key_heads, keys, value_size]),
            bias: self.bias.map(|shape| random.array(shape)),
            sinks: self.sinks.then(|| random.array(&[heads])),
        }
    }

    /// Whether query `i` of batch `b` sees key `j`.
    fn sees(&self, b: usize, i: usize, j: usize) -> bool {
        let op = &self.op;
        let offset = match (op.align, self.offset) {
            (Align::End, _) => self.lengths[1] as i64 - self.lengths[0] as i64,
            (Align::Start, Some(list)) => list[b.min(list.len() - 1)],
            (Align::Start, None) => 0,
        };
        let (p, j) = (offset + i as i64, j as i64);
        self.kept.is_none_or(|kept| j < kept[b])
            && (!op.causal || j <= p)
            && (op.left < 0 || j >= p - op.left)
            && (op.right < 0 || j <= p + op.right)
    }

    /// The score of key `j` for the query at `at`: batch, head, query.
    fn score(&self, data: &Data, at: &[usize], j: usize) -> f64 {
        let [heads, key_heads] = self.heads;
        let key_head = at[1] / (heads / key_heads);
        let products = (0..self.sizes[0]).map(|d| {
            let query = data.query.data[flat(&data.query.shape, &[at[0], at[1], at[2], d])];
            let key = data.key.data[flat(&data.key.shape, &[at[0], key_head, j, d])];
            f64::from(query) * f64::from(key)
        });
        let mut score = products.sum::<f64>() * f64::from(self.op.scale);
        if let Some(cap) = self.op.softcap {
            score = (score / f64::from(cap)).tanh() * f64::from(cap);
        }
        if let Some(bias) = &data.bias {
            let whole = [at[0], at[1], at[2], j];
            let own = &whole[4 - bias.shape.len()..];
            let own = own.iter().zip(&bias.shape).map(|(&i, &n)| i.min(n - 1));
            score += f64::from(bias.data[flat(&bias.shape, &own.collect::<Vec<_>>())]);
        }
        score
    }

    fn want(&self, data: &Data) -> (Vec<usize>, Vec<f64>) {
        let [heads, key_heads] = self.heads;
        let shape = [self.batch, heads, self.lengths[0], self.sizes[1]];
        let mut want = Vec::new();
        each_index(&shape[..3], |at| {
            let seen = (0..self.lengths[1]).filter(|&j| self.sees(at[0], at[2], j));
            let scores: Vec<_> = seen.map(|j| (j, self.score(data, at, j))).collect();
            let sink = data.sinks.as_ref().map(|s| f64::from(s.data[at[1]]));
            let all = scores.iter().map(|s| s.1).chain(sink);
            let largest = all.clone().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = all.map(|s| (s - largest).exp()).sum();
            for d in 0..self.sizes[1] {
                let weighed = scores.iter().map(|&(j, score)| {
                    let place = [at[0], at[1] / (heads / key_heads), j, d];
                    let value = data.value.data[flat(&data.value.shape, &place)];
                    (score - largest).exp() * f64::from(value)
                });
                let none = scores.is_empty();
                want.push(if none {
                    0.0
                } else {
                    weighed.sum::<f64>() / sum
                });
            }
        });
        (shape.to_vec(), want)
    }

    /// The case on numbers of `dtype`; with `int8` those are keys and values alone.
    fn case(&self, random: &mut Random, dtype: DType) -> Case {
        let mut data = self.data(random);
        if dtype == DType::I8 {
            // Scores as large as those of the other types.
            data.query.data.iter_mut().for_each(|x| *x /= 3.0);
            for (all, largest) in [(&mut data.key, 3.0), (&mut data.value, 127.0)] {
                let steps = all.data.iter_mut();
                steps.for_each(|x| *x = (*x * largest).round());
            }
        }
        let stored = |a: &Array| match dtype {
            DType::I8 => {
                let steps: Vec<i8> = a.data.iter().map(|&x| x as i8).collect();
                let tensor = Tensor::from_slice(&a.shape, &steps);
                Input::Fed(tensor.expect("the suite's arrays are well formed"))
            }
            _ => a.input(dtype),
        };
        let array = |a: &Array| a.input(dtype);
        let optional = |a: &Option<Array>| a.as_ref().map_or(Input::Absent, array);
        let places = |list: Option<&[i64]>| match list {
            Some(list) => {
                let tensor = Tensor::from_slice(&[list.len()], list);
                Input::Fed(tensor.expect("a vector"))
            }
            None => Input::Absent,
        };
        Case {
            name: format!("Attention of {dtype}: {self:?}"),
            op: Arc::new(self.op.clone()),
            inputs: vec![
                array(&data.query),
                stored(&data.key),
                stored(&data.value),
                optional(&data.bias),
                places(self.offset),
                places(self.kept),
                optional(&data.sinks),
            ],
            want: vec![self.want(&data)],
            tolerance: match dtype {
                DType::F64 => 1e-12,
                _ => 3e-6,
            },
        }
    }
}

fn forms() -> Vec<Form> {
    let plain = Attention {
        scale: 0.4,
        zeros: true,
        ..Attention::default()
    };
    let causal = Attention {
        causal: true,
        ..plain.clone()
    };
    let end = Attention {
        align: Align::End,
        ..causal.clone()
    };
    let mut forms = Vec::new();
    // Batch, heads, lengths, sizes.
    for (batch, heads, lengths, sizes) in [
        (1, [1, 1], [1, 1], [1, 1]),
        (1, [9, 3], [1, 128], [64, 64]),
        (1, [4, 1], [3, 700], [8, 20]),
        (2, [6, 3], [17, 33], [5, 7]),
        (1, [2, 2], [70, 75], [16, 16]),
        (1, [12, 4], [37, 37], [32, 40]),
        (3, [3, 1], [2, 5], [19, 64]),
        (1, [2, 1], [150, 150], [64, 64]),
        (0, [2, 1], [3, 4], [5, 6]),
        (1, [4, 2], [0, 4], [5, 6]),
        (2, [4, 2], [3, 0], [5, 6]),
        (1, [4, 2], [3, 4], [0, 6]),
        (1, [4, 2], [3, 4], [5, 0]),
        (1, [0, 0], [3, 4], [5, 6]),
    ] {
        for op in [&plain, &causal, &end] {
            forms.push(Form::new(op.clone(), batch, heads, lengths, sizes));
        }
        let windows = Attention {
            left: 20,
            right: 3,
            ..plain.clone()
        };
        forms.push(Form::new(windows, batch, heads, lengths, sizes));
        let capped = Attention {
            softcap: Some(1.5),
            left: 9,
            ..end.clone()
        };
        forms.push(Form {
            sinks: true,
            ..Form::new(capped, batch, heads, lengths, sizes)
        });
    }
    let small = |op: &Attention| Form::new(op.clone(), 2, [6, 2], [7, 37], [12, 9]);
    let biases: [&[usize]; 7] = [
        &[2, 6, 7, 37],
        &[1, 6, 7, 37],
        &[2, 1, 1, 37],
        &[7, 1],
        &[6, 7, 37],
        &[37],
        &[],
    ];
    for bias in biases {
        for op in [&plain, &end] {
            forms.push(Form {
                bias: Some(bias),
                ..small(op)
            });
        }
    }
    type List = Option<&'static [i64]>;
    let lists: [(List, List); 7] = [
        (Some(&[5]), None),
        (Some(&[3, 30]), None),
        (None, Some(&[37, 4])),
        (Some(&[2, 9]), Some(&[9, 16])),
        (Some(&[-3, -90]), None),
        (None, Some(&[0, 90])),
        (Some(&[40, 0]), Some(&[-2, 1])),
    ];
    for (offset, kept) in lists {
        for op in [&plain, &causal] {
            for left in [-1, 0, 6] {
                let op = Attention { left, ..op.clone() };
                forms.push(Form {
                    offset,
                    kept,
                    bias: (left == 6).then_some(&[6, 1, 37]),
                    ..small(&op)
                });
            }
        }
    }
    forms
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(29);
    let mut cases = Vec::new();
    for form in forms() {
        for dtype in [DType::F32, DType::F64, DType::I8] {
            cases.push(form.case(&mut random, dtype));
        }
    }
    cases
}
