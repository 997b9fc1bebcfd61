//! Panics of a backend in Rust end at the border of its library.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use kilim_plugin_abi::guest::{Data, Failure, Guest, Kernel, Node, Result};
use kilim_plugin_abi::{self as abi, glue};

use crate::{node, told};

static OPENS: AtomicBool = AtomicBool::new(false);

struct Panicking;

impl Guest for Panicking {
    fn open() -> Result<Panicking> {
        assert!(OPENS.load(Ordering::Relaxed), "the device is on fire");
        Ok(Panicking)
    }

    fn device(&self) -> &CStr {
        c"one that panics"
    }

    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>> {
        match node.op {
            "Runs" => Ok(Box::new(|_: &[Option<&Data>], _: &mut [Data]| {
                panic!("the kernel is on fire")
            })),
            "Panics" => panic!("the question is on fire"),
            _ => Err(Failure::unsupported("no such operator")),
        }
    }
}

#[test]
fn a_panic_becomes_a_status_and_words() {
    let host = abi::Host {
        version: abi::VERSION,
        size: size_of::<abi::Backend>() as u32,
        release: c"0".as_ptr(),
    };
    let mut backend = null();
    // SAFETY: the pointers live during the calls, as the interface wants it.
    let mut create =
        |message| unsafe { glue::create::<Panicking>(&raw const host, &raw mut backend, message) };
    let (status, said) = told(&mut create);
    assert_eq!(status, abi::DEVICE);
    assert!(said.contains("the device is on fire"), "{said}");
    OPENS.store(true, Ordering::Relaxed);
    assert_eq!(told(&mut create).0, abi::OK);

    // SAFETY: what `create` gave.
    let table = unsafe { &*backend };
    let (this, supports) = (table.this, table.supports.unwrap());
    let asked = node(c"Panics");
    // SAFETY: `this` and the function are of one table, which `create` gave; the node lives.
    let (status, said) =
        told(|message| unsafe { supports(this, &raw const asked, null_mut(), message) });
    assert_eq!(status, abi::DEVICE);
    assert!(said.contains("the question is on fire"), "{said}");

    let runs = node(c"Runs");
    let step = abi::Step {
        node: &raw const runs,
        inputs: null(),
        outputs: null(),
    };
    let parts = [0, 1];
    let stage = abi::Stage {
        tensor_count: 0,
        tensors: null(),
        step_count: 1,
        steps: &raw const step,
        part_count: 1,
        parts: parts.as_ptr(),
        arena_bytes: 0,
        algorithms: std::ptr::null(),
    };
    let mut executable: *mut c_void = null_mut();
    let prepare = table.prepare.unwrap();
    // SAFETY: `this` and the function are of one table, which `create` gave; the stage lives during the call.
    let (status, said) = told(|message| unsafe {
        prepare(
            this,
            null_mut(),
            &raw const stage,
            &raw mut executable,
            message,
        )
    });
    assert_eq!((status, &said[..]), (abi::OK, ""));
    let run = table.run.unwrap();
    for _ in 0..2 {
        // SAFETY: what `prepare` gave.
        let (status, said) = told(|message| unsafe { run(this, executable, 0, message) });
        assert_eq!(status, abi::DEVICE);
        assert!(said.contains("the kernel is on fire"), "{said}");
    }
    // SAFETY: each is released once, and the backend last.
    unsafe {
        table.release_executable.unwrap()(this, executable);
        glue::destroy::<Panicking>(backend);
    }
}
