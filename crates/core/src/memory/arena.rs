//! Arenas: the base buffers behind all intermediates of a session on one backend.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

use crate::backend::{Allocator, Backend, BackendId, HostAllocator, MaybeSend};
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
    /// As [`Arena::new`], in host memory.
    fn default() -> Self {
        Arena::new(Arc::new(HostAllocator))
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

    /// As [`Arena::new`], with this one's allocator.
    pub fn another(&self) -> Arena {
        Arena::new(self.inner.allocator.clone())
    }

    /// Of `bytes` bytes that the caller owns, and that `allocator` takes back in the end; for
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
            let arena = Arena::with(owner, backend.allocator(), State::default());
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
            Sharing::Own => Ok(Arena::new(backend.allocator())),
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
    /// `Limit` where the caller's arena is smaller; what the allocator says.
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Ok(());
        }
        self.grow(state, bytes).map(drop)
    }

    /// Locks the memory, with room for `bytes` bytes. The generation tells whether it is still the
    /// memory that was seen before.
    ///
    /// # Errors
    /// As for [`Arena::reserve`]; `State` where another user's run is under way.
    pub fn lock(&self, bytes: usize) -> Result<ArenaGuard<'_>> {
        let state = self.inner.state();
        if state.leased.is_some_and(|user| user != self.user) {
            return Err(Error::new(
                ErrorCode::State,
                "another session is running in the memory that this one shares with it",
            ));
        }
        self.grow(state, bytes).map(ArenaGuard)
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
        if state.leased.is_none() && !matches!(self.inner.owner, Owner::Caller(_)) {
            self.inner.release(&mut state);
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
    /// Another number after each change of the base address.
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

    /// Notes how many bytes it gives and takes back, and gives at most 100.
    #[derive(Default)]
    struct Counting {
        given: Mutex<Vec<usize>>,
        back: Mutex<Vec<usize>>,
    }

    impl Allocator for Counting {
        fn allocate(&self, bytes: usize) -> Result<Box<dyn ArenaMemory>> {
            if bytes > 100 {
                return Err(Error::new(ErrorCode::Limit, "there is not so much"));
            }
            self.given.lock().unwrap().push(bytes);
            Ok(Box::new(vec![0u8; bytes]))
        }

        fn release(&self, memory: Box<dyn ArenaMemory>) {
            let memory: Box<dyn Any> = memory;
            let memory = memory.downcast::<Vec<u8>>().unwrap();
            self.back.lock().unwrap().push(memory.len());
        }
    }

    #[test]
    fn memory_grows_and_is_cleared() {
        let arena = Arena::default();
        arena.reserve(10).unwrap();
        let before = arena.lock(10).unwrap().generation();
        assert_eq!(arena.lock(4).unwrap().generation(), before);
        let mut guard = arena.lock(20).unwrap();
        assert_ne!(guard.generation(), before);
        let memory = guard.memory::<crate::memory::HostMemory>().unwrap();
        assert_eq!(memory.unwrap().base().1, 20);
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
        first.reserve(8).unwrap();
        let lease = first.lease().unwrap();
        assert_eq!(second.lease().unwrap_err().code(), ErrorCode::State);
        second.reserve(16).unwrap();
        assert_eq!(first.bytes(), 8, "a run's memory stays where it is");
        first.clear();
        assert_eq!(first.bytes(), 8);
        drop(lease);
        let _lease = second.lease().unwrap();
        second.lock(16).unwrap();
        assert_eq!(first.bytes(), 16);
    }

    #[test]
    fn the_callers_memory_does_not_grow() {
        let allocator = Arc::new(Counting::default());
        let memory = allocator.allocate(32).unwrap();
        let arena = Arena::external(BackendId::new("test"), allocator.clone(), memory, 32);
        arena.reserve(32).unwrap();
        let error = arena.reserve(33).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Limit);
        assert_eq!(error.expected(), Some("at least 33 bytes"));
        arena.clear();
        assert_eq!(arena.bytes(), 32);
        let other = arena.attach();
        drop(arena);
        assert!(allocator.back.lock().unwrap().is_empty());
        drop(other);
        assert_eq!(*allocator.back.lock().unwrap(), [32]);
    }

    #[test]
    fn an_allocator_gets_back_what_it_gave() {
        let allocator = Arc::new(Counting::default());
        let arena = Arena::new(allocator.clone());
        arena.reserve(0).unwrap();
        assert!(allocator.given.lock().unwrap().is_empty());
        for bytes in [10, 5, 20] {
            arena.reserve(bytes).unwrap();
        }
        assert_eq!(*allocator.given.lock().unwrap(), [10, 20]);
        assert_eq!(*allocator.back.lock().unwrap(), [10]);
        assert_eq!(arena.reserve(101).unwrap_err().code(), ErrorCode::Limit);
        assert_eq!(arena.bytes(), 0, "what failed leaves nothing behind");
        arena.reserve(30).unwrap();
        arena.clear();
        assert_eq!(*allocator.back.lock().unwrap(), [10, 20, 30]);
        let another = arena.another();
        another.reserve(40).unwrap();
        drop((arena, another));
        assert_eq!(*allocator.back.lock().unwrap(), [10, 20, 30, 40]);
    }
}
