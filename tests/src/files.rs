//! Where cases are read from: a folder natively, an archive made by `build.rs` in the browser, and the archives of
//! `references/`.

use std::collections::HashMap;

use kilim_test_support::archive::Cases;

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

/// The ONNX suite in the archive of `build.rs`.
pub struct Suite {
    files: HashMap<String, &'static [u8]>,
}

impl Suite {
    /// `None` where the build had no suite.
    pub fn embedded() -> Option<Suite> {
        Suite::read(include_bytes!(concat!(env!("OUT_DIR"), "/suite.bin")))
    }

    fn read(mut rest: &'static [u8]) -> Option<Suite> {
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
        (!files.is_empty()).then_some(Suite { files })
    }
}

impl Files for Suite {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.files.get(path).map(|b| b.to_vec())
    }
}

impl Files for Cases {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        match path {
            "index.json" => Some(self.index.to_vec()),
            _ => self.archive.get(path).map(<[u8]>::to_vec),
        }
    }
}

/// Declares the kinds of cases in `references/` that every backend runs. Builds for the browser carry them along.
macro_rules! references {
    ($($kind:literal),*) => {
        /// The kinds of cases that other runtimes gave the results of.
        pub const REFERENCES: &[&str] = &[$($kind),*];

        /// The cases of one kind.
        ///
        /// # Panics
        /// Where there is no such kind.
        #[cfg(target_arch = "wasm32")]
        pub fn references(kind: &str) -> Cases {
            match kind {
                $($kind => Cases::new(
                    &include_bytes!(concat!("../references/", $kind, ".zip"))[..],
                    &include_bytes!(concat!("../references/", $kind, ".json"))[..],
                ),)*
                _ => panic!("there are no cases of {kind}"),
            }
        }
    };
}

references!(
    "tflite",
    "circle",
    "variables",
    "microsoft",
    "ort",
    "ncnn",
    "mnn",
    "pnnx",
    "tnn",
    "tengine",
    "gguf",
    "safetensors",
    "opsets",
    "graphs",
    "rules",
    "pictures",
    "frameworks",
    "language"
);

/// The cases of one kind.
///
/// # Panics
/// Where there is no such kind.
#[cfg(not(target_arch = "wasm32"))]
pub fn references(kind: &str) -> Cases {
    Cases::of(kind)
}
