//! Where a model comes from, and what it may cost to read it.

use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::{CustomOperators, PictureReader};
use kilim_core::tensor::AlignedBytes;

/// Gives the bytes of a file that lies beside the model.
pub type ExternalFiles<'a> = dyn Fn(&str) -> Result<Arc<AlignedBytes>> + 'a;

/// A model file.
pub struct ModelSource<'a> {
    pub bytes: Arc<AlignedBytes>,
    /// The file's name: shown in errors, and looked at where a format has no magic bytes.
    pub name: &'a str,
    /// Files that the model refers to, by their path relative to the model's folder.
    external: &'a ExternalFiles<'a>,
    /// Operators that the session brings. They take precedence over Kilim's own and over functions
    /// of the model.
    pub operators: CustomOperators,
    /// What decodes pictures; without one, ImageDecoder is refused.
    pub pictures: Option<PictureReader>,
}

impl<'a> ModelSource<'a> {
    /// A model that stands alone.
    pub fn new(bytes: Arc<AlignedBytes>, name: &'a str) -> ModelSource<'a> {
        ModelSource {
            bytes,
            name,
            external: &no_files,
            operators: CustomOperators::default(),
            pictures: None,
        }
    }

    /// A model that may have nodes of these operators.
    pub fn with_operators(mut self, operators: &CustomOperators) -> ModelSource<'a> {
        self.operators = operators.clone();
        self
    }

    /// A model that may decode pictures.
    pub fn with_pictures(mut self, reader: Option<PictureReader>) -> ModelSource<'a> {
        self.pictures = reader;
        self
    }

    /// A model whose weights may lie in other files of its folder.
    pub fn with_external(mut self, external: &'a ExternalFiles<'a>) -> ModelSource<'a> {
        self.external = external;
        self
    }

    /// A file of the model's folder.
    ///
    /// # Errors
    /// `InvalidModel` where the path leaves the folder, else what the source says.
    pub fn external(&self, path: &str) -> Result<Arc<AlignedBytes>> {
        let inside = !path.is_empty()
            && !path.contains(['\\', ':', '\0'])
            && path
                .split('/')
                .enumerate()
                .all(|(i, part)| part != ".." && !(part.is_empty() && i == 0));
        if !inside {
            return Err(Error::new(
                ErrorCode::InvalidModel,
                format!("the external file `{path}` is not in the model's folder"),
            ));
        }
        (self.external)(path)
    }
}

fn no_files(path: &str) -> Result<Arc<AlignedBytes>> {
    Err(Error::new(
        ErrorCode::Io,
        format!("the model needs the external file `{path}`"),
    )
    .with_hint("give the files that belong to the model along with it"))
}

/// What a model may cost before it is refused with `Limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the model file, and of each file that belongs to it.
    pub bytes: usize,
    /// Nodes in all graphs together, with functions written out.
    pub nodes: usize,
    /// Nesting of messages, subgraphs and functions.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: usize::MAX,
            nodes: 1 << 20,
            depth: 24,
        }
    }
}

impl Limits {
    /// `Limit` where a file is larger than allowed.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            return Err(Error::new(ErrorCode::Limit, "the model file is too large")
                .with_expected(format!("at most {} bytes", self.bytes))
                .with_got(format!("{bytes} bytes")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_paths_stay_in_the_folder() {
        let give = |_: &str| AlignedBytes::copy_of(&[1, 2, 3]).map(Arc::new);
        let bytes = Arc::new(AlignedBytes::default());
        let source = ModelSource::new(bytes.clone(), "m").with_external(&give);
        for path in ["w.bin", "data/w.bin", "./w.bin", "a..b"] {
            assert!(source.external(path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/etc/passwd",
            "../w.bin",
            "data/../../w",
            "..",
            "C:\\w",
            "a\\..\\b",
            "c:w",
        ] {
            let error = source.external(path).err().map(|e| e.code());
            assert_eq!(error, Some(ErrorCode::InvalidModel), "{path}");
        }
        let alone = ModelSource::new(bytes, "m").external("w.bin");
        assert_eq!(alone.err().map(|e| e.code()), Some(ErrorCode::Io));
    }
}
