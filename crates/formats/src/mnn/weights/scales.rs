//! What quantised weights are multiplied with, and what is added: one for each output, or for each block of inputs of an output.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::Tensor;

use crate::mnn::blob::Numbers;
use crate::mnn::invalid;
use crate::mnn::op::Params;

/// Fields of `IDSTQuan`.
const ALPHA: usize = 1;
const QUANT_SCALE: usize = 4;
const A_MIN: usize = 8;
const READ_TYPE: usize = 9;
const HAS_SCALE_INT: usize = 10;
const ALPHA_FP16: usize = 14;
const SCALE_STORAGE: usize = 15;

/// The factor and the addend of each group of weights.
pub struct Scales {
    factors: Vec<f32>,
    /// Empty where zero stands for zero.
    addends: Vec<f32>,
}

impl Scales {
    /// Reads the scales of weights in an encoding. `behind` is where they lie in the file beside the model, and how many bytes they take.
    pub fn read(
        kind: i32,
        params: &Params,
        behind: Option<(i64, i64)>,
        numbers: &Numbers,
    ) -> Result<Scales> {
        let mut alpha = alpha(params, behind, numbers)?;
        let scale = params.float(QUANT_SCALE, 0.0)?;
        let smallest = params.int(A_MIN, 0)?;
        // Files of older converters, which do not say that numbers have an addend.
        let old = kind == 4 && smallest == 0 && scale.abs() < 1e-6;
        if params.int(READ_TYPE, 0)? == 0 && !old {
            if !params.flag(HAS_SCALE_INT, false)? && scale != 1.0 {
                alpha.iter_mut().for_each(|a| *a *= scale);
            }
            return Ok(Scales {
                factors: alpha,
                addends: Vec::new(),
            });
        }
        let smallest = match smallest {
            0 => -128.0,
            n => n as f32,
        };
        let (mut factors, mut addends) = (room(alpha.len() / 2)?, room(alpha.len() / 2)?);
        for pair in alpha.chunks_exact(2) {
            let least = if smallest < 0.0 {
                pair[0] - smallest * pair[1]
            } else {
                pair[0]
            };
            let extra = if old || params.flag(HAS_SCALE_INT, false)? {
                1.0
            } else {
                scale
            };
            addends.push(least * extra);
            factors.push(pair[1] * extra);
        }
        Ok(Scales { factors, addends })
    }

    /// How many groups have a factor of their own.
    pub fn groups(&self) -> usize {
        self.factors.len()
    }

    /// What a number stands for.
    pub fn float(&self, group: usize, number: i8) -> f32 {
        let product = f32::from(number) * self.factors[group];
        product + self.addends.get(group).copied().unwrap_or(0.0)
    }
}

/// The scales as the file has them.
fn alpha(params: &Params, behind: Option<(i64, i64)>, numbers: &Numbers) -> Result<Vec<f32>> {
    let halves = params.choice(SCALE_STORAGE)? == 1;
    let (slot, dtype) = match halves {
        true => (ALPHA_FP16, DType::F16),
        false => (ALPHA, DType::F32),
    };
    let tensor: Tensor = match (params.vector(slot, dtype.size())?, behind) {
        (Some(inside), _) => numbers.inside(&inside, dtype, &[inside.len])?,
        (None, Some((offset, bytes))) => {
            let bytes = usize::try_from(bytes).map_err(|_| invalid("too many scales"))?;
            numbers.beside(offset, dtype, &[bytes / dtype.size()])?
        }
        (None, None) => return Err(invalid("quantised weights have no scales")),
    };
    let mut alpha = room(tensor.len())?;
    alpha.extend(tensor.to_f64s()?.into_iter().map(|a| a as f32));
    Ok(alpha)
}

/// Fills weights with the number that stands for zero in each output, where that is not 0.
pub fn zeros(params: &Params, bits: usize, weights: &mut [i8]) -> Result<()> {
    if params.int(READ_TYPE, 0)? == 0 {
        return Ok(());
    }
    let alpha = params.floats(ALPHA)?;
    let least = -(1_i32 << (bits - 1));
    let outputs = alpha.len() / 2;
    let area = weights.len().checked_div(outputs).unwrap_or(0);
    for (pair, weights) in alpha.chunks_exact(2).zip(weights.chunks_mut(area.max(1))) {
        let zero = match pair[1] > 1e-6 {
            true => ((-pair[0] / pair[1]).round() as i32).saturating_add(least),
            false => least,
        };
        weights.fill(zero as i8);
    }
    Ok(())
}

/// An empty list with room for so many numbers.
fn room(count: usize) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    let reserved = numbers.try_reserve_exact(count);
    reserved.map_err(|_| Error::new(ErrorCode::Limit, "there is no memory for scales"))?;
    Ok(numbers)
}
