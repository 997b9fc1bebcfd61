//! The interface of `include/kilim_backend.h`, which says what everything means, in Rust; and
//! [`guest`], with which a backend is written without touching it. [`importer`] is the same for formats.
//!
//! A library that uses this crate needs nothing else of Kilim and works with every host of the same
//! [`VERSION`].

#[doc(hidden)]
pub mod glue;
pub mod guest;
mod handles;
pub mod importer;
mod numbers;

use std::ffi::{c_char, c_void};

pub use handles::{Handle, HandleKind};
pub use numbers::*;

/// `KilimStatus`: how a call ended, [`OK`] or one of the others.
pub type Status = i32;
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
    pub layout_count: usize,
    pub layouts: *const i32,
    pub dynamic_shapes: i32,
    pub half: i32,
    pub quantized: i32,
    pub memory: i32,
    pub handle_kind_count: usize,
    pub handle_kinds: *const HandleKind,
}

impl Description {
    /// What Kilim assumes of a backend that says nothing.
    pub const UNSAID: Description = Description {
        device: std::ptr::null(),
        dtype_count: 0,
        dtypes: std::ptr::null(),
        alignment: 64,
        max_tensor_bytes: u64::MAX,
        max_arena_bytes: u64::MAX,
        flops_per_second: 1e10,
        bytes_per_second: 1e10,
        kernel_start: 1e-6,
        transfer_start: 1e-6,
        transfer_bytes_per_second: 1e10,
        layout_count: 0,
        layouts: std::ptr::null(),
        dynamic_shapes: 1,
        half: HALF_BY_GRADE,
        quantized: QUANTIZED_EXACT,
        memory: MEMORY_DEVICE,
        handle_kind_count: 0,
        handle_kinds: std::ptr::null(),
    };
}

/// `KilimSubgraph`: connected nodes of one stage that were placed on a backend.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Subgraph {
    pub tensor_count: usize,
    pub tensors: *const Tensor,
    pub escapes: *const u8,
    pub step_count: usize,
    pub steps: *const Step,
}

/// `KilimRewrite`: takes what a backend makes of a [`Subgraph`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rewrite {
    pub this: *mut c_void,
    pub refuse: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_char)>,
    pub replace: Option<unsafe extern "C" fn(*mut c_void, *const usize, usize, *const Step)>,
}

/// `KilimOption`: an option of a backend's own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OptionInfo {
    pub name: *const c_char,
    pub kind: i32,
    pub initial: *const c_char,
    pub meaning: *const c_char,
    pub choice_count: usize,
    pub choices: *const *const c_char,
}

/// `KilimSetting`: the value of an option.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Setting {
    pub name: *const c_char,
    pub value: *const c_char,
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
    pub algorithms: *const *const c_char,
}

/// `KilimTask`: a part of a stage on one backend, or tensors that go from one backend to another.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Task {
    pub kind: i32,
    pub backend: usize,
    pub to: usize,
    pub part: usize,
    pub executable: *mut c_void,
}

/// `KilimContextOptions`: what a session tells its context.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContextOptions {
    pub threads: usize,
    pub spare_memory: i32,
    pub layout: i32,
    pub dynamic_shapes: i32,
    pub half: i32,
    pub quantized: i32,
    pub timers: i32,
    pub setting_count: usize,
    pub settings: *const Setting,
    pub queue: *const u64,
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
type OnKept =
    unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void, *mut Message) -> Status;

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
    pub option_count: usize,
    pub options: *const OptionInfo,
    pub set_timing: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, i32)>,
    pub times: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut f64, usize, *mut Message) -> Status,
    >,
    pub submit: Option<Call>,
    pub wait: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, i32, *mut i32, *mut Message) -> Status,
    >,
    pub copy: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, usize, usize, *mut Message) -> Status,
    >,
    pub keep: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            usize,
            *mut *mut c_void,
            *mut Message,
        ) -> Status,
    >,
    pub use_kept: Option<OnKept>,
    pub read_kept: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, usize, *mut Message) -> Status,
    >,
    pub release_kept: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub save_cache: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> usize>,
    pub load_cache:
        Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut Message) -> Status>,
    pub is_lost: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32>,
    pub reopen: Option<unsafe extern "C" fn(*mut c_void, *mut Message) -> Status>,
    pub optimise: Option<
        unsafe extern "C" fn(*mut c_void, *const Subgraph, *const Rewrite, *mut Message) -> Status,
    >,
    pub evaluate: Option<
        unsafe extern "C" fn(*mut c_void, *const Node, *const *mut c_void, *mut Message) -> Status,
    >,
    pub attach: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            usize,
            *mut c_void,
            usize,
            *mut Message,
        ) -> Status,
    >,
    pub node_layout: Option<unsafe extern "C" fn(*mut c_void, *const Node) -> i32>,
    pub choice: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const Node,
            *mut *const *const c_char,
            *mut Message,
        ) -> usize,
    >,
    pub schedule: Option<
        unsafe extern "C" fn(*mut c_void, *const Task, usize, *mut usize, *mut Message) -> Status,
    >,
    pub replica: Option<
        unsafe extern "C" fn(*mut c_void, *mut c_void, *mut *mut c_void, *mut Message) -> Status,
    >,
    pub replicate: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *mut c_void,
            *mut *mut c_void,
            *mut Message,
        ) -> Status,
    >,
    pub is_packed: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, u64) -> i32>,
    pub import_memory: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *const Tensor,
            *const Handle,
            *mut *mut c_void,
            *mut Message,
        ) -> Status,
    >,
    pub keep_in: Option<OnKept>,
    pub write_kept: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *const c_void,
            usize,
            *mut Message,
        ) -> Status,
    >,
    pub queue:
        Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u64, *mut Message) -> Status>,
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
        option_count: 0,
        options: std::ptr::null(),
        set_timing: None,
        times: None,
        submit: None,
        wait: None,
        copy: None,
        keep: None,
        use_kept: None,
        read_kept: None,
        release_kept: None,
        save_cache: None,
        load_cache: None,
        is_lost: None,
        reopen: None,
        optimise: None,
        evaluate: None,
        attach: None,
        node_layout: None,
        choice: None,
        schedule: None,
        replica: None,
        replicate: None,
        is_packed: None,
        import_memory: None,
        keep_in: None,
        write_kept: None,
        queue: None,
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
