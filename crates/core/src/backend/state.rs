//! What every context keeps for its session.

use std::sync::Arc;

use super::{Allocator, ContextConfig, RawConstants, TensorRegistry};
use crate::error::Result;
use crate::memory::{Arena, Ledger, MemoryMode, Storage};
use crate::tuning::Tuned;

/// The tensors, the accounts and the arena of a [`super::BackendContext`], and what it was told of its session.
/// The trait's defaults work on it, so that a backend keeps its constants and makes its kernels, and nothing else.
pub struct ContextState {
    pub tensors: TensorRegistry,
    pub ledger: Ledger,
    pub arena: Arena,
    pub memory: MemoryMode,
    pub tuned: Tuned,
    pub raw: RawConstants,
}

impl ContextState {
    /// The state of a new context. `allocator` makes the arena where `config` has none.
    pub fn new(allocator: Arc<dyn Allocator>, config: &ContextConfig) -> ContextState {
        let arena = config.arena.clone();
        ContextState {
            tensors: TensorRegistry::default(),
            ledger: Ledger::limited(&config.limits),
            arena: arena.unwrap_or_else(|| Arena::new(allocator)),
            memory: config.memory,
            tuned: config.tuned.clone(),
            raw: RawConstants::default(),
        }
    }

    /// The state of a context for another run at the same time: tensors, ledger and arena are its own.
    #[must_use]
    pub fn replica(&self) -> ContextState {
        ContextState {
            tensors: TensorRegistry::default(),
            ledger: self.ledger.another(),
            arena: self.arena.another(),
            memory: self.memory,
            tuned: self.tuned.clone(),
            raw: self.raw,
        }
    }

    /// Allocates the arena, as large as the largest claim on the ledger.
    ///
    /// # Errors
    /// `Limit` where there is no such memory, or the caller's arena is too small.
    pub fn reserve(&self) -> Result<()> {
        self.arena.reserve(self.ledger.bytes(Storage::Dynamic))
    }
}
