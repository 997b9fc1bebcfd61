//! Where a model comes from, and what it may cost to read it.

use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::{CustomOperators, PictureReader};
use kilim_core::tensor::AlignedBytes;

use kilim_core::{DType, Interrupt, Limits, Tensor};

use crate::external::{ExternalFiles, NoFiles, check_path};
use crate::parts::{FileParts, LARGE, Outline, Parted, Pieces};

/// A model file.
pub struct ModelFile<'a> {
    /// The file; of one that is read part by part an outline, without the data that [`ModelFile::part`] gives.
    pub bytes: Arc<AlignedBytes>,
    /// What gives parts of the file, and where the pieces of the outline lie, there and in the file.
    parts: Option<(&'a Parted, Pieces)>,
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

    /// A model that is read part by part: of the file `parts` it has the outline that [`crate::ImporterRegistry::read`] made.
    pub fn parted(parts: &'a Parted, outline: Outline, name: &'a str) -> ModelFile<'a> {
        let (bytes, pieces) = outline.into_parts();
        ModelFile {
            parts: Some((parts, pieces.into())),
            ..ModelFile::new(bytes, name)
        }
    }

    /// The file's bytes.
    pub fn size(&self) -> u64 {
        match &self.parts {
            Some((parts, _)) => parts.file().size(),
            None => self.bytes.len() as u64,
        }
    }

    /// Whether data of the file is not among [`ModelFile::bytes`].
    pub(crate) fn is_outline(&self) -> bool {
        self.size() != self.bytes.len() as u64
    }

    /// Where the pieces of the outline begin, in memory and in the file; none where all of the file is in memory.
    pub(crate) fn pieces(&self) -> &[(usize, u64)] {
        self.parts.as_ref().map_or(&[], |(_, pieces)| pieces)
    }

    /// The file, where only an outline of it is in memory.
    pub(crate) fn lying(&self) -> Option<&dyn FileParts> {
        let (parts, _) = self.parts.as_ref().filter(|_| self.is_outline())?;
        Some(parts.file())
    }

    /// Fills `to` from the byte `offset` of the file on.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, `Io` where it cannot be read any more.
    pub(crate) fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.check_end(offset, to.len())?;
        match &self.parts {
            Some((parts, _)) => parts.file().read(offset, to),
            None => {
                let bytes = &self.bytes.as_slice()[offset as usize..];
                to.copy_from_slice(&bytes[..to.len()]);
                Ok(())
            }
        }
    }

    fn check_end(&self, offset: u64, len: usize) -> Result<()> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.size() => Ok(()),
            _ => Err(Error::new(
                ErrorCode::InvalidModel,
                "the file ends before the data of a tensor",
            )),
        }
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
    pub fn part(&self, offset: u64, len: usize) -> Result<Tensor> {
        self.check_end(offset, len)?;
        match &self.parts {
            Some((parts, _)) if self.is_outline() => parts.part(offset, len),
            _ => self.shared(offset as usize, len),
        }
    }

    /// `len` bytes from `at` on of [`ModelFile::bytes`], as a tensor of `uint8` that shares them or reads the file when it is needed.
    ///
    /// # Errors
    /// `Shape` where they end before, `Limit` where memory is short, `Io` where the file cannot be read any more.
    pub fn shared(&self, at: usize, len: usize) -> Result<Tensor> {
        let view = Tensor::view(DType::U8, &[len], self.bytes.clone(), at, len)?;
        match &self.parts {
            None => Ok(view),
            Some((parts, pieces)) if len >= LARGE => parts.part(Outline::place(pieces, at), len),
            // The bytes in memory go when the model is read.
            Some(_) => Tensor::from_raw(DType::U8, &[len], view.read()?),
        }
    }

    /// The bytes of a file of the model's folder.
    ///
    /// # Errors
    /// `InvalidModel` where the path leaves the folder, `Limit` where the file is larger than allowed, else what the source says.
    pub fn external_size(&self, path: &str, limits: &Limits) -> Result<u64> {
        check_path(path)?;
        let size = self.external.size(path)?;
        limits.check_file(size)?;
        Ok(size)
    }

    /// A file of the model's folder as a tensor of `uint8`.
    ///
    /// # Errors
    /// What [`ModelFile::external`] says; `Limit` where memory is too small for the file.
    pub fn whole_external(&self, path: &str, limits: &Limits) -> Result<Tensor> {
        let size = self.external_size(path, limits)?;
        let len = usize::try_from(size).map_err(|_| {
            let e = Error::new(ErrorCode::Limit, format!("the file `{path}` is too large"));
            e.with_got(format!("{size} bytes"))
        })?;
        self.external.part(path, 0, len)
    }

    /// `len` bytes of a file of the model's folder, from `offset` on, as a tensor of `uint8`.
    ///
    /// # Errors
    /// `InvalidModel` where the path leaves the folder or the file ends before, `Limit` where the file is
    /// larger than allowed, else what the source says.
    pub fn external(&self, path: &str, offset: u64, len: usize, limits: &Limits) -> Result<Tensor> {
        let size = self.external_size(path, limits)?;
        if offset.checked_add(len as u64).is_none_or(|end| end > size) {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                format!("the external file `{path}` ends before the data of a tensor"),
            ));
        }
        self.external.part(path, offset, len)
    }
}
