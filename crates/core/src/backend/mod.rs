//! The backend API: what a backend says of itself, what it is asked, and what it makes.
//!
//! A [`Backend`] lives as long as the process: device, caches, tuning. For each session it makes a
//! [`BackendContext`], which holds that session's constants; a context turns each planned stage of
//! the graph into an [`Executable`]: tensors in one arena and a kernel for every node.

mod optimizer;
mod registry;
mod spec;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::ops::{Cost, CustomOperator};
use crate::schedule::Scheduler;
use crate::tensor::Tensor;

pub use optimizer::{Optimizer, Replacement, Rewrite, Subgraph, SubgraphTensor};
pub use registry::{BackendFactory, BackendRegistry};
pub use spec::{ConstantKey, KernelSpec, NodeSpec, Place, StageSpec, TensorSlot, TensorSpec};

/// The version of this API. A backend built for another one is refused.
pub const API_VERSION: u32 = 1;

/// A future of the current thread: on the web nothing that touches a GPU may move between threads.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// `Send` natively, nothing on the web, where GPU handles stay on their thread.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSend: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + ?Sized> MaybeSend for T {}
/// `Send` natively, nothing on the web, where GPU handles stay on their thread.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSend {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSend for T {}

/// `Sync` natively, nothing on the web.
#[cfg(not(target_arch = "wasm32"))]
pub trait MaybeSync: Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Sync + ?Sized> MaybeSync for T {}
/// `Sync` natively, nothing on the web.
#[cfg(target_arch = "wasm32")]
pub trait MaybeSync {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> MaybeSync for T {}

/// A backend's unique name: `cpu`, `wgpu`, `builtin`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId(Cow<'static, str>);

impl BackendId {
    pub const fn new(id: &'static str) -> BackendId {
        BackendId(Cow::Borrowed(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for BackendId {
    fn from(id: &str) -> Self {
        BackendId(Cow::Owned(id.to_string()))
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How well a backend handles an element type; each grade includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Stored and moved.
    Storage,
    /// Computed with, perhaps in a wider type.
    Arithmetic,
    /// Computed with at the device's best speed.
    Fast,
}

/// Where a backend's tensors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In host memory: tensors of the user are read and written in place.
    Host,
    /// On a device: inputs are copied in, outputs are copied out.
    Device,
}

/// What the cost model knows of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    pub flops_per_second: f64,
    pub bytes_per_second: f64,
    /// Seconds that starting one kernel costs.
    pub kernel_start: f64,
    /// Seconds that one transfer between host and device costs, whatever its size.
    pub transfer_start: f64,
    pub transfer_bytes_per_second: f64,
}

impl Speed {
    /// Whether every figure is one that a device can have.
    pub fn is_possible(&self) -> bool {
        let rates = [
            self.flops_per_second,
            self.bytes_per_second,
            self.transfer_bytes_per_second,
        ];
        let starts = [self.kernel_start, self.transfer_start];
        rates.iter().all(|r| r.is_finite() && *r > 0.0)
            && starts.iter().all(|s| s.is_finite() && *s >= 0.0)
    }
}

/// What a backend says of itself.
#[derive(Clone, Debug)]
pub struct Description {
    pub id: BackendId,
    /// The device, in words: adapter and driver, or instruction set and threads.
    pub device: String,
    pub memory: Memory,
    pub dtypes: Vec<(DType, Grade)>,
    /// Offsets of tensors in the arena are multiples of this.
    pub alignment: usize,
    /// The largest tensor that one kernel can bind.
    pub max_tensor_bytes: u64,
    /// The largest arena.
    pub max_arena_bytes: u64,
    pub speed: Speed,
}

impl Description {
    pub fn grade(&self, dtype: DType) -> Option<Grade> {
        self.dtypes
            .iter()
            .find(|(d, _)| *d == dtype)
            .map(|(_, g)| *g)
    }
}

/// Why a backend refuses a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
}

impl Refusal {
    pub fn new(reason: impl Into<String>) -> Refusal {
        Refusal {
            reason: reason.into(),
        }
    }
}

/// What a context needs to know of its session.
#[derive(Clone, Debug, Default)]
pub struct ContextConfig {
    /// Threads that a CPU backend may use; `None` lets it choose.
    pub threads: Option<usize>,
}

/// A device and what outlives sessions on it.
pub trait Backend: MaybeSend + MaybeSync {
    fn describe(&self) -> &Description;

    /// [`API_VERSION`] at the time the backend was built.
    fn api_version(&self) -> u32 {
        API_VERSION
    }

    /// Whether this backend runs exactly this node, with these shapes, element types, attributes
    /// and known values, and what it costs. Nothing is supported by default.
    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal>;

    /// Bytes that a tensor takes in this backend's arena.
    fn tensor_bytes(&self, tensor: &TensorSpec) -> usize {
        tensor.bytes()
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>>;

    /// Operators beside Kilim's own that this backend runs.
    fn operators(&self) -> &[Arc<CustomOperator>] {
        &[]
    }

    /// The part that looks at connected nodes instead of single ones. Without it, nodes run as they
    /// were placed.
    fn optimizer(&self) -> Option<&dyn Optimizer> {
        None
    }

    /// A scheduler for sessions whose options do not choose another than the default one; that of
    /// the first backend which has one is taken.
    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        None
    }

    /// Opens the device again if it was lost; contexts made before stay useless.
    ///
    /// # Errors
    /// `Device` where it does not come back, or comes back as another one.
    fn reopen(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Runs one node at once on host tensors: for constant folding and shape arithmetic. All
    /// inputs of the node carry values. `None` where the backend does not offer this.
    fn evaluate(&self, node: &NodeSpec) -> Option<Result<Vec<Tensor>>> {
        let _ = node;
        None
    }
}

/// A backend's part of one session: its constants, and everything derived from them.
pub trait BackendContext: MaybeSend {
    /// Generates the tensors and kernels of one stage. Constants that another stage of the session
    /// has brought in already (by [`ConstantKey`]) are not copied or packed again.
    ///
    /// # Errors
    /// `Limit` where the device cannot hold the stage; `Device` where it fails.
    fn prepare(&mut self, stage: StageSpec) -> Result<Box<dyn Executable>>;

    /// Resolves when every kernel prepared so far is ready to run at full speed (pipelines are
    /// compiled); the first run then compiles nothing.
    fn warm_up(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Reads tensors that [`Executable::export`] gave.
    fn read<'a>(&'a mut self, tensors: &'a [DeviceTensor]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let _ = tensors;
        Box::pin(std::future::ready(Err(Error::new(
            ErrorCode::State,
            "this backend has no device tensors",
        ))))
    }

    /// A context with tensors and kernels of its own for another run at the same time, which
    /// shares the constants of this one. `None` where they have to be made anew.
    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        None
    }

    /// Whether the device was lost: the session then makes everything anew before its next run.
    fn is_lost(&self) -> bool {
        false
    }

    /// Bytes of constants and packed weights that the context holds now.
    fn constant_bytes(&self) -> usize;
}

/// The tensors and kernels of one planned stage. Tensors are named by their index in
/// [`StageSpec::tensors`].
pub trait Executable: MaybeSend {
    /// Called before a run of the stage.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Gives a tensor its data from the host. For [`Memory::Host`] this shares the bytes.
    fn write(&mut self, tensor: usize, data: &Tensor) -> Result<()>;

    /// Gives a tensor its data from a device tensor of this backend, without a way over the host.
    fn import(&mut self, tensor: usize, data: &DeviceTensor) -> Result<()> {
        let _ = (tensor, data);
        Err(Error::new(
            ErrorCode::State,
            "this backend has no device tensors",
        ))
    }

    /// Runs the kernels of one part (see [`StageSpec::parts`]). On a device this may only record.
    fn run(&mut self, part: usize) -> Result<()>;

    /// Starts whatever is only recorded, without waiting for it.
    fn submit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Resolves when everything submitted is done. A future that is polled once and dropped is a
    /// try.
    fn finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Brings tensors to the host; on a device everything recorded so far is submitted first.
    fn read<'a>(&'a mut self, tensors: &'a [usize]) -> LocalFuture<'a, Result<Vec<Tensor>>>;

    /// Takes a tensor out of the stage without a way over the host, so that another stage can
    /// [`Executable::import`] it. It stays valid whatever the stage does afterwards.
    fn export(&mut self, tensor: usize) -> Result<DeviceTensor> {
        let _ = tensor;
        Err(Error::new(
            ErrorCode::State,
            "this backend has no device tensors",
        ))
    }

    /// Called after a run of the stage: whatever is still only recorded is submitted.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }

    /// Turns timing of single nodes on or off.
    fn set_profiling(&mut self, on: bool) {
        let _ = on;
    }

    /// Seconds that each node of [`StageSpec::nodes`] took in the last profiled run.
    fn profile(&mut self) -> LocalFuture<'_, Result<Vec<f64>>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Kernel launches of one run of the stage (dispatches on a GPU).
    fn launches(&self) -> usize;

    /// Bytes that the stage holds on the device: arena and scratch, without constants.
    fn bytes(&self) -> usize;
}

/// A tensor that stays on a device between stages.
#[derive(Clone)]
pub struct DeviceTensor {
    pub backend: BackendId,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// What the backend keeps; it downcasts it.
    pub handle: Arc<dyn DeviceHandle>,
}

/// What a backend keeps in a [`DeviceTensor`].
pub trait DeviceHandle: Any + MaybeSend + MaybeSync {}
impl<T: Any + MaybeSend + MaybeSync> DeviceHandle for T {}

impl fmt::Debug for DeviceTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}{:?}", self.backend, self.dtype, self.shape)
    }
}
