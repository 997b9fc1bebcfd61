//! A file of little-endian words that point at each other by their offsets. An offset of 0 points at nothing.

use kilim_core::error::{Error, Result};

use super::invalid;

/// A file in memory.
#[derive(Clone, Copy)]
pub struct File<'a>(pub &'a [u8]);

/// A structure of words and bytes in a file.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    file: File<'a>,
    at: usize,
    /// Where the words of the structure stand that this one is read as; `None` where it is read as it is.
    order: Option<&'static [Word]>,
}

/// Where a word comes from in a structure of an older version.
#[derive(Clone, Copy)]
pub enum Word {
    /// The word with this number.
    At(usize),
    /// A number that the file does not have.
    Is(i32),
    /// The byte with this number.
    Flag(usize),
    /// The byte with this number, an element type.
    Element(usize),
    /// A list of the first four words without those that are -2, in which 0 stands for 1.
    Shape,
}

/// The element types of [`Word::Element`]: `float32`, `float16`, `int32` and `int8`.
const ELEMENTS: [u32; 4] = [0, 1, 4, 2];

fn cut_off() -> Error {
    invalid("the file ends before what it points at")
}

impl<'a> File<'a> {
    fn bytes(self, at: usize, len: usize) -> Result<&'a [u8]> {
        let end = at.checked_add(len).ok_or_else(cut_off)?;
        self.0.get(at..end).ok_or_else(cut_off)
    }

    fn word(self, at: usize) -> Result<u32> {
        let bytes = self.bytes(at, 4)?.try_into().map_err(|_| cut_off())?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The structure at an offset.
    pub fn table(self, at: u32) -> Table<'a> {
        Table {
            file: self,
            at: at as usize,
            order: None,
        }
    }

    /// A list: its length, then its words. Empty where the offset points at nothing.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before.
    pub fn list(self, at: u32) -> Result<Vec<u32>> {
        if at == 0 {
            return Ok(Vec::new());
        }
        let at = at as usize;
        let len = (self.word(at)? as usize)
            .checked_mul(4)
            .ok_or_else(cut_off)?;
        let words = self.bytes(at + 4, len)?.chunks_exact(4);
        Ok(words
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
            .collect())
    }

    /// A list of integers with a sign.
    ///
    /// # Errors
    /// Those of [`File::list`].
    pub fn ints(self, at: u32) -> Result<Vec<i64>> {
        Ok(self
            .list(at)?
            .into_iter()
            .map(|n| i64::from(n as i32))
            .collect())
    }

    /// A text: its size and where it lies. Empty where the offset points at nothing.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before.
    pub fn text(self, at: u32) -> Result<String> {
        if at == 0 {
            return Ok(String::new());
        }
        let table = self.table(at);
        let bytes = self.bytes(table.word(1)? as usize, table.word(0)? as usize)?;
        // The size counts the zero at the end.
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl<'a> Table<'a> {
    /// The structure with its words read in another order.
    pub fn read_as(self, order: &'static [Word]) -> Self {
        let order = Some(order);
        Table { order, ..self }
    }

    /// The word number `i`.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before.
    pub fn word(self, i: usize) -> Result<u32> {
        let Some(order) = self.order else {
            return self.file.word(self.at + 4 * i);
        };
        match *order.get(i).ok_or_else(cut_off)? {
            Word::At(i) => self.file.word(self.at + 4 * i),
            Word::Is(number) => Ok(number as u32),
            Word::Flag(i) => self.byte(i),
            Word::Element(i) => {
                let number = self.byte(i)?;
                Ok(ELEMENTS.get(number as usize).copied().unwrap_or(u32::MAX))
            }
            Word::Shape => Err(invalid("a list is no number")),
        }
    }

    fn byte(self, i: usize) -> Result<u32> {
        Ok(u32::from(self.file.bytes(self.at + i, 1)?[0]))
    }

    /// The word number `i` as an integer.
    ///
    /// # Errors
    /// Those of [`Table::word`].
    pub fn int(self, i: usize) -> Result<i64> {
        Ok(i64::from(self.word(i)? as i32))
    }

    /// The word number `i` as a float.
    ///
    /// # Errors
    /// Those of [`Table::word`].
    pub fn float(self, i: usize) -> Result<f32> {
        Ok(f32::from_bits(self.word(i)?))
    }

    /// The byte number `i`, a flag.
    ///
    /// # Errors
    /// Those of [`Table::word`].
    pub fn flag(self, i: usize) -> Result<bool> {
        Ok(self.word(i / 4)?.to_le_bytes()[i % 4] != 0)
    }

    /// The list that the word number `i` points at, of integers.
    ///
    /// # Errors
    /// Those of [`File::list`].
    pub fn ints(self, i: usize) -> Result<Vec<i64>> {
        if let Some(Word::Shape) = self.order.and_then(|order| order.get(i)) {
            let own = Table {
                order: None,
                ..self
            };
            let dims = (0..4).map(|i| own.int(i)).collect::<Result<Vec<_>>>()?;
            let dims = dims.into_iter().filter(|&n| n != -2);
            return Ok(dims.map(|n| if n == 0 { 1 } else { n }).collect());
        }
        self.file.ints(self.word(i)?)
    }
}
