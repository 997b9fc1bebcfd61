//! Quantised operators. What they must give is computed here in whole numbers, with the roundings in
//! `float32` and in fixed point that their definitions name, and is the same to the byte on every
//! backend, instruction set and build.

mod pointwise;
mod products;

use kilim::core::tensor::Element;
use kilim::{DType, Tensor};

use super::{Case, Input, Random};

/// Numbers of 8 bits.
struct Bytes {
    shape: Vec<usize>,
    data: Vec<i64>,
    dtype: DType,
}

impl Random {
    fn whole(&mut self, low: i64, high: i64) -> i64 {
        let unit = (f64::from(self.unit()) + 1.0) / 2.0;
        low + (unit * (high - low + 1) as f64) as i64
    }

    fn bytes(&mut self, dtype: DType, shape: &[usize]) -> Bytes {
        let (low, high) = range(dtype);
        let n = shape.iter().product();
        Bytes {
            shape: shape.to_vec(),
            data: (0..n).map(|_| self.whole(low, high)).collect(),
            dtype,
        }
    }

    fn dtype(&mut self) -> DType {
        [DType::U8, DType::I8][self.whole(0, 1) as usize]
    }

    /// Scales of `shape` around `size`.
    fn scales(&mut self, n: usize, size: f32) -> Vec<f32> {
        (0..n).map(|_| size * (1.5 + self.unit())).collect()
    }
}

fn range(dtype: DType) -> (i64, i64) {
    if dtype == DType::I8 {
        (-128, 127)
    } else {
        (0, 255)
    }
}

impl Bytes {
    fn tensor(&self) -> Tensor {
        let bytes: Vec<u8> = self.data.iter().map(|&v| v as u8).collect();
        Tensor::from_slice(&self.shape, &bytes)
            .and_then(|t| t.reinterpreted(self.dtype))
            .expect("the suite's arrays are well formed")
    }

    fn fed(&self) -> Input {
        Input::Fed(self.tensor())
    }

    fn constant(&self) -> Input {
        Input::Constant(self.tensor())
    }
}

fn constant<T: Element>(shape: &[usize], data: &[T]) -> Input {
    Input::Constant(Tensor::from_slice(shape, data).expect("the suite's arrays are well formed"))
}

/// A scale or one for each channel.
fn scale(data: &[f32]) -> Input {
    let shape: &[usize] = if data.len() == 1 { &[] } else { &[data.len()] };
    constant(shape, data)
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(5);
    let mut cases = products::convolutions(&mut random);
    cases.extend(products::products(&mut random));
    cases.extend(products::real_products(&mut random));
    cases.extend(pointwise::pairs(&mut random));
    cases.extend(pointwise::conversions(&mut random));
    cases
}
