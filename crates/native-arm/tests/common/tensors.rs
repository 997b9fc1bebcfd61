//! Tensors to compute with.

use half::f16;
use kilim_core::{DType, Tensor};

use super::Given::{self, Constant, Fed};

pub fn floats(shape: &[usize], f: impl Fn(usize) -> f32) -> Tensor {
    let data: Vec<f32> = (0..shape.iter().product()).map(f).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// Numbers between -1 and 1 without a pattern.
pub fn noise(shape: &[usize], seed: usize) -> Tensor {
    floats(shape, |i| {
        let x = (i * 7919 + seed * 104_729 + 13) * 2_654_435_761 % 65_536;
        x as f32 / 32_768.0 - 1.0
    })
}

/// Numbers in a floating-point type, rounded once.
pub fn of_numbers(dtype: DType, shape: &[usize], numbers: impl Iterator<Item = f64>) -> Tensor {
    match dtype {
        DType::F16 => Tensor::from_slice(shape, &numbers.map(f16::from_f64).collect::<Vec<_>>()),
        DType::F64 => Tensor::from_slice(shape, &numbers.collect::<Vec<_>>()),
        _ => Tensor::from_slice(shape, &numbers.map(|v| v as f32).collect::<Vec<_>>()),
    }
    .unwrap()
}

/// The inputs in another type, every floating-point number changed by `f`.
pub fn floats_in(dtype: DType, inputs: &[Given], f: fn(f64) -> f64) -> Vec<Given> {
    let turned = |t: &Tensor| match t.dtype().is_float() {
        true => of_numbers(dtype, t.shape(), t.to_f64s().unwrap().into_iter().map(f)),
        false => t.clone(),
    };
    let given = |g: &Given| match g {
        Fed(t) => Fed(turned(t)),
        Constant(t) => Constant(turned(t)),
    };
    inputs.iter().map(given).collect()
}

/// The inputs in another floating-point type.
pub fn given_in(dtype: DType, inputs: &[Given]) -> Vec<Given> {
    floats_in(dtype, inputs, |v| v)
}

/// Every element negated, of bytes every bit.
pub fn turned(tensor: &Tensor) -> Tensor {
    let shape = tensor.shape();
    match tensor.dtype() {
        dtype if dtype.is_float() => {
            let negated = tensor.to_f64s().unwrap().into_iter().map(|v| -v);
            of_numbers(dtype, shape, negated)
        }
        DType::I8 | DType::U8 => {
            let bits: Vec<u8> = tensor.read().unwrap().iter().map(|b| !b).collect();
            Tensor::from_raw(tensor.dtype(), shape, &bits).unwrap()
        }
        _ => tensor.clone(),
    }
}

pub fn bytes(shape: &[usize], step: usize) -> Tensor {
    let data: Vec<i8> = (0..shape.iter().product())
        .map(|i: usize| (i * step % 251) as u8 as i8)
        .collect();
    Tensor::from_slice(shape, &data).unwrap()
}

pub fn scalar(v: f32) -> Given {
    Constant(Tensor::scalar(v).unwrap())
}

/// Numbers at the edges of what there is.
pub fn extremes(shape: &[usize]) -> Tensor {
    let edges = [
        f32::INFINITY,
        1.0,
        f32::NEG_INFINITY,
        -1.0,
        0.0,
        1e30,
        -1e30,
        88.0,
        -88.0,
        1e-30,
        -0.0,
        3e9,
        f32::NAN,
    ];
    floats(shape, |i| edges[i % edges.len()])
}

/// Bytes of all values, without a pattern that would make sums small.
pub fn of_type(dtype: DType, shape: &[usize], step: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let data: Vec<u8> = (0..n).map(|i| (i * step % 256) as u8).collect();
    Tensor::from_raw(dtype, shape, &data).unwrap()
}

pub fn zero(dtype: DType, z: i32) -> Given {
    Constant(match dtype {
        DType::U8 => Tensor::scalar(z as u8).unwrap(),
        _ => Tensor::scalar(z as i8).unwrap(),
    })
}
