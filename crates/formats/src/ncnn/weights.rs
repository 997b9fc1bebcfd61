//! The weights, one behind the other in the order of layers (`src/modelbin.cpp`). Some begin with a tag that says how they are
//! stored. All begin on a multiple of four bytes.

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::{Tensor, byte_count, element_count};
use kilim_core::{DType, Limits};

use super::invalid;
use crate::ModelFile;
use crate::beside::{Pair, zeros};

/// `m.param` or `m.param.bin` beside `m.bin`.
const FILES: Pair = Pair {
    format: "ncnn",
    networks: &[".param.bin", ".param"],
    weights: ".bin",
};

const HALVES: u32 = 0x0130_6B47;
const BYTES: u32 = 0x000D_4B38;
const SINGLES: u32 = 0x0002_C056;

/// The numbers of a table, which weights of a byte each are indices into.
const TABLE: usize = 256;

/// The file of the weights, read from the beginning on.
pub struct Weights<'a> {
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
    /// The file's path, or why it cannot be read.
    path: Result<String>,
    at: u64,
    /// Whether a layer before was refused, so that it is not known where weights begin.
    lost: bool,
    /// Whether weights were asked for that are not there.
    missed: bool,
}

impl<'a> Weights<'a> {
    /// The weights that belong to a network.
    pub fn of(source: &'a ModelFile<'a>, limits: &'a Limits) -> Weights<'a> {
        Weights {
            source,
            limits,
            path: FILES.weights_of(source, limits),
            at: 0,
            lost: false,
            missed: false,
        }
    }

    /// Says that the weights of a layer were not read: from here on there are no numbers, only shapes.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// Why weights that layers need are not there; nothing where they are, or the file is only looked at.
    ///
    /// # Errors
    /// What the source said of the file.
    pub fn check(&self) -> Result<()> {
        match &self.path {
            Err(error) if self.missed && !self.source.structure => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Weights in `float32` without a tag.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, `Limit` where they are too many.
    pub fn plain(&mut self, shape: &[usize]) -> Result<Tensor> {
        self.of_type(DType::F32, shape)
    }

    /// Weights with a tag, as they are stored: `float32`, `float16` or `int8`. Those in a table are looked up when they are read.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, `Limit` where they are too many.
    pub fn tagged(&mut self, shape: &[usize]) -> Result<Tensor> {
        if self.lost || self.path.is_err() {
            return self.plain(shape);
        }
        let tag = self.bytes(4)?;
        let tag = tag
            .read()?
            .iter()
            .rev()
            .fold(0, |word, &b| word << 8 | u32::from(b));
        match tag {
            HALVES => self.of_type(DType::F16, shape),
            BYTES => self.of_type(DType::I8, shape),
            0 | SINGLES => self.plain(shape),
            _ if tag.to_le_bytes().iter().any(|&b| b != 0) => self.in_table(shape),
            _ => Err(invalid("weights have an unknown tag")),
        }
    }

    /// Indices into a table of `float32`.
    fn in_table(&mut self, shape: &[usize]) -> Result<Tensor> {
        let count = element_count(shape)?;
        let table = self.bytes(TABLE * 4)?.bytes_as(DType::F32, &[TABLE])?;
        let table = table.as_slice::<f32>()?.to_vec();
        let indices = self.bytes(count)?;
        indices.later(DType::F32, shape, move |indices, from, to| {
            let mut part = [0; TABLE];
            for (i, to) in to.chunks_mut(4 * TABLE).enumerate() {
                let part = &mut part[..to.len() / 4];
                indices.copy_to(from / 4 + i * TABLE, part)?;
                for (to, &index) in to.chunks_exact_mut(4).zip(&*part) {
                    to.copy_from_slice(&table[usize::from(index)].to_ne_bytes());
                }
            }
            Ok(())
        })
    }

    fn of_type(&mut self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        self.bytes(byte_count(dtype, shape)?)?
            .bytes_as(dtype, shape)
    }

    /// The next bytes, and those up to a multiple of four passed over.
    fn bytes(&mut self, len: usize) -> Result<Tensor> {
        let path = match &self.path {
            Ok(path) if !self.lost => path,
            path => {
                self.missed |= path.is_err();
                return zeros(len);
            }
        };
        let part = self.source.external(path, self.at, len, self.limits);
        let part = part.map_err(|error| match error.code() {
            ErrorCode::InvalidModel => error.with_hint(FILES.hint()),
            _ => error,
        })?;
        let next = (len as u64)
            .checked_next_multiple_of(4)
            .and_then(|n| n.checked_add(self.at));
        self.at = next.ok_or_else(|| Error::new(ErrorCode::Limit, "the weights are too many"))?;
        Ok(part)
    }
}
