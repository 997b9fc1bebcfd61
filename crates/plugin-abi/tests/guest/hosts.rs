//! What a backend in Rust tells hosts of different ages, and what it hears from them.

use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;

use kilim_plugin_abi as abi;
use kilim_plugin_abi::guest::{
    Build, DataLayout, Description, Failure, Guest, Half, Kernel, Node, OptionDef, OptionKind,
    Quantized, Result, Settings,
};

use crate::{open, open_with};

struct Talker;

impl Guest for Talker {
    fn open() -> Result<Talker> {
        Ok(Talker)
    }

    fn device(&self) -> &CStr {
        c"a talker"
    }

    fn kernel(&self, _: &Node) -> Result<Box<dyn Kernel>> {
        Err(Failure::unsupported("nothing runs"))
    }

    /// The reason says what was heard.
    fn kernel_with(&self, _: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        let Settings {
            threads,
            spare_memory,
            layout,
            dynamic_shapes,
            half,
            quantized,
            timers,
            ..
        } = build.settings;
        let (mode, cores) = (build.settings.text("mode"), build.settings.integer("cores"));
        let session = format!("{threads:?} {spare_memory} {layout:?} {mode} {cores:?}");
        let config = format!("{dynamic_shapes} {half:?} {quantized:?} {timers}");
        let heard = format!("{session}, {config}, {:?}", build.algorithm);
        Err(Failure::unsupported(heard))
    }

    fn describe(&self) -> Description {
        Description {
            dtypes: vec![(abi::FLOAT32, abi::FAST)],
            flops_per_second: 3e9,
            layouts: vec![DataLayout::ChannelsLast, DataLayout::ChannelsFirst],
            dynamic_shapes: false,
            half: Some(Half::Chosen),
            quantized: Quantized::Native,
            memory: abi::MEMORY_HOST,
            queued: true,
            ..Description::default()
        }
    }

    fn options() -> &'static [OptionDef] {
        &[
            OptionDef {
                name: c"mode",
                kind: OptionKind::Choice(&[c"fast", c"exact"]),
                initial: c"fast",
                meaning: c"what counts more",
            },
            OptionDef {
                name: c"cores",
                kind: OptionKind::Integer,
                initial: c"4",
                meaning: c"how many compute",
            },
        ]
    }
}

/// A description as a host fills it before it asks.
fn described(backend: &abi::Backend) -> abi::Description {
    // SAFETY: numbers and pointers may all be zero.
    let mut told: abi::Description = unsafe { std::mem::zeroed() };
    // SAFETY: a function of the table, with its own `this`.
    unsafe { backend.describe.unwrap()(backend.this, &raw mut told) };
    told
}

/// What a kernel hears through a context that is made with these options, of a host that knows algorithms or does not.
fn heard(backend: &abi::Backend, options: &abi::ContextOptions, knows_choice: bool) -> String {
    let mut context = null_mut();
    // SAFETY: functions of the table; all pointers live during the calls.
    unsafe {
        let create = backend.create_context.unwrap();
        let status = create(backend.this, options, &raw mut context, null_mut());
        assert_eq!(status, abi::OK);
    }
    let node = abi::Node {
        name: c"node".as_ptr(),
        domain: c"".as_ptr(),
        op: c"Any".as_ptr(),
        attribute_count: 0,
        attributes: std::ptr::null(),
        input_count: 0,
        inputs: std::ptr::null(),
        output_count: 0,
        outputs: std::ptr::null(),
    };
    let step = abi::Step {
        node: &raw const node,
        inputs: std::ptr::null(),
        outputs: std::ptr::null(),
    };
    let (parts, algorithm) = ([0, 1], c"rows".as_ptr());
    let stage = abi::Stage {
        tensor_count: 0,
        tensors: std::ptr::null(),
        step_count: 1,
        steps: &raw const step,
        part_count: 1,
        parts: parts.as_ptr(),
        arena_bytes: 0,
        // A host of before it has something else here.
        algorithms: match knows_choice {
            true => &raw const algorithm,
            false => std::ptr::dangling(),
        },
    };
    let (mut executable, mut text) = (null_mut::<c_void>(), [0u8; 256]);
    let mut message = abi::Message {
        text: text.as_mut_ptr().cast(),
        capacity: text.len(),
        node: -1,
    };
    // SAFETY: functions of the table; all pointers live during the calls, and the context is released once.
    unsafe {
        let prepare = backend.prepare.unwrap();
        let out = &raw mut executable;
        prepare(
            backend.this,
            context,
            &raw const stage,
            out,
            &raw mut message,
        );
        backend.release_context.unwrap()(backend.this, context);
    }
    let said = CStr::from_bytes_until_nul(&text).unwrap();
    said.to_str().unwrap().to_string()
}

