//! Arenas: the base buffers behind all intermediates of a session on one backend.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

use crate::backend::{Backend, BackendId, MaybeSend};
use crate::error::{Error, ErrorCode, Result};

/// Who owns the arenas of a session.
#[derive(Clone, Debug, Default)]
pub enum Sharing {
    /// The session: nobody else uses its arenas, and they go when it closes.
    #[default]
    Own,
    /// All sessions that are made this way on one thread: on each backend they share one arena, as
    /// large as the largest of them needs. They run on that thread only, one after another;
    /// anything else is a `State` error.
    ShareOneThread,
    /// The caller, who made one for each backend of the session (`Backend::create_arena`) and may
    /// give it to several sessions. It does not grow: a session that needs more is a `Limit` error
    /// that says how much. Two runs at the same time are a `State` error.
    External(Vec<Arena>),
}

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
    state: Mutex<State>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked left rubbish in the memory, which is what a run finds there anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Empty, grows as it is asked to, for one session alone.
    fn default() -> Self {
        Arena::with(Owner::Session, State::default())
    }
}

fn next_user() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    /// The arenas of [`Sharing::ShareOneThread`] by the address of their backend, which lives at
    /// least as long as the sessions that keep the arena.
    static OF_THREAD: RefCell<Vec<(usize, Weak<Inner>)>> = const { RefCell::new(Vec::new()) };
}

impl Arena {
    fn with(owner: Owner, state: State) -> Arena {
        Arena {
            inner: Arc::new(Inner {
                owner,
                state: Mutex::new(state),
            }),
            user: next_user(),
        }
    }

    /// Of `bytes` bytes that the caller owns; for backends, see `Backend::create_arena`.
    pub fn external(backend: BackendId, memory: Box<dyn ArenaMemory>, bytes: usize) -> Arena {
        let state = State {
            memory: Some(memory),
            bytes,
            generation: 1,
            leased: None,
        };
        Arena::with(Owner::Caller(backend), state)
    }

    /// The arena of this thread's sessions on `backend`.
    fn of_thread(backend: &Arc<dyn Backend>) -> Arena {
        let address = Arc::as_ptr(backend).cast::<()>() as usize;
        OF_THREAD.with_borrow_mut(|arenas| {
            arenas.retain(|(_, arena)| arena.strong_count() > 0);
            let known = arenas.iter().find(|(at, _)| *at == address);
            if let Some(inner) = known.and_then(|(_, arena)| arena.upgrade()) {
                return Arena {
                    inner,
                    user: next_user(),
                };
            }
            let owner = Owner::Thread(std::thread::current().id());
            let arena = Arena::with(owner, State::default());
            arenas.push((address, Arc::downgrade(&arena.inner)));
            arena
        })
    }

    /// The arena that a new session uses on `backend`.
    ///
    /// # Errors
    /// `Input` where the caller was to give one and did not.
    pub fn of_session(sharing: &Sharing, backend: &Arc<dyn Backend>) -> Result<Arena> {
        match sharing {
            Sharing::Own => Ok(Arena::default()),
            Sharing::ShareOneThread => Ok(Arena::of_thread(backend)),
            Sharing::External(given) => {
                let id = &backend.describe().id;
                let own = |a: &&Arena| matches!(&a.inner.owner, Owner::Caller(b) if b == id);
                given.iter().find(own).map(Arena::attach).ok_or_else(|| {
                    Error::new(
                        ErrorCode::Input,
                        format!("no arena was given for the backend `{id}`"),
                    )
                    .with_hint("make one for each backend of the session with `create_arena`")
                })
            }
        }
    }

    /// Another user of the same memory.
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

    /// The bytes that are allocated now.
    pub fn bytes(&self) -> usize {
        self.inner.state().bytes
    }

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
            return Err(Error::new(
                ErrorCode::State,
                "another session is running in the memory that this one shares with it",
            )
            .with_hint("wait for its run to end, or make the sessions with `Sharing::Own`"));
        }
        state.leased = Some(self.user);
        drop(state);
        Ok(Lease(self.clone()))
    }

    /// Makes room for `bytes` bytes. What the memory holds is lost if it grows. While another
    /// user's run is under way nothing happens: the room is made when this one runs.
    ///
    /// # Errors
    /// `Limit` where the caller's arena is smaller; what `allocate` says.
    pub fn reserve<T: ArenaMemory>(
        &self,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<T>,
    ) -> Result<()> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Ok(());
        }
        self.grow(state, bytes, allocate).map(drop)
    }

    /// Locks the memory, with room for `bytes` bytes. The generation tells whether it is still the
    /// memory that was seen before.
    ///
    /// # Errors
    /// As for [`Arena::reserve`]; `State` where another user's run is under way.
    pub fn lock<T: ArenaMemory>(
        &self,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<T>,
    ) -> Result<ArenaGuard<'_>> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Err(Error::new(
                ErrorCode::State,
                "another session is running in the memory that this one shares with it",
            ));
        }
        self.grow(state, bytes, allocate).map(ArenaGuard)
    }

    fn grow<'a, T: ArenaMemory>(
        &self,
        mut state: MutexGuard<'a, State>,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<T>,
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
        state.memory = None;
        state.bytes = 0;
        state.generation += 1;
        state.memory = Some(Box::new(allocate(bytes)?));
        state.bytes = bytes;
        Ok(state)
    }

    /// Gives the memory back until the next run, unless a run is under way or the caller owns it.
    pub fn clear(&self) {
        let mut state = self.inner.state();
        if state.leased.is_none() && !matches!(self.inner.owner, Owner::Caller(_)) {
            state.memory = None;
            state.bytes = 0;
            state.generation += 1;
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({}, {} bytes)", self.owner(), self.bytes())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn allocate(bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }

    #[test]
    fn memory_grows_and_is_cleared() {
        let arena = Arena::default();
        arena.reserve(10, allocate).unwrap();
        let before = arena.lock(10, allocate).unwrap().generation();
        assert_eq!(arena.lock(4, allocate).unwrap().generation(), before);
        let mut guard = arena.lock(20, allocate).unwrap();
        assert_ne!(guard.generation(), before);
        assert_eq!(guard.memory::<Vec<u8>>().unwrap().unwrap().len(), 20);
        assert_eq!(
            guard.memory::<String>().unwrap_err().code(),
            ErrorCode::State
        );
        drop(guard);
        assert_eq!(arena.bytes(), 20);
        arena.clear();
        assert_eq!(arena.bytes(), 0);
    }

    #[test]
    fn one_user_runs_at_a_time() {
        let first = Arena::default();
        let second = first.attach();
        first.reserve(8, allocate).unwrap();
        let lease = first.lease().unwrap();
        assert_eq!(second.lease().unwrap_err().code(), ErrorCode::State);
        second.reserve(16, allocate).unwrap();
        assert_eq!(first.bytes(), 8, "a run's memory stays where it is");
        first.clear();
        assert_eq!(first.bytes(), 8);
        drop(lease);
        let _lease = second.lease().unwrap();
        second.lock(16, allocate).unwrap();
        assert_eq!(first.bytes(), 16);
    }

    #[test]
    fn the_callers_memory_does_not_grow() {
        let memory: Box<dyn ArenaMemory> = Box::new(vec![0u8; 32]);
        let arena = Arena::external(BackendId::new("test"), memory, 32);
        arena.reserve(32, allocate).unwrap();
        let error = arena.reserve(33, allocate).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
        assert_eq!(error.expected(), Some("at least 33 bytes"));
        arena.clear();
        assert_eq!(arena.bytes(), 32);
    }
}
