//! The functions of the C interface for an [`Importer`].

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::guest::{File, Graph, Importer, Metadata, Operation};
use super::{self as raw};
use crate::glue::attributes::Encoded;
pub(super) use crate::glue::c_text;
use crate::glue::{guarded, list, text};
use crate::guest::{Failure, Result};
use crate::{self as abi, Status};

/// Room for what Kilim says.
const TEXT: usize = 1024;

/// The table of an importer.
pub const fn table<I: Importer>() -> raw::Importer {
    raw::Importer {
        version: raw::VERSION,
        size: size_of::<raw::Importer>() as u32,
        this: std::ptr::null_mut(),
        probe: Some(probe::<I>),
        load: Some(load::<I>),
    }
}

unsafe extern "C" fn probe<I: Importer>(
    _this: *mut c_void,
    head: *const c_void,
    count: usize,
    name: *const c_char,
) -> i32 {
    // SAFETY: Kilim gives as many bytes as it says, and a name that ends with a zero.
    let (head, name) = unsafe { (list(head.cast(), count), text(name)) };
    // A format that panics at a file does not know it.
    let known = catch_unwind(AssertUnwindSafe(|| I::probe(head, name)));
    known.unwrap_or(false).into()
}

unsafe extern "C" fn load<I: Importer>(
    _this: *mut c_void,
    file: *const raw::File,
    graph: *const raw::Graph,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: both are Kilim's, live during the call and begin with their size.
        let (file, table) = unsafe { (&*file, taken(graph)) };
        let mut graph = Graph { raw: &table };
        // SAFETY: the file has as many bytes as it says, and a name that ends with a zero.
        let (bytes, name) = unsafe { (list(file.bytes.cast(), file.byte_count), text(file.name)) };
        let file = File {
            name,
            bytes,
            raw: file,
        };
        I::load(&file, &mut graph).map_err(|failure| (failure, -1))
    })
}

/// The table of a Kilim that may know fewer functions: those that it does not have are `None`.
///
/// # Safety
/// A table is there, as large as it says.
unsafe fn taken(table: *const raw::Graph) -> raw::Graph {
    let mut whole = MaybeUninit::<raw::Graph>::zeroed();
    // SAFETY: the size comes first, and so many bytes are there; zeros are a table without functions.
    unsafe {
        let size = (&raw const (*table).size).read() as usize;
        let size = size.min(size_of::<raw::Graph>());
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), whole.as_mut_ptr().cast(), size);
        whole.assume_init()
    }
}

/// Calls a function of Kilim's that may have words for why it fails.
pub(super) fn told(call: impl FnOnce(*mut abi::Message) -> Status) -> Result {
    let mut room = vec![0u8; TEXT];
    let mut message = abi::Message {
        text: room.as_mut_ptr().cast(),
        capacity: room.len(),
        node: -1,
    };
    let status = call(&raw mut message);
    if status == abi::OK {
        return Ok(());
    }
    let text = CStr::from_bytes_until_nul(&room).unwrap_or_default();
    Err(Failure {
        status,
        text: text.to_string_lossy().into_owned(),
    })
}

/// What a model says of itself in the form of the interface, during a call.
pub(super) fn metadata(
    metadata: &Metadata,
    tell: impl FnOnce(*const raw::Metadata) -> Result,
) -> Result {
    let fields = [
        &metadata.name,
        &metadata.description,
        &metadata.producer,
        &metadata.producer_version,
        &metadata.domain,
        &metadata.version,
    ];
    let fields = fields.map(|text| c_text(text));
    let entries = metadata.entries.iter();
    let entries: Vec<_> = entries
        .map(|(key, text)| (c_text(key), c_text(text)))
        .collect();
    let (keys, texts): (Vec<_>, Vec<_>) = entries
        .iter()
        .map(|(key, text)| (key.as_ptr(), text.as_ptr()))
        .unzip();
    let [
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
    ] = fields.each_ref().map(|text| text.as_ptr());
    let told = raw::Metadata {
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
        entry_count: entries.len(),
        keys: keys.as_ptr(),
        texts: texts.as_ptr(),
    };
    tell(&raw const told)
}

/// A node in the form of the interface, during a call.
pub(super) fn operation(
    node: &Operation,
    call: impl FnOnce(*const raw::Operation) -> Result,
) -> Result {
    let [name, domain, op] = [&node.name, &node.domain, &node.op].map(|t| c_text(t));
    let attributes = Encoded::new(&node.attributes);
    let names = |list: &[String]| -> Vec<CString> { list.iter().map(|t| c_text(t)).collect() };
    let (inputs, outputs) = (names(&node.inputs), names(&node.outputs));
    let starts = |list: &[CString]| -> Vec<*const c_char> {
        list.iter().map(|name| name.as_ptr()).collect()
    };
    let (input_names, output_names) = (starts(&inputs), starts(&outputs));
    let told = raw::Operation {
        name: name.as_ptr(),
        domain: domain.as_ptr(),
        op: op.as_ptr(),
        attribute_count: attributes.list.len(),
        attributes: attributes.list.as_ptr(),
        input_count: input_names.len(),
        inputs: input_names.as_ptr(),
        output_count: output_names.len(),
        outputs: output_names.as_ptr(),
    };
    call(&raw const told)
}
