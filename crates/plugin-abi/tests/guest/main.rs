//! Backends in Rust as hosts see them through the table.

mod abilities;
mod handles;
mod hosts;
mod importers;
mod panics;
mod replicas;
mod whole;

use std::ffi::CStr;
use std::ptr::{null, null_mut};

use kilim_plugin_abi::guest::Guest;
use kilim_plugin_abi::{self as abi, glue};

/// The backend as a host opens it that knows the whole table.
fn open<G: Guest>() -> &'static abi::Backend {
    open_with::<G>(size_of::<abi::Backend>())
}

/// The backend as a host with a table of so many bytes opens it.
fn open_with<G: Guest>(size: usize) -> &'static abi::Backend {
    let host = abi::Host {
        version: abi::VERSION,
        size: u32::try_from(size).unwrap(),
        release: c"0".as_ptr(),
    };
    let mut backend = null();
    // SAFETY: all three live during the call.
    let status = unsafe { glue::create::<G>(&raw const host, &raw mut backend, null_mut()) };
    assert_eq!(status, abi::OK);
    // SAFETY: made above, and never destroyed.
    unsafe { &*backend }
}

/// A node without inputs, outputs and attributes, named as its operator.
fn node(op: &'static CStr) -> abi::Node {
    abi::Node {
        name: op.as_ptr(),
        domain: c"".as_ptr(),
        op: op.as_ptr(),
        attribute_count: 0,
        attributes: null(),
        input_count: 0,
        inputs: null(),
        output_count: 0,
        outputs: null(),
    }
}

/// What a call said, and its status.
fn told(call: impl FnOnce(*mut abi::Message) -> abi::Status) -> (abi::Status, String) {
    let mut text = [0u8; 256];
    let mut message = abi::Message {
        text: text.as_mut_ptr().cast(),
        capacity: text.len(),
        node: -1,
    };
    let status = call(&raw mut message);
    let said = CStr::from_bytes_until_nul(&text).unwrap();
    (status, said.to_str().unwrap().to_string())
}
