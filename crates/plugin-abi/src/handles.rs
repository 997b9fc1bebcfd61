//! Memory of the user's, as the interface names it.

use std::ffi::c_char;

/// `KilimHandleKind`: what kind of handle names memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HandleKind {
    pub kind: i32,
    pub name: *const c_char,
}

/// `KilimHandle`: memory of the user's that a tensor lies in.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle {
    pub kind: HandleKind,
    pub value: u64,
    pub offset: usize,
    pub bytes: usize,
}
