//! Products and tables of packed numbers.

use kilim_core::ops::{Activation, GatherBlockQuantized, MatMulNBits};
use kilim_core::{Backend, DType, Tensor};

use super::harness::*;

fn constant(tensor: Tensor) -> Given {
    Given::Constant(tensor)
}

#[derive(Clone, Copy, Debug)]
enum Zeros {
    None,
    Packed,
    Real,
}

fn product(n: usize, k: usize, bits: usize, block: usize) -> MatMulNBits {
    MatMulNBits {
        k,
        n,
        bits,
        block,
        int8: false,
        activation: Activation::None,
    }
}

/// Inputs of a product of `m` rows.
fn inputs(op: &MatMulNBits, m: usize, zeros: Zeros) -> Vec<Given> {
    let [blocks, size, zero_bytes] = op.row().unwrap();
    let n = op.n;
    vec![
        Given::Fed(random(&[m, op.k], 1)),
        constant(packed_bytes(&[n, blocks, size], 2)),
        constant(random(&[n, blocks], 3)),
        match zeros {
            Zeros::None => Given::Absent,
            Zeros::Packed => constant(packed_bytes(&[n * zero_bytes], 4)),
            Zeros::Real => constant(random(&[n * blocks], 5)),
        },
        Given::Absent,
        constant(random(&[n], 6)),
    ]
}

/// Every kernel for the node gives what the CPU gives; returns how many there are.
#[track_caller]
fn agree_on_every_kernel(op: &MatMulNBits, inputs: &[Given]) -> usize {
    let want = expected(op, inputs, 1).remove(0);
    // Sums of numbers of 8 bits are large.
    let tolerance = 1e-8 * op.k as f64 * f64::from(1u16 << op.bits);
    every_kernel(
        op.clone(),
        inputs,
        want.shape(),
        &values(&want),
        tolerance.max(1e-5),
    )
}

#[test]
fn products_of_every_width_and_block() {
    on_both(check_products_of_every_width_and_block);
}

fn check_products_of_every_width_and_block() {
    for bits in [2, 4, 8] {
        // Blocks of 4, 8 and 24 numbers end within words.
        for block in [4, 8, 16, 24, 32, 64, 128, 256] {
            for (i, zeros) in [Zeros::None, Zeros::Packed, Zeros::Real]
                .into_iter()
                .enumerate()
            {
                let (m, n, k) = [(1, 36, 264), (3, 9, 129), (35, 40, 80)][(i + block / 4) % 3];
                let op = product(n, k, bits, block);
                eprintln!("{op:?}, {zeros:?}");
                agree_on_every_kernel(&op, &inputs(&op, m, zeros));
            }
        }
    }
}

#[test]
fn products_of_few_and_many_rows() {
    on_both(check_products_of_few_and_many_rows);
}

fn check_products_of_few_and_many_rows() {
    for (n, k) in [(64, 96), (33, 70), (1, 4)] {
        for m in [0, 1, 2, 4, 5, 16, 17, 70] {
            let op = product(n, k, 4, 32);
            agree_on_every_kernel(&op, &inputs(&op, m, Zeros::Packed));
        }
    }
}

#[test]
fn few_rows_have_a_choice() {
    if gpu().is_none() {
        return;
    }
    for (m, kernels) in [(1, 1), (2, 3), (16, 3), (17, 2)] {
        let op = product(64, 96, 4, 32);
        let inputs = inputs(&op, m, Zeros::None);
        assert_eq!(agree_on_every_kernel(&op, &inputs), kernels, "{m} rows");
    }
}

#[test]
fn weights_that_are_computed_and_listed_columns() {
    on_both(check_weights_that_are_computed_and_listed_columns);
}

fn check_weights_that_are_computed_and_listed_columns() {
    for (m, bits) in [(1, 2), (3, 4), (18, 8)] {
        let op = product(13, 100, bits, 32);
        let mut given = inputs(&op, m, Zeros::Packed);
        let fed = |given: &mut Given| {
            if let Given::Constant(tensor) = given {
                *given = Given::Fed(tensor.clone());
            }
        };
        given.iter_mut().for_each(fed);
        agree_on_every_kernel(&op, &given);
        let groups: Vec<i32> = (0..100).map(|column| column * 7 % 4).collect();
        let groups = Tensor::from_slice(&[100], &groups).unwrap();
        given[4] = Given::Fed(groups.clone());
        agree_on_every_kernel(&op, &given);
        given[4] = Given::Constant(groups);
        agree_on_every_kernel(&op, &given);
        let wrong = Tensor::from_slice(&[100], &[4i32; 100]).unwrap();
        given[4] = Given::Constant(wrong);
        let outputs = [(DType::F32, vec![m, 13])];
        let spec = stage(std::sync::Arc::new(op), &given, &outputs);
        assert_eq!(supports(&spec), Err("an index is out of range".to_string()));
    }
}

