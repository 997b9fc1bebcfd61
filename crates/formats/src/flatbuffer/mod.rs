//! A reader of FlatBuffers that checks every offset against the file. It reads in place; only the
//! few tables that a model needs are ever touched. Layout: <https://flatbuffers.dev/internals/>.

mod apart;
mod stored;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt;

use kilim_core::error::{Error, ErrorCode, Result};

use crate::ModelFile;
use crate::parts::FileParts;
pub use apart::{Found, outline};
use stored::{Pages, Stored};

/// A FlatBuffer, in memory but for large data, or in a file that is only looked at. Offsets may meet, so that a small file can
/// describe a huge tree; reading stops when much more was read than the file holds.
pub struct FlatBuffer<'a> {
    stored: Stored<'a>,
    size: usize,
    left: Cell<usize>,
}

impl fmt::Debug for FlatBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "a FlatBuffer of {} bytes", self.size)
    }
}

/// A table inside a FlatBuffer.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    file: &'a FlatBuffer<'a>,
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

/// How much may be read of a file of `size` bytes that is in memory.
fn allowance(size: usize) -> usize {
    size.saturating_mul(4).saturating_add(4096)
}

fn as_text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes);
    text.map_err(|_| Error::new(ErrorCode::InvalidModel, "a name is not valid UTF-8"))
}

impl<'a> FlatBuffer<'a> {
    /// The FlatBuffer that a model file is.
    pub fn of(source: &'a ModelFile) -> FlatBuffer<'a> {
        let (bytes, pieces) = (source.bytes.as_slice(), source.pieces());
        let size = usize::try_from(source.size()).unwrap_or(usize::MAX);
        FlatBuffer::new(Stored::Memory { bytes, pieces }, size, allowance(size))
    }

    /// A FlatBuffer in a vector of another one.
    pub fn within(bytes: &'a [u8]) -> FlatBuffer<'a> {
        let (size, pieces) = (bytes.len(), &[][..]);
        FlatBuffer::new(Stored::Memory { bytes, pieces }, size, allowance(size))
    }

    /// A FlatBuffer that is only looked at where it lies: so many tables may be read, and no texts and lists.
    fn lying(file: &'a dyn FileParts, tables: usize) -> FlatBuffer<'a> {
        let size = usize::try_from(file.size()).unwrap_or(usize::MAX);
        FlatBuffer::new(
            Stored::Lying(Pages::new(file)),
            size,
            tables.saturating_mul(4),
        )
    }

    fn new(stored: Stored<'a>, size: usize, left: usize) -> FlatBuffer<'a> {
        FlatBuffer {
            stored,
            size,
            left: Cell::new(left),
        }
    }

    fn array<const N: usize>(&self, position: usize) -> Result<[u8; N]> {
        let bytes = self.stored.array(position);
        bytes.ok_or_else(|| garbled("a number", position))
    }

    fn u16_at(&self, position: usize) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(position)?))
    }

    fn i32_at(&self, position: usize) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array(position)?))
    }

    fn u32_at(&self, position: usize) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(position)?))
    }

    /// Follows the unsigned offset at `position`.
    fn follow(&self, position: usize) -> Result<usize> {
        let offset = self.u32_at(position)? as usize;
        position
            .checked_add(offset)
            .filter(|&target| offset != 0 && target < self.size)
            .ok_or_else(|| garbled("an offset", position))
    }

    /// The root table.
    pub fn root(&'a self) -> Result<Table<'a>> {
        Table::at(self, self.follow(0)?)
    }

    /// The bytes of the vector at `start`.
    fn bytes_at(&'a self, start: usize) -> Result<&'a [u8]> {
        self.vector_at(start, 1)?.in_place()
    }

    /// The vector at `start`, of elements of `size` bytes.
    fn vector_at(&'a self, start: usize, size: usize) -> Result<Vector<'a>> {
        let len = self.u32_at(start)? as usize;
        let position = start + 4;
        let end = len.checked_mul(size).and_then(|n| n.checked_add(position));
        if end.is_none_or(|end| end > self.size) {
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
        file.spend(4)?;
        let back = i64::from(file.i32_at(position)?);
        let vtable = usize::try_from(position as i64 - back)
            .ok()
            .filter(|&v| v < file.size)
            .ok_or_else(|| garbled("a vtable offset", position))?;
        let size = usize::from(file.u16_at(vtable)?);
        if size < 4 || vtable.checked_add(size).is_none_or(|end| end > file.size) {
            return Err(garbled("a vtable", vtable));
        }
        Ok(Table {
            file,
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
        let offset = usize::from(self.file.u16_at(self.vtable + 4 + 2 * slot)?);
        Ok((offset != 0).then(|| self.position.saturating_add(offset)))
    }

    fn scalar<const N: usize>(&self, slot: usize) -> Result<Option<[u8; N]>> {
        self.field(slot)?
            .map(|position| self.file.array(position))
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
            Some(position) => Table::at(self.file, self.file.follow(position)?).map(Some),
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
        self.file.vector_at(self.file.follow(position)?, size)
    }

    /// The text of a string in place, empty where the file leaves it out; `InvalidModel` where it is not UTF-8.
    pub fn text(&self, slot: usize) -> Result<&'a str> {
        as_text(self.vector(slot, 1)?.in_place()?)
    }

    /// The bytes of a vector of strings.
    pub fn byte_strings(&self, slot: usize) -> Result<Vec<&'a [u8]>> {
        let v = self.vector(slot, 4)?;
        self.file.spend(v.len)?;
        let strings = (0..v.len).map(|i| v.file.bytes_at(v.target(i)?));
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
        (0..v.len).map(|i| v.table(i)).collect()
    }

    /// Shows the tables of a vector of tables one by one: a vector of a file that is only looked at may be long.
    pub fn each_table(
        &self,
        slot: usize,
        mut show: impl FnMut(&Table<'a>) -> Result<()>,
    ) -> Result<()> {
        let v = self.vector(slot, 4)?;
        (0..v.len).try_for_each(|i| show(&v.table(i)?))
    }
}

impl<'a> Vector<'a> {
    /// Where the offset `i` of a vector of offsets leads.
    fn target(&self, i: usize) -> Result<usize> {
        self.file.follow(self.position + 4 * i)
    }

    /// Table `i` of a vector of tables.
    fn table(&self, i: usize) -> Result<Table<'a>> {
        Table::at(self.file, self.target(i)?)
    }

    /// Whether the elements, of `size` bytes, are in memory.
    pub fn is_here(&self, size: usize) -> bool {
        let len = self.len.checked_mul(size);
        len.is_some_and(|len| self.file.stored.slice(self.position, len).is_some())
    }

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
        let bytes = self.file.stored.slice(self.position, len);
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
