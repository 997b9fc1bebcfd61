//! The weights of a network: files `OPERATOR.NAME` of a zip archive, their numbers as they lie in memory (`storezip.cpp`).

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::{Tensor, byte_count};

use super::text::{OperatorInfo, element_type};
use crate::ModelFile;
use crate::beside::{Pair, zeros};
use crate::onnx::raw;
use crate::zip::Directory;

use super::invalid;

/// `m.pnnx.param` beside `m.pnnx.bin`.
const FILES: Pair = Pair {
    format: "PNNX",
    networks: &[".param"],
    weights: ".bin",
};

/// The archive of the weights.
pub struct Weights<'a> {
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
    /// The file's path with what it holds, or why it cannot be read.
    found: Result<(String, Directory)>,
    /// Whether weights were asked for that are not there.
    missed: bool,
}

impl<'a> Weights<'a> {
    /// The weights that belong to a network.
    ///
    /// # Errors
    /// `InvalidModel` where the file beside it is no archive.
    pub fn of(source: &'a ModelFile<'a>, limits: &'a Limits) -> Result<Weights<'a>> {
        let found = FILES.weights_of(source, limits);
        let found = match found {
            Ok(path) => {
                let size = usize::try_from(source.external_size(&path, limits)?).map_err(|_| {
                    Error::new(ErrorCode::Limit, "the archive of the weights is too large")
                        .with_input(&path)
                })?;
                let read = |from, len| bytes(source, limits, &path, from, len);
                let directory = Directory::read(size, read)?.ok_or_else(|| {
                    let e = invalid("the file of the weights is no zip archive");
                    e.with_input(&path).with_hint(FILES.hint())
                })?;
                Ok((path, directory))
            }
            Err(error) => Err(error),
        };
        Ok(Weights {
            source,
            limits,
            found,
            missed: false,
        })
    }

    /// Why weights that operators need are not there; nothing where they are, or the file is only looked at.
    ///
    /// # Errors
    /// What the source said of the file.
    pub fn check(&self) -> Result<()> {
        match &self.found {
            Err(error) if self.missed && !self.source.structure => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Weights of an operator; `None` where its line does not name them.
    ///
    /// # Errors
    /// `InvalidModel` where the archive does not have them, or another number; `Unsupported` for complex numbers.
    pub fn get(&mut self, info: &OperatorInfo, name: &str) -> Result<Option<Tensor>> {
        let Some((dtype, shape)) = info.weights.get(name) else {
            return Ok(None);
        };
        let dtype = element_type(dtype)?;
        let Ok((path, directory)) = &self.found else {
            self.missed = true;
            let missing = zeros(byte_count(dtype, shape)?)?;
            return missing.bytes_as(dtype, shape).map(Some);
        };
        let read = |from, len| bytes(self.source, self.limits, path, from, len);
        let hinted = |error: Error| match error.code() {
            ErrorCode::InvalidModel => error.with_hint(FILES.hint()),
            _ => error,
        };
        let file = format!("{}.{name}", info.name);
        let place = directory.stored(&file, read).map_err(hinted)?;
        let part = self
            .source
            .external(path, place.start as u64, place.len(), self.limits)?;
        raw(dtype, shape, &part).map_err(hinted).map(Some)
    }
}

fn bytes(
    source: &ModelFile,
    limits: &Limits,
    path: &str,
    from: usize,
    len: usize,
) -> Result<Vec<u8>> {
    let part = source.external(path, from as u64, len, limits)?;
    Ok(part.read()?.to_vec())
}
