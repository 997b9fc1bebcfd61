//! Weights of convolutions and products: plain, in halves, or quantised (`source/core/ConvolutionCommon.cpp`). What is quantised becomes
//! floats when it is read, as MNN has it.

mod packed;
mod scales;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::tensor::{Tensor, element_count};

use super::import::Import;
use super::op::{Op, Params};
use super::{blob, invalid};
use packed::Packed;
use scales::Scales;

/// The place of weights in their table of parameters.
#[derive(Clone, Copy)]
pub struct Slots {
    /// The number of the table in the union `OpParameter`.
    pub table: u8,
    pub weights: usize,
    pub bias: usize,
    pub quantized: Option<usize>,
    pub external: Option<usize>,
}

/// Fields of `Convolution2D`.
pub const CONVOLUTION: Slots = Slots {
    table: 9,
    weights: 1,
    bias: 2,
    quantized: Some(3),
    external: Some(6),
};

/// Fields of `Convolution3D`.
pub const CONVOLUTION_3D: Slots = Slots {
    table: 80,
    weights: 1,
    bias: 2,
    quantized: None,
    external: Some(3),
};

/// Fields of `InnerProduct`.
pub const INNER_PRODUCT: Slots = Slots {
    table: 20,
    weights: 3,
    bias: 4,
    quantized: Some(7),
    external: None,
};

/// The field of `IDSTQuan` with the encoded weights.
pub const BUFFER: usize = 0;

/// Other fields of `IDSTQuan`.
mod idst {
    pub const TYPE: usize = 2;
    pub const INDEX: usize = 13;
}

/// The weights of an operator while they are looked for.
pub struct Weights<'a> {
    params: Params<'a>,
    slots: Slots,
    /// In the file beside: where they begin, and the bytes of weights, bias or scales, and what follows.
    external: Vec<i64>,
}

impl<'a> Weights<'a> {
    /// The weights in a table of parameters.
    pub fn of(params: Params<'a>, slots: Slots) -> Result<Weights<'a>> {
        let external = slots
            .external
            .map_or(Ok(Vec::new()), |slot| params.longs(slot))?;
        Ok(Weights {
            params,
            slots,
            external,
        })
    }

    /// How many weights the file has; nothing where it does not tell.
    pub fn count(&self) -> Result<Option<usize>> {
        if let Some(plain) = self.params.vector(self.slots.weights, 4)? {
            return Ok(Some(plain.len));
        }
        match (self.quantized()?, &self.external[..]) {
            (None, [_, bytes, ..]) => Ok(usize::try_from(*bytes).ok().map(|n| n / 4)),
            _ => Ok(None),
        }
    }

    fn quantized(&self) -> Result<Option<Params<'a>>> {
        self.slots
            .quantized
            .map_or(Ok(None), |slot| self.params.table(slot))
    }

    /// Weights of this shape, whose first dimension is that of outputs; nothing where the operator has none of its own.
    ///
    /// # Errors
    /// `InvalidModel` where there are fewer or more, `Unsupported` for encodings that are not known.
    pub fn read(&self, imp: &mut Import, shape: &[usize]) -> Result<Option<ValueId>> {
        let numbers = imp.numbers;
        if let Some(quantized) = self.quantized()? {
            return self.widened(imp, &quantized, shape).map(Some);
        }
        let plain = self.params.vector(self.slots.weights, 4)?;
        let tensor = match (plain, &self.external[..]) {
            (Some(plain), _) => numbers.inside(&plain, DType::F32, shape)?,
            (None, &[offset, bytes, ..]) if bytes > 0 => {
                numbers.beside(offset, DType::F32, shape)?
            }
            (None, _) if numbers.source.structure => missing(shape)?,
            (None, _) => return Ok(None),
        };
        Ok(Some(imp.node_constant("weights", tensor)))
    }

