//! A reader of FlatBuffers that checks every offset against the file. It reads in place; only the
//! few tables that a model needs are ever touched. Layout: <https://flatbuffers.dev/internals/>.

use std::cell::Cell;

use kilim_core::error::{Error, ErrorCode, Result};

/// A FlatBuffer in memory. Offsets may meet, so that a small file can describe a huge tree; reading
/// stops when much more was read than the file holds.
#[derive(Debug)]
pub struct FlatBuffer<'a> {
    bytes: &'a [u8],
    left: Cell<usize>,
}

/// A table inside a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    file: &'a FlatBuffer<'a>,
    bytes: &'a [u8],
    position: usize,
    vtable: usize,
    slots: usize,
}

/// A vector inside a FlatBuffer: the position of its first element, and how many there are.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'a> {
    file: &'a FlatBuffer<'a>,
    pub position: usize,
    pub len: usize,
}

fn garbled(what: &str, position: usize) -> Error {
    Error::new(
        ErrorCode::InvalidModel,
        format!("the FlatBuffer is truncated or garbled: {what} at byte {position}"),
    )
}

fn as_text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes);
    text.map_err(|_| Error::new(ErrorCode::InvalidModel, "a name is not valid UTF-8"))
}

fn array<const N: usize>(bytes: &[u8], position: usize) -> Result<[u8; N]> {
    position
        .checked_add(N)
        .and_then(|end| bytes.get(position..end))
        .and_then(|slice| slice.try_into().ok())
        .ok_or_else(|| garbled("a number", position))
}

fn u16_at(bytes: &[u8], position: usize) -> Result<u16> {
    Ok(u16::from_le_bytes(array(bytes, position)?))
}

fn i32_at(bytes: &[u8], position: usize) -> Result<i32> {
    Ok(i32::from_le_bytes(array(bytes, position)?))
}

fn u32_at(bytes: &[u8], position: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(array(bytes, position)?))
}

/// Follows the unsigned offset at `position`.
fn follow(bytes: &[u8], position: usize) -> Result<usize> {
    let offset = u32_at(bytes, position)? as usize;
    position
        .checked_add(offset)
        .filter(|&target| offset != 0 && target < bytes.len())
        .ok_or_else(|| garbled("an offset", position))
}

impl<'a> FlatBuffer<'a> {
    pub fn new(bytes: &'a [u8]) -> FlatBuffer<'a> {
        FlatBuffer {
            bytes,
            left: Cell::new(bytes.len().saturating_mul(4).saturating_add(4096)),
        }
    }

    /// The root table.
    pub fn root(&'a self) -> Result<Table<'a>> {
        Table::at(self, follow(self.bytes, 0)?)
    }

    /// The bytes of the vector at `start`.
    fn bytes_at(&'a self, start: usize) -> Result<&'a [u8]> {
        self.vector_at(start, 1)?.in_place()
    }

    /// The vector at `start`, of elements of `size` bytes.
    fn vector_at(&'a self, start: usize, size: usize) -> Result<Vector<'a>> {
        let len = u32_at(self.bytes, start)? as usize;
        let position = start + 4;
        let end = len.checked_mul(size).and_then(|n| n.checked_add(position));
        if end.is_none_or(|end| end > self.bytes.len()) {
            return Err(garbled("a vector", start));
        }
        Ok(Vector {
            file: self,
            position,
            len,
        })
    }

    fn spend(&self, bytes: usize) -> Result<()> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidModel,
                "the FlatBuffer's tables overlap too often",
            )
        })?;
        self.left.set(left);
        Ok(())
    }
}

