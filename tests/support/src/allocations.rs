//! An allocator that counts, for tests of memory. All threads of a test program count together.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which counts: to be a program's `#[global_allocator]`.
pub struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// How often memory was asked for, or for more of it, so far.
pub fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}

/// The most bytes that were allocated at a time while `work` ran, beyond those before, and what it gave.
pub fn most_during<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = held();
    MOST.store(before, Ordering::Relaxed);
    let done = work();
    (MOST.load(Ordering::Relaxed) - before, done)
}

/// What a thread may take the program to, and what is told where it asks for more.
type Bound = Option<(usize, fn(usize))>;

thread_local! {
    static BOUND: Cell<Bound> = const { Cell::new(None) };
}

/// Does `work`, in which this thread is refused memory beyond `bytes` more than there are; `beyond` is told how many bytes it asked for.
pub fn bounded<T>(bytes: usize, beyond: fn(usize), work: impl FnOnce() -> T) -> T {
    BOUND.set(Some((held() + bytes, beyond)));
    let done = work();
    BOUND.set(None);
    done
}

/// Does `work` without the bound of the work that it is a part of.
pub fn unbounded<T>(work: impl FnOnce() -> T) -> T {
    let bound = BOUND.take();
    let done = work();
    BOUND.set(bound);
    done
}

/// Whether a thread may have so many bytes more.
fn allowed(more: usize) -> bool {
    // A thread that ends has no bound any more.
    let Some((most, beyond)) = BOUND.try_with(Cell::get).ok().flatten() else {
        return true;
    };
    let fits = held().saturating_add(more) <= most;
    if !fits {
        unbounded(|| beyond(more));
    }
    fits
}

fn count(more: usize, less: usize) {
    CALLS.fetch_add(usize::from(more > 0), Ordering::Relaxed);
    let before = HELD.fetch_add(more, Ordering::Relaxed);
    MOST.fetch_max(before + more, Ordering::Relaxed);
    HELD.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return null_mut();
        }
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return null_mut();
        }
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller says that the block is the system's, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (more, less) = (
            size.saturating_sub(layout.size()),
            layout.size().saturating_sub(size),
        );
        if !allowed(more) {
            return null_mut();
        }
        count(more, less);
        // SAFETY: the caller says that the block is the system's, with this layout, and that `size` is possible.
        unsafe { System.realloc(block, layout, size) }
    }
}
