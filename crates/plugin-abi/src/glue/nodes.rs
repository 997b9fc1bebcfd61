//! What a guest says of single nodes beside their kernels: algorithms to choose from, and the fastest layout.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::{Opened, node, say};
use crate as abi;
use crate::guest::Guest;

/// A list of names, and where each begins.
struct List {
    names: &'static [&'static CStr],
    starts: Box<[*const c_char]>,
}

/// Lists of names in the form of the interface, which last as long as the backend.
#[derive(Default)]
pub struct Lists(Mutex<Vec<List>>);

impl Lists {
    /// The beginning of the list of these names.
    fn of(&self, names: &'static [&'static CStr]) -> *const *const c_char {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.iter().find(|list| list.names == names) {
            return list.starts.as_ptr();
        }
        let starts: Box<[_]> = names.iter().map(|name| name.as_ptr()).collect();
        let start = starts.as_ptr();
        lists.push(List { names, starts });
        start
    }
}

pub unsafe extern "C" fn node_layout<G: Guest>(this: *mut c_void, n: *const abi::Node) -> i32 {
    // SAFETY: `this` is of `create`, the node is Kilim's.
    let (opened, node) = unsafe { (&*this.cast::<Opened<G>>(), node(n)) };
    let ask = || opened.guest.node_layouts()?.fastest(&node);
    // Whoever panics here has no wish.
    let fastest = catch_unwind(AssertUnwindSafe(ask)).unwrap_or_default();
    fastest.map_or(0, |layout| layout.number())
}

pub unsafe extern "C" fn choice<G: Guest>(
    this: *mut c_void,
    n: *const abi::Node,
    algorithms: *mut *const *const c_char,
    class_name: *mut abi::Message,
) -> usize {
    // SAFETY: `this` is of `create`, the node is Kilim's, as is the message, or it is NULL.
    let (opened, node, room) = unsafe {
        let room = class_name.as_ref().map_or(0, |class| class.capacity);
        (&*this.cast::<Opened<G>>(), node(n), room)
    };
    let ask = || opened.guest.choices()?.choice(&node);
    // Whoever panics here has no choice.
    let choice = catch_unwind(AssertUnwindSafe(ask)).unwrap_or_default();
    // Classes that are cut off would be one.
    let Some(choice) = choice.filter(|choice| choice.class.len() < room) else {
        return 0;
    };
    say(class_name, &choice.class, -1);
    // SAFETY: Kilim gave `algorithms` to be written.
    unsafe { *algorithms = opened.lists.of(choice.algorithms) };
    choice.algorithms.len()
}
