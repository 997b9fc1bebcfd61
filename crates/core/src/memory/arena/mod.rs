//! Arenas: the base buffers behind all intermediates of a session on one backend.

mod lease;
mod sharing;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use crate::error::{Error, ErrorCode, Result};
use crate::ids::BackendId;
use crate::memory::{Allocator, HostAllocator};
use crate::threading::MaybeSend;

pub use lease::{ArenaGuard, Lease};
pub use sharing::Sharing;

/// What a backend keeps in an [`Arena`]; it downcasts it.
pub trait ArenaMemory: Any + MaybeSend {}
impl<T: Any + MaybeSend> ArenaMemory for T {}

enum Owner {
    Session,
    Thread(ThreadId),
    Caller(BackendId),
}

#[derive(Default)]
struct State {
    memory: Option<Box<dyn ArenaMemory>>,
    bytes: usize,
    /// Changes whenever the memory does.
    generation: u64,
    /// The user whose run is under way.
    leased: Option<u64>,
}

struct Inner {
    owner: Owner,
    allocator: Arc<dyn Allocator>,
    state: Mutex<State>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked left rubbish in the memory, which is what a run finds there anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, state: &mut State) {
        if let Some(memory) = state.memory.take() {
            self.allocator.release(memory);
            state.bytes = 0;
            state.generation += 1;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut state = std::mem::take(&mut *self.state());
        self.release(&mut state);
    }
}

/// One user's hold on the memory of one backend in which intermediates and scratch are placed.
/// Clones are the same user; [`Arena::attach`] makes another one of the same memory.
#[derive(Clone)]
pub struct Arena {
    inner: Arc<Inner>,
    user: u64,
}

impl Default for Arena {
    /// An empty arena in host memory, for one session alone.
    fn default() -> Self {
        Arena::new(Arc::new(HostAllocator))
    }
}

fn next_user() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Arena {
    fn with(owner: Owner, allocator: Arc<dyn Allocator>, state: State) -> Arena {
        Arena {
            inner: Arc::new(Inner {
                owner,
                allocator,
                state: Mutex::new(state),
            }),
            user: next_user(),
        }
    }

    /// Empty, grows as it is asked to, for one session alone.
    pub fn new(allocator: Arc<dyn Allocator>) -> Arena {
        Arena::with(Owner::Session, allocator, State::default())
    }

    /// An empty arena with the allocator of this one, for one session alone.
    pub fn another(&self) -> Arena {
        Arena::new(self.inner.allocator.clone())
    }

    /// An arena of `bytes` bytes that the caller owns, and that `allocator` takes back in the end; for
    /// backends, see `Backend::create_arena`.
    pub fn external(
        backend: BackendId,
        allocator: Arc<dyn Allocator>,
        memory: Box<dyn ArenaMemory>,
        bytes: usize,
    ) -> Arena {
        let state = State {
            memory: Some(memory),
            bytes,
            generation: 1,
            leased: None,
        };
        Arena::with(Owner::Caller(backend), allocator, state)
    }

    /// Another user of this arena's memory.
    pub fn attach(&self) -> Arena {
        Arena {
            inner: self.inner.clone(),
            user: next_user(),
        }
    }

    /// Who owns it, as the report says it: `own`, `thread` or `external`.
    pub fn owner(&self) -> &'static str {
        match self.inner.owner {
            Owner::Session => "own",
            Owner::Thread(_) => "thread",
            Owner::Caller(_) => "external",
        }
    }

    /// Whether the caller owns the memory, which never grows.
    pub fn is_external(&self) -> bool {
        matches!(self.inner.owner, Owner::Caller(_))
    }

    /// The bytes that are allocated now.
    pub fn bytes(&self) -> usize {
        self.inner.state().bytes
    }

    /// Makes room for `bytes` bytes. What the memory holds is lost if it grows. While another
    /// user's run is under way nothing happens: the room is made when this one runs.
    ///
    /// # Errors
    /// `Limit` where the caller's arena is smaller; what the allocator says.
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Ok(());
        }
        self.grow(state, bytes).map(drop)
    }

    fn grow<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        bytes: usize,
    ) -> Result<MutexGuard<'a, State>> {
        if bytes <= state.bytes {
            return Ok(state);
        }
        if let Owner::Caller(backend) = &self.inner.owner {
            return Err(Error::new(
                ErrorCode::Limit,
                format!("the arena given for the backend `{backend}` is too small"),
            )
            .with_expected(format!("at least {bytes} bytes"))
            .with_got(format!("{} bytes", state.bytes)));
        }
        // The old memory goes first, so that both are never there.
        self.inner.release(&mut state);
        state.memory = Some(self.inner.allocator.allocate(bytes)?);
        state.bytes = bytes;
        state.generation += 1;
        Ok(state)
    }

    /// Gives the memory back until the next run, unless a run is under way or the caller owns it.
    pub fn clear(&self) {
        let mut state = self.inner.state();
        if state.leased.is_none() && !self.is_external() {
            self.inner.release(&mut state);
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({}, {} bytes)", self.owner(), self.bytes())
    }
}
