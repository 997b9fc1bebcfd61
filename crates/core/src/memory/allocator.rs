//! Where a backend's intermediates get their memory.

use super::{ArenaMemory, HostMemory};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::threading::{MaybeSend, MaybeSync};

/// The part of a backend that has the memory of intermediates: how many bytes a tensor takes there,
/// and the memory itself, in one piece for each arena. The core plans what lies where in it.
pub trait Allocator: MaybeSend + MaybeSync {
    /// Bytes that a tensor takes in an arena.
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        tensor.bytes()
    }

    /// Memory of `bytes` bytes, which begins at a multiple of the backend's alignment. It is asked
    /// for when all of a session's stages are planned, and again when they have come to need more.
    ///
    /// # Errors
    /// `Limit` where there is not so much; `Unsupported` where the backend has no such memory;
    /// `Device` where it fails.
    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>>;

    /// Takes back what [`Allocator::allocate`] gave: the arena grows, is cleared, or goes.
    fn release(&self, memory: Box<dyn ArenaMemory>) {
        drop(memory);
    }
}

/// The allocator of backends that bring none: zeroed memory of the host, as [`HostMemory`].
#[derive(Clone, Copy, Debug, Default)]
pub struct HostAllocator;

impl Allocator for HostAllocator {
    fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
        Ok(Box::new(HostMemory::zeroed(bytes)?))
    }
}
