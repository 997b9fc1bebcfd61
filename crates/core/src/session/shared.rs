//! What all runners of a session share, and what outlives a run.

use std::sync::Arc;

use crate::backend::{Backend, BackendConfig, BackendContext, Memory, RawConstants};
use crate::builtin::Port;
use crate::dtype::DType;
use crate::error::Result;
use crate::ids::PerBackend;
use crate::limits::Limits;
#[cfg(not(target_arch = "wasm32"))]
use crate::memory::Arena;
use crate::memory::{Lease, MemoryMode};
use crate::partition::Site;
use crate::report::{PlansReport, TuningReport};
use crate::tensor::byte_count;

use super::plan::Obstacle;
use super::{Runner, SessionOptions};

/// What all runners of a session share.
pub(crate) struct Shared {
    pub backends: PerBackend<Arc<dyn Backend>>,
    /// The backends as the partitioner prices them.
    pub sites: PerBackend<Site>,
    pub contexts: PerBackend<Box<dyn BackendContext>>,
    /// What each backend is to do.
    pub configs: PerBackend<BackendConfig>,
    pub evaluator: Arc<dyn Backend>,
    pub options: SessionOptions,
    /// The classes of nodes that were tuned, in the order in which they were met.
    pub tuning: Vec<TuningReport>,
    next_runner: u64,
    /// Calls of `resize` under way, one within the other.
    resizing: usize,
    /// How often a stage has got another plan.
    pub revision: u64,
    pub plans: PlansReport,
    /// How often plans were changed since one was last made anew.
    pub followed: usize,
}

impl Shared {
    /// The shared part with contexts made anew.
    pub fn new(
        backends: Vec<Arc<dyn Backend>>,
        evaluator: Arc<dyn Backend>,
        options: SessionOptions,
    ) -> Result<Shared> {
        let contexts = backends.iter().map(|b| options.create_context(b));
        Ok(Shared::unused(
            contexts.collect::<Result<_>>()?,
            backends.clone().into(),
            options.resolved(&backends)?.into(),
            options.sites(&backends),
            evaluator,
            options,
        ))
    }

    /// The shared part of a session that has not run yet.
    fn unused(
        contexts: PerBackend<Box<dyn BackendContext>>,
        backends: PerBackend<Arc<dyn Backend>>,
        configs: PerBackend<BackendConfig>,
        sites: PerBackend<Site>,
        evaluator: Arc<dyn Backend>,
        options: SessionOptions,
    ) -> Shared {
        Shared {
            backends,
            sites,
            contexts,
            configs,
            evaluator,
            options,
            tuning: Vec::new(),
            next_runner: 0,
            resizing: 0,
            revision: 0,
            plans: PlansReport::default(),
            followed: 0,
        }
    }

    /// `Limit` where a tensor is larger than the session allows.
    pub fn check_bytes(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        let (bytes, most) = (byte_count(dtype, shape)?, self.options.limits.tensor_bytes);
        if bytes <= most {
            return Ok(());
        }
        let message = format!("a {dtype} tensor of shape {shape:?} is too large");
        let in_bytes = |n: usize| format!("{n} bytes");
        Err(Limits::exceeded(
            "tensor_bytes",
            message,
            in_bytes(most),
            in_bytes(bytes),
        ))
    }

    /// Tells every backend that stages are planned, unless such a call is under way. Gives how many
    /// were told, for [`Shared::resize_end`].
    pub fn resize_begin(&mut self, raw: RawConstants) -> Result<usize> {
        self.resizing += 1;
        if self.resizing > 1 {
            return Ok(0);
        }
        for b in self.contexts.indices() {
            if let Err(error) = self.contexts[b].resize_begin(raw) {
                // The first error counts.
                let _ = self.resize_end(b.0);
                return Err(error);
            }
        }
        Ok(self.contexts.len())
    }

    /// Has the first `begun` backends allocate what was planned.
    ///
    /// # Errors
    /// What the first of them says that has no such memory. An arena of the user's that is too small is no obstacle that
    /// another backend would avoid.
    pub fn resize_end(&mut self, begun: usize) -> Result<(), Obstacle> {
        self.resizing -= 1;
        let mut ended = Ok(());
        for (b, context) in self.contexts.entries_mut().take(begun) {
            let external = context.arena().is_external();
            let own = context.resize_end().map_err(|e| match external {
                true => Obstacle::of_all(e),
                false => Obstacle::of(b, Vec::new(), e),
            });
            ended = ended.and(own);
        }
        ended
    }

    /// Raw constants go once they are packed where nothing can be planned later. A device may be
    /// lost and come back, for which they stay, unless memory is short.
    pub fn raw_constants(&self, inputs: &[Port], runner: &Runner) -> RawConstants {
        let is_fixed = |p: &Port| p.fact.kind.is_tensor() && p.fact.concrete().is_some();
        let fixed = inputs.iter().all(is_fixed);
        let on_host = |b: &Arc<dyn Backend>| b.describe().memory == Memory::Host;
        let thrifty = self.options.context.memory == MemoryMode::Limit;
        let wanted = self.options.keep_all || self.options.keep_weights;
        match !wanted
            && fixed
            && runner.plans_once()
            && (thrifty || self.backends.iter().all(on_host))
            && self.shares_kernels()
        {
            true => RawConstants::Drop,
            false => RawConstants::Keep,
        }
    }

    /// Whether runs at the same time need not plan again.
    fn shares_kernels(&self) -> bool {
        cfg!(target_arch = "wasm32") || self.contexts.iter().all(|c| c.replica().is_some())
    }

    /// Whether a stage is planned again without a backend that cannot run it. That takes the raw constants, which stay until
    /// there are kernels, unless memory is short.
    pub fn falls_back(&self, raw: RawConstants) -> bool {
        let stay = raw == RawConstants::Keep || self.options.context.memory == MemoryMode::Normal;
        stay && self.backends.len() > 1 && !self.options.strict
    }

    /// Plans kept for each stage.
    pub fn plans_kept(&self) -> usize {
        match self.options.context.memory {
            MemoryMode::Normal => self.options.plans_kept.max(1),
            MemoryMode::Limit => 1,
        }
    }

    /// Holds the arenas for a run.
    pub fn lease(&self) -> Result<Vec<Lease>> {
        self.contexts.iter().map(|c| c.arena().lease()).collect()
    }

    /// A number that no other runner of the session has.
    pub fn runner_id(&mut self) -> u64 {
        self.next_runner += 1;
        self.next_runner
    }

    /// The shared part for another run at the same time. Constants are shared where a backend can do that.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn replica(&self) -> Result<Shared> {
        let backends = self.backends.iter().zip(&self.contexts);
        let contexts = backends.map(|(b, c)| match c.replica() {
            Some(context) => Ok(context),
            None => self.options.context_in(b, Arena::new(b.allocator())),
        });
        Ok(Shared::unused(
            contexts.collect::<Result<_>>()?,
            self.backends.clone(),
            self.configs.clone(),
            self.sites.clone(),
            self.evaluator.clone(),
            self.options.clone(),
        ))
    }
}
