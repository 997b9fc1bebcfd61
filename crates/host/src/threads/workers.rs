//! WebAssembly starts no threads: workers of the page come to help, and are called where there is something to do.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pool;

static WORKERS: AtomicUsize = AtomicUsize::new(0);
static CALL: OnceLock<fn(usize)> = OnceLock::new();

/// Tells of so many workers that call [`help`] where `call` asks for them. `call` is given how many are wanted, on the
/// thread that has work, and does not wait for them.
pub fn set_workers(count: usize, call: fn(usize)) {
    WORKERS.store(count, Ordering::Relaxed);
    CALL.get_or_init(|| call);
}

pub fn count() -> usize {
    WORKERS.load(Ordering::Relaxed)
}

/// Calls the workers.
pub fn call(wanted: usize) {
    if let Some(call) = CALL.get() {
        call(wanted);
    }
}

/// Joins what sessions have to do, until there was nothing for so many turns of a loop. Whether there was something.
pub fn help(turns: usize) -> bool {
    pool::of_process().help(turns)
}
