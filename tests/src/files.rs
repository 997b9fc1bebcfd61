//! Where cases are read from: a folder natively, an archive made by `build.rs` in the browser.

use std::collections::HashMap;

/// Files by their path relative to their folder.
pub trait Files {
    fn read(&self, path: &str) -> Option<Vec<u8>>;
}

/// A folder.
pub struct Folder(pub std::path::PathBuf);

impl Files for Folder {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.0.join(path)).ok()
    }
}

/// The archive of `build.rs`.
pub struct Archive {
    files: HashMap<String, &'static [u8]>,
}

impl Archive {
    /// The ONNX suite; `None` where the build had none.
    pub fn suite() -> Option<Archive> {
        Archive::read(include_bytes!(concat!(env!("OUT_DIR"), "/suite.bin")))
    }

    /// The cases of `references`, which builds for the browser have.
    pub fn references() -> Option<Archive> {
        Archive::read(include_bytes!(concat!(env!("OUT_DIR"), "/references.bin")))
    }

    fn read(mut rest: &'static [u8]) -> Option<Archive> {
        let mut part = || -> Option<&'static [u8]> {
            let (length, tail) = rest.split_at_checked(4)?;
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            let (part, tail) = tail.split_at_checked(length)?;
            rest = tail;
            Some(part)
        };
        let mut files = HashMap::new();
        while let (Some(name), Some(bytes)) = (part(), part()) {
            files.insert(String::from_utf8_lossy(name).into_owned(), bytes);
        }
        (!files.is_empty()).then_some(Archive { files })
    }
}

impl Files for Archive {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(path).map(|b| b.to_vec())
    }
}
