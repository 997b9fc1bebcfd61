//! Holds on an arena: for a run, and while its memory is looked at.

use std::any::Any;
use std::sync::MutexGuard;

use super::{Arena, ArenaMemory, Owner, State};
use crate::error::{Error, ErrorCode, Result};

impl Arena {
    /// Holds the arena for a run, until the lease is dropped.
    ///
    /// # Errors
    /// `State` where another user's run is under way, or on another thread than the one whose
    /// sessions share it.
    pub fn lease(&self) -> Result<Lease> {
        if let Owner::Thread(thread) = self.inner.owner
            && thread != std::thread::current().id()
        {
            return Err(Error::new(
                ErrorCode::State,
                "the session shares its memory with others of the thread that it was made on",
            )
            .with_hint("run it there, or make it with `Sharing::Own`"));
        }
        let mut state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Err(leased());
        }
        state.leased = Some(self.user);
        drop(state);
        Ok(Lease(self.clone()))
    }

    /// Locks the memory, with room for `bytes` bytes. The generation tells whether it is still the
    /// memory that was seen before.
    ///
    /// # Errors
    /// As for [`Arena::reserve`]; `State` where another user's run is under way.
    pub fn lock(&self, bytes: usize) -> Result<ArenaGuard<'_>> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Err(leased());
        }
        self.grow(state, bytes).map(ArenaGuard)
    }
}

/// What is said while another user's run is under way.
fn leased() -> Error {
    Error::new(
        ErrorCode::State,
        "another session is running in the memory that this one shares with it",
    )
    .with_hint("wait for its run to end, or make the sessions with `Sharing::Own`")
}

/// A run's hold on an [`Arena`].
#[derive(Debug)]
pub struct Lease(Arena);

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.0.inner.state();
        if state.leased == Some(self.0.user) {
            state.leased = None;
        }
    }
}

/// The memory of an [`Arena`], locked.
pub struct ArenaGuard<'a>(MutexGuard<'a, State>);

impl ArenaGuard<'_> {
    /// A number that changes whenever the base address does.
    pub fn generation(&self) -> u64 {
        self.0.generation
    }

    /// The memory; `None` where there is none yet.
    ///
    /// # Errors
    /// `State` where the memory is not a `T`: it is another backend's.
    pub fn memory<T: ArenaMemory>(&mut self) -> Result<Option<&mut T>> {
        let Some(memory) = &mut self.0.memory else {
            return Ok(None);
        };
        let memory: &mut dyn Any = memory.as_mut();
        memory
            .downcast_mut()
            .map(Some)
            .ok_or_else(|| Error::new(ErrorCode::State, "an arena holds memory of another backend"))
    }
}
