//! The memory behind the tensors of an arena.

use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result};

use super::io::View;

/// Host memory that is only ever reached through views of its base.
pub struct CpuMemory {
    base: View,
    _bytes: AlignedBytes,
}

// SAFETY: the base points into the bytes that it goes along with.
unsafe impl Send for CpuMemory {}

impl CpuMemory {
    pub fn new(mut bytes: AlignedBytes) -> CpuMemory {
        CpuMemory {
            base: View::of_mut(bytes.as_mut_slice(), DType::U8),
            _bytes: bytes,
        }
    }

    pub fn zeroed(bytes: usize) -> Result<CpuMemory> {
        AlignedBytes::zeroed(bytes).map(CpuMemory::new)
    }

    pub fn base(&self) -> View {
        self.base
    }
}
