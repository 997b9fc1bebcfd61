//! Importers in Rust as hosts see them that know fewer functions.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use kilim_plugin_abi as abi;
use kilim_plugin_abi::importer::guest::{File, Graph, Importer, Metadata, Result};
use kilim_plugin_abi::importer::{self as raw, glue};

use crate::told;

/// Gives one body, and what the model says of itself.
struct Bodies;

impl Importer for Bodies {
    fn probe(_head: &[u8], _name: &str) -> bool {
        true
    }

    fn load(_file: &File, graph: &mut Graph) -> Result {
        graph.body("then_branch", |_| Ok(()))?;
        graph.metadata(&Metadata::default())
    }
}

unsafe extern "C" fn begin(
    _this: *mut c_void,
    _attribute: *const c_char,
    _error: *mut abi::Message,
) -> abi::Status {
    abi::OK
}

unsafe extern "C" fn end(_this: *mut c_void, _error: *mut abi::Message) -> abi::Status {
    abi::OK
}

unsafe extern "C" fn metadata(
    _this: *mut c_void,
    _metadata: *const raw::Metadata,
    _error: *mut abi::Message,
) -> abi::Status {
    abi::OK
}

/// What a load says where the host's table has so many bytes.
fn loaded(size: usize) -> (abi::Status, String) {
    let graph = raw::Graph {
        size: u32::try_from(size).unwrap(),
        this: null_mut(),
        input: None,
        constant: None,
        node: None,
        output: None,
        model: None,
        begin_body: Some(begin),
        end_body: Some(end),
        metadata: Some(metadata),
    };
    let file = raw::File {
        size: u32::try_from(size_of::<raw::File>()).unwrap(),
        this: null_mut(),
        name: c"m".as_ptr(),
        bytes: null(),
        byte_count: 0,
        beside: None,
    };
    let load = glue::table::<Bodies>().load.unwrap();
    // SAFETY: all of it lives during the call.
    told(|message| unsafe { load(null_mut(), &raw const file, &raw const graph, message) })
}

#[test]
fn functions_of_a_later_kilim_are_not_called() {
    assert_eq!(loaded(size_of::<raw::Graph>()).0, abi::OK);
    for size in [
        offset_of!(raw::Graph, begin_body),
        offset_of!(raw::Graph, end_body),
        offset_of!(raw::Graph, metadata),
    ] {
        let (status, said) = loaded(size);
        assert_eq!(status, abi::UNSUPPORTED, "{said}");
        assert_eq!(said, "this Kilim does not have the function");
    }
}