impl<'a> Table<'a> {
    fn at(file: &'a FlatBuffer<'a>, position: usize) -> Result<Table<'a>> {
        let bytes = file.bytes;
        file.spend(4)?;
        let back = i64::from(i32_at(bytes, position)?);
        let vtable = usize::try_from(position as i64 - back)
            .ok()
            .filter(|&v| v < bytes.len())
            .ok_or_else(|| garbled("a vtable offset", position))?;
        let size = usize::from(u16_at(bytes, vtable)?);
        if size < 4 || vtable.checked_add(size).is_none_or(|end| end > bytes.len()) {
            return Err(garbled("a vtable", vtable));
        }
        Ok(Table {
            file,
            bytes,
            position,
            vtable,
            slots: (size - 4) / 2,
        })
    }

    /// The position of field `slot`; `None` where the file leaves it out.
    fn field(&self, slot: usize) -> Result<Option<usize>> {
        if slot >= self.slots {
            return Ok(None);
        }
        let offset = usize::from(u16_at(self.bytes, self.vtable + 4 + 2 * slot)?);
        Ok((offset != 0).then(|| self.position.saturating_add(offset)))
    }

    fn scalar<const N: usize>(&self, slot: usize) -> Result<Option<[u8; N]>> {
        self.field(slot)?
            .map(|position| array(self.bytes, position))
            .transpose()
    }

    /// Field `slot`, or the default of the schema.
    pub fn i8_or(&self, slot: usize, default: i8) -> Result<i8> {
        Ok(self.scalar(slot)?.map_or(default, i8::from_le_bytes))
    }

    /// Reads field `slot` as an `i8`; 0 where the file leaves it out.
    pub fn i8(&self, slot: usize) -> Result<i8> {
        self.i8_or(slot, 0)
    }

    /// Reads field `slot` as a `u8`; 0 where the file leaves it out.
    pub fn u8(&self, slot: usize) -> Result<u8> {
        Ok(self.scalar(slot)?.map_or(0, u8::from_le_bytes))
    }

    /// Field `slot`; false where the file leaves it out.
    pub fn bool(&self, slot: usize) -> Result<bool> {
        self.bool_or(slot, false)
    }

    /// Field `slot`, or the default of the schema.
    pub fn bool_or(&self, slot: usize, default: bool) -> Result<bool> {
        Ok(self
            .scalar(slot)?
            .map_or(default, |byte| u8::from_le_bytes(byte) != 0))
    }

    /// Field `slot`, or the default of the schema.
    pub fn i32_or(&self, slot: usize, default: i32) -> Result<i32> {
        Ok(self.scalar(slot)?.map_or(default, i32::from_le_bytes))
    }

    /// Reads field `slot` as an `i32`; 0 where the file leaves it out.
    pub fn i32(&self, slot: usize) -> Result<i32> {
        self.i32_or(slot, 0)
    }

    /// Reads field `slot` as a `u32`; 0 where the file leaves it out.
    pub fn u32(&self, slot: usize) -> Result<u32> {
        Ok(self.scalar(slot)?.map_or(0, u32::from_le_bytes))
    }

    /// Field `slot`, or the default of the schema.
    pub fn i64_or(&self, slot: usize, default: i64) -> Result<i64> {
        Ok(self.scalar(slot)?.map_or(default, i64::from_le_bytes))
    }

    /// Reads field `slot` as an `i64`; 0 where the file leaves it out.
    pub fn i64(&self, slot: usize) -> Result<i64> {
        self.i64_or(slot, 0)
    }

    /// Reads field `slot` as a `u64`; 0 where the file leaves it out.
    pub fn u64(&self, slot: usize) -> Result<u64> {
        Ok(self.scalar(slot)?.map_or(0, u64::from_le_bytes))
    }

    /// Reads field `slot` as an `f32`; 0 where the file leaves it out.
    pub fn f32(&self, slot: usize) -> Result<f32> {
        self.f32_or(slot, 0.0)
    }

    /// Field `slot`, or the default of the schema.
    pub fn f32_or(&self, slot: usize, default: f32) -> Result<f32> {
        Ok(self.scalar(slot)?.map_or(default, f32::from_le_bytes))
    }

    /// The table that field `slot` refers to.
    pub fn table(&self, slot: usize) -> Result<Option<Table<'a>>> {
        match self.field(slot)? {
            Some(position) => Table::at(self.file, follow(self.bytes, position)?).map(Some),
            None => Ok(None),
        }
    }

    /// A vector of elements of `size` bytes, empty where the file leaves it out.
    pub fn vector(&self, slot: usize, size: usize) -> Result<Vector<'a>> {
        let Some(position) = self.field(slot)? else {
            return Ok(Vector {
                file: self.file,
                position: 0,
                len: 0,
            });
        };
        self.file.vector_at(follow(self.bytes, position)?, size)
    }

    /// The text of a string in place, empty where the file leaves it out; `InvalidModel` where it is not UTF-8.
    pub fn text(&self, slot: usize) -> Result<&'a str> {
        as_text(self.vector(slot, 1)?.in_place()?)
    }

    /// The bytes of a vector of strings.
    pub fn byte_strings(&self, slot: usize) -> Result<Vec<&'a [u8]>> {
        let v = self.vector(slot, 4)?;
        self.file.spend(v.len)?;
        let strings =
            (0..v.len).map(|i| v.file.bytes_at(follow(v.file.bytes, v.position + 4 * i)?));
        strings.collect()
    }

    /// The texts of a vector of strings; `InvalidModel` where one is not UTF-8.
    pub fn texts(&self, slot: usize) -> Result<Vec<&'a str>> {
        self.byte_strings(slot)?.into_iter().map(as_text).collect()
    }

    /// The bytes of a string, as text; what is not UTF-8 is replaced.
    pub fn string(&self, slot: usize) -> Result<String> {
        let v = self.vector(slot, 1)?;
        Ok(String::from_utf8_lossy(v.raw(1)?).into_owned())
    }

    /// The numbers of a vector, none where the file leaves it out.
    pub fn i32s(&self, slot: usize) -> Result<Vec<i32>> {
        self.vector(slot, 4)?.numbers(i32::from_le_bytes)
    }

    /// Reads a vector of `i64`; empty where the file leaves it out.
    pub fn i64s(&self, slot: usize) -> Result<Vec<i64>> {
        self.vector(slot, 8)?.numbers(i64::from_le_bytes)
    }

    /// Reads a vector of `f32`; empty where the file leaves it out.
    pub fn f32s(&self, slot: usize) -> Result<Vec<f32>> {
        self.vector(slot, 4)?.numbers(f32::from_le_bytes)
    }

    /// The tables of a vector of tables.
    pub fn tables(&self, slot: usize) -> Result<Vec<Table<'a>>> {
        let v = self.vector(slot, 4)?;
        (0..v.len)
            .map(|i| Table::at(v.file, follow(v.file.bytes, v.position + 4 * i)?))
            .collect()
    }
}

impl<'a> Vector<'a> {
    /// The elements of a vector of bytes.
    pub fn bytes(&self) -> Result<&'a [u8]> {
        self.raw(1)
    }

    /// The bytes of elements of `size` bytes.
    pub fn bytes_of(&self, size: usize) -> Result<&'a [u8]> {
        self.raw(size)
    }

    fn raw(&self, size: usize) -> Result<&'a [u8]> {
        self.file.spend(self.len * size)?;
        self.at(self.len * size)
    }

    /// The bytes of a string, which takes no memory of its own: many tables may share it.
    fn in_place(&self) -> Result<&'a [u8]> {
        self.file.spend(4)?;
        self.at(self.len)
    }

    fn at(&self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.file.bytes.get(self.position..self.position + len);
        bytes.ok_or_else(|| garbled("a vector", self.position))
    }

    fn numbers<T, const N: usize>(&self, read: fn([u8; N]) -> T) -> Result<Vec<T>> {
        Ok(self
            .raw(N)?
            .chunks_exact(N)
            .filter_map(|chunk| chunk.try_into().ok().map(read))
            .collect())
    }
}
