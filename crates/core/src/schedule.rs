//! Runs the steps of a planned stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::backend::{Executable, LocalFuture, MaybeSend, MaybeSync};
use crate::builtin::permute;
use crate::error::{Error, ErrorCode, Result};

/// One step of a stage. Backends are indices into [`StageRun::executables`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The kernels of one part, on one backend.
    Part { backend: usize, part: usize },
    /// Tensors that cross: pairs of a tensor of `from` and the tensor of `to` that takes it.
    Permute {
        from: usize,
        to: usize,
        pairs: Vec<(usize, usize)>,
    },
}

/// What may stop a run between two steps.
#[derive(Clone, Default)]
pub struct Interrupt {
    /// Set by the caller to abort.
    pub abort: Option<Arc<AtomicBool>>,
    /// The time by `clock` after which the run is over.
    pub deadline: Option<(fn() -> f64, f64)>,
}

impl Interrupt {
    /// `Aborted` if the run is to stop.
    pub fn check(&self) -> Result<()> {
        if self
            .abort
            .as_ref()
            .is_some_and(|a| a.load(Ordering::Relaxed))
        {
            return Err(Error::new(ErrorCode::Aborted, "the run was aborted"));
        }
        if let Some((clock, end)) = self.deadline
            && clock() > end
        {
            return Err(Error::new(ErrorCode::Aborted, "the run took too long"));
        }
        Ok(())
    }
}

/// A stage about to run: the inputs are written, the outputs are read afterwards.
pub struct StageRun<'a> {
    pub executables: &'a mut [Option<Box<dyn Executable>>],
    pub steps: &'a [Step],
    pub interrupt: &'a Interrupt,
}

/// Decides in which order, and beside what else, the steps of a stage run. Steps that share a
/// tensor must keep their order.
pub trait Scheduler: MaybeSend + MaybeSync {
    fn run<'a>(&'a self, stage: StageRun<'a>) -> LocalFuture<'a, Result<()>>;

    /// Whether a scheduler that a backend brings goes before this one.
    fn gives_way(&self) -> bool {
        false
    }
}

/// One step after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncScheduler;

impl Scheduler for SyncScheduler {
    fn gives_way(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for step in stage.steps {
                stage.interrupt.check()?;
                match step {
                    Step::Part { backend, part } => {
                        if let Some(e) = &mut stage.executables[*backend] {
                            e.run(*part)?;
                        }
                    }
                    Step::Permute { from, to, pairs } => {
                        permute::cross(stage.executables, *from, *to, pairs).await?;
                    }
                }
            }
            Ok(())
        })
    }
}
