//! The memory that an executable needs beside constants.

use std::sync::{Arc, Weak};

use kilim_core::Result;
use kilim_core::memory::{Claim, Ledger, Storage};

use super::binder::scratch_start;
use crate::device::gpu::{Gpu, GpuBuffer};

/// How the arena is divided, and the buffers that belong to the stage alone.
#[derive(Clone, Default)]
pub(crate) struct Room {
    /// Bytes that the tensors take.
    tensors: u64,
    /// Where scratch begins in the arena.
    pub scratch_at: u64,
    /// Bytes of scratch: of the node that needs most.
    scratch: u64,
    own: Vec<Weak<GpuBuffer>>,
}

impl Room {
    /// Room for tensors of `arena_bytes` and so many bytes of scratch.
    pub fn new(gpu: &Gpu, arena_bytes: usize, scratch: u64) -> Room {
        Room {
            tensors: arena_bytes as u64,
            scratch_at: scratch_start(gpu, arena_bytes),
            scratch,
            own: Vec::new(),
        }
    }

    /// The room of a stage that was changed; scratch grows and never shrinks.
    pub fn adapted(&mut self, gpu: &Gpu, arena_bytes: usize, scratch: u64) {
        *self = Room {
            own: std::mem::take(&mut self.own),
            ..Room::new(gpu, arena_bytes, self.scratch.max(scratch))
        };
    }

    /// Takes buffers up that belong to the stage, and forgets those that are gone.
    pub fn own(&mut self, buffers: &[Arc<GpuBuffer>]) {
        self.own.retain(|buffer| buffer.strong_count() > 0);
        self.own.extend(buffers.iter().map(Arc::downgrade));
    }

    /// Leaves the buffers of the stage to the room that this is a copy of.
    pub fn disown(&mut self) {
        self.own.clear();
    }

    /// Bytes of the arena.
    pub fn arena_bytes(&self) -> u64 {
        match self.scratch {
            0 => self.tensors,
            _ => self.scratch_at.saturating_add(self.scratch),
        }
    }

    /// The claims on the arena and on the stage's own buffers.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory.
    pub fn claim(&self, ledger: &Ledger) -> Result<[Claim; 2]> {
        let own = self.own.iter().filter_map(Weak::upgrade);
        let own: u64 = own.map(|buffer| buffer.bytes).sum();
        Ok([
            ledger.acquire(Storage::Dynamic, self.arena_bytes() as usize)?,
            ledger.acquire(Storage::DynamicSeparate, own as usize)?,
        ])
    }
}
