//! Files that count what is read of them, for the tests of the formats.

use std::sync::atomic::{AtomicUsize, Ordering};

use kilim_core::error::{Error, ErrorCode, Result};

use crate::FileParts;

/// A file in memory that counts the bytes that are read of it.
pub struct Counted {
    pub bytes: Vec<u8>,
    read: AtomicUsize,
}

impl Counted {
    pub fn new(bytes: Vec<u8>) -> Counted {
        Counted {
            bytes,
            read: AtomicUsize::new(0),
        }
    }

    /// The bytes that were read so far.
    pub fn read_so_far(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

impl FileParts for Counted {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.checked_add(to.len());
        let part = end.and_then(|end| self.bytes.get(offset..end));
        let part = part.ok_or_else(|| Error::new(ErrorCode::Io, "beyond the end"))?;
        to.copy_from_slice(part);
        self.read.fetch_add(to.len(), Ordering::Relaxed);
        Ok(())
    }
}
