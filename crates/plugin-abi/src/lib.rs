//! The interface of `include/kilim_backend.h`, which says what everything means, in Rust; and
//! [`guest`], with which a backend is written without touching it.
//!
//! A library that uses this crate needs nothing else of Kilim and works with every host of the same
//! [`VERSION`].

#[doc(hidden)]
pub mod glue;
pub mod guest;

use std::ffi::{c_char, c_void};

/// `KILIM_BACKEND_VERSION`.
pub const VERSION: u32 = 1;
pub const MAX_RANK: usize = 16;
/// An optional input that is left out.
pub const ABSENT: usize = usize::MAX;

pub type Status = i32;
pub const OK: Status = 0;
pub const UNSUPPORTED: Status = 1;
pub const INVALID_VALUE: Status = 2;
pub const LIMIT: Status = 3;
pub const DEVICE: Status = 4;

pub const INTS: i32 = 1;
pub const FLOATS: i32 = 2;
pub const TEXTS: i32 = 3;
pub const BYTES: i32 = 4;
pub const TENSORS: i32 = 5;

pub const STORAGE: i32 = 1;
pub const ARITHMETIC: i32 = 2;
pub const FAST: i32 = 3;

pub const CONSTANT: i32 = 1;
pub const PLANNED: i32 = 2;
pub const ARENA: i32 = 3;
pub const ALIAS: i32 = 4;

pub const FLOAT32: i32 = 1;

#[repr(C)]
pub struct Message {
    pub text: *mut c_char,
    pub capacity: usize,
    pub node: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    pub name: *const c_char,
    pub dtype: i32,
    pub rank: i32,
    pub shape: *const i64,
    pub data: *const c_void,
    pub bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    pub name: *const c_char,
    pub kind: i32,
    pub count: usize,
    pub values: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Node {
    pub name: *const c_char,
    pub domain: *const c_char,
    pub op: *const c_char,
    pub attribute_count: usize,
    pub attributes: *const Attribute,
    pub input_count: usize,
    pub inputs: *const *const Tensor,
    pub output_count: usize,
    pub outputs: *const *const Tensor,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub bytes: f64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DtypeGrade {
    pub dtype: i32,
    pub grade: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Description {
    pub device: *const c_char,
    pub dtype_count: usize,
    pub dtypes: *const DtypeGrade,
    pub alignment: usize,
    pub max_tensor_bytes: u64,
    pub max_arena_bytes: u64,
    pub flops_per_second: f64,
    pub bytes_per_second: f64,
    pub kernel_start: f64,
    pub transfer_start: f64,
    pub transfer_bytes_per_second: f64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slot {
    pub tensor: Tensor,
    pub place: i32,
    pub offset: usize,
    pub of: usize,
    pub key: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Step {
    pub node: *const Node,
    pub inputs: *const usize,
    pub outputs: *const usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stage {
    pub tensor_count: usize,
    pub tensors: *const Slot,
    pub step_count: usize,
    pub steps: *const Step,
    pub part_count: usize,
    pub parts: *const usize,
    pub arena_bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextOptions {
    pub threads: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Output {
    pub dtype: i32,
    pub rank: i32,
    pub shape: [i64; MAX_RANK],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operator {
    pub domain: *const c_char,
    pub name: *const c_char,
    pub this: *mut c_void,
    pub infer:
        Option<unsafe extern "C" fn(*mut c_void, *const Node, *mut Output, *mut Message) -> Status>,
}

type Call = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut Message) -> Status;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Backend {
    pub version: u32,
    pub size: u32,
    pub this: *mut c_void,
    pub describe: Option<unsafe extern "C" fn(*mut c_void, *mut Description)>,
    pub supports:
        Option<unsafe extern "C" fn(*mut c_void, *const Node, *mut Cost, *mut Message) -> Status>,
    pub create_context: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const ContextOptions,
            *mut *mut c_void,
            *mut Message,
        ) -> Status,
    >,
    pub release_context: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub prepare: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *const Stage,
            *mut *mut c_void,
            *mut Message,
        ) -> Status,
    >,
    pub release_executable: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub write: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            usize,
            *const c_void,
            usize,
            *mut Message,
        ) -> Status,
    >,
    pub run: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut Message) -> Status>,
    pub read: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            usize,
            *mut c_void,
            usize,
            *mut Message,
        ) -> Status,
    >,
    pub begin: Option<Call>,
    pub end: Option<Call>,
    pub bytes: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> usize>,
    pub operator_count: usize,
    pub operators: *const Operator,
    pub allocate:
        Option<unsafe extern "C" fn(*mut c_void, usize, *mut *mut c_void, *mut Message) -> Status>,
    pub release: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub bind: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, usize, *mut Message) -> Status,
    >,
    pub scratch_bytes: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> usize>,
    pub tensor_bytes: Option<unsafe extern "C" fn(*mut c_void, *const Tensor) -> usize>,
}

impl Backend {
    /// Without any function; [`Backend::size`] is that of this version.
    pub const EMPTY: Backend = Backend {
        version: VERSION,
        size: size_of::<Backend>() as u32,
        this: std::ptr::null_mut(),
        describe: None,
        supports: None,
        create_context: None,
        release_context: None,
        prepare: None,
        release_executable: None,
        write: None,
        run: None,
        read: None,
        begin: None,
        end: None,
        bytes: None,
        operator_count: 0,
        operators: std::ptr::null(),
        allocate: None,
        release: None,
        bind: None,
        scratch_bytes: None,
        tensor_bytes: None,
    };
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    pub version: u32,
    pub size: u32,
    pub release: *const c_char,
}

/// The type of `kilim_backend_create`.
pub type Create = unsafe extern "C" fn(*const Host, *mut *const Backend, *mut Message) -> Status;
/// The type of `kilim_backend_destroy`.
pub type Destroy = unsafe extern "C" fn(*const Backend);
