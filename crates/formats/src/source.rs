//! Where a model comes from, and what it may cost to read it.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::{CustomOperators, PictureReader};
use kilim_core::tensor::AlignedBytes;

use kilim_core::{DType, Interrupt, Limits, Tensor};

use crate::external::{ExternalFiles, NoFiles, check_path};

/// Bytes from which on data is worth reading when it is needed.
pub const LARGE: usize = 16 << 10;

/// The large ones among ranges of a file, in the order of the file; none where two share bytes.
pub(crate) fn large(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut large: Vec<_> = ranges.filter(|data| data.len() >= LARGE).collect();
    large.sort_by_key(|data| data.start);
    let apart = large.windows(2).all(|pair| pair[0].end <= pair[1].start);
    if apart { large } else { Vec::new() }
}

/// A model file that is not in memory.
pub trait FileParts {
    /// The file's bytes.
    fn size(&self) -> usize;

    /// Fills `to` from the byte `offset` on.
    ///
    /// # Errors
    /// `Io` where the file ends before, cannot be read or is another by now.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<()>;

    /// `len` bytes from `offset` on, which lie within the file: a tensor of `uint8`, which may read the file when it is needed
    /// ([`Tensor::on_demand`]). `None` of fewer than [`LARGE`] bytes, which are in memory.
    ///
    /// # Errors
    /// `Io` where they cannot be read, `Limit` where memory is short.
    fn part(&self, offset: usize, len: usize) -> Result<Option<Tensor>>;
}

/// A model file.
pub struct ModelFile<'a> {
    /// The file, as long as it is. Zeros may stand for data that [`ModelFile::part`] gives.
    pub bytes: Arc<AlignedBytes>,
    /// What gives parts of the file anew.
    parts: Option<&'a dyn FileParts>,
    /// The file's name: shown in errors, and looked at where a format has no magic bytes.
    pub name: &'a str,
    /// Files that the model refers to, by their path relative to the model's folder.
    external: &'a dyn ExternalFiles,
    /// Operators that the session brings. They take precedence over Kilim's own and over functions
    /// of the model.
    pub operators: CustomOperators,
    /// What decodes pictures; without one, ImageDecoder is refused.
    pub pictures: Option<PictureReader>,
    /// What may stop the import.
    pub interrupt: Interrupt,
    /// Whether a file of weights may be missing: its numbers are zeros then, and the model is only looked at.
    pub structure: bool,
}

/// Nodes that are imported before [`ModelFile::interrupt`] is asked again.
pub(crate) const NODES_PER_CHECK: usize = 1024;

impl<'a> ModelFile<'a> {
    /// A model that stands alone.
    pub fn new(bytes: Arc<AlignedBytes>, name: &'a str) -> ModelFile<'a> {
        ModelFile {
            bytes,
            parts: None,
            name,
            external: &NoFiles,
            operators: CustomOperators::default(),
            pictures: None,
            interrupt: Interrupt::NEVER,
            structure: false,
        }
    }

    /// A model whose bytes in memory are to go when it is read: `parts` gives its data.
    pub fn with_parts(mut self, parts: &'a dyn FileParts) -> ModelFile<'a> {
        self.parts = Some(parts);
        self
    }

    /// A model in memory in the place of this one, for an importer that rewrites its format as another: `name`, the files beside it and all
    /// else stay.
    pub fn rewritten(&self, bytes: Arc<AlignedBytes>) -> ModelFile<'a> {
        ModelFile {
            bytes,
            parts: None,
            operators: self.operators.clone(),
            interrupt: self.interrupt.clone(),
            ..*self
        }
    }

    /// Says that the model may have nodes of these operators.
    pub fn with_operators(mut self, operators: &CustomOperators) -> ModelFile<'a> {
        self.operators = operators.clone();
        self
    }

    /// A model that is only looked at, without its weights where they are missing. A model that names the files of its weights needs
    /// them all the same.
    pub fn with_structure_only(mut self, structure: bool) -> ModelFile<'a> {
        self.structure = structure;
        self
    }

    /// A model whose import may be stopped.
    pub fn with_interrupt(mut self, interrupt: &Interrupt) -> ModelFile<'a> {
        self.interrupt = interrupt.clone();
        self
    }

    /// A model that may decode pictures.
    pub fn with_pictures(mut self, reader: Option<PictureReader>) -> ModelFile<'a> {
        self.pictures = reader;
        self
    }

    /// A model whose weights may lie in other files of its folder.
    pub fn with_external(mut self, external: &'a dyn ExternalFiles) -> ModelFile<'a> {
        self.external = external;
        self
    }

    /// The files that were given along with the model, where they are known.
    pub fn external_names(&self) -> Vec<String> {
        self.external.names()
    }

    /// `len` bytes of the model file from `offset` on, as a tensor of `uint8` that shares them or reads them when it is needed.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, `Limit` where memory is short, `Io` where the file cannot be read any more.
    pub fn part(&self, offset: usize, len: usize) -> Result<Tensor> {
        if offset
            .checked_add(len)
            .is_none_or(|end| end > self.bytes.len())
        {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                "the file ends before the data of a tensor",
            ));
        }
        let view = Tensor::view(DType::U8, &[len], self.bytes.clone(), offset, len)?;
        let Some(parts) = self.parts else {
            return Ok(view);
        };
        match parts.part(offset, len)? {
            Some(part) => Ok(part),
            None => Tensor::from_raw(DType::U8, &[len], view.read()?),
        }
    }

    /// The bytes of a file of the model's folder.
    ///
    /// # Errors
    /// `InvalidModel` where the path leaves the folder, `Limit` where the file is larger than allowed, else what the source says.
    pub fn external_size(&self, path: &str, limits: &Limits) -> Result<usize> {
        check_path(path)?;
        let size = self.external.size(path)?;
        limits.check_file(size)?;
        Ok(size)
    }

    /// `len` bytes of a file of the model's folder, from `offset` on, as a tensor of `uint8`.
    ///
    /// # Errors
    /// `InvalidModel` where the path leaves the folder or the file ends before, `Limit` where the file is
    /// larger than allowed, else what the source says.
    pub fn external(
        &self,
        path: &str,
        offset: usize,
        len: usize,
        limits: &Limits,
    ) -> Result<Tensor> {
        let size = self.external_size(path, limits)?;
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                format!("the external file `{path}` ends before the data of a tensor"),
            ));
        }
        self.external.part(path, offset, len)
    }
}
