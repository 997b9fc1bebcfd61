//! The backend: what it says of itself, and running single nodes.

#[cfg(any(test, feature = "testing"))]
mod alone;
mod prepared;

use std::sync::Arc;

use kilim_core::backend::{
    Backend, BackendConfig, BackendContext, BackendId, ContextConfig, ContextState, DataLayout,
    Description, Grade, Half, HostAllocator, Memory, NodeSpec, Quantized, Refusal, Speed,
};
use kilim_core::memory::{Arena, HostMemory};
use kilim_core::ops::Cost;
use kilim_core::tensor::AlignedBytes;
use kilim_core::tuning::{Choice, Tuned};
use kilim_core::{DType, Interrupt, Result, Tensor};

#[cfg(any(test, feature = "testing"))]
pub use self::alone::{Alone, build_alone};
pub use self::prepared::{Prepared, Way};
use crate::context::CpuContext;
use crate::kernel::{Build, Kernel};
#[cfg(any(test, feature = "testing"))]
use crate::registry::Candidate;
use crate::registry::KernelRegistry;
use crate::threads::Threads;

/// The backend `cpu`.
pub struct CpuBackend {
    description: Description,
    registry: Arc<KernelRegistry>,
}

impl CpuBackend {
    /// The name of the backend: `cpu`.
    pub const ID: BackendId = BackendId::new("cpu");
    /// What web developers call it.
    pub const ALIAS: &str = "wasm";

    /// The kernels that the backend chooses from.
    pub fn registry(&self) -> &KernelRegistry {
        &self.registry
    }

    /// A backend with these kernels only, for a set of instructions of this name.
    pub fn with_registry(registry: KernelRegistry, instructions: &str) -> CpuBackend {
        let grade = |d| match d {
            DType::F32 | DType::I32 | DType::I64 | DType::I8 | DType::U8 | DType::Bool => {
                Grade::Fast
            }
            d if d.is_only_stored() => Grade::Storage,
            _ => Grade::Arithmetic,
        };
        CpuBackend {
            description: Description {
                id: CpuBackend::ID,
                device: device(instructions),
                memory: Memory::Host,
                dtypes: DType::ALL.map(|d| (d, grade(d))).to_vec(),
                alignment: 64,
                max_tensor_bytes: isize::MAX as u64,
                max_arena_bytes: isize::MAX as u64,
                speed: Speed {
                    flops_per_second: 2e10,
                    bytes_per_second: 8e9,
                    kernel_start: 2e-7,
                    transfer_start: 0.0,
                    transfer_bytes_per_second: 8e9,
                },
                software: false,
                config: BackendConfig {
                    layouts: vec![DataLayout::ChannelsLast, DataLayout::ChannelsFirst],
                    dynamic_tensors: true,
                    f16: Half::Off,
                    quantized: Quantized::Exact,
                    timers: true,
                },
            },
            registry: Arc::new(registry),
        }
    }

    /// An arena of the caller's own memory, for [`kilim_core::memory::Sharing::External`].
    pub fn arena(memory: AlignedBytes) -> Arena {
        let bytes = memory.len();
        let memory = Box::new(HostMemory::new(memory));
        Arena::external(CpuBackend::ID, Arc::new(HostAllocator), memory, bytes)
    }

    fn run_once(&self, node: &NodeSpec, interrupt: &Interrupt) -> Result<Vec<Tensor>> {
        run_with(node, interrupt, |build| self.registry.build(node, build))
    }
}

/// Runs a kernel once on a node whose inputs all carry values.
#[cfg(any(test, feature = "testing"))]
pub fn run_candidate(
    candidate: &dyn Candidate,
    node: &NodeSpec,
    interrupt: &Interrupt,
) -> Result<Vec<Tensor>> {
    run_with(node, interrupt, |build| candidate.build(node, build))
}

fn run_with(
    node: &NodeSpec,
    interrupt: &Interrupt,
    make: impl FnOnce(&mut Build) -> Result<Box<dyn Kernel>>,
) -> Result<Vec<Tensor>> {
    let mut values = Vec::with_capacity(node.inputs.len());
    for (i, input) in node.inputs.iter().enumerate() {
        values.push(match input {
            None => None,
            Some(spec) => Some(spec.value.clone().ok_or_else(|| {
                kilim_core::error::value_error(format!("input {i} has no value"))
            })?),
        });
    }
    let way = Way {
        threads: Threads::SINGLE,
        tuned: Tuned::default(),
    };
    let mut prepared = Prepared::new(node, &values, way, interrupt, make)?;
    prepared.run(interrupt)?;
    prepared.outputs()
}

/// The machine in words.
fn device(instructions: &str) -> String {
    let threads = match Threads::available() {
        1 => "1 thread".to_string(),
        many => format!("{many} threads"),
    };
    format!("{}, {instructions}, {threads}", std::env::consts::ARCH)
}

impl Backend for CpuBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.registry.supports(node)?;
        Ok(node.cost())
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn memory_kinds(&self) -> &[kilim_core::MemoryKind] {
        &[kilim_core::MemoryKind::Host]
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        Ok(Box::new(CpuContext::new(
            self.registry.clone(),
            Threads::new(config.threads),
            ContextState::new(self.allocator(), config),
        )))
    }

    fn choice(&self, node: &NodeSpec, config: &ContextConfig) -> Option<Choice> {
        self.registry.choice(node, config)
    }

    fn evaluate(&self, node: &NodeSpec, interrupt: &Interrupt) -> Option<Result<Vec<Tensor>>> {
        Some(
            self.run_once(node, interrupt)
                .map_err(|e| e.at(node.name, node.op.name())),
        )
    }
}
