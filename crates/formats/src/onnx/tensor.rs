//! `TensorProto` to [`Tensor`], without a copy where the data stands in the file as it is needed.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::memory::{shared_text, try_collect};
use kilim_core::narrow;
use kilim_core::ops::check_rank;
use kilim_core::tensor::{AlignedBytes, Element, Tensor, byte_count, element_count};

use super::proto::{Numbers, SparseTensorProto, TensorProto, invalid, wrong_type};
use kilim_core::Limits;

use crate::ModelFile;

/// Names of `TensorProto.DataType`, by number.
const TYPE_NAMES: [&str; 29] = [
    "undefined",
    "float32",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "float64",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
    "float6e2m3",
    "float6e3m2",
];

/// The element type that ONNX gives the number `data_type`.
///
/// # Errors
/// `Unsupported` where Kilim has no such type, `InvalidModel` where ONNX has none.
pub fn dtype(data_type: i64) -> Result<DType> {
    let name = usize::try_from(data_type)
        .ok()
        .and_then(|i| TYPE_NAMES.get(i))
        .ok_or_else(|| invalid(format!("element type number {data_type} is not known")))?;
    DType::from_name(name).ok_or_else(|| unsupported(format!("element type {name}")))
}

/// The number that ONNX has for an element type; `None` where it has none.
pub fn type_number(dtype: DType) -> Option<i64> {
    let at = TYPE_NAMES.iter().position(|name| *name == dtype.name());
    at.and_then(|at| i64::try_from(at).ok())
}

/// The file's size does not bound what a sparse tensor takes once it is written out.
const MAX_SPARSE_BYTES: usize = 1 << 30;

/// What is needed to read the tensors of a model.
pub struct Tensors<'s> {
    pub source: &'s ModelFile<'s>,
    pub limits: &'s Limits,
}

