//! Fourier transforms and windows, written out. They compute in float64: where a sum should be zero,
//! single precision leaves more than the standard's tests allow.

mod dft;
mod mel;
mod stft;
mod transform;

use std::f64::consts::TAU;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::UnaryKind;

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, number};
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("BlackmanWindow", |b| window(b, &[0.42, -0.5, 0.08])),
    ("DFT", dft::dft),
    ("HammingWindow", |b| window(b, &[25.0 / 46.0, -21.0 / 46.0])),
    ("HannWindow", |b| window(b, &[0.5, -0.5])),
    ("MelWeightMatrix", mel::weights),
    ("STFT", stft::stft),
]);

/// `sum(terms[i] * cos(2 π i k / n))`.
fn window(b: &mut NodeBuilder, terms: &[f64]) -> Result<()> {
    let size = b.input(0)?;
    let to = dtype(b.int_or("output_datatype", 1)?)?;
    let periodic = b.int_or("periodic", 1)? != 0;
    let size = b.cast(size, DType::I64)?;
    let size = b.reshape(size, &[1])?;
    let places = b.iota(size)?;
    let places = b.cast(places, DType::F64)?;
    let mut count = b.cast(size, DType::F64)?;
    if !periodic {
        let one = b.tensor_value(number(1.0, DType::F64)?);
        count = b.sub(count, one)?;
    }
    let mut sum = None;
    for (i, &term) in terms.iter().enumerate() {
        let factor = b.tensor_value(number(TAU * i as f64, DType::F64)?);
        let angle = b.mul(places, factor)?;
        let angle = b.div(angle, count)?;
        let wave = b.unary(UnaryKind::Cos, angle)?;
        let weight = b.tensor_value(number(term, DType::F64)?);
        let wave = b.mul(wave, weight)?;
        sum = Some(match sum {
            Some(before) => b.add(before, wave)?,
            None => wave,
        });
    }
    let y = sum.ok_or_else(|| invalid("a window without terms"))?;
    let y = b.cast(y, to)?;
    b.bind(0, y)
}
