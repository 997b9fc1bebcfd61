//! How a session is made, and what may stop a run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::backend::{
    Backend, BackendConfig, BackendConfigs, BackendContext, ContextConfig, DeviceOptions,
};
use crate::builtin::PortLayouts;
use crate::error::Result;
use crate::ids::PerBackend;
use crate::interrupt::{AbortSignal, Interrupt};
use crate::limits::Limits;
use crate::memory::{Arena, Sharing};
use crate::partition::{Calibration, Placement, Site};
use crate::passes::{Observer, Rule};
use crate::pin::{Pin, PrecisionPin};
use crate::schedule::{Scheduler, SyncScheduler, Trace};
use crate::tuning::Tuning;

use super::{Keep, MixedPrecision};

/// How a session is made.
#[derive(Clone)]
pub struct SessionOptions {
    pub placement: Placement,
    /// What was measured of the devices; the others are priced by what they say of themselves.
    pub calibration: Calibration,
    /// Measure kernels between which a backend has a choice, when the nodes are planned. Takes up to
    /// a second for each class of nodes that `tuning` does not know.
    pub tune: bool,
    /// What was measured of kernels.
    pub tuning: Arc<Tuning>,
    /// Why what was learnt of the devices before is not used, for the report.
    pub cache_ignored: Option<String>,
    /// A node that the first backend does not run is an error (control flow, views, what is
    /// computed while planning and pinned nodes aside).
    pub strict: bool,
    /// Nodes that must run on a certain backend.
    pub pins: Vec<Pin>,
    /// Nodes that must compute in a certain floating-point type.
    pub precisions: Vec<PrecisionPin>,
    /// Off: the graph runs as it was loaded.
    pub optimise: bool,
    /// Rules of [`crate::passes::optimise`] that are not applied.
    pub without: Vec<Rule>,
    /// Sees what each rule changes, and which backend gets which node.
    pub observer: Option<Arc<dyn Observer>>,
    /// Nodes may compute in half precision, within this.
    pub mixed_precision: Option<MixedPrecision>,
    /// Every value leaves its stage, as [`Session::record`] needs it. Costs memory and time.
    pub keep_all: bool,
    /// Weights stay as the graph has them beside those that kernels read; otherwise they go where
    /// nothing needs them to plan again. Whoever runs [`Session::graph`] anew needs them.
    pub keep_weights: bool,
    /// Sizes for symbolic dimensions, so that the session can be planned before the first run.
    pub dims: HashMap<String, usize>,
    /// The outputs that the session has, where the model gives more: an encoder and a decoder in one file become two sessions so. What
    /// nothing else needs is left out, inputs that nothing else reads among it. A pattern that fits no output is an `Input` error. `None`
    /// is all of them.
    pub outputs: Option<Keep>,
    /// Outputs, by name, that are wanted at the last place along an axis alone, such as the scores behind the last word of a text.
    /// The output has one place there, and what computes the others is left out where that can be. A name that no output has is
    /// an `Input` error, an axis that the output does not have a `Shape` error; a run whose output would have no place at all fails.
    pub last_only: BTreeMap<String, i64>,
    /// The size that unknown dimensions have for a plan that is made before the first run; `None` makes none
    /// where sizes are unknown.
    pub plan_unknown_as: Option<usize>,
    /// Plans kept for each stage, one for each set of input shapes: the latest. One is kept in
    /// [`MemoryMode::Limit`].
    pub plans_kept: usize,
    /// What the model may use.
    pub limits: Limits,
    /// The `arena` is chosen by `sharing`, the config and the queue of the backend by `configs`, what is tuned by
    /// `tuning`, the limits by `limits`.
    pub context: ContextConfig,
    /// What is wanted of single backends.
    pub configs: BackendConfigs,
    /// Who owns the memory of intermediates.
    pub sharing: Sharing,
    /// Inputs and outputs, by name, that the user has in another layout than the model.
    pub layouts: PortLayouts,
    pub scheduler: Arc<dyn Scheduler>,
    /// What may stop the loading of the model; runs have [`RunOptions`] of their own.
    pub interrupt: Interrupt,
    /// Seconds since some moment, for timeouts.
    pub clock: fn() -> f64,
}