#[test]
fn a_host_of_today_hears_and_tells_everything() {
    let backend = open::<Talker>();
    let told = described(backend);
    assert_eq!((told.dtype_count, told.layout_count), (1, 2));
    // SAFETY: there are as many layouts as are told.
    let layouts = unsafe { std::slice::from_raw_parts(told.layouts, told.layout_count) };
    assert_eq!(layouts, [abi::NHWC, abi::NCHW]);
    assert_eq!(told.flops_per_second, 3e9);
    let (half, quantized) = (abi::HALF_CHOSEN, abi::QUANTIZED_NATIVE);
    let config = (told.dynamic_shapes, told.half, told.quantized);
    assert_eq!(config, (0, half, quantized));
    assert_eq!(told.memory, abi::MEMORY_HOST);
    assert!(backend.submit.is_some() && backend.wait.is_some() && backend.attach.is_some());
    assert!(backend.keep.is_none(), "results are handed out as they are");
    assert_eq!(backend.option_count, 2);
    // SAFETY: there are as many options as are told, and as many choices in each.
    let (kind, initial, words) = unsafe {
        let mode = &*backend.options;
        let words = std::slice::from_raw_parts(mode.choices, mode.choice_count);
        let words: Vec<&CStr> = words.iter().map(|&w| CStr::from_ptr(w)).collect();
        (mode.kind, CStr::from_ptr(mode.initial), words)
    };
    assert_eq!((kind, initial), (abi::OPTION_CHOICE, c"fast"));
    assert_eq!(words, [c"fast", c"exact"]);

    let settings = [(c"cores", c"8"), (c"mode", c"exact")].map(|(name, value)| abi::Setting {
        name: name.as_ptr(),
        value: value.as_ptr(),
    });
    let options = abi::ContextOptions {
        threads: 3,
        spare_memory: 1,
        layout: abi::NHWC,
        dynamic_shapes: 0,
        half: abi::HALF_KEPT,
        quantized: abi::QUANTIZED_NATIVE,
        timers: 1,
        setting_count: settings.len(),
        settings: settings.as_ptr(),
        queue: std::ptr::null(),
    };
    assert_eq!(
        heard(backend, &options, true),
        "Some(3) true Some(ChannelsLast) exact Some(8), false Some(Kept) Native true, Some(\"rows\")"
    );
}

/// Nothing behind what such a host has is read or written.
#[test]
fn a_host_of_before_options_is_told_what_it_knows() {
    let backend = open_with::<Talker>(offset_of!(abi::Backend, option_count));
    let told = described(backend);
    assert_eq!(told.flops_per_second, 3e9);
    assert_eq!((told.layout_count, told.layouts.is_null()), (0, true));
    let config = (told.dynamic_shapes, told.half, told.quantized);
    assert_eq!(config, (0, 0, 0), "as they were");
    // Such a host neither waits nor attaches: kernels run in its calls, in the library's memory.
    assert_eq!(told.memory, 0);
    assert!(backend.submit.is_none() && backend.wait.is_none() && backend.attach.is_none());
    assert!(backend.keep.is_some());
    let options = abi::ContextOptions {
        threads: 0,
        spare_memory: 1,
        layout: abi::NHWC,
        dynamic_shapes: 1,
        half: abi::HALF_OFF,
        quantized: abi::QUANTIZED_EXACT,
        timers: 0,
        setting_count: 7,
        settings: std::ptr::dangling(),
        queue: std::ptr::dangling(),
    };
    assert_eq!(
        heard(backend, &options, false),
        "None false None  None, true None Exact false, None"
    );
}
