//! Products and tables of packed numbers. What they must give is computed from the numbers before they are packed.

use std::sync::Arc;

use kilim::core::ops::{Activation, GatherBlockQuantized, MatMulNBits};
use kilim::{DType, Tensor};

use super::{Array, Case, Input, Random};

/// Rows of numbers of a few bits.
pub(super) struct Numbers {
    bits: usize,
    columns: usize,
    data: Vec<u8>,
}

impl Numbers {
    pub fn new(random: &mut Random, bits: usize, rows: usize, columns: usize) -> Numbers {
        let most = f64::from(1u16 << bits);
        let mut number = || ((f64::from(random.unit()) + 1.0) / 2.0 * most).min(most - 1.0) as u8;
        Numbers {
            bits,
            columns,
            data: (0..rows * columns).map(|_| number()).collect(),
        }
    }

    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.data[row * self.columns + column].into()
    }

    /// Each row in whole bytes, lowest bits first.
    pub fn packed(&self, shape: &[usize]) -> Tensor {
        let in_byte = 8 / self.bits;
        let rows = self.data.chunks(self.columns);
        let bytes = rows.flat_map(|row| row.chunks(in_byte)).map(|numbers| {
            let placed = numbers.iter().enumerate();
            placed.fold(0, |byte, (i, n)| byte | n << (i * self.bits))
        });
        let bytes: Vec<u8> = bytes.collect();
        Tensor::from_slice(shape, &bytes).expect("the suite's arrays are well formed")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Zeros {
    None,
    Packed,
    Real,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    batch: &'static [usize],
    k: usize,
    n: usize,
    bits: usize,
    block: usize,
    zeros: Zeros,
    groups: bool,
    bias: bool,
    constant: bool,
    /// Whether backends may round the left matrix: to what it is.
    int8: bool,
    finish: Finish,
}

/// What comes behind the product.
#[derive(Clone, Copy, Debug)]
struct Finish {
    addend: bool,
    activation: Activation,
    factor: bool,
}

impl Finish {
    const NONE: Finish = Finish::new(false, Activation::None, false);
    /// No addend together with a factor: beside bias, zero points and listed columns they are more inputs than a GPU kernel may have.
    const ALL: [Finish; 5] = [
        Finish::NONE,
        Finish::new(true, Activation::Relu, false),
        Finish::new(false, Activation::Silu, true),
        Finish::new(true, Activation::None, false),
        Finish::new(false, Activation::LeakyRelu { alpha: 0.25 }, false),
    ];

    const fn new(addend: bool, activation: Activation, factor: bool) -> Finish {
        Finish {
            addend,
            activation,
            factor,
        }
    }

    fn of(self, sum: f64, addend: f64, factor: f64) -> f64 {
        let sum = sum + if self.addend { addend } else { 0.0 };
        let y = match self.activation {
            Activation::Relu => sum.max(0.0),
            Activation::Silu => sum / (1.0 + (-sum).exp()),
            Activation::LeakyRelu { alpha } => sum.max(f64::from(alpha) * sum),
            _ => sum,
        };
        y * if self.factor { factor } else { 1.0 }
    }
}

impl Product {
    fn case(&self, random: &mut Random) -> Case {
        let Product {
            k, n, bits, block, ..
        } = *self;
        let blocks = k.div_ceil(block);
        let mut a = random.array(&[self.batch, &[k]].concat());
        if self.int8 {
            // With 127 in each block a step is a 128th.
            for block in a.data.chunks_mut(k).flat_map(|row| row.chunks_mut(block)) {
                block
                    .iter_mut()
                    .for_each(|a| *a = (*a * 126.0).round() / 128.0);
                block[0] = 127.0 / 128.0;
            }
        }
        let weights = Numbers::new(random, bits, n, blocks * block);
        let scales = random.array(&[n * blocks]);
        let packed_zeros = Numbers::new(random, bits, n, blocks);
        let mut real_zeros = random.array(&[n, blocks]);
        real_zeros.data.iter_mut().for_each(|z| *z *= 4.0);
        let bias = random.array(&[n]);
        // A permutation, so that neighbours are of different blocks.
        let group = |column: usize| match self.groups {
            true => (column * 7 + 3) % blocks,
            false => column / block,
        };
        let groups: Vec<i32> = (0..k).map(|column| group(column) as i32).collect();
        let weight = |j: usize, column: usize| {
            let block = group(column);
            let zero = match self.zeros {
                Zeros::None => f64::from(1u16 << (bits - 1)),
                Zeros::Packed => packed_zeros.get(j, block),
                Zeros::Real => real_zeros.data[j * blocks + block].into(),
            };
            (weights.get(j, column) - zero) * f64::from(scales.data[j * blocks + block])
        };
        let shape = [self.batch, &[n]].concat();
        let [addend, factor] = [random.array(&shape), random.array(&shape)];
        let mut want = Vec::new();
        for row in a.data.chunks(k) {
            for j in 0..n {
                let products = row
                    .iter()
                    .enumerate()
                    .map(|(p, &a)| f64::from(a) * weight(j, p));
                let bias = if self.bias { bias.data[j].into() } else { 0.0 };
                let i = want.len();
                let [addend, factor] = [&addend, &factor].map(|x| f64::from(x.data[i]));
                let sum = products.sum::<f64>() + bias;
                want.push(self.finish.of(sum, addend, factor));
            }
        }
        let input = |tensor: Tensor| match self.constant {
            true => Input::Constant(tensor),
            false => Input::Fed(tensor),
        };
        let groups = Tensor::from_slice(&[k], &groups).expect("a vector");
        let inputs = vec![
            a.fed(),
            input(weights.packed(&[n, blocks, block * bits / 8])),
            input(scales.tensor()),
            match self.zeros {
                Zeros::None => Input::Absent,
                Zeros::Packed => input(packed_zeros.packed(&[n * (blocks * bits).div_ceil(8)])),
                Zeros::Real => input(real_zeros.tensor()),
            },
            if self.groups {
                input(groups)
            } else {
                Input::Absent
            },
            if self.bias {
                input(bias.tensor())
            } else {
                Input::Absent
            },
            if self.finish.addend {
                addend.fed()
            } else {
                Input::Absent
            },
            if self.finish.factor {
                factor.fed()
            } else {
                Input::Absent
            },
        ];
        Case {
            name: format!("{self:?}"),
            op: Arc::new(MatMulNBits {
                k,
                n,
                bits,
                block,
                int8: self.int8,
                activation: self.finish.activation,
            }),
            inputs,
            want: vec![(shape, want)],
            tolerance: 1e-5,
        }
    }
}

fn products(random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes: [(&[usize], usize, usize, usize); 6] = [
        (&[1], 64, 5, 32),
        (&[1, 1], 100, 33, 16),
        (&[2, 3], 40, 6, 16),
        (&[7], 129, 70, 64),
        (&[3], 5, 1, 128),
        (&[0], 32, 3, 16),
    ];
    for (i, (batch, k, n, block)) in sizes.into_iter().enumerate() {
        for bits in [2, 4, 8] {
            for zeros in [Zeros::None, Zeros::Packed, Zeros::Real] {
                for int8 in [false, true] {
                    let product = Product {
                        batch,
                        k,
                        n,
                        bits,
                        block,
                        zeros,
                        groups: !int8 && (i + bits / 2) % 2 == 0,
                        bias: i % 3 == 1,
                        constant: (i + bits) % 3 != 0,
                        int8,
                        finish: Finish::ALL[cases.len() % Finish::ALL.len()],
                    };
                    cases.push(product.case(random));
                }
            }
        }
    }
    cases.extend(blocks_of_every_size(random));
    cases
}

/// Products of one row and of many, in blocks of each size that onnxruntime takes; the last block of a row is not whole.
fn blocks_of_every_size(random: &mut Random) -> Vec<Case> {
    let rows: [&[usize]; 2] = [&[1], &[2, 9]];
    let mut cases = Vec::new();
    for bits in [2, 4, 8] {
        for (i, block) in [16, 32, 64, 128, 256].into_iter().enumerate() {
            for (j, batch) in rows.into_iter().enumerate() {
                let product = Product {
                    batch,
                    // Quads of columns, and none.
                    k: 2 * block + if i % 2 == 0 { 12 } else { 7 },
                    n: if i % 2 == 0 { 12 } else { 11 },
                    bits,
                    block,
                    zeros: [Zeros::None, Zeros::Packed, Zeros::Real][(i + j) % 3],
                    groups: false,
                    bias: j == 1,
                    constant: true,
                    int8: false,
                    finish: match cases.len() % 3 {
                        0 => Finish::NONE,
                        1 => Finish::new(true, Activation::Silu, true),
                        _ => Finish::ALL[2],
                    },
                };
                cases.push(product.case(random));
            }
        }
    }
    cases
}

/// Rows of a packed table `[rows, columns]`, which are all gathered, the last first.
fn packed_table(random: &mut Random, bits: usize, zeros: Zeros, block: usize) -> Case {
    let (rows, columns) = (5, 48usize);
    let blocks = columns.div_ceil(block);
    let table = Numbers::new(random, bits, rows, columns);
    let points = Numbers::new(random, bits, rows, blocks);
    let scales = random.array(&[rows, blocks]);
    let real_points = random.array(&[rows, blocks]);
    let indices: Vec<i64> = (0..rows as i64).map(|i| -1 - i).collect();
    let mut want = Vec::new();
    for row in (0..rows).rev() {
        for column in 0..columns {
            let block = column / block;
            let zero = match zeros {
                Zeros::None => f64::from(1u16 << (bits - 1)),
                Zeros::Packed => points.get(row, block),
                Zeros::Real => real_points.data[row * blocks + block].into(),
            };
            let scale = f64::from(scales.data[row * blocks + block]);
            want.push((table.get(row, column) - zero) * scale);
        }
    }
    let mut inputs = vec![
        Input::Constant(table.packed(&[rows, columns * bits / 8])),
        Input::Fed(Tensor::from_slice(&[rows, 1], &indices).expect("a column")),
        scales.constant(),
    ];
    match zeros {
        Zeros::None => {}
        Zeros::Packed => inputs.push(Input::Constant(
            points.packed(&[rows, (blocks * bits).div_ceil(8)]),
        )),
        Zeros::Real => inputs.push(real_points.constant()),
    }
    Case {
        name: format!("GatherBlockQuantized of {bits} bits in blocks of {block}, zeros {zeros:?}"),
        op: Arc::new(GatherBlockQuantized {
            gather_axis: 0,
            quantize_axis: -1,
            block,
            bits,
        }),
        inputs,
        want: vec![(vec![rows, 1, columns], want)],
        tolerance: 1e-6,
    }
}

/// Columns of a table `[2, rows, columns]` of `int4` or `uint4` with blocks along the rows.
fn plain_table(random: &mut Random, dtype: DType, block: usize) -> Case {
    let (rows, columns) = (21usize, 4);
    let blocks = rows.div_ceil(block);
    let numbers = Numbers::new(random, 4, 2 * rows, columns);
    let scales: Array = random.array(&[2, blocks, columns]);
    let chosen = [3i64, -4];
    let signed = |n: f64| match dtype {
        DType::I4 if n > 7.0 => n - 16.0,
        _ => n,
    };
    let mut want = Vec::new();
    for i in 0..2 * rows {
        for column in [3, 0] {
            let (table, row) = (i / rows, i % rows);
            let scale = scales.data[(table * blocks + row / block) * columns + column];
            want.push(signed(numbers.get(i, column)) * f64::from(scale));
        }
    }
    let bytes: Vec<u8> = numbers
        .data
        .iter()
        .map(|&n| signed(n.into()) as i8 as u8)
        .collect();
    let table = Tensor::from_raw(dtype, &[2, rows, columns], &bytes)
        .expect("the suite's arrays are well formed");
    Case {
        name: format!("GatherBlockQuantized of {dtype} in blocks of {block}"),
        op: Arc::new(GatherBlockQuantized {
            gather_axis: 2,
            quantize_axis: 1,
            block,
            bits: 4,
        }),
        inputs: vec![
            Input::Constant(table),
            Input::Fed(Tensor::from_slice(&[2], &chosen).expect("a vector")),
            scales.constant(),
        ],
        want: vec![(vec![2, rows, 2], want)],
        tolerance: 1e-6,
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(11);
    let mut cases = products(&mut random);
    for (bits, zeros, block) in [
        (4, Zeros::None, 16),
        (4, Zeros::Packed, 16),
        (4, Zeros::Packed, 32),
        (4, Zeros::Real, 16),
        (2, Zeros::Real, 16),
        (8, Zeros::Packed, 16),
        (8, Zeros::None, 16),
        (8, Zeros::Real, 16),
    ] {
        cases.push(packed_table(&mut random, bits, zeros, block));
    }
    for dtype in [DType::I4, DType::U4] {
        cases.push(plain_table(&mut random, dtype, 16));
    }
    cases
}
