//! A backend's part of one session.

use std::sync::Arc;

use super::{
    BackendConfig, ContextState, DeviceOptions, DeviceTensor, StageChange, StageSpec, StageTensors,
    TensorRegistry, TensorSpec,
};
#[cfg(not(target_arch = "wasm32"))]
use super::{CommandQueue, UserMemory};
use crate::error::Result;
use crate::executable::Executable;
use crate::interrupt::Interrupt;
use crate::limits::Limits;
use crate::memory::{Arena, Ledger, MemoryMode, Storage};
use crate::threading::{LocalFuture, MaybeSend};
use crate::tuning::Tuned;

/// What a context needs to know of its session.
#[derive(Clone, Debug, Default)]
pub struct ContextConfig {
    /// Threads that a CPU backend may use; `None` lets it choose.
    pub threads: Option<usize>,
    pub memory: MemoryMode,
    /// What the session may use; a backend gives them to its [`Ledger`].
    pub limits: Limits,
    /// Where intermediates go; `None` is an arena of the context's own.
    pub arena: Option<Arena>,
    /// What the user wants of the backend, or else what it does by itself.
    pub backend: BackendConfig,
    /// A value for each of [`super::Backend::options`].
    pub device: DeviceOptions,
    /// The command queue that the backend is to use; `None` where it takes one of its own. A context that does not give it
    /// as its [queue](BackendContext::queue) is refused.
    #[cfg(not(target_arch = "wasm32"))]
    pub queue: Option<CommandQueue>,
    /// Which kernels were measured to be the fastest (see [`super::Backend::choice`]).
    pub tuned: Tuned,
}

/// Whether constants stay that were packed and that no kernel reads as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawConstants {
    /// Raw constants stay: they may be packed otherwise when other shapes are planned.
    #[default]
    Keep,
    /// Nothing is planned afterwards.
    Drop,
}

/// A backend's part of one session: its constants, and everything derived from them.
pub trait BackendContext: MaybeSend {
    /// The tensors, accounts and arena of the context.
    fn state(&self) -> &ContextState;

    /// The tensors, accounts and arena of the context, to be changed.
    fn state_mut(&mut self) -> &mut ContextState;

    /// Stages are about to be planned.
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        self.state_mut().raw = raw;
        Ok(())
    }

    /// Makes the tensors of a stage and notes the memory they need.
    ///
    /// # Errors
    /// `Limit` where the device cannot hold them.
    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        Ok(self.state_mut().tensors.register(stage))
    }

    /// Makes the kernels of a stage on its tensors. Constants that another stage of the session has
    /// brought in already (by [`super::ConstantKey`]) are not copied or packed again.
    ///
    /// # Errors
    /// `Limit` where the device cannot hold the constants; `Device` where it fails; `Aborted` where
    /// `interrupt` stops the packing of weights.
    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>>;

    /// Whether [`BackendContext::adapt`] changes executables of this context. Without it, stages are planned
    /// anew for each shape.
    fn adapts(&self) -> bool {
        false
    }

    /// Changes an executable of this context so that it runs with tensors of other shapes: kernels that the
    /// change does not name, and all constants, stay as they are. False where that cannot be done for this
    /// change; the session then drops the executable and plans the stage anew.
    ///
    /// # Errors
    /// Those of [`BackendContext::gen_kernels`]. The executable cannot run any more.
    fn adapt(
        &mut self,
        executable: &mut dyn Executable,
        change: &StageChange,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let _ = (executable, change, interrupt);
        Ok(false)
    }

    /// Everything is known that the stages need: the arena is allocated, in one go. Called also where
    /// planning has failed, for what was planned before.
    ///
    /// # Errors
    /// `Limit` where there is no such memory, or the caller's arena is too small.
    fn resize_end(&mut self) -> Result<()> {
        self.state().reserve()
    }

    /// Plans one stage by itself, by [`resize_begin`](Self::resize_begin),
    /// [`gen_tensors`](Self::gen_tensors), [`gen_kernels`](Self::gen_kernels) and
    /// [`resize_end`](Self::resize_end).
    ///
    /// # Errors
    /// Those of these four.
    fn prepare(&mut self, stage: StageSpec, interrupt: &Interrupt) -> Result<Box<dyn Executable>> {
        self.resize_begin(RawConstants::Keep)?;
        let tensors = self.gen_tensors(&stage);
        let executable = tensors.and_then(|tensors| self.gen_kernels(stage, tensors, interrupt));
        let ended = self.resize_end();
        executable.and_then(|executable| ended.map(|()| executable))
    }

    /// The tensors of all stages that are kept.
    fn tensors(&self) -> &TensorRegistry {
        &self.state().tensors
    }

    /// The accounts of what the context holds.
    fn ledger(&self) -> &Ledger {
        &self.state().ledger
    }

    /// Where the context's intermediates are.
    fn arena(&self) -> &Arena {
        &self.state().arena
    }

    /// Bytes of constants and packed weights that the context holds now.
    fn constant_bytes(&self) -> usize {
        self.ledger().bytes(Storage::Static)
    }

    /// Gives the memory of intermediates back until the next run; constants stay.
    fn clear(&mut self) {
        self.arena().clear();
    }

    /// A tensor in memory of the user's, of one of the kinds of [`super::Backend::memory_kinds`] and large enough. A run that
    /// reads it reads the elements that are there then. The tensor needs this context no more.
    ///
    /// # Errors
    /// `Unsupported` and `InvalidValue` where the device cannot use this memory, `Device` where it fails.
    #[cfg(not(target_arch = "wasm32"))]
    fn import(&mut self, tensor: &TensorSpec, memory: &UserMemory) -> Result<DeviceTensor> {
        let _ = tensor;
        let kind = memory.handle().kind();
        Err(crate::error::unsupported(format!("importing a {kind}")))
    }

    /// A tensor on the device of a page, whose elements its scripts write before a run is given it; `None` where the backend has
    /// none that scripts can write.
    ///
    /// # Errors
    /// `Limit` where the device has no memory for it, `Device` where it fails.
    #[cfg(target_arch = "wasm32")]
    fn blank(&mut self, tensor: &TensorSpec) -> Result<Option<DeviceTensor>> {
        let _ = tensor;
        Ok(None)
    }

    /// The command queue on which the context's work is done in the order in which it is submitted; `None` where the backend
    /// knows none.
    ///
    /// # Errors
    /// `Device` where the device fails.
    #[cfg(not(target_arch = "wasm32"))]
    fn queue(&self) -> Result<Option<CommandQueue>> {
        Ok(None)
    }

    /// Resolves when the device has done everything that was submitted to it.
    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Resolves when every kernel prepared so far is ready to run at full speed (pipelines are
    /// compiled); the first run then compiles nothing. `interrupt` is asked between pipelines.
    fn warm_up<'a>(&'a mut self, interrupt: &'a Interrupt) -> LocalFuture<'a, Result<()>> {
        let _ = interrupt;
        Box::pin(std::future::ready(Ok(())))
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
