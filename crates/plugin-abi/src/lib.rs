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
/// `KILIM_MAX_RANK`: the dimensions that an [`Output`] has room for.
pub const MAX_RANK: usize = 16;
/// An optional input that is left out.
pub const ABSENT: usize = usize::MAX;

/// `KilimStatus`: how a call ended, [`OK`] or one of the others.
pub type Status = i32;
/// `KILIM_OK`.
pub const OK: Status = 0;
/// `KILIM_UNSUPPORTED`: nothing that the backend runs.
pub const UNSUPPORTED: Status = 1;
/// `KILIM_INVALID_VALUE`: the data is out of an operator's domain.
pub const INVALID_VALUE: Status = 2;
/// `KILIM_LIMIT`: memory is short, or another limit was passed.
pub const LIMIT: Status = 3;
/// `KILIM_DEVICE`: the device failed.
pub const DEVICE: Status = 4;

/// `KILIM_INTS`, a kind of [`Attribute`]: `i64`s, booleans as 0 and 1.
pub const INTS: i32 = 1;
/// `KILIM_FLOATS`: `f64`s.
pub const FLOATS: i32 = 2;
/// `KILIM_TEXTS`: strings that end with a zero.
pub const TEXTS: i32 = 3;
/// `KILIM_BYTES`: bytes.
pub const BYTES: i32 = 4;
/// `KILIM_TENSORS`: [`Tensor`]s.
pub const TENSORS: i32 = 5;

/// `KILIM_STORAGE`, a grade of an element type: it can be stored.
pub const STORAGE: i32 = 1;
/// `KILIM_ARITHMETIC`: it can be computed with, too.
pub const ARITHMETIC: i32 = 2;
/// `KILIM_FAST`: computing with it is fast.
pub const FAST: i32 = 3;

/// `KILIM_CONSTANT`, a place of a [`Slot`]: a constant of the session.
pub const CONSTANT: i32 = 1;
/// `KILIM_PLANNED`: known, but only for this stage.
pub const PLANNED: i32 = 2;
/// `KILIM_ARENA`: in the arena, [`Slot::offset`] bytes from its beginning.
pub const ARENA: i32 = 3;
/// `KILIM_ALIAS`: the bytes of tensor [`Slot::of`].
pub const ALIAS: i32 = 4;

/// `KILIM_FLOAT32`; element types are numbered as in ONNX.
pub const FLOAT32: i32 = 1;

/// `KilimMessage`: room for words of a call that fails.
#[repr(C)]
pub struct Message {
    pub text: *mut c_char,
    pub capacity: usize,
    pub node: i64,
}

/// `KilimTensor`: element type, shape and, where they are known, elements.
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

/// `KilimAttribute`: a list of values of one kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    pub name: *const c_char,
    pub kind: i32,
    pub count: usize,
    pub values: *const c_void,
}

/// `KilimNode`: an operator with its attributes, inputs and outputs.
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

/// `KilimCost`: operations, and bytes read and written.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub bytes: f64,
}

/// `KilimDtypeGrade`: how well a backend handles an element type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DtypeGrade {
    pub dtype: i32,
    pub grade: i32,
}

/// `KilimDescription`: what a backend says of itself; bytes, seconds, and operations or bytes a second.
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

/// `KilimSlot`: a tensor of a stage and where it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slot {
    pub tensor: Tensor,
    pub place: i32,
    pub offset: usize,
    pub of: usize,
    pub key: u64,
}

/// `KilimStep`: a node with the tensors of the stage that it reads and writes; [`ABSENT`] for an input that is left out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Step {
    pub node: *const Node,
    pub inputs: *const usize,
    pub outputs: *const usize,
}

/// `KilimStage`: a backend's share of the graph, in order of execution.
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

/// `KilimContextOptions`: what a session tells its context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextOptions {
    pub threads: usize,
}

/// `KilimOutput`: element type and shape of an output; -1 for what is not known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Output {
    pub dtype: i32,
    pub rank: i32,
    pub shape: [i64; MAX_RANK],
}

/// `KilimOperator`: an operator beside Kilim's own.
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

/// `KilimBackend`: the table of a backend's functions. [`Backend::this`] is handed to every one of them.
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
    /// A table without any function; [`Backend::size`] is that of this version.
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

/// `KilimHost`: who asks for a backend.
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
