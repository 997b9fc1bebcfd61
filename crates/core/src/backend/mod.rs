//! The backend API: what a backend says of itself, what it is asked, and what it makes.
//!
//! A [`Backend`] lives as long as the process: device, caches, tuning. For each session it makes a
//! [`BackendContext`], which holds that session's constants; a context turns each planned stage of
//! the graph into an [`Executable`]: tensors in one arena and a kernel for every node.
//!
//! The calls of a session, in order: `resize_begin`, then `gen_tensors` and `gen_kernels` for every
//! stage that is planned, `resize_end` (all memory is allocated there), `warm_up`; for each run of a
//! stage `execute_begin`, `write`, `run`, `read`, `execute_end`; and from `resize_begin` on again when
//! inputs of other shapes come. Where little of a stage is another than before, `adapt` comes instead of
//! `gen_tensors` and `gen_kernels`.

mod change;
#[cfg(not(target_arch = "wasm32"))]
mod command_queue;
mod config;
mod context;
mod data_layout;
mod description;
mod device_options;
mod node_layouts;
mod optimizer;
mod registry;
mod spec;
mod state;
mod tensors;

use std::sync::Arc;

use crate::error::Result;
use crate::fact::Cost;
use crate::interrupt::Interrupt;
use crate::memory::Arena;
use crate::ops::CustomOperator;
use crate::schedule::Scheduler;
use crate::tensor::Tensor;
use crate::tuning::Choice;

pub use crate::device_tensor::{DeviceHandle, DeviceTensor};
pub use crate::executable::{Executable, Progress};
pub use crate::fact::TensorSpec;
pub use crate::graph::{NodeSpec, Refusal};
pub use crate::ids::BackendId;
pub use crate::memory::{Allocator, HostAllocator};
pub use crate::threading::{LocalFuture, MaybeSend, MaybeSync};
#[cfg(not(target_arch = "wasm32"))]
pub use crate::user_memory::{InHost, MemoryHandle, MemoryKind, UserMemory};
pub use change::{KernelChange, StageChange, TensorChange};
#[cfg(not(target_arch = "wasm32"))]
pub use command_queue::CommandQueue;
pub use config::{BackendConfig, BackendConfigs, BackendOptions, Half, Quantized, Setting};
pub use context::{BackendContext, ContextConfig, RawConstants};
pub use data_layout::DataLayout;
pub use description::{Description, Grade, Memory, Speed};
pub use device_options::{DeviceOption, DeviceOptions, OptionKind};
pub use node_layouts::NodeLayouts;
pub use optimizer::{Optimizer, Replacement, Rewrite, Subgraph, SubgraphTensor};
pub use registry::{BackendFactory, BackendRegistry, check_version};
pub use spec::{ConstantKey, KernelSpec, Location, StageSpec, TensorSlot};
pub use state::ContextState;
pub use tensors::{StageTensors, TensorRegistry};

/// The version of this API. A backend built for another one is refused.
pub const API_VERSION: u32 = 11;

/// A device and what outlives sessions on it.
pub trait Backend: MaybeSend + MaybeSync {
    /// The device and what it can do; the same for as long as the backend lives.
    fn describe(&self) -> &Description;

    /// [`API_VERSION`] at the time the backend was built.
    fn api_version(&self) -> u32 {
        API_VERSION
    }

    /// Options that this backend has for its device, beside those of [`BackendConfig`]. Their values come with
    /// [`ContextConfig::device`], and to [`BackendFactory`], where the device is opened for them.
    fn options(&self) -> &[DeviceOption] {
        &[]
    }

    /// The devices among which the options of the backend choose, in words and in the order of their numbers; empty
    /// where there is no such choice.
    fn devices(&self) -> LocalFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Whether this backend runs exactly this node, with these shapes, element types, attributes
    /// and known values, and what it costs. Nothing is supported by default.
    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal>;

    /// This device for a session that wants `config`; `None` where the configuration changes nothing about
    /// what is supported.
    fn configured(&self, config: &BackendConfig) -> Option<Arc<dyn Backend>> {
        let _ = config;
        None
    }

    /// A session's part of the backend, with constants and an arena of its own.
    ///
    /// # Errors
    /// `Device` where the device is lost.
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

    /// The kinds of the user's memory that contexts [import](BackendContext::import).
    #[cfg(not(target_arch = "wasm32"))]
    fn memory_kinds(&self) -> &[MemoryKind] {
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

    /// The part that says for each node which layout is the fastest. Without it, that is the first of
    /// [`BackendConfig::layouts`].
    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
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
    /// inputs of the node carry values. `None` where the backend does not offer this. `interrupt`
    /// stops it with `Aborted`.
    fn evaluate(&self, node: &NodeSpec, interrupt: &Interrupt) -> Option<Result<Vec<Tensor>>> {
        let _ = (node, interrupt);
        None
    }
}
