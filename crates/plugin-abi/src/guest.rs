//! A backend in Rust: implement [`Guest`], whose [`Kernel`]s compute single nodes on host memory, and
//! name it in [`crate::export_backend`].
//!
//! Panics do not leave the library: they become errors.

use std::ffi::CStr;
use std::ptr::NonNull;

use crate::{self as abi, Status};

/// Why something is refused or has failed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub status: Status,
    pub text: String,
}

impl Failure {
    /// The node is not one that the backend runs.
    pub fn unsupported(text: impl Into<String>) -> Failure {
        Failure {
            status: abi::UNSUPPORTED,
            text: text.into(),
        }
    }

    /// The device failed.
    pub fn device(text: impl Into<String>) -> Failure {
        Failure {
            status: abi::DEVICE,
            text: text.into(),
        }
    }
}

/// What a backend's functions give: a value, or why not.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// What is known of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct TensorInfo<'a> {
    pub name: &'a str,
    /// The element type by the numbers of ONNX's `TensorProto.DataType`.
    pub dtype: i32,
    /// -1 for a size that is not known (in [`OperatorDef::infer`] only); `None` where not even the
    /// rank is.
    pub shape: Option<&'a [i64]>,
    /// The elements, where they are known.
    pub data: Option<&'a [u8]>,
}

impl TensorInfo<'_> {
    /// The number of elements; 0 where it is not known.
    pub fn elements(&self) -> usize {
        let sizes = self.shape.unwrap_or(&[0]).iter();
        sizes.map(|&d| usize::try_from(d).unwrap_or(0)).product()
    }
}

/// An attribute's values; a single one is a list of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Texts(Vec<&'a str>),
    Bytes(&'a [u8]),
    /// Tensors are not read by this crate.
    Other,
}

/// A node with concrete shapes.
pub struct Node<'a> {
    pub name: &'a str,
    /// Empty for Kilim's own operators.
    pub domain: &'a str,
    pub op: &'a str,
    pub inputs: Vec<Option<TensorInfo<'a>>>,
    pub outputs: Vec<TensorInfo<'a>>,
    pub(crate) attributes: Vec<(&'a str, Values<'a>)>,
}

impl Node<'_> {
    /// The values of an attribute; `None` where the node has none of this name.
    pub fn attribute(&self, name: &str) -> Option<&Values<'_>> {
        let found = self.attributes.iter().find(|(n, _)| *n == name);
        found.map(|(_, v)| v)
    }

    /// The first number of an attribute; `default` where there is none.
    pub fn float_or(&self, name: &str, default: f64) -> f64 {
        match self.attribute(name) {
            Some(Values::Floats([x, ..])) => *x,
            Some(Values::Ints([n, ..])) => *n as f64,
            _ => default,
        }
    }
}

/// The elements of a tensor while a kernel runs, aligned to 8 bytes. They lie in memory that Kilim
/// plans; there is no way to keep them.
#[derive(Debug)]
pub struct Data {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: a kernel has the elements of its inputs and outputs for itself while it runs.
unsafe impl Send for Data {}
// SAFETY: shared, the elements are only read; writing them takes `&mut`.
unsafe impl Sync for Data {}

impl Data {
    /// # Safety
    /// `start` must be followed by `bytes` initialised bytes, which nothing else writes while the
    /// value lives, and which nothing else reads while it is written.
    pub(crate) unsafe fn new(start: NonNull<u64>, bytes: usize) -> Data {
        Data { start, bytes }
    }

    /// The elements as bytes, row-major.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else writes while `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes) }
    }

    /// The elements as bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else reads or writes while `self` is
        // borrowed to be written.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes) }
    }

    /// The elements as `float32`.
    pub fn f32s(&self) -> &[f32] {
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else writes; they are aligned for f32, and
        // every pattern is one.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes / 4) }
    }

    /// The elements as `float32`, to be changed.
    pub fn f32s_mut(&mut self) -> &mut [f32] {
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else uses meanwhile; they are aligned for
        // f32, and every pattern is one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes / 4) }
    }
}

/// One node made ready to run.
pub trait Kernel: Send {
    /// Computes the outputs. An input that is left out is `None`.
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result;
}

impl<F: FnMut(&[Option<&Data>], &mut [Data]) -> Result + Send> Kernel for F {
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result {
        self(inputs, outputs)
    }
}

/// The element type and shape of an output; -1 for a size that is not known.
pub struct OutputInfo {
    pub dtype: i32,
    pub shape: Vec<i64>,
}

/// An operator beside Kilim's own, which the backend runs.
pub struct OperatorDef {
    pub domain: &'static CStr,
    pub name: &'static CStr,
    pub infer: fn(&Node) -> Result<Vec<OutputInfo>>,
}

/// A backend that computes on host memory.
pub trait Guest: Send + Sync + Sized + 'static {
    /// Opens the device.
    fn open() -> Result<Self>;

    /// The device in words.
    fn device(&self) -> &CStr;

    /// The kernel of a node, or the reason why there is none. It is asked for every node of a model,
    /// and again for those that the backend is given.
    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>>;

    /// Operators beside Kilim's own.
    fn operators() -> &'static [OperatorDef] {
        &[]
    }
}

/// Defines the two functions that a library of a backend has.
#[macro_export]
macro_rules! export_backend {
    ($guest:ty) => {
        /// # Safety
        /// The caller is Kilim: the pointers are those that `kilim_backend.h` speaks of.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn kilim_backend_create(
            host: *const $crate::Host,
            backend: *mut *const $crate::Backend,
            error: *mut $crate::Message,
        ) -> $crate::Status {
            // SAFETY: Kilim gives a `Host` to read, room for the pointer to a table, and a message or NULL.
            unsafe { $crate::glue::create::<$guest>(host, backend, error) }
        }

        /// # Safety
        /// `backend` is what `kilim_backend_create` gave, and is not used any more.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn kilim_backend_destroy(backend: *const $crate::Backend) {
            // SAFETY: `backend` is what `kilim_backend_create` gave, and is not used any more.
            unsafe { $crate::glue::destroy::<$guest>(backend) }
        }
    };
}
