//! Kernels built alone, for tests.

use kilim_core::backend::{ConstantKey, NodeSpec};
use kilim_core::memory::{Ledger, MemoryMode, Storage};
use kilim_core::tuning::Tuned;
use kilim_core::{Interrupt, Limits, Result};

use super::CpuBackend;
use crate::kernel::{Build, Kernel, Packs};
use crate::threads::Threads;
use crate::work::CpuRun;

/// A kernel that was built alone.
pub struct Alone {
    /// The kernel itself.
    pub kernel: Box<dyn Kernel>,
    /// Bytes of scratch memory that it asks for.
    pub scratch: usize,
    /// Bytes of its tables and packed inputs on the ledger.
    pub counted: usize,
    _packs: Packs,
}

/// Builds the kernel that the backend has for a node. Each constant input counts as a constant of this node
/// alone.
///
/// # Errors
/// What is wrong with the node, `Limit` where memory is short or `limits` allow no more, `Aborted` where the work is to
/// stop.
pub fn build_alone(
    backend: &CpuBackend,
    node: &NodeSpec,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Alone> {
    let cpu = CpuRun::new(Threads::SINGLE, interrupt);
    let ledger = Ledger::limited(limits);
    let mut packs = Packs::on(ledger.clone());
    let inputs = 0..node.inputs.len();
    let constants: Vec<_> = inputs.map(|i| Some(ConstantKey(i as u64))).collect();
    let kernel = backend.registry().build(
        node,
        &mut Build {
            packs: &mut packs,
            constants: &constants,
            cpu: &cpu,
            memory: MemoryMode::Normal,
            tuned: &Tuned::default(),
            ledger: &ledger,
            packed: Vec::new(),
        },
    )?;
    Ok(Alone {
        scratch: kernel.scratch().bytes(cpu.threads())?,
        counted: ledger.bytes(Storage::Static) + ledger.bytes(Storage::DynamicSeparate),
        kernel,
        _packs: packs,
    })
}