impl SessionOptions {
    pub(super) fn create_context(
        &self,
        backend: &Arc<dyn Backend>,
    ) -> Result<Box<dyn BackendContext>> {
        let id = &backend.describe().id;
        let address = Arc::as_ptr(backend).cast::<()>() as usize;
        let arena = Arena::of_session(&self.sharing, id, address, backend.allocator())?;
        self.context_in(backend, arena)
    }

    /// A context whose intermediates lie in this arena.
    pub(super) fn context_in(
        &self,
        backend: &Arc<dyn Backend>,
        arena: Arena,
    ) -> Result<Box<dyn BackendContext>> {
        let config = ContextConfig {
            arena: Some(arena),
            backend: self.config(backend)?,
            device: self.device(backend)?,
            #[cfg(not(target_arch = "wasm32"))]
            queue: self.configs.get(&backend.describe().id).queue,
            limits: self.limits.clone(),
            tuned: self.tuning.of(&backend.describe().key()),
            ..self.context.clone()
        };
        let context = backend.create_context(&config)?;
        #[cfg(not(target_arch = "wasm32"))]
        super::import::check_queue(backend, config.queue, &*context)?;
        Ok(context)
    }

    /// What a backend is to do.
    pub(super) fn config(&self, backend: &Arc<dyn Backend>) -> Result<BackendConfig> {
        let described = backend.describe();
        self.configs.get(&described.id).resolve(described)
    }

    /// What a backend is told of its own options.
    fn device(&self, backend: &Arc<dyn Backend>) -> Result<DeviceOptions> {
        let id = &backend.describe().id;
        self.configs.get(id).device.check(id, backend.options())
    }

    /// What each backend is to do.
    pub(super) fn resolved(&self, backends: &[Arc<dyn Backend>]) -> Result<Vec<BackendConfig>> {
        backends.iter().map(|b| self.config(b)).collect()
    }

    /// The backends as the partitioner prices them.
    pub(super) fn sites(&self, backends: &[Arc<dyn Backend>]) -> PerBackend<Site> {
        let site = |b: &Arc<dyn Backend>| {
            let site = Site::of(b.describe());
            let speed = self.calibration.speed(b.describe());
            Site {
                speed: speed.unwrap_or(site.speed),
                ..site
            }
        };
        backends.iter().map(site).collect()
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            placement: Placement::default(),
            calibration: Calibration::default(),
            tune: false,
            tuning: Arc::default(),
            cache_ignored: None,
            strict: false,
            pins: Vec::new(),
            precisions: Vec::new(),
            optimise: true,
            without: Vec::new(),
            observer: None,
            mixed_precision: None,
            keep_all: false,
            keep_weights: false,
            dims: HashMap::new(),
            outputs: None,
            last_only: BTreeMap::new(),
            plan_unknown_as: None,
            plans_kept: 4,
            limits: Limits::default(),
            context: ContextConfig::default(),
            configs: BackendConfigs::default(),
            sharing: Sharing::default(),
            layouts: PortLayouts::new(),
            scheduler: Arc::new(SyncScheduler),
            interrupt: Interrupt::NEVER,
            clock: default_clock,
        }
    }
}

/// Seconds since the first call. The web has no clock of its own; the bindings bring one.
fn default_clock() -> f64 {
    #[cfg(target_arch = "wasm32")]
    return 0.0;
    #[cfg(not(target_arch = "wasm32"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_secs_f64()
    }
}

/// What may stop a run, and where it is recorded.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// Stops the run when it is set, for instance an `AtomicBool`: within milliseconds where the host
    /// computes, at the next submission to a device.
    pub abort: Option<Arc<dyn AbortSignal>>,
    /// Seconds after which the run is stopped in the same way.
    pub timeout: Option<f64>,
    /// Records when each step ran. The device is waited for after every part.
    pub trace: Option<Arc<Trace>>,
    /// The outputs that the run gives, beside those of `keep`; `None` is all of them. Nodes that only other outputs need do not run. What such
    /// a node would fail with while it computes is no error; shapes that do not fit, and what the nodes around it read, still are one. Every
    /// input that the model requires is given all the same. A pattern that fits no output is an `Input` error.
    pub outputs: Option<Keep>,
    /// Outputs that stay where they were computed: they come as [`crate::Datum::Device`], and can be given to further
    /// runs, of this session or another.
    pub keep: Keep,
}
