//! The protobuf wire format, read in place.

use kilim_core::error::{Error, ErrorCode, Result};

/// The value of one field as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// An `InvalidModel` error.
pub fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

/// The error of a field that is not of the type that its message has there.
pub fn wrong_type() -> Error {
    invalid("a protobuf field has the wrong wire type")
}

impl<'a> Field<'a> {
    /// The bytes of a field: a string, a message, packed numbers.
    ///
    /// # Errors
    /// `InvalidModel` where it is a number. The readers below fail alike where the wire type is another.
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Field::Bytes(b) => Ok(b),
            _ => Err(wrong_type()),
        }
    }

    /// The text; `InvalidModel` where it is not UTF-8.
    pub fn string(self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| invalid("a name is not valid UTF-8"))
    }

    /// The integer of a varint; `enum` and `bool` are ones, too.
    pub fn int(self) -> Result<i64> {
        match self {
            Field::Varint(v) => Ok(v as i64),
            _ => Err(wrong_type()),
        }
    }

    /// The `float32` of four bytes.
    pub fn float(self) -> Result<f32> {
        match self {
            Field::Fixed32(v) => Ok(f32::from_bits(v)),
            _ => Err(wrong_type()),
        }
    }
}

/// Reads fields one after the other.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of bytes that are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `n` bytes; `InvalidModel` where there are fewer.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self
            .rest
            .split_at_checked(n)
            .ok_or_else(|| invalid("the file is truncated"))?;
        self.rest = tail;
        Ok(head)
    }

    /// The next four bytes as a number, the low byte first.
    pub fn fixed32(&mut self) -> Result<u32> {
        let mut b = [0; 4];
        b.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(b))
    }

    /// The next eight bytes as a number, the low byte first.
    pub fn fixed64(&mut self) -> Result<u64> {
        let mut b = [0; 8];
        b.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(b))
    }

    /// A number in groups of seven bits, the low ones first; `InvalidModel` above 64 bits.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            // Of the tenth byte only one bit fits.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(invalid("a varint has more than 64 bits"))
    }

    /// Number and wire type of the next field; `None` at the end.
    pub fn tag(&mut self) -> Result<Option<(u32, u32)>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?)
            .map_err(|_| invalid("a protobuf field number is too large"))?;
        if tag >> 3 == 0 {
            return Err(invalid("a protobuf field has the number 0"));
        }
        Ok(Some((tag >> 3, tag & 7)))
    }

    /// The next field; `None` at the end.
    pub fn field(&mut self) -> Result<Option<(u32, Field<'a>)>> {
        let Some((number, wire)) = self.tag()? else {
            return Ok(None);
        };
        let field = match wire {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.fixed64()?),
            2 => {
                let len = usize::try_from(self.varint()?)
                    .map_err(|_| invalid("the file is truncated"))?;
                Field::Bytes(self.take(len)?)
            }
            5 => Field::Fixed32(self.fixed32()?),
            _ => return Err(invalid(format!("protobuf wire type {wire} is not known"))),
        };
        Ok(Some((number, field)))
    }
}

/// A repeated field of numbers, packed or not, as it stands in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers<'a>(Vec<Field<'a>>);

impl<'a> Numbers<'a> {
    /// Numbers that no file has.
    pub fn of(numbers: impl Iterator<Item = Field<'a>>) -> Numbers<'a> {
        Numbers(numbers.collect())
    }

    /// Appends one number, or a packed run of them.
    pub fn push(&mut self, field: Field<'a>) {
        self.0.push(field);
    }

    /// The bytes of numbers of fixed size, where they stand in one piece.
    pub fn whole(&self) -> Option<&'a [u8]> {
        match self.0.as_slice() {
            [Field::Bytes(b)] => Some(b),
            _ => None,
        }
    }

    /// Each number, by what reads it where they are packed and where it is a field of its own.
    fn each<T>(
        &self,
        packed: fn(&mut Reader<'a>) -> Result<T>,
        single: fn(Field<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut out = Vec::new();
        for &field in &self.0 {
            match field {
                Field::Bytes(b) => {
                    let mut r = Reader::new(b);
                    while !r.is_at_end() {
                        out.push(packed(&mut r)?);
                    }
                }
                other => out.push(single(other)?),
            }
        }
        Ok(out)
    }

    /// All as `int64`.
    pub fn ints(&self) -> Result<Vec<i64>> {
        self.each(|r| Ok(r.varint()? as i64), |f| f.int())
    }

    /// All as `float32`.
    pub fn floats(&self) -> Result<Vec<f32>> {
        self.each(|r| Ok(f32::from_bits(r.fixed32()?)), |f| f.float())
    }

    /// All as `float64`.
    pub fn doubles(&self) -> Result<Vec<f64>> {
        self.each(
            |r| Ok(f64::from_bits(r.fixed64()?)),
            |f| match f {
                Field::Fixed64(v) => Ok(f64::from_bits(v)),
                _ => Err(wrong_type()),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length() {
        for v in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            let mut n = v;
            while n >= 0x80 {
                bytes.push(n as u8 | 0x80);
                n >>= 7;
            }
            bytes.push(n as u8);
            assert_eq!(Reader::new(&bytes).varint().ok(), Some(v));
            bytes.pop();
            assert!(Reader::new(&bytes).varint().is_err());
        }
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
    }

    #[test]
    fn a_giant_length_is_an_error() {
        let bytes = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Reader::new(&bytes).field().is_err());
    }

    #[test]
    fn packed_and_unpacked_numbers() {
        let mut n = Numbers::default();
        n.push(Field::Varint(7));
        n.push(Field::Bytes(&[1, 0x80, 1]));
        assert_eq!(n.ints().ok(), Some(vec![7, 1, 128]));
        assert!(n.floats().is_err());
    }
}
