//! A backend in Rust: implement [`Guest`], whose [`Kernel`]s compute single nodes on host memory, and
//! name it in [`crate::export_backend`].
//!
//! Panics do not leave the library: they become errors.

mod build;
mod choices;
mod data;
mod device;
mod handles;
mod schedule;
mod subgraph;

use std::ffi::CStr;

use crate::{self as abi, Cost, Status};

pub use build::Build;
pub(crate) use build::Packs;
pub use choices::{Choice, Choices, NodeLayouts};
pub use data::{Data, Element};
pub use device::{DataLayout, Description, Half, OptionDef, OptionKind, Quantized, Settings};
pub use handles::{Handle, HandleKind, Mapping, UserMemory};
pub use schedule::{Scheduler, Task};
pub use subgraph::{Change, NewNode, NewTensor, NewValues, Subgraph, SubgraphStep, SubgraphTensor};

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

    /// What was given is out of its domain, such as memory that is smaller than it is said to be.
    pub fn invalid(text: impl Into<String>) -> Failure {
        Failure {
            status: abi::INVALID_VALUE,
            text: text.into(),
        }
    }

    /// Memory is short, or another limit was passed.
    pub fn limit(text: impl Into<String>) -> Failure {
        Failure {
            status: abi::LIMIT,
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

/// Memory of a device at addresses of the host, in words of 8 bytes; given back when it is dropped.
pub type Memory = Box<dyn AsMut<[u64]> + Send>;

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
    /// All attributes, by their names.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &Values<'_>)> {
        self.attributes.iter().map(|(name, values)| (*name, values))
    }

    /// The values of an attribute; `None` where the node has none of this name.
    pub fn attribute(&self, name: &str) -> Option<&Values<'_>> {
        let found = self.attributes.iter().find(|(n, _)| *n == name);
        found.map(|(_, v)| v)
    }

    /// The integers of an attribute, booleans as 0 and 1; empty where the node has none of this name.
    pub fn ints(&self, name: &str) -> &[i64] {
        match self.attribute(name) {
            Some(Values::Ints(list)) => list,
            _ => &[],
        }
    }

    /// The text of an attribute; `None` where the node has none of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name) {
            Some(Values::Texts(texts)) => texts.first().copied(),
            _ => None,
        }
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

/// One node made ready to run.
pub trait Kernel: Send {
    /// Computes the outputs. An input that is left out is `None`, as is one that [`Build::pack`] gave.
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result;

    /// A kernel that does the same in another run at the same time, and shares what was packed; `None` has Kilim make one anew.
    /// Asked of backends that describe [`Description::replicas`].
    fn replica(&self) -> Option<Box<dyn Kernel>> {
        None
    }
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

/// A call of Kilim's that is answered without the [`Guest`], and that went well.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Call<'a> {
    /// A session begins, with these settings.
    CreateContext(&'a Settings),
    /// A session, or one of its runs at the same time, ends.
    ReleaseContext,
    /// A session is made ready for one more run at the same time.
    Replica,
    /// Kernels of one more run at the same time were made of others.
    Replicate,
    /// Kilim lets go of a constant that kernels have packed.
    IsPacked,
    /// A tensor stays on the device.
    Keep,
}

/// A backend that computes on memory at addresses of the host.
pub trait Guest: Send + Sync + Sized + 'static {
    /// Opens the device.
    fn open() -> Result<Self>;

    /// The device in words.
    fn device(&self) -> &CStr;

    /// The kernel of a node, or the reason why there is none. It is asked for every node of a model,
    /// and again for those that the backend is given.
    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>>;

    /// The kernel of a node for a session: with its settings, by an algorithm of [`Guest::choices`], of weights in a form of the
    /// kernel's own. Which nodes have one must not depend on that.
    fn kernel_with(&self, node: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        let _ = build;
        self.kernel(node)
    }

    /// What the device can do, asked once.
    fn describe(&self) -> Description {
        Description::default()
    }

    /// A block of the device's own memory of at least so many bytes, in which Kilim plans tensors; it asks for few of them, and
    /// large ones. `None` where the backend computes in memory of the host that it does not choose.
    fn allocate(&self, bytes: usize) -> Result<Option<Memory>> {
        let _ = bytes;
        Ok(None)
    }

    /// The kinds of the user's memory that kernels may compute in, asked once.
    fn handle_kinds(&self) -> Vec<HandleKind> {
        Vec::new()
    }

    /// Memory of the user's at addresses of the host, in which kernels read and write a tensor. It is of one of
    /// [`Guest::handle_kinds`] other than [`HandleKind::Host`].
    fn import(&self, memory: &UserMemory, settings: &Settings) -> Result<Mapping> {
        let _ = (memory, settings);
        Err(Failure::unsupported("no memory is imported"))
    }

    /// The command queue of sessions with these settings: the one that was given ([`Settings::queue`]), or one of the backend's
    /// own. `None` where the backend knows no queues; one that a user gives is then refused.
    fn queue(&self, settings: &Settings) -> Option<u64> {
        let _ = settings;
        None
    }

    /// What a node costs that the backend runs; `estimate` is Kilim's own figure.
    fn cost(&self, node: &Node, estimate: Cost) -> Cost {
        let _ = node;
        estimate
    }

    /// What becomes of connected nodes that the backend was given; what no change names stays as it is. [`Guest::kernel`]
    /// is asked about new nodes as about any.
    fn optimise(&self, subgraph: &Subgraph) -> Result<Vec<Change>> {
        let _ = subgraph;
        Ok(Vec::new())
    }

    /// What says the layout of each node, where that is not the first that the backend describes.
    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
        None
    }

    /// What names algorithms that are to be measured.
    fn choices(&self) -> Option<&dyn Choices> {
        None
    }

    /// What orders the tasks of a stage, those of other backends, too.
    fn scheduler(&self) -> Option<&dyn Scheduler> {
        None
    }

    /// Hears of a call that was answered without the guest, to write it to a log for instance. Any thread may call it.
    fn hear(&self, call: Call) {
        let _ = call;
    }

    /// What was learnt of the device and would have to be found out again in another process; empty where that is nothing.
    fn save_cache(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes what [`Guest::save_cache`] gave on a device of the same name.
    fn load_cache(&self, cache: &[u8]) -> Result {
        let _ = cache;
        Ok(())
    }

    /// Whether the device was lost. Before the next run Kilim then has [`Guest::reopen`] open it again, and makes all kernels
    /// anew.
    fn is_lost(&self) -> bool {
        false
    }

    /// Opens a lost device again.
    fn reopen(&self) -> Result {
        Ok(())
    }

    /// Options of the backend's own.
    fn options() -> &'static [OptionDef] {
        &[]
    }

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
