//! Runs the steps of a planned stage: which one when, and beside what else.

mod cross;
mod order;
mod overlapped;
mod sync;
mod trace;

use crate::error::Result;
use crate::executable::{Executable, Progress};
use crate::ids::{BackendIndex, PartIndex, PerBackend, TensorIndex};
use crate::interrupt::Interrupt;
use crate::threading::{LocalFuture, MaybeSend, MaybeSync};

pub use overlapped::OverlappedScheduler;
pub use sync::SyncScheduler;
pub use trace::{StageTrace, StepLabel, Trace, TraceEvent};

/// One step of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The kernels of one part, on one backend.
    Part {
        backend: BackendIndex,
        part: PartIndex,
    },
    /// Tensors that cross: pairs of a tensor of `from` and the tensor of `to` that takes it.
    Permute {
        from: BackendIndex,
        to: BackendIndex,
        pairs: Vec<(TensorIndex, TensorIndex)>,
    },
}

/// A stage about to run: the inputs are written, the outputs are read afterwards.
pub struct StageRun<'a> {
    pub executables: &'a mut PerBackend<Option<Box<dyn Executable>>>,
    /// In an order in which everything is there before it is needed.
    pub steps: &'a [Step],
    pub interrupt: &'a Interrupt,
    /// Where the run is recorded, if it is.
    pub trace: Option<StageTrace<'a>>,
}

impl StageRun<'_> {
    /// Runs step `index` of [`StageRun::steps`]. All steps before it that share a backend with it
    /// must have run. A traced run waits for the device after every part, so that times are true.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop, and whatever the kernels say.
    pub async fn execute(&mut self, index: usize) -> Result<()> {
        self.interrupt.check()?;
        let start = self.trace.map(|t| t.now());
        match &self.steps[index] {
            Step::Part { backend, part } => {
                if let Some(e) = &mut self.executables[*backend] {
                    run_part(e.as_mut(), *part, self.interrupt).await?;
                    if self.trace.is_some() {
                        e.submit()?;
                        e.wait_finish().await?;
                    }
                }
            }
            Step::Permute { from, to, pairs } => {
                cross::cross(self.executables, *from, *to, pairs).await?;
            }
        }
        if let (Some(trace), Some(start)) = (&self.trace, start) {
            trace.record(index, start);
        }
        Ok(())
    }
}

/// Runs a part whole, waiting for room on the device where its queue is full.
pub(crate) async fn run_part(
    executable: &mut dyn Executable,
    part: PartIndex,
    interrupt: &Interrupt,
) -> Result<()> {
    while executable.run(part, interrupt)? == Progress::Partly {
        executable.wait_room().await?;
        interrupt.check()?;
    }
    Ok(())
}

/// Decides in which order, and beside what else, the steps of a stage run. Steps that share a
/// backend must keep their order; see [`StageRun::execute`].
pub trait Scheduler: MaybeSend + MaybeSync {
    /// Runs all steps of a stage, once each.
    ///
    /// # Errors
    /// That of a step that failed.
    fn run<'a>(&'a self, stage: StageRun<'a>) -> LocalFuture<'a, Result<()>>;

    /// Whether steps of different backends run at the same time. The planner then ends a part as
    /// soon as another backend can go on with what it gave.
    fn overlaps(&self) -> bool {
        false
    }

    /// Whether a scheduler that a backend brings goes before this one.
    fn gives_way(&self) -> bool {
        false
    }

    /// How many runs of a session may be under way at once; each has arenas of its own.
    fn runs_at_once(&self) -> usize {
        1
    }
}
