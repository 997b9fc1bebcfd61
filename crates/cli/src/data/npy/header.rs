//! The words before the elements of a `.npy` file: numpy's enhancement proposal 1 and its
//! `numpy.lib.format`.

use std::io::Read;

use kilim::{DType, Error, ErrorCode, Result};

use super::unreadable;

const MAGIC: &[u8] = b"\x93NUMPY";

/// No array that is a tensor needs more words; longer headers list the fields of records.
const LONGEST: usize = 1 << 16;

/// What the elements of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Number(DType),
    /// Texts of so many bytes, filled up with zeros.
    Bytes(usize),
    /// Texts of so many letters of four bytes each, filled up with zeros.
    Letters(usize),
}

/// What stands before the elements.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub element: Element,
    pub big_endian: bool,
    /// The first axis varies fastest.
    pub fortran: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads a header, and gives the number of bytes that it took.
    ///
    /// # Errors
    /// `Io` where there is none, `DType` where the elements are no tensor's.
    pub fn read(reader: &mut dyn Read) -> Result<(Header, u64)> {
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(unreadable)?;
        let Some(&[version, _]) = start.strip_prefix(MAGIC) else {
            return Err(garbled("it does not begin as one"));
        };
        let mut length = [0; 4];
        let wide = match version {
            1 => 2,
            2 | 3 => 4,
            _ => return Err(garbled(format!("version {version} is not known"))),
        };
        reader.read_exact(&mut length[..wide]).map_err(unreadable)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(garbled(format!("its header has {length} bytes")));
        }
        let mut words = vec![0; length];
        reader.read_exact(&mut words).map_err(unreadable)?;
        let words = String::from_utf8(words).map_err(|_| garbled("its header is not text"))?;
        let took = (start.len() + wide + length) as u64;
        Ok((Header::parse(&words)?, took))
    }

    /// Reads the dictionary, a literal of Python's.
    fn parse(words: &str) -> Result<Header> {
        let mut words = Words(words);
        let (mut element, mut fortran, mut shape) = (None, None, None);
        words.need('{')?;
        while !words.take('}') {
            let key = words.text()?;
            words.need(':')?;
            match key {
                "descr" => element = Some(words.element()?),
                "fortran_order" => fortran = Some(words.truth()?),
                "shape" => shape = Some(words.sizes()?),
                other => return Err(garbled(format!("its header has the key `{other}`"))),
            }
            if !words.take(',') {
                words.need('}')?;
                break;
            }
        }
        match (element, fortran, shape) {
            (Some((element, big_endian)), Some(fortran), Some(shape)) => Ok(Header {
                element,
                big_endian,
                fortran,
                shape,
            }),
            _ => Err(garbled(
                "its header lacks `descr`, `fortran_order` or `shape`",
            )),
        }
    }

    /// The bytes of the header of an array in C order whose elements are written as `descr` says.
    ///
    /// # Errors
    /// `Limit` for a shape that takes more words than the format has room for.
    pub fn write(descr: &str, shape: &[usize]) -> Result<Vec<u8>> {
        let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
        let words = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
        // Elements begin at multiples of 64 bytes, and the header ends with a new line.
        let start = MAGIC.len() + 4;
        let length = (start + words.len() + 1).next_multiple_of(64) - start;
        let told = u16::try_from(length).map_err(|_| {
            let message = "a shape has too many dimensions for a .npy file";
            Error::new(ErrorCode::Limit, message).with_got(shape.len())
        })?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(told.to_le_bytes());
        bytes.extend(words.as_bytes());
        bytes.resize(start + length - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn garbled(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::Io, format!("not a .npy file: {what}"))
}

/// What is left of a dictionary.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// Skips a sign, if it is next.
    fn take(&mut self, sign: char) -> bool {
        self.0 = self.0.trim_start();
        match self.0.strip_prefix(sign) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, sign: char) -> Result<()> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(self.wrong(&format!("`{sign}`"))),
        }
    }

    fn wrong(&self, expected: &str) -> Error {
        let got: String = self.0.chars().take(16).collect();
        garbled("its header is malformed")
            .with_expected(expected)
            .with_got(got)
    }

    /// A text in quotation marks of either kind.
    fn text(&mut self) -> Result<&'a str> {
        let mut marks = ['\'', '"'].into_iter();
        let mark = marks.find(|&mark| self.take(mark));
        let mark = mark.ok_or_else(|| self.wrong("a text"))?;
        let rest = self.0.split_once(mark);
        let (text, rest) = rest.ok_or_else(|| self.wrong("the end of a text"))?;
        self.0 = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool> {
        self.0 = self.0.trim_start();
        for (word, truth) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(truth);
            }
        }
        Err(self.wrong("True or False"))
    }

    /// A tuple of sizes.
    fn sizes(&mut self) -> Result<Vec<usize>> {
        self.need('(')?;
        let mut sizes = Vec::new();
        while !self.take(')') {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit());
            let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
            let size = digits.parse().map_err(|_| self.wrong("a size"))?;
            sizes.push(size);
            // Python 2 wrote 3L.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.need(')')?;
                break;
            }
        }
        Ok(sizes)
    }

    /// The type of the elements, and whether the highest byte of one comes first.
    fn element(&mut self) -> Result<(Element, bool)> {
        if self.take('[') {
            return Err(Error::new(ErrorCode::DType, "records are not tensors"));
        }
        let descr = self.text()?;
        let unknown = || {
            let message = "this numpy type is not supported";
            Error::new(ErrorCode::DType, message).with_got(descr)
        };
        let (order, rest) = match descr.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &descr[1..]),
            _ => ('=', descr),
        };
        let mut letters = rest.chars();
        let kind = letters.next().ok_or_else(unknown)?;
        let size: usize = letters.as_str().parse().map_err(|_| unknown())?;
        let element = match (kind, size) {
            ('f', 2) => Element::Number(DType::F16),
            ('f', 4) => Element::Number(DType::F32),
            ('f', 8) => Element::Number(DType::F64),
            ('i', 1) => Element::Number(DType::I8),
            ('i', 2) => Element::Number(DType::I16),
            ('i', 4) => Element::Number(DType::I32),
            ('i', 8) => Element::Number(DType::I64),
            ('u', 1) => Element::Number(DType::U8),
            ('u', 2) => Element::Number(DType::U16),
            ('u', 4) => Element::Number(DType::U32),
            ('u', 8) => Element::Number(DType::U64),
            ('b', 1) => Element::Number(DType::Bool),
            ('c', 8) => Element::Number(DType::C64),
            ('c', 16) => Element::Number(DType::C128),
            ('S' | 'a', bytes) => Element::Bytes(bytes),
            ('U', letters) => Element::Letters(letters),
            _ => return Err(unknown()),
        };
        Ok((element, order == '>'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_of_numpy_are_read() {
        let number = |dtype, big_endian, fortran, shape: &[usize]| Header {
            element: Element::Number(dtype),
            big_endian,
            fortran,
            shape: shape.to_vec(),
        };
        for (words, header) in [
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
                number(DType::F32, false, false, &[2, 3]),
            ),
            (
                "{\"shape\":(5,),\"fortran_order\":True,\"descr\":\">i8\"}",
                number(DType::I64, true, true, &[5]),
            ),
            (
                "{'descr': '|b1', 'fortran_order': False, 'shape': (3L, 4L)}",
                number(DType::Bool, false, false, &[3, 4]),
            ),
            (
                "{'descr': 'f2', 'fortran_order': False, 'shape': ()}",
                number(DType::F16, false, false, &[]),
            ),
        ] {
            assert_eq!(Header::parse(words).unwrap(), header, "{words}");
        }
        let texts = "{'descr': '<U7', 'fortran_order': False, 'shape': (1,)}";
        assert_eq!(Header::parse(texts).unwrap().element, Element::Letters(7));
    }

    #[test]
    fn other_words_are_errors() {
        let rest = "'fortran_order': False, 'shape': (2,)}";
        let nested = format!("{{'descr': {}, {rest}", "[".repeat(20_000));
        for (words, code) in [
            (format!("{{'descr': '<f3', {rest}"), ErrorCode::DType),
            (format!("{{'descr': '|O', {rest}"), ErrorCode::DType),
            (format!("{{'descr': '<', {rest}"), ErrorCode::DType),
            (format!("{{'descr': '', {rest}"), ErrorCode::DType),
            (
                format!("{{'descr': [('a', '<f4')], {rest}"),
                ErrorCode::DType,
            ),
            (nested, ErrorCode::DType),
            (format!("{{{rest}"), ErrorCode::Io),
            ("{'descr': '<f4".to_string(), ErrorCode::Io),
            (format!("{{'descr': '<f4' {rest}"), ErrorCode::Io),
            (
                "{'descr': '<f4', 'shape': (-1,)}".to_string(),
                ErrorCode::Io,
            ),
            (
                "{'shape': (99999999999999999999,)}".to_string(),
                ErrorCode::Io,
            ),
            ("{'shape': (1 2)}".to_string(), ErrorCode::Io),
            ("{'shape': ((1))}".to_string(), ErrorCode::Io),
            ("{'fortran_order': 1}".to_string(), ErrorCode::Io),
            ("{'shape'".to_string(), ErrorCode::Io),
            ("{".to_string(), ErrorCode::Io),
            (String::new(), ErrorCode::Io),
        ] {
            let error = Header::parse(&words).unwrap_err();
            assert_eq!(error.code(), code, "{words:.60}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for shape in [&[][..], &[7], &[2, 3, 4], &[1; 20_000]] {
            let bytes = Header::write("<f8", shape).unwrap();
            assert!(bytes.len().is_multiple_of(64));
            let (header, took) = Header::read(&mut &bytes[..]).unwrap();
            assert_eq!((header.shape.as_slice(), took), (shape, bytes.len() as u64));
            assert_eq!(header.element, Element::Number(DType::F64));
        }
        let error = Header::write("<f8", &[1; 30_000]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
    }

    #[test]
    fn files_that_begin_otherwise_are_none() {
        let good = Header::write("<f4", &[1]).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for bytes in [
            b"no array at all".to_vec(),
            Vec::new(),
            good[..9].to_vec(),
            good[..40].to_vec(),
            with(6, 9),
            // A version whose length has four bytes.
            with(6, 2),
            with(12, 0xff),
        ] {
            let error = Header::read(&mut &bytes[..]).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Io, "{error}");
        }
    }
}
