//! The interface of `include/kilim_importer.h`, which says what everything means, in Rust; and [`guest`], with which an importer is
//! written without touching it.

#[doc(hidden)]
pub mod glue;
pub mod guest;

use std::ffi::{c_char, c_void};

use crate::{Attribute, Host, Message, Status, Tensor};

/// `KILIM_IMPORTER_VERSION`.
pub const VERSION: u32 = 1;

/// `KilimDim`: a dimension of an input, -1 where it is open, and what it is called then.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim {
    pub size: i64,
    pub symbol: *const c_char,
}

/// `KilimInput`: name, element type and dimensions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Input {
    pub name: *const c_char,
    pub dtype: i32,
    pub rank: i32,
    pub dims: *const Dim,
}

/// `KilimOperation`: an operator with its attributes, on values by their names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operation {
    pub name: *const c_char,
    pub domain: *const c_char,
    pub op: *const c_char,
    pub attribute_count: usize,
    pub attributes: *const Attribute,
    pub input_count: usize,
    pub inputs: *const *const c_char,
    pub output_count: usize,
    pub outputs: *const *const c_char,
}

/// `KILIM_UNTYPED`: the element type of an input whose type the node around its body says.
pub const UNTYPED: i32 = 0;

/// `KilimMetadata`: what a model says of itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Metadata {
    pub name: *const c_char,
    pub description: *const c_char,
    pub producer: *const c_char,
    pub producer_version: *const c_char,
    pub domain: *const c_char,
    pub version: *const c_char,
    pub entry_count: usize,
    pub keys: *const *const c_char,
    pub texts: *const *const c_char,
}

/// `KilimFile.beside`.
pub type Beside = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    *mut *const c_void,
    *mut usize,
    *mut Message,
) -> Status;

/// `KilimFile`: a model file.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct File {
    pub size: u32,
    pub this: *mut c_void,
    pub name: *const c_char,
    pub bytes: *const c_void,
    pub byte_count: usize,
    pub beside: Option<Beside>,
}

/// `KilimGraph`: what takes a model.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Graph {
    pub size: u32,
    pub this: *mut c_void,
    pub input: Option<unsafe extern "C" fn(*mut c_void, *const Input, *mut Message) -> Status>,
    pub constant: Option<unsafe extern "C" fn(*mut c_void, *const Tensor, *mut Message) -> Status>,
    pub node: Option<unsafe extern "C" fn(*mut c_void, *const Operation, *mut Message) -> Status>,
    pub output: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut Message) -> Status>,
    pub model:
        Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut Message) -> Status>,
    pub begin_body:
        Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut Message) -> Status>,
    pub end_body: Option<unsafe extern "C" fn(*mut c_void, *mut Message) -> Status>,
    pub metadata:
        Option<unsafe extern "C" fn(*mut c_void, *const Metadata, *mut Message) -> Status>,
}

/// `KilimImporter.probe`.
pub type Probe = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *const c_char) -> i32;
/// `KilimImporter.load`.
pub type Load =
    unsafe extern "C" fn(*mut c_void, *const File, *const Graph, *mut Message) -> Status;

/// `KilimImporter`: the table of a library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Importer {
    pub version: u32,
    pub size: u32,
    pub this: *mut c_void,
    pub probe: Option<Probe>,
    pub load: Option<Load>,
}

// SAFETY: the functions of a table may be called by any thread, and the table is never written.
unsafe impl Send for Importer {}
// SAFETY: the functions of a table may be called by any thread, and the table is never written.
unsafe impl Sync for Importer {}

/// The type of `kilim_importer`.
pub type Create = unsafe extern "C" fn(*const Host) -> *const Importer;
