//! Options of a library's own, and what its contexts are told of the session.

use std::borrow::Cow;
use std::ffi::CString;

use kilim_core::backend::{
    BackendId, CommandQueue, ContextConfig, DataLayout, DeviceOption, Half, OptionKind, Quantized,
};
use kilim_core::memory::MemoryMode;
use kilim_core::{Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use crate::encode::c_text;
use crate::library::{Library, owned};

/// The options that the library lists.
///
/// # Errors
/// `NoBackend` where one has no name, a kind that is none, or an initial value that it does not take.
pub fn options(id: &BackendId, library: &Library) -> Result<Vec<DeviceOption>> {
    let table = &library.table;
    if table.options.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the backend gives as many options as it says, which live as long as it.
    let list = unsafe { std::slice::from_raw_parts(table.options, table.option_count) };
    let read = |told: &abi::OptionInfo| option(told).filter(DeviceOption::is_possible);
    let read: Option<Vec<_>> = list.iter().map(read).collect();
    read.ok_or_else(|| {
        let message = format!("the backend `{id}` lists an option that cannot be");
        Error::new(ErrorCode::NoBackend, message)
    })
}

fn option(told: &abi::OptionInfo) -> Option<DeviceOption> {
    // SAFETY: strings of the interface end with a zero.
    let text = |pointer| unsafe { owned(pointer) }.unwrap_or_default();
    let kind = match told.kind {
        abi::OPTION_SWITCH => OptionKind::Switch,
        abi::OPTION_INTEGER => OptionKind::Integer,
        abi::OPTION_NUMBER => OptionKind::Number,
        abi::OPTION_TEXT => OptionKind::Text,
        abi::OPTION_CHOICE if !told.choices.is_null() => {
            // SAFETY: the option has as many words as it says.
            let words = unsafe { std::slice::from_raw_parts(told.choices, told.choice_count) };
            OptionKind::Choice(words.iter().map(|&w| Cow::Owned(text(w))).collect())
        }
        _ => return None,
    };
    Some(DeviceOption {
        name: text(told.name).into(),
        kind,
        default: text(told.initial).into(),
        meaning: text(told.meaning).into(),
    })
}

/// What a context is told, with the memory that its pointers lead to.
pub struct ContextView {
    _texts: Vec<CString>,
    settings: Vec<abi::Setting>,
    queue: Option<u64>,
    config: ContextConfig,
}

impl ContextView {
    /// The form of `config` in the interface.
    pub fn new(config: &ContextConfig) -> ContextView {
        let mut texts = Vec::new();
        let mut settings = Vec::new();
        for (name, value) in config.device.iter() {
            let (name, value) = (c_text(name), c_text(value));
            settings.push(abi::Setting {
                name: name.as_ptr(),
                value: value.as_ptr(),
            });
            texts.extend([name, value]);
        }
        ContextView {
            _texts: texts,
            settings,
            queue: config.queue.map(CommandQueue::handle),
            config: config.clone(),
        }
    }

    /// Points into `self`.
    pub fn raw(&self) -> abi::ContextOptions {
        let backend = &self.config.backend;
        abi::ContextOptions {
            threads: self.config.threads.unwrap_or(0),
            spare_memory: i32::from(self.config.memory == MemoryMode::Limit),
            layout: match backend.layouts.first() {
                Some(DataLayout::ChannelsLast) => abi::NHWC,
                _ => abi::NCHW,
            },
            dynamic_shapes: i32::from(backend.dynamic_tensors),
            half: match backend.f16 {
                Half::Off => abi::HALF_OFF,
                Half::Chosen => abi::HALF_CHOSEN,
                Half::Kept => abi::HALF_KEPT,
            },
            quantized: match backend.quantized {
                Quantized::Exact => abi::QUANTIZED_EXACT,
                Quantized::Native => abi::QUANTIZED_NATIVE,
            },
            timers: i32::from(backend.timers),
            setting_count: self.settings.len(),
            settings: self.settings.as_ptr(),
            queue: match &self.queue {
                Some(queue) => queue,
                None => std::ptr::null(),
            },
        }
    }
}
