//! What a library gives, read: lists and attributes.

use std::ffi::c_char;

use kilim_core::ops::Attribute;
use kilim_plugin_abi as abi;

use crate::library::owned;

/// A list of the library's; empty where it is NULL.
///
/// # Safety
/// `pointer` is NULL or has `count` items behind it that live and stay as they are during `'a`.
pub unsafe fn list<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if pointer.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: it is not NULL, so `count` items are there and live during `'a`.
    unsafe { std::slice::from_raw_parts(pointer, count) }
}

/// An attribute that is no tensor; `None` where it is of no such kind.
///
/// # Safety
/// The attribute has as many values of its kind as it says; texts end with a zero.
pub unsafe fn attribute(a: &abi::Attribute) -> Option<Attribute> {
    // SAFETY: by the contract of this function.
    unsafe {
        Some(match a.kind {
            abi::INTS => Attribute::Ints(list(a.values.cast(), a.count).to_vec()),
            abi::FLOATS => Attribute::Floats(list(a.values.cast(), a.count).to_vec()),
            abi::BYTES => Attribute::Bytes(list(a.values.cast(), a.count).to_vec()),
            abi::TEXTS => {
                let texts: &[*const c_char] = list(a.values.cast(), a.count);
                Attribute::Texts(
                    texts
                        .iter()
                        .map(|&t| owned(t).unwrap_or_default())
                        .collect(),
                )
            }
            _ => return None,
        })
    }
}