impl Tensors<'_> {
    /// # Errors
    /// `Unsupported` for element types that Kilim does not have, `InvalidModel` where data and shape
    /// do not fit.
    pub fn read(&self, proto: &TensorProto) -> Result<Tensor> {
        self.read_any(proto).map_err(|e| e.with_input(proto.name))
    }

    fn read_any(&self, proto: &TensorProto) -> Result<Tensor> {
        if let Some(made) = &proto.made {
            return Ok(made.clone());
        }
        let dtype = dtype(proto.data_type)?;
        let shape = dims(&proto.dims)?;
        if dtype == DType::String {
            return texts(proto, &shape);
        }
        if proto.data_location == 1 {
            return self.external(proto, dtype, &shape);
        }
        if !proto.left_out.is_empty() {
            return self.left_out(dtype, &shape, &proto.left_out);
        }
        if let Some(raw) = proto.raw_data {
            return self.shared(dtype, &shape, raw);
        }
        let count = element_count(&shape)?;
        match dtype {
            DType::F32 => match proto.float_data.whole() {
                Some(raw) => self.shared(dtype, &shape, raw),
                None => exact(&shape, count, &proto.float_data.floats()?),
            },
            DType::F64 => match proto.double_data.whole() {
                Some(raw) => self.shared(dtype, &shape, raw),
                None => exact(&shape, count, &proto.double_data.doubles()?),
            },
            DType::I64 => exact(&shape, count, &proto.int64_data.ints()?),
            DType::U64 => converted(&shape, count, &proto.uint64_data, |v| v as u64),
            DType::U32 => converted(&shape, count, &proto.uint64_data, |v| v as u32),
            DType::I32 => converted(&shape, count, &proto.int32_data, |v| v as i32),
            DType::I16 => converted(&shape, count, &proto.int32_data, |v| v as i16),
            DType::U16 => converted(&shape, count, &proto.int32_data, |v| v as u16),
            DType::I8 => converted(&shape, count, &proto.int32_data, |v| v as i8),
            DType::U8 => converted(&shape, count, &proto.int32_data, |v| v as u8),
            DType::F16 => converted(&shape, count, &proto.int32_data, |v| {
                half::f16::from_bits(v as u16)
            }),
            DType::BF16 => converted(&shape, count, &proto.int32_data, |v| {
                half::bf16::from_bits(v as u16)
            }),
            DType::Bool => {
                let bools: Vec<bool> = proto.int32_data.ints()?.iter().map(|&v| v != 0).collect();
                fits(bools.len(), count)?;
                Tensor::from_bools(&shape, &bools)
            }
            DType::C64 => parts(dtype, &shape, count, &proto.float_data.floats()?),
            DType::C128 => parts(dtype, &shape, count, &proto.double_data.doubles()?),
            // One number stands for one element here, unlike those of 4 and 2 bits.
            DType::F6E2M3 | DType::F6E3M2 => {
                let numbers = proto.int32_data.ints()?.into_iter();
                let bytes = numbers.map(|v| u8::try_from(v).ok().filter(|&v| v < 64));
                let bytes: Option<Vec<u8>> = bytes.collect();
                let bytes =
                    bytes.ok_or_else(|| invalid(format!("a {dtype} of more than 6 bits")))?;
                fits(bytes.len(), count)?;
                Tensor::from_raw(dtype, &shape, &bytes)
            }
            _ => {
                let bytes = proto.int32_data.ints()?.into_iter();
                let packed: Vec<u8> = bytes.map(|v| v as u8).collect();
                fits(packed.len(), file_bytes(dtype, &shape)?)?;
                Tensor::from_packed(dtype, &shape, &packed)
            }
        }
    }

    /// `raw` is a part of the file, which the tensor shares.
    fn shared(&self, dtype: DType, shape: &[usize], raw: &[u8]) -> Result<Tensor> {
        let wanted = file_bytes(dtype, shape)?;
        if raw.len() != wanted {
            return Err(wrong_size(raw.len(), wanted));
        }
        let file = self.source.bytes.as_slice();
        let offset = (raw.as_ptr() as usize).checked_sub(file.as_ptr() as usize);
        let bytes = match offset {
            Some(offset) if offset < file.len() => self.source.shared(offset, wanted)?,
            _ => Tensor::from_raw(DType::U8, &[wanted], raw)?,
        };
        of_bytes(dtype, shape, &bytes)
    }

    /// Data that the outline of the file leaves out.
    fn left_out(&self, dtype: DType, shape: &[usize], place: &[u64]) -> Result<Tensor> {
        let &[len, offset] = place else {
            return Err(wrong_type());
        };
        if !self.source.is_outline() {
            return Err(wrong_type());
        }
        let wanted = file_bytes(dtype, shape)?;
        if len != wanted as u64 {
            return Err(wrong_size(len, wanted));
        }
        of_bytes(dtype, shape, &self.source.part(offset, wanted)?)
    }

    fn external(&self, proto: &TensorProto, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let wanted = file_bytes(dtype, shape)?;
        let entry = |key: &str| {
            let found = proto.external_data.iter().find(|e| e.key == key);
            found.map(|e| e.value)
        };
        let number = |key: &str| -> Result<Option<u64>> {
            let Some(text) = entry(key) else {
                return Ok(None);
            };
            let parsed = text.trim().parse().map(Some);
            parsed.map_err(|_| invalid(format!("the {key} of external data is `{text}`")))
        };
        let location =
            entry("location").ok_or_else(|| invalid("external data without a location"))?;
        let offset = number("offset")?.unwrap_or(0);
        if let Some(len) = number("length")?.filter(|&len| len != wanted as u64) {
            return Err(wrong_size(len, wanted));
        }
        let bytes = self
            .source
            .external(location, offset, wanted, self.limits)?;
        of_bytes(dtype, shape, &bytes)
    }

    /// Bytes of a tensor that the file does not hold as it is, written out in full.
    ///
    /// # Errors
    /// `Limit` where they are too many.
    pub fn written_out(&self, dtype: DType, shape: &[usize]) -> Result<usize> {
        let bytes = byte_count(dtype, shape)?;
        match bytes <= self.limits.tensor_bytes.min(MAX_SPARSE_BYTES) {
            true => Ok(bytes),
            false => Err(Error::new(
                ErrorCode::Limit,
                format!("a tensor of {bytes} bytes when written out"),
            )),
        }
    }

    /// A sparse tensor, written out in full.
    pub fn read_sparse(&self, proto: &SparseTensorProto) -> Result<Tensor> {
        let values = self.read(&proto.values)?;
        let indices = self.read(&proto.indices)?;
        let shape = dims(&proto.dims)?;
        let size = values.dtype().size();
        let dense = self.written_out(values.dtype(), &shape)?;
        let count = values.len();
        let places = indices.to_i64s()?;
        let mut out = AlignedBytes::zeroed(dense)?;
        let per_value = match indices.rank() {
            1 => 1,
            2 => shape.len(),
            _ => return Err(invalid("the indices of a sparse tensor have a wrong shape")),
        };
        if per_value == 0 || places.len() != count * per_value {
            return Err(wrong_size(places.len(), count * per_value));
        }
        for (value, place) in values.read()?.chunks(size).zip(places.chunks(per_value)) {
            let flat = match place {
                [flat] if indices.rank() == 1 => Some(*flat),
                _ => place.iter().zip(&shape).try_fold(0i64, |flat, (&p, &d)| {
                    let inside = (0..d as i64).contains(&p);
                    inside.then(|| flat * d as i64 + p)
                }),
            };
            let to = flat
                .and_then(|f| usize::try_from(f).ok())
                .and_then(|f| f.checked_mul(size))
                .and_then(|at| out.as_mut_slice().get_mut(at..at.checked_add(size)?))
                .ok_or_else(|| invalid("an index of a sparse tensor is out of range"))?;
            to.copy_from_slice(value);
        }
        Tensor::from_bytes(values.dtype(), &shape, Arc::new(out))
    }
}

