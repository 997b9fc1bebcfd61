//! Memory: [`plan`] gives tensors with known lifetimes offsets in one buffer, a [`Ledger`] keeps the
//! accounts of what a context has acquired, and an [`Arena`] is the buffer itself, which sessions
//! may share.

mod allocator;
mod arena;
mod host;
mod ledger;
mod offsets;

pub use crate::fallible::{
    collect, copied, out_of_memory, push, reserve, shared_text, try_collect, vec_of, vec_with_room,
};
pub use allocator::{Allocator, HostAllocator};
pub use arena::{Arena, ArenaGuard, ArenaMemory, Lease, Sharing};
pub use host::HostMemory;
pub use ledger::{Claim, Ledger, Storage};
pub use offsets::{Offsets, Request, lower_bound, plan};

/// How thrifty a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryMode {
    /// Speed first: weights may be packed into forms larger than they are, buffers stay allocated
    /// between runs.
    #[default]
    Normal,
    /// Memory first: weights are packed into forms of their own size only, one plan is kept for
    /// each stage, and buffers that only one run needs go after it.
    Limit,
}
