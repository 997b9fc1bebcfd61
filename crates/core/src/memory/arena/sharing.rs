//! Whose the arenas of a session are.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::{Arena, Inner, Owner, State, next_user};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::BackendId;
use crate::memory::Allocator;

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

thread_local! {
    /// The arenas of [`Sharing::ShareOneThread`] by the address of their backend, which lives at
    /// least as long as the sessions that keep the arena.
    static OF_THREAD: RefCell<Vec<(usize, Weak<Inner>)>> = const { RefCell::new(Vec::new()) };
}

impl Arena {
    /// The arena of this thread's sessions on the backend at `address`.
    fn of_thread(address: usize, allocator: Arc<dyn Allocator>) -> Arena {
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
            let arena = Arena::with(owner, allocator, State::default());
            arenas.push((address, Arc::downgrade(&arena.inner)));
            arena
        })
    }

    /// The arena that a new session uses on the backend `id`, which lies at `address` in memory for as long as
    /// sessions use it.
    ///
    /// # Errors
    /// `Input` where the caller was to give one and did not.
    pub(crate) fn of_session(
        sharing: &Sharing,
        id: &BackendId,
        address: usize,
        allocator: Arc<dyn Allocator>,
    ) -> Result<Arena> {
        match sharing {
            Sharing::Own => Ok(Arena::new(allocator)),
            Sharing::ShareOneThread => Ok(Arena::of_thread(address, allocator)),
            Sharing::External(given) => {
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
}
