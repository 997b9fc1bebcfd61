//! Caches of a guest, and a device that is lost.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Opened, guarded, list};
use crate::guest::Guest;
use crate::{self as abi, Status};

pub unsafe extern "C" fn save_cache<G: Guest>(
    this: *mut c_void,
    data: *mut c_void,
    capacity: usize,
) -> usize {
    // SAFETY: `this` is of `create`.
    let opened = unsafe { &*this.cast::<Opened<G>>() };
    // A cache that panics is none.
    let saved = catch_unwind(AssertUnwindSafe(|| opened.guest.save_cache()));
    let cache = saved.unwrap_or_default();
    if !data.is_null() && cache.len() <= capacity {
        // SAFETY: Kilim gave room for `capacity` bytes.
        unsafe { std::ptr::copy_nonoverlapping(cache.as_ptr(), data.cast(), cache.len()) };
    }
    cache.len()
}

pub unsafe extern "C" fn load_cache<G: Guest>(
    this: *mut c_void,
    data: *const c_void,
    bytes: usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the bytes are Kilim's.
        let (opened, cache) = unsafe { (&*this.cast::<Opened<G>>(), list(data.cast(), bytes)) };
        opened.guest.load_cache(cache).map_err(|f| (f, -1))
    })
}

pub unsafe extern "C" fn is_lost<G: Guest>(this: *mut c_void, _context: *mut c_void) -> i32 {
    // SAFETY: `this` is of `create`.
    let opened = unsafe { &*this.cast::<Opened<G>>() };
    // What panics here cannot be relied on any more.
    let lost = catch_unwind(AssertUnwindSafe(|| opened.guest.is_lost()));
    i32::from(lost.unwrap_or(true))
}

pub unsafe extern "C" fn reopen<G: Guest>(this: *mut c_void, error: *mut abi::Message) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`.
        let opened = unsafe { &*this.cast::<Opened<G>>() };
        opened.guest.reopen().map_err(|f| (f, -1))
    })
}