#[test]
fn products_of_half_precision() {
    on_both(check_products_of_half_precision);
}

fn check_products_of_half_precision() {
    if !gpu().unwrap().describe().f16() {
        return;
    }
    for (m, zeros) in [(1, Zeros::Real), (3, Zeros::Packed), (40, Zeros::None)] {
        let op = product(36, 96, 4, 16);
        let half = |given: Given| match given {
            Given::Constant(t) if t.dtype() == DType::F32 => Given::Constant(halved(&t)),
            Given::Fed(t) => Given::Fed(halved(&t)),
            other => other,
        };
        let inputs: Vec<Given> = inputs(&op, m, zeros).into_iter().map(half).collect();
        agree(op, &inputs, 1, 2e-2);
    }
}

#[test]
fn rows_of_packed_tables() {
    if gpu().is_none() {
        return;
    }
    let indices = Given::Fed(Tensor::from_slice(&[2, 2], &[3i64, 0, -1, 3]).unwrap());
    for (bits, block) in [(2, 16), (4, 16), (4, 32), (8, 16), (4, 3)] {
        let op = GatherBlockQuantized {
            gather_axis: 0,
            quantize_axis: 1,
            block,
            bits,
        };
        let in_byte = 8 / bits;
        let blocks = 72usize.div_ceil(block);
        for known in [false, true] {
            let given = |tensor| match known {
                true => Given::Constant(tensor),
                false => Given::Fed(tensor),
            };
            for zeros in [false, true] {
                let mut inputs = vec![
                    given(packed_bytes(&[5, 72 / in_byte], 1)),
                    indices.clone(),
                    given(random(&[5, blocks], 2)),
                ];
                if zeros {
                    inputs.push(given(packed_bytes(&[5, blocks.div_ceil(in_byte)], 3)));
                }
                eprintln!("{op:?} {known} {zeros}");
                agree(op.clone(), &inputs, 1, 1e-6);
            }
        }
    }
}

#[test]
fn columns_of_tables_of_every_integer() {
    if gpu().is_none() {
        return;
    }
    let indices = Given::Fed(Tensor::from_slice(&[3], &[3i32, 0, -2]).unwrap());
    let op = GatherBlockQuantized {
        gather_axis: 2,
        quantize_axis: 1,
        block: 16,
        bits: 4,
    };
    for dtype in [
        DType::I2,
        DType::U2,
        DType::I4,
        DType::U4,
        DType::I8,
        DType::I16,
        DType::U16,
    ] {
        let spare = 8 - dtype.bits().min(8);
        let narrow = |tensor: Tensor| {
            let raw = tensor.as_slice::<u8>().unwrap().to_vec();
            let signed = matches!(dtype, DType::I2 | DType::I4);
            let number = |byte: u8| match signed {
                true => ((byte << spare) as i8 >> spare) as u8,
                false => byte << spare >> spare,
            };
            let raw: Vec<u8> = raw.into_iter().map(number).collect();
            let mut shape = tensor.shape().to_vec();
            if let Some(last) = shape.last_mut() {
                *last /= dtype.size();
            }
            Tensor::from_raw(dtype, &shape, &raw).unwrap()
        };
        let wide = 4 * dtype.size();
        let table = narrow(packed_bytes(&[2, 21, wide], 4));
        let zeros = narrow(packed_bytes(&[2, 2, wide], 5));
        for known in [false, true] {
            let given = |tensor: &Tensor| match known {
                true => Given::Constant(tensor.clone()),
                false => Given::Fed(tensor.clone()),
            };
            let scales = Given::Constant(random(&[2, 2, 4], 6));
            let mut inputs = vec![given(&table), indices.clone(), scales];
            eprintln!("{dtype} {known}");
            agree(op.clone(), &inputs, 1, 1e-6);
            inputs.push(Given::Constant(zeros.clone()));
            agree(op.clone(), &inputs, 1, 1e-6);
        }
    }
}
