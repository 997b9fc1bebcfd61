//! The elements of a tensor, read and changed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{AlignedBytes, Data, Element, Tensor};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fallible::reserve;
use crate::interrupt::{Interrupt, Meter};
use crate::narrow;

pub(super) fn beyond() -> Error {
    Error::new(ErrorCode::Shape, "a run reaches beyond a tensor's end")
}

pub(super) fn cast_slice<T: Element>(bytes: &[u8]) -> Result<&[T]> {
    bytemuck::try_cast_slice(bytes)
        .map_err(|e| Error::new(ErrorCode::DType, format!("a tensor's bytes: {e}")))
}

pub(crate) fn cast_slice_mut<T: Element>(bytes: &mut [u8]) -> Result<&mut [T]> {
    bytemuck::try_cast_slice_mut(bytes)
        .map_err(|e| Error::new(ErrorCode::DType, format!("a tensor's bytes: {e}")))
}

impl Tensor {
    /// The bytes, row-major, little-endian; none of strings.
    ///
    /// # Errors
    /// `Limit` where memory for what is computed late is short.
    pub fn read(&self) -> Result<&[u8]> {
        self.read_on(&Meter::new(&Interrupt::NEVER))
    }

    /// The bytes, row-major, little-endian; none of strings. What is computed late is computed in pieces of `meter`.
    ///
    /// # Errors
    /// `Limit` where memory for what is computed late is short, `Aborted` where the work is to stop.
    pub fn read_on(&self, meter: &Meter) -> Result<&[u8]> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => Ok(&buffer.read(meter)?.as_slice()[*offset..offset + len]),
            Data::Texts(_) => Ok(&[]),
        }
    }

    /// Copies bytes from one on, or computes them there; none of strings.
    ///
    /// # Errors
    /// Of the computation.
    ///
    /// # Panics
    /// Where the tensor ends before `to`.
    pub fn copy_to(&self, from: usize, to: &mut [u8]) -> Result<()> {
        match &self.data {
            Data::Bytes { buffer, offset, .. } => buffer.copy_to(offset + from, to),
            Data::Texts(_) => Ok(()),
        }
    }

    /// A run of elements, where they are in memory or computed into `room` in pieces of `meter`.
    ///
    /// # Errors
    /// `DType` where they are of another type, `Shape` where the tensor ends before the run, `Limit` where memory is
    /// short, `Aborted` where the work is to stop.
    pub fn run<'a, T: Element>(
        &'a self,
        meter: &Meter,
        elements: Range<usize>,
        room: &'a mut Vec<T>,
    ) -> Result<&'a [T]> {
        self.check_type::<T>()?;
        if elements.end > self.len() || elements.start > elements.end {
            return Err(beyond());
        }
        let Data::Bytes { buffer, .. } = &self.data else {
            return Ok(&[]);
        };
        if buffer.made().is_some() {
            return Ok(&self.as_slice()?[elements]);
        }
        let size = size_of::<T>();
        if let Some(more) = elements.len().checked_sub(room.len()) {
            reserve(room, more)?;
            room.resize(elements.len(), T::zeroed());
        }
        let room = &mut room[..elements.len()];
        meter.pieces(elements.len(), 1, |piece| {
            let from = (elements.start + piece.start) * size;
            self.copy_to(from, bytemuck::cast_slice_mut(&mut room[piece]))
        })?;
        Ok(room)
    }

    /// A copy of the bytes, made in pieces of `meter`.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the work is to stop.
    pub fn copy_bytes(&self, meter: &Meter) -> Result<AlignedBytes> {
        match &self.data {
            Data::Bytes {
                buffer,
                offset,
                len,
            } => buffer.copy(meter, *offset..offset + len),
            Data::Texts(_) => Ok(AlignedBytes::default()),
        }
    }

    /// The inverse of [`Tensor::from_packed`].
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn to_packed(&self) -> Result<Cow<'_, [u8]>> {
        Ok(match self.dtype.bits() {
            bits @ ..8 => Cow::Owned(narrow::pack(self.read()?, bits)?),
            _ => Cow::Borrowed(self.read()?),
        })
    }

    /// The elements of a string tensor; `DType` for one of another type.
    pub fn texts(&self) -> Result<&[Arc<str>]> {
        match &self.data {
            Data::Texts(texts) => Ok(texts),
            Data::Bytes { .. } => {
                Err(Error::new(ErrorCode::DType, "a string tensor is needed").with_got(self.dtype))
            }
        }
    }

    /// The elements; `DType` where they are of another type (`Bool` is read as `u8`).
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.check_type::<T>()?;
        cast_slice(self.read()?)
    }

    fn check_type<T: Element>(&self) -> Result<()> {
        let same = self.dtype == T::DTYPE || (self.dtype == DType::Bool && T::DTYPE == DType::U8);
        match same {
            true => Ok(()),
            false => Err(
                Error::new(ErrorCode::DType, "a tensor has another element type")
                    .with_expected(T::DTYPE)
                    .with_got(self.dtype),
            ),
        }
    }

    /// The elements, to be changed in place; copied first where others share the bytes. `DType`
    /// where they are of another type, `Limit` where memory for a copy is short.
    pub fn make_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        self.check_type::<T>()?;
        if !self.is_unshared() {
            *self = self.copied(&Meter::new(&Interrupt::NEVER))?;
        }
        let Data::Bytes {
            buffer,
            offset,
            len,
        } = &mut self.data
        else {
            return Err(Error::new(ErrorCode::DType, "strings are no bytes"));
        };
        let bytes = buffer
            .alone()
            .ok_or_else(|| Error::new(ErrorCode::State, "a tensor's own copy is shared"))?;
        cast_slice_mut(&mut bytes.as_mut_slice()[*offset..*offset + *len])
    }

    /// Nothing else reads the buffer, which is there.
    pub fn is_unshared(&mut self) -> bool {
        match &mut self.data {
            Data::Bytes { buffer, .. } => buffer.alone().is_some(),
            Data::Texts(_) => false,
        }
    }
}