    /// Encoded weights as floats.
    fn widened(&self, imp: &mut Import, quantized: &Params, shape: &[usize]) -> Result<ValueId> {
        let numbers = imp.numbers;
        let count = element_count(shape)?;
        if quantized.vector(idst::INDEX, 4)?.is_some() {
            return Err(unsupported("weights of which only some are stored"));
        }
        let buffer = match (quantized.vector(BUFFER, 1)?, &self.external[..]) {
            (Some(buffer), _) => numbers.inside(&buffer, DType::U8, &[buffer.len])?,
            (None, &[offset, bytes, ..]) if bytes > 0 => {
                let len = usize::try_from(bytes).map_err(|_| invalid("too many weights"))?;
                numbers.bytes_beside(offset, len)?
            }
            (None, _) if numbers.source.structure => {
                let tensor = missing(shape)?;
                return Ok(imp.node_constant("weights", tensor));
            }
            (None, _) => return Err(invalid("quantised weights have no data")),
        };
        let kind = quantized.int(idst::TYPE, 0)?;
        if kind == HALVES {
            let halves = fitting(buffer, DType::F16, shape)?;
            let halves = imp.node_constant("weights", halves);
            return imp.cast(halves, DType::F32);
        }
        let behind = match self.external[..] {
            [offset, weights, scales, ..] => Some((offset.saturating_add(weights), scales)),
            _ => None,
        };
        let tensor = match kind {
            // A table of numbers, with an index for each weight; or every weight as it is.
            1 | 2 | 4 => {
                let packed = Packed::read(kind, &buffer, quantized, count)?;
                let scales = Scales::read(kind, quantized, behind, numbers)?;
                packed.widened(shape, scales)?
            }
            other => {
                return Err(unsupported(format!(
                    "weights in the encoding number {other}"
                )));
            }
        };
        Ok(imp.node_constant("weights", tensor))
    }

    /// The bias of so many outputs; nothing where there is none.
    ///
    /// # Errors
    /// `InvalidModel` where it has another length.
    pub fn bias(&self, imp: &mut Import, outputs: usize) -> Result<Option<ValueId>> {
        let numbers = imp.numbers;
        let plain = self.params.vector(self.slots.bias, 4)?;
        // Behind the scales where the weights are quantised.
        let last = if self.quantized()?.is_some() { 3 } else { 2 };
        let tensor = match plain {
            Some(plain) => numbers.inside(&plain, DType::F32, &[outputs])?,
            None => match self.external.get(last) {
                Some(&bytes) if bytes > 0 => {
                    let before = self.external[..last].iter().copied();
                    let offset = before.reduce(i64::saturating_add).unwrap_or(0);
                    numbers.beside(offset, DType::F32, &[outputs])?
                }
                _ => return Ok(None),
            },
        };
        Ok(Some(imp.node_constant("bias", tensor)))
    }
}

/// The encoding of halves.
const HALVES: i32 = 3;

/// Bytes as elements of a shape; `InvalidModel` where they are too few or too many.
fn fitting(bytes: Tensor, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let (found, count) = (bytes.len() / dtype.size(), element_count(shape)?);
    match found == count {
        true => bytes.bytes_as(dtype, shape),
        false => Err(invalid("the weights do not fit the operator")
            .with_expected(count)
            .with_got(found)),
    }
}

/// Weights that the file lacks, of a network that is only looked at.
fn missing(shape: &[usize]) -> Result<Tensor> {
    let len = kilim_core::tensor::byte_count(DType::F32, shape)?;
    blob::zeros(len)?.bytes_as(DType::F32, shape)
}

/// Floats of a parameter, a constant of the operator; zeros where the file lacks them and is only looked at.
pub fn floats(
    imp: &mut Import,
    params: &Params,
    slot: usize,
    what: &str,
    count: usize,
) -> Result<Option<ValueId>> {
    let tensor = match params.vector(slot, 4)? {
        Some(plain) => imp.numbers.inside(&plain, DType::F32, &[count])?,
        None if imp.numbers.source.structure => missing(&[count])?,
        None => return Ok(None),
    };
    Ok(Some(imp.node_constant(what, tensor)))
}

/// Weights that another operator gives: input 1.
pub fn given(op: &Op) -> Result<ValueId> {
    let given = op.optional(1);
    given.ok_or_else(left_out)
}

/// The error of an operator whose weights are neither in the file nor beside it.
pub fn left_out() -> Error {
    Error::new(
        ErrorCode::Io,
        "the file was written without the weights of its operators",
    )
    .with_hint("`kilim inspect` shows a model without its weights")
}
