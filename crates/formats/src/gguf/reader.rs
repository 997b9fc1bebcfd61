//! Numbers and texts of a file, one behind the other.

use kilim_core::error::Result;

use super::invalid;

/// What is left of the beginning of a file.
pub struct Reader<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len);
        let bytes = end.and_then(|end| self.bytes.get(self.at..end));
        let bytes = bytes.ok_or_else(|| invalid("the file ends before what it describes"))?;
        self.at += len;
        Ok(bytes)
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b)))
    }

    pub fn u64(&mut self) -> Result<u64> {
        let bytes = self.bytes(8)?;
        Ok(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    /// A number of things that memory can hold.
    ///
    /// # Errors
    /// `InvalidModel` where it cannot, or the file ends before.
    pub fn count(&mut self) -> Result<usize> {
        let n = self.u64()?;
        usize::try_from(n).map_err(|_| invalid(format!("a count of {n}")))
    }

    /// A number of things of at least `size` bytes each, which the file has to hold.
    ///
    /// # Errors
    /// `InvalidModel` where the file is shorter.
    pub fn count_of(&mut self, size: usize) -> Result<usize> {
        let count = self.count()?;
        let left = self.rest().len();
        match count.checked_mul(size) {
            Some(bytes) if bytes <= left => Ok(count),
            _ => Err(invalid("the file ends before what it describes")
                .with_expected(format!("{count} of at least {size} bytes"))
                .with_got(format!("{left} bytes"))),
        }
    }

    /// A text with its length in front.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, or it is no UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        let len = self.count()?;
        let bytes = self.bytes(len)?;
        std::str::from_utf8(bytes).map_err(|_| invalid("a text is not valid UTF-8"))
    }
}
