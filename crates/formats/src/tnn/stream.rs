//! The file of the weights, read from the beginning on (`interpreter/tnn/objseri.h`): numbers, texts, and buffers with a head each.

use kilim_core::Limits;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::{Tensor, byte_count};

use super::invalid;
use super::model::element_type;
use crate::ModelFile;

/// The head of a buffer that gives its dimensions.
pub const WITH_DIMS: u32 = 0xFABC_0004;

/// Dimensions that a buffer may have.
const MOST_DIMS: i32 = 16;

/// Bytes that a text may have.
const MOST_TEXT: i32 = 1 << 16;

/// Numbers as a file stores them. Older files do not give their dimensions.
#[derive(Clone)]
pub struct Buffer {
    pub tensor: Tensor,
    pub has_dims: bool,
}

impl Buffer {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.tensor.len()
    }

    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }
}

/// The weights beside a network.
pub struct Stream<'a> {
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
    path: &'a str,
    size: u64,
    at: u64,
}

impl<'a> Stream<'a> {
    /// A file of `size` bytes beside the network.
    pub fn new(
        source: &'a ModelFile<'a>,
        limits: &'a Limits,
        path: &'a str,
        size: u64,
    ) -> Stream<'a> {
        Stream {
            source,
            limits,
            path,
            size,
            at: 0,
        }
    }

    /// Bytes that were not read.
    pub fn left(&self) -> u64 {
        self.size - self.at
    }

    fn bytes(&mut self, len: usize) -> Result<Tensor> {
        let part = self.source.external(self.path, self.at, len, self.limits)?;
        self.at += len as u64;
        Ok(part)
    }

    fn small<const N: usize>(&mut self) -> Result<[u8; N]> {
        let part = self.bytes(N)?;
        let bytes = part.read()?.try_into();
        bytes.map_err(|_| Error::new(ErrorCode::Io, "fewer bytes than the file has"))
    }

    /// The next word, which stays the next.
    pub fn peek(&mut self) -> Result<u32> {
        let at = self.at;
        let word = self.word();
        self.at = at;
        word
    }

    pub fn word(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.small()?))
    }

    pub fn int(&mut self) -> Result<i32> {
        Ok(self.word()? as i32)
    }

    /// A flag of one byte.
    pub fn flag(&mut self) -> Result<bool> {
        let [byte] = self.small()?;
        Ok(byte != 0)
    }

    pub fn text(&mut self) -> Result<String> {
        let len = self.int()?;
        if !(0..=MOST_TEXT).contains(&len) {
            return Err(invalid("a name in the weights has no length that can be").with_got(len));
        }
        let part = self.bytes(len as usize)?;
        Ok(String::from_utf8_lossy(part.read()?).into_owned())
    }

    /// A buffer; `None` where it is empty.
    ///
    /// # Errors
    /// `InvalidModel` where it is garbled, `Unsupported` where its element type is not known.
    pub fn buffer(&mut self) -> Result<Option<Buffer>> {
        let (head, dtype, len) = (self.word()?, self.int()?, self.int()?);
        if len <= 0 {
            return Ok(None);
        }
        let dtype = element_type(dtype.into())?;
        let mut dims = Vec::new();
        if head == WITH_DIMS {
            let rank = self.int()?;
            if !(0..=MOST_DIMS).contains(&rank) {
                return Err(
                    invalid("a buffer of the weights has too many dimensions").with_got(rank)
                );
            }
            for _ in 0..rank {
                let dim = usize::try_from(self.int()?);
                dims.push(dim.map_err(|_| invalid("a dimension of the weights is negative"))?);
            }
        }
        let len = len as usize;
        let has_dims = head == WITH_DIMS && byte_count(dtype, &dims)? == len;
        if !has_dims {
            if !len.is_multiple_of(dtype.size()) {
                return Err(invalid("a buffer of the weights ends within a number"));
            }
            dims = vec![len / dtype.size()];
        }
        let tensor = self.bytes(len)?.bytes_as(dtype, &dims)?;
        Ok(Some(Buffer { tensor, has_dims }))
    }
}
