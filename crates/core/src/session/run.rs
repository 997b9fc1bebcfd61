//! One run of a session.

use std::sync::Arc;

use super::Shared;
use super::plan::Obstacle;
use super::record::Recorder;
use crate::backend::RawConstants;
#[cfg(not(target_arch = "wasm32"))]
use crate::device_tensor::DeviceTensor;
use crate::error::Result;
use crate::graph::NodeSpec;
#[cfg(not(target_arch = "wasm32"))]
use crate::graph::ValueId;
use crate::ids::BackendIndex;
use crate::interrupt::Interrupt;
use crate::limits::Limits;
use crate::schedule::Trace;
use crate::tensor::Tensor;

/// A run under way, or the planning before the first one: the session's state that it works on, what
/// may stop it, and who watches it. Nothing of it is left when it ends, however it ends.
pub(crate) struct Run<'s> {
    pub shared: &'s mut Shared,
    pub interrupt: Interrupt,
    /// The timeline that records the steps, and the run's number in it.
    pub trace: Option<(Arc<Trace>, usize)>,
    /// Whether the nodes of every backend are timed.
    pub profiling: bool,
    /// Takes what every node reads and writes.
    pub recorder: Option<Recorder>,
    /// Whether some outputs stay where they were computed.
    pub keeps: bool,
    /// Which of the first outputs of the graph that runs next are wanted, with all behind these; `None`: all.
    pub asked: Option<Vec<bool>>,
    /// Results of the graph that is running that go into memory of the user's.
    #[cfg(not(target_arch = "wasm32"))]
    pub memory: Vec<(ValueId, DeviceTensor)>,
    /// Operations of the stages that have run or are running.
    operations: f64,
}

impl<'s> Run<'s> {
    /// A run that nobody watches.
    pub fn new(shared: &'s mut Shared, interrupt: Interrupt) -> Run<'s> {
        Run {
            shared,
            interrupt,
            trace: None,
            profiling: false,
            recorder: None,
            keeps: false,
            asked: None,
            #[cfg(not(target_arch = "wasm32"))]
            memory: Vec::new(),
            operations: 0.0,
        }
    }

    /// Whether the nodes of a backend are timed.
    pub fn is_timed(&self, backend: BackendIndex) -> bool {
        self.profiling || self.shared.configs[backend].timers
    }

    /// Computes a node on host tensors now; `None` where the session's evaluator cannot.
    pub fn evaluate(&self, node: &NodeSpec) -> Option<Result<Vec<Tensor>>> {
        self.shared.evaluator.evaluate(node, &self.interrupt)
    }

    /// Counts the operations of a stage that is about to run.
    ///
    /// # Errors
    /// `Limit` where the run has more of them than the session's limits allow.
    pub fn count(&mut self, operations: f64) -> Result<()> {
        self.operations += operations;
        let most = self.shared.options.limits.operations;
        match self.operations <= most {
            true => Ok(()),
            false => {
                let got = format!("{:e} so far", self.operations);
                let what = "the run has too many operations";
                Err(Limits::exceeded(
                    "operations",
                    what,
                    format_args!("{most:e}"),
                    got,
                ))
            }
        }
    }

    /// Calls `plan`, then has every backend allocate what the plans need. Calls may be nested; the
    /// outermost one allocates. What has begun ends, also where planning fails.
    ///
    /// # Errors
    /// The error of `plan`; what backends say of planning, and of memory that they do not have.
    pub fn resize<T>(
        &mut self,
        raw: RawConstants,
        plan: impl FnOnce(&mut Run<'s>) -> Result<T, Obstacle>,
    ) -> Result<T, Obstacle> {
        let begun = self.shared.resize_begin(raw).map_err(Obstacle::of_all)?;
        let planned = plan(self);
        let ended = self.shared.resize_end(begun);
        planned.and_then(|planned| ended.map(|()| planned))
    }
}
