//! Host memory of an arena.

use crate::error::Result;
use crate::tensor::AlignedBytes;

/// Bytes that several executables read and write, one after another, and only through
/// [`HostMemory::base`]: a reference to them would end the life of every pointer made before.
pub struct HostMemory {
    base: *mut u8,
    bytes: AlignedBytes,
}

// SAFETY: the base points into the bytes that it goes along with.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Memory of the length of `bytes`, which hold what was in them.
    pub fn new(mut bytes: AlignedBytes) -> HostMemory {
        HostMemory {
            base: bytes.as_mut_slice().as_mut_ptr(),
            bytes,
        }
    }

    /// # Errors
    /// `Limit` where the machine has no such memory.
    pub fn zeroed(bytes: usize) -> Result<HostMemory> {
        AlignedBytes::zeroed(bytes).map(HostMemory::new)
    }

    /// Where the memory begins, and its bytes. It stays there as long as this lives.
    pub fn base(&self) -> (*mut u8, usize) {
        (self.base, self.bytes.len())
    }
}
