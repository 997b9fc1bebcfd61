//! What a backend in Rust says of the user's memory and of queues to hosts of different ages.

use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use kilim_plugin_abi as abi;
use kilim_plugin_abi::guest::{Failure, Guest, HandleKind, Kernel, Node, Result, Settings};

use crate::{open, open_with};

struct Taker;

impl Guest for Taker {
    fn open() -> Result<Taker> {
        Ok(Taker)
    }

    fn device(&self) -> &CStr {
        c"a taker"
    }

    fn kernel(&self, _: &Node) -> Result<Box<dyn Kernel>> {
        Err(Failure::unsupported("nothing runs"))
    }

    fn handle_kinds(&self) -> Vec<HandleKind> {
        vec![HandleKind::DmaBuf, HandleKind::Own(c"room")]
    }

    fn queue(&self, settings: &Settings) -> Option<u64> {
        settings.queue
    }
}

/// The kinds that the backend tells a host whose description has them at its end.
fn kinds(backend: &abi::Backend) -> Vec<(i32, bool)> {
    let mut told = abi::Description::UNSAID;
    // SAFETY: a function of the table, with its own `this`; there are as many kinds as it says.
    let kinds = unsafe {
        backend.describe.unwrap()(backend.this, &raw mut told);
        match told.handle_kinds.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(told.handle_kinds, told.handle_kind_count),
        }
    };
    kinds.iter().map(|k| (k.kind, k.name.is_null())).collect()
}

/// How a context that is given this queue tells its own.
fn queue(backend: &abi::Backend, given: *const u64) -> (abi::Status, u64) {
    // SAFETY: numbers and pointers may all be zero.
    let mut options: abi::ContextOptions = unsafe { std::mem::zeroed() };
    options.queue = given;
    let (mut context, mut told) = (null_mut(), 0);
    // SAFETY: functions of the table; all pointers live during the calls, and the context is released once.
    unsafe {
        let create = backend.create_context.unwrap();
        let made = create(
            backend.this,
            &raw const options,
            &raw mut context,
            null_mut(),
        );
        assert_eq!(made, abi::OK);
        let status = backend.queue.unwrap()(backend.this, context, &raw mut told, null_mut());
        backend.release_context.unwrap()(backend.this, context);
        (status, told)
    }
}

#[test]
fn a_host_of_today_hears_of_memory_and_gives_a_queue() {
    let backend = open::<Taker>();
    assert_eq!(
        kinds(backend),
        [(abi::HANDLE_DMA_BUF, true), (abi::HANDLE_OWN, false)]
    );
    assert!(backend.import_memory.is_some() && backend.keep_in.is_some());
    assert_eq!(queue(backend, &5), (abi::OK, 5));
    assert_eq!(queue(backend, null()).0, abi::UNSUPPORTED);
}

/// Nothing behind what such a host has is read or written.
#[test]
fn a_host_of_before_memory_of_the_user_hears_of_none() {
    let backend = open_with::<Taker>(offset_of!(abi::Backend, import_memory));
    assert!(kinds(backend).is_empty() && backend.import_memory.is_none());
    assert_eq!(queue(backend, std::ptr::dangling()).0, abi::UNSUPPORTED);
}
