//! What a library says of single nodes beside whether it runs them: algorithms to choose from, and the fastest layout.

use std::ffi::{CStr, c_char};

use kilim_core::backend::{DataLayout, NodeLayouts, NodeSpec};
use kilim_core::tuning::Choice;
use kilim_plugin_abi as abi;

use crate::backend::PluginBackend;
use crate::encode::Arena;
use crate::library::{Library, Message};

/// The algorithms that a library has for a node. `None` where it has no choice, or says it in words that cannot be kept.
pub fn of(library: &Library, node: &NodeSpec) -> Option<Choice> {
    let ask = library.table.choice?;
    let mut arena = Arena::default();
    let encoded = arena.asked(node).ok()?;
    let (mut names, mut class) = (std::ptr::null(), Message::new());
    // SAFETY: a function of the table; the node points into the arena, and all three live during the call.
    let count = unsafe {
        let this = library.table.this;
        ask(this, &raw const encoded, &raw mut names, class.raw())
    };
    if !(2..=Choice::MOST).contains(&count) || names.is_null() {
        return None;
    }
    // SAFETY: the library gives as many names as it says, which live as long as it.
    let names: &[*const c_char] = unsafe { std::slice::from_raw_parts(names, count) };
    let algorithms = names.iter().map(|&name| {
        // SAFETY: it is not NULL, so it ends with a zero.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        Some(name.to_str().ok()?.to_string().into())
    });
    let choice = Choice {
        class: class.text(),
        algorithms: algorithms.collect::<Option<_>>()?,
    };
    choice.is_possible().then_some(choice)
}

impl NodeLayouts for PluginBackend {
    fn fastest(&self, node: &NodeSpec) -> Option<DataLayout> {
        let table = &self.library.table;
        let ask = table.node_layout?;
        let mut arena = Arena::default();
        let encoded = arena.asked(node).ok()?;
        // SAFETY: a function of the table; the node points into the arena, which lives.
        match unsafe { ask(table.this, &raw const encoded) } {
            abi::NCHW => Some(DataLayout::ChannelsFirst),
            abi::NHWC => Some(DataLayout::ChannelsLast),
            _ => None,
        }
    }
}
