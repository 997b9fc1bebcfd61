//! The backend API: what a backend says of itself, what it is asked, and what it makes.
//!
//! A [`Backend`] lives as long as the process: device, caches, tuning. For each session it makes a
//! [`BackendContext`], which holds that session's constants; a context turns each planned stage of
//! the graph into an [`Executable`]: tensors in one arena and a kernel for every node.
//!
//! The calls of a session, in order: `resize_begin`, then `gen_tensors` and `gen_kernels` for every
//! stage that is planned, `resize_end` (all memory is allocated there), `warm_up`; for each run of a
//! stage `execute_begin`, `write`, `run`, `read`, `execute_end`; and from `resize_begin` on again when
//! inputs of other shapes come.

mod allocator;
mod config;
mod data_layout;
mod optimizer;
mod registry;
mod spec;
mod tensors;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::memory::{Arena, Ledger, MemoryMode, Storage};
use crate::ops::{Cost, CustomOperator};
use crate::schedule::Scheduler;
use crate::tensor::Tensor;
use crate::tuning::{Choice, Tuned};

pub use allocator::{Allocator, HostAllocator};
pub use config::{BackendConfig, BackendConfigs, BackendOptions, Half, Setting};
pub use data_layout::DataLayout;
pub use optimizer::{Optimizer, Replacement, Rewrite, Subgraph, SubgraphTensor};
pub use registry::{BackendFactory, BackendRegistry};
pub use spec::{ConstantKey, KernelSpec, NodeSpec, Place, StageSpec, TensorSlot, TensorSpec};
pub use tensors::{StageTensors, TensorRegistry};

/// The version of this API. A backend built for another one is refused.
pub const API_VERSION: u32 = 3;

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
    pub config: BackendConfig,
}

impl Description {
    /// Names the device among others: a new driver is a new device.
    pub fn key(&self) -> String {
        format!("{}: {}", self.id, self.device)
    }

    pub fn grade(&self, dtype: DType) -> Option<Grade> {
        self.dtypes
            .iter()
            .find(|(d, _)| *d == dtype)
            .map(|(_, g)| *g)
    }

    /// Whether half precision is computed with at the device's best speed.
    pub fn f16(&self) -> bool {
        self.grade(DType::F16) >= Some(Grade::Fast)
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
    pub memory: MemoryMode,
    /// Where intermediates go; `None` is an arena of the context's own.
    pub arena: Option<Arena>,
    /// What the user wants of the backend, or else what it does by itself.
    pub backend: BackendConfig,
    /// Which kernels were measured to be the fastest (see [`Backend::choice`]).
    pub tuned: Tuned,
}

/// Whether constants stay that were packed and that no kernel reads as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawConstants {
    /// They may be packed otherwise when other shapes are planned.
    #[default]
    Keep,
    /// Nothing is planned afterwards.
    Drop,
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

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>>;

    /// The kernels for a node that this backend runs, where there are several and only measuring
    /// tells the fastest. Its contexts take the one that [`ContextConfig::tuned`] says.
    fn choice(&self, node: &NodeSpec, config: &ContextConfig) -> Option<Choice> {
        let _ = (node, config);
        None
    }

    /// Operators beside Kilim's own that this backend runs.
    fn operators(&self) -> &[Arc<CustomOperator>] {
        &[]
    }

    /// The part that has the memory of intermediates. Without it, that is host memory, and a tensor
    /// takes as many bytes as it has.
    fn allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(HostAllocator)
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

    /// Whether a node would be faster in half precision, where the session allows that: `half` has
    /// `f16` in place of `f32`. If not, why. See [`crate::session::MixedPrecision`].
    fn prefers_half(&self, half: &NodeSpec) -> Result<(), Refusal> {
        let described = self.describe();
        if !described.f16() {
            let device = &described.device;
            return Err(Refusal::new(format!("float16 is not faster on {device}")));
        }
        self.supports(half).map(drop)
    }

