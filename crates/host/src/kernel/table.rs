//! What kernels keep beside packed weights.

use std::ops::Deref;

use kilim_core::Result;
use kilim_core::memory::{Claim, Ledger, Storage, out_of_memory, vec_with_room};

/// A table that a kernel is built with, as long as an axis or a list of places. Its bytes are on the ledger of the
/// kernel's context as long as it lives, so that the session's limits hold for it.
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<T>,
    /// `None` of an empty table.
    _claim: Option<Claim>,
}

impl<T> Table<T> {
    /// A table without entries, and without room for any.
    pub const EMPTY: Table<T> = Table {
        entries: Vec::new(),
        _claim: None,
    };

    /// An empty table with room for so many entries.
    pub(super) fn with_room(ledger: &Ledger, entries: usize) -> Result<Table<T>> {
        if entries == 0 {
            return Ok(Table::EMPTY);
        }
        let bytes = entries.checked_mul(size_of::<T>());
        let bytes = bytes.ok_or_else(|| out_of_memory(usize::MAX))?;
        let claim = ledger.acquire(Storage::DynamicSeparate, bytes)?;
        Ok(Table {
            entries: vec_with_room(entries)?,
            _claim: Some(claim),
        })
    }

    /// A table of a list whose length was not known before it was made.
    pub(super) fn of(ledger: &Ledger, entries: Vec<T>) -> Result<Table<T>> {
        let bytes = entries.capacity().saturating_mul(size_of::<T>());
        let claim = ledger.acquire(Storage::DynamicSeparate, bytes)?;
        Ok(Table {
            entries,
            _claim: Some(claim),
        })
    }

    /// Puts an entry behind the others.
    ///
    /// # Panics
    /// Where there is no room for it: what is not counted is not allocated.
    pub fn push(&mut self, entry: T) {
        assert!(
            self.entries.len() < self.entries.capacity(),
            "a table is full"
        );
        self.entries.push(entry);
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries
    }
}