/// A tensor whose elements are `bytes`, a tensor of `uint8`: row-major, the low byte first, those of less than a byte packed from
/// the low bits on. Nothing is copied where the alignment allows it.
///
/// # Errors
/// `InvalidModel` where the shape needs another number of bytes, and for booleans that are neither 0 nor 1; `Unsupported` for strings;
/// `Limit` where the shape is too large.
pub fn raw(dtype: DType, shape: &[usize], bytes: &Tensor) -> Result<Tensor> {
    check_rank(shape.len())?;
    if dtype == DType::String {
        return Err(unsupported("strings are no bytes"));
    }
    let wanted = file_bytes(dtype, shape)?;
    match bytes.byte_len() == wanted {
        true => of_bytes(dtype, shape, bytes),
        false => Err(wrong_size(bytes.byte_len(), wanted)),
    }
}

/// The tensor whose data in a file are these bytes.
fn of_bytes(dtype: DType, shape: &[usize], bytes: &Tensor) -> Result<Tensor> {
    if dtype.bits() < 8 {
        return Tensor::from_packed(dtype, shape, bytes.read()?);
    }
    if dtype == DType::Bool && bytes.read()?.iter().any(|&b| b > 1) {
        return Err(invalid(
            "a boolean tensor holds something else than 0 and 1",
        ));
    }
    bytes.bytes_as(dtype, shape)
}

/// The strings of a `TensorProto`.
fn texts(proto: &TensorProto, shape: &[usize]) -> Result<Tensor> {
    if proto.data_location == 1 || proto.raw_data.is_some() || !proto.left_out.is_empty() {
        return Err(invalid("a string tensor holds something else than strings"));
    }
    fits(proto.string_data.len(), element_count(shape)?)?;
    let texts = proto.string_data.iter().map(|bytes| {
        let text = std::str::from_utf8(bytes);
        shared_text(text.map_err(|_| invalid("a string is not valid UTF-8"))?)
    });
    Tensor::from_texts(shape, try_collect(texts)?)
}

/// The bytes that a tensor takes in a file, where elements of less than a byte are packed.
fn file_bytes(dtype: DType, shape: &[usize]) -> Result<usize> {
    match dtype.bits() {
        bits @ ..8 => narrow::packed_bytes(bits, element_count(shape)?),
        _ => byte_count(dtype, shape),
    }
}

fn dims(dims: &Numbers) -> Result<Vec<usize>> {
    let dims = dims.ints()?;
    check_rank(dims.len())?;
    dims.into_iter()
        .map(|d| usize::try_from(d).map_err(|_| invalid(format!("a tensor has the dimension {d}"))))
        .collect()
}

fn wrong_size(got: impl std::fmt::Display, wanted: usize) -> Error {
    invalid("the data of a tensor does not fit its shape")
        .with_expected(wanted)
        .with_got(got)
}

fn fits(got: usize, wanted: usize) -> Result<()> {
    if got == wanted {
        Ok(())
    } else {
        Err(wrong_size(got, wanted))
    }
}

fn exact<T: Element>(shape: &[usize], count: usize, data: &[T]) -> Result<Tensor> {
    fits(data.len(), count)?;
    Tensor::from_slice(shape, data)
}

/// Complex numbers, `count` pairs of real and imaginary part.
fn parts<T: Element>(dtype: DType, shape: &[usize], count: usize, data: &[T]) -> Result<Tensor> {
    fits(data.len(), count.saturating_mul(2))?;
    let flat = Tensor::from_slice(&[data.len()], data)?;
    Tensor::from_raw(dtype, shape, flat.read()?)
}

fn converted<T: Element>(
    shape: &[usize],
    count: usize,
    data: &Numbers,
    to: impl Fn(i64) -> T,
) -> Result<Tensor> {
    let data: Vec<T> = data.ints()?.into_iter().map(to).collect();
    exact(shape, count, &data)
}