    /// Opens the device again if it was lost; contexts made before stay useless.
    ///
    /// # Errors
    /// `Device` where it does not come back, or comes back as another one.
    fn reopen(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Memory of `bytes` bytes for the sessions that the caller gives it to (see
    /// [`crate::memory::Sharing::External`]).
    ///
    /// # Errors
    /// What [`Allocator::allocate`] says.
    fn create_arena(&self, bytes: usize) -> Result<Arena> {
        let allocator = self.allocator();
        let memory = allocator.allocate(bytes)?;
        let id = self.describe().id.clone();
        Ok(Arena::external(id, allocator, memory, bytes))
    }

    /// What the backend has learnt and would have to find out again in another process: compiled
    /// pipelines, tuning. `None` where there is nothing.
    fn save_cache(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes what [`Backend::save_cache`] of the same backend, device and driver gave.
    ///
    /// # Safety
    /// `cache` must be those bytes, unchanged: drivers do not check them.
    ///
    /// # Errors
    /// `Unsupported` where the backend keeps no cache; `Device` where the device refuses it.
    unsafe fn load_cache(&self, cache: &[u8]) -> Result<()> {
        let _ = cache;
        Err(crate::error::unsupported(format!(
            "the backend `{}` keeps no cache",
            self.describe().id
        )))
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
    /// Stages are about to be planned.
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        let _ = raw;
        Ok(())
    }

    /// Makes the tensors of a stage and notes the memory they need.
    ///
    /// # Errors
    /// `Limit` where the device cannot hold them.
    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>>;

    /// Makes the kernels of a stage on its tensors. Constants that another stage of the session has
    /// brought in already (by [`ConstantKey`]) are not copied or packed again.
    ///
    /// # Errors
    /// `Limit` where the device cannot hold the constants; `Device` where it fails.
    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
    ) -> Result<Box<dyn Executable>>;

    /// Everything is known that the stages need: the arena is allocated, in one go. Called also where
    /// planning has failed, for what was planned before.
    ///
    /// # Errors
    /// `Limit` where there is no such memory, or the caller's arena is too small.
    fn resize_end(&mut self) -> Result<()>;

    /// Plans one stage by itself.
    ///
    /// # Errors
    /// As for the four calls above.
    fn prepare(&mut self, stage: StageSpec) -> Result<Box<dyn Executable>> {
        self.resize_begin(RawConstants::Keep)?;
        let tensors = self.gen_tensors(&stage);
        let executable = tensors.and_then(|tensors| self.gen_kernels(stage, tensors));
        let ended = self.resize_end();
        executable.and_then(|executable| ended.map(|()| executable))
    }

    /// The tensors of all stages that are kept.
    fn tensors(&self) -> &TensorRegistry;

    /// The accounts of what the context holds.
    fn ledger(&self) -> &Ledger;

    /// Where the context's intermediates are.
    fn arena(&self) -> &Arena;

    /// Bytes of constants and packed weights that the context holds now.
    fn constant_bytes(&self) -> usize {
        self.ledger().bytes(Storage::Static)
    }

    /// Gives the memory of intermediates back until the next run; constants stay.
    fn clear(&mut self) {
        self.arena().clear();
    }

    /// Resolves when the device has done everything that was submitted to it.
    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

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

    /// The kernels of another context's executable on the tensors of this one, which is a replica of
    /// that context or was made with it. `None` where they have to be made anew.
    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let _ = executable;
        None
    }

    /// Whether the device was lost: the session then makes everything anew before its next run.
    fn is_lost(&self) -> bool {
        false
    }
}

/// The tensors and kernels of one planned stage. Tensors are named by their index in
/// [`StageSpec::tensors`].
pub trait Executable: Any + MaybeSend {
    /// Called before a run of the stage.
    fn execute_begin(&mut self) -> Result<()> {
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

    /// Copies tensor `from` into tensor `to`, of the same element type and number of elements,
    /// without a way over the host.
    fn copy(&mut self, from: usize, to: usize) -> Result<()>;

    /// Runs the kernels of one part (see [`StageSpec::parts`]). On a device this may only record.
    fn run(&mut self, part: usize) -> Result<()>;

    /// Starts whatever is only recorded, without waiting for it.
    fn submit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Resolves when everything submitted is done. A future that is polled once and dropped is a
    /// try.
    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
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

    /// Called after a run of the stage, also one that has failed: whatever is still only recorded is
    /// submitted.
    fn execute_end(&mut self) -> Result<()> {
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
