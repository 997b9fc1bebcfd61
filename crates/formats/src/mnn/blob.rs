//! Constants: in the file, or in the file of weights beside it.

use kilim_core::error::{ErrorCode, Result, unsupported};
use kilim_core::tensor::{Tensor, byte_count, element_count};
use kilim_core::{DType, Limits};

use super::invalid;
use super::op::Params;
use super::weights::left_out;
use crate::ModelFile;
use crate::flatbuffer::Vector;

/// The number of `Blob` among the tables of parameters.
pub const TABLE: u8 = 7;

/// Fields of `Blob`.
const DIMS: usize = 0;
const DATA_FORMAT: usize = 1;
const DATA_TYPE: usize = 2;
const UINT8S: usize = 3;
const INT8S: usize = 4;
const INT32S: usize = 5;
const INT64S: usize = 6;
const FLOAT32S: usize = 7;
const EXTERNAL: usize = 9;

/// Fields with numbers, and the bytes of each number.
pub const VECTORS: [(usize, usize); 5] = [
    (UINT8S, 1),
    (INT8S, 1),
    (INT32S, 4),
    (INT64S, 8),
    (FLOAT32S, 4),
];

/// Where numbers are read from.
pub struct Numbers<'a> {
    pub source: &'a ModelFile<'a>,
    pub limits: &'a Limits,
}

impl Numbers<'_> {
    /// Numbers in the file, which are shared or read when they are needed.
    ///
    /// # Errors
    /// `InvalidModel` where there are fewer or more than the shape says.
    pub fn inside(&self, vector: &Vector, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let count = element_count(shape)?;
        if vector.len != count {
            return Err(
                invalid("a tensor has another number of elements than its shape says")
                    .with_expected(count)
                    .with_got(vector.len),
            );
        }
        let len = byte_count(dtype, shape)?;
        self.source
            .part(vector.position as u64, len)?
            .bytes_as(dtype, shape)
    }

    /// Numbers in the file beside the model, which is called as it is with `.weight` behind.
    ///
    /// # Errors
    /// `Io` where there is no such file, `InvalidModel` where it ends before.
    pub fn beside(&self, offset: i64, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let len = byte_count(dtype, shape)?;
        self.bytes_beside(offset, len)?.bytes_as(dtype, shape)
    }

    /// `len` bytes of the file beside the model.
    ///
    /// # Errors
    /// `Io` where there is no such file, `InvalidModel` where it ends before.
    pub fn bytes_beside(&self, offset: i64, len: usize) -> Result<Tensor> {
        let offset = u64::try_from(offset)
            .map_err(|_| invalid("the place of weights is negative").with_got(offset))?;
        let path = self
            .source
            .name
            .split(['?', '#'])
            .next()
            .unwrap_or_default();
        let path = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let named = format!("{path}.weight");
        let missing = match self.source.external(&named, offset, len, self.limits) {
            Err(error) if error.code() == ErrorCode::Io => error,
            found => return found,
        };
        if let [only] = &self.source.external_names()[..] {
            return self.source.external(only, offset, len, self.limits);
        }
        match self.source.structure {
            true => zeros(len),
            false => Err(missing
                .with_expected(named)
                .with_hint("give the .mnn.weight file that belongs to the model along with it")),
        }
    }
}

/// Bytes that stand for some that are not there. None of them take memory before they are read.
pub fn zeros(len: usize) -> Result<Tensor> {
    Tensor::on_demand(len, |_, to| {
        to.fill(0);
        Ok(())
    })
}

/// The element type of a number in the schema (`DataType`). MNN computes with 64 bits nowhere, and truth values are integers.
///
/// # Errors
/// `Unsupported` for types that MNN does not compute with.
pub fn dtype(number: i32) -> Result<DType> {
    Ok(match number {
        1 | 2 => DType::F32,
        3 | 9 | 10 | 13 => DType::I32,
        4 | 12 => DType::U8,
        5 | 15 => DType::I16,
        6 | 11 => DType::I8,
        14 => DType::BF16,
        16 | 17 => DType::U16,
        19 => DType::F16,
        other => return Err(unsupported(format!("the element type number {other}"))),
    })
}

/// The layout of a blob in the schema's numbers.
pub fn layout_number(blob: &Params) -> Result<i8> {
    blob.choice(DATA_FORMAT)
}

/// The tensor that a blob describes.
///
/// # Errors
/// `InvalidModel` where its data does not fit its shape, `Unsupported` for element types that Kilim or MNN does not compute with.
pub fn tensor(blob: &Params, numbers: &Numbers) -> Result<Tensor> {
    let shape = blob.sizes(DIMS)?;
    let number = blob.int(DATA_TYPE, 1)?;
    let dtype = dtype(number)?;
    if let [offset, _, ..] = blob.longs(EXTERNAL)?[..] {
        return narrowed(numbers.beside(offset, stored(number, dtype), &shape)?);
    }
    if element_count(&shape)? == 0 {
        return Tensor::zeros(dtype, &shape);
    }
    let at = |slot, size| {
        let vector = blob.vector(slot, size)?;
        match (vector, numbers.source.structure) {
            (Some(vector), _) => Ok(Some(vector)),
            (None, true) => Ok(None),
            (None, false) => Err(left_out()),
        }
    };
    let (slot, size) = match (number, dtype) {
        (9, _) => (INT64S, 8),
        (_, DType::I32) => (INT32S, 4),
        (_, DType::I8) => (INT8S, 1),
        (_, DType::F32) => (FLOAT32S, 4),
        _ => (UINT8S, 1),
    };
    let Some(vector) = at(slot, size)? else {
        return zeros(byte_count(dtype, &shape)?)?.bytes_as(dtype, &shape);
    };
    // Halves and the like lie in a vector of bytes.
    if size == 1 && dtype.size() > 1 {
        let len = byte_count(dtype, &shape)?;
        return numbers
            .inside(&vector, DType::U8, &[len])?
            .bytes_as(dtype, &shape);
    }
    narrowed(numbers.inside(&vector, stored(number, dtype), &shape)?)
}

/// The element type as it is stored.
fn stored(number: i32, dtype: DType) -> DType {
    match number {
        9 => DType::I64,
        _ => dtype,
    }
}

/// Integers of 64 bits in 32, the largest and smallest in place of those that are larger or smaller.
fn narrowed(tensor: Tensor) -> Result<Tensor> {
    if tensor.dtype() != DType::I64 {
        return Ok(tensor);
    }
    let clamped = |n: i64| n.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let ints: Vec<i32> = tensor.to_i64s()?.into_iter().map(clamped).collect();
    Tensor::from_slice(tensor.shape(), &ints)
}
