//! What a session says of itself: where every node runs and why, what crosses, what it holds.

use serde::Serialize;

use crate::schedule::TraceEvent;

/// The placement, memory and launches of a session's current plans.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub backends: Vec<BackendReport>,
    pub nodes: Vec<NodeReport>,
    pub crossings: Vec<CrossingReport>,
    /// Where every intermediate is, for each backend of each planned stage.
    pub memory: Vec<MemoryPlan>,
    /// Bytes on the host of the buffers that the graph's constants are in, kept so that inputs of
    /// other shapes can be planned; kernels that read constants as they are share them.
    pub graph_bytes: usize,
    /// Nodes of the graph that was loaded, before any pass.
    pub nodes_loaded: usize,
    /// Stages that have no plan yet, because their shapes depend on data.
    pub unplanned_stages: usize,
    /// The names of what the session keeps from run to run.
    pub variables: Vec<String>,
    /// How stages got their plans since the model was loaded.
    pub plans: PlansReport,
    /// Why fewer threads run than the machine has, if so.
    pub threads: Option<String>,
    /// What mixed precision was chosen, if it was allowed.
    pub precision: Option<PrecisionReport>,
    /// Nodes whose precision the options give.
    pub precisions: Vec<PrecisionOverride>,
    /// What happened when in the last run that was traced.
    pub timeline: Vec<TraceEvent>,
    /// The classes of nodes for which a kernel was chosen by measuring.
    pub tuning: Vec<TuningReport>,
    /// Why the cache that the runtime was given is not used, if so.
    pub cache: Option<String>,
}

/// How stages got plans for the shapes of their inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlansReport {
    /// Plans that were made anew.
    pub made: usize,
    /// Plans that were changed where shapes had changed.
    pub adapted: usize,
}

/// The kernel that nodes of one class get on a device that has several for them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TuningReport {
    pub backend: String,
    pub class: String,
    pub algorithm: String,
    /// What was measured for this session; nothing where it was known before.
    pub times: Vec<AlgorithmTime>,
}

/// What one run of a node took with one of its kernels.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AlgorithmTime {
    pub algorithm: String,
    pub seconds: f64,
}

/// Nodes that compute in half precision.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PrecisionReport {
    pub tolerance: f64,
    /// The largest difference of an output that was measured with these nodes, relative to the
    /// output's largest magnitude.
    pub error: f64,
    pub nodes: Vec<String>,
    /// How many a backend would have preferred in half precision.
    pub considered: usize,
    /// The nodes that stay in single precision.
    pub single: Vec<SingleReport>,
}

/// Why a node stays in single precision.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SingleReport {
    pub node: String,
    pub reason: String,
}

/// A node that computes in the element type that the options name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PrecisionOverride {
    pub node: String,
    pub op: String,
    pub dtype: String,
}

/// One backend of the session.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackendReport {
    pub id: String,
    pub device: String,
    /// Whether prices rest on measurements of this device.
    pub calibrated: bool,
    /// Bytes of weights, packed forms included.
    pub constant_bytes: usize,
    /// Bytes of the arena, which all plans share, and of what each plan has for itself.
    pub planned_bytes: usize,
    /// Bytes of the arena: intermediates and scratch.
    pub arena_bytes: usize,
    /// Bytes of the arena that hold intermediates, in the plan that needs the most: without sharing,
    /// they would be `unshared_bytes`.
    pub intermediate_bytes: usize,
    /// Whose arena it is: `own`, `thread` (shared by sessions of one thread) or `external`.
    pub arena_owner: String,
    /// The sum of all intermediates, had each its own buffer.
    pub unshared_bytes: usize,
    /// The largest sum of bytes alive at one step of one stage.
    pub lower_bound_bytes: usize,
    /// Kernel launches of one run (dispatches on a GPU).
    pub launches: usize,
}

/// The intermediates of one stage in the arena of one backend.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemoryPlan {
    pub backend: String,
    /// The body of a control-flow node that holds the stage, outermost first.
    pub scope: Vec<String>,
    pub stage: usize,
    /// The bytes that the tensors take together.
    pub bytes: usize,
    /// The largest sum of bytes alive at one step: no plan can be smaller.
    pub lower_bound_bytes: usize,
    /// The sum of all tensors, had each its own buffer.
    pub unshared_bytes: usize,
    /// Steps of the stage; each runs one kernel, on this backend or another.
    pub steps: usize,
    pub tensors: Vec<PlannedTensor>,
}

/// A tensor in an arena, from step `first` to step `last`, both included.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlannedTensor {
    pub name: String,
    pub offset: usize,
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
    pub role: TensorRole,
}

/// What a tensor is to its stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TensorRole {
    /// Comes from the user, another stage or another backend.
    Input,
    /// Goes there.
    Output,
    #[default]
    Intermediate,
}

/// Where one node runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeReport {
    pub name: String,
    pub op: String,
    /// A backend's id, `builtin`, or `plan` for what was computed while planning and for views.
    pub backend: String,
    /// Whether the output is the bytes of the first input under another shape, at the shapes of this plan: nothing computes it.
    pub view: bool,
    /// The body of a control-flow node that holds this one, outermost first.
    pub scope: Vec<String>,
    pub stage: usize,
    pub inputs: Vec<String>,
    pub outputs: Vec<PortReport>,
    /// Why backends preferred to this one do not run it.
    pub refusals: Vec<RefusalReport>,
    /// Why it is not on the first backend that takes it.
    pub moved: Option<MoveReport>,
}

/// A node that went, with others, where they are priced cheaper.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MoveReport {
    pub from: String,
    /// How many went together, this one included.
    pub nodes: usize,
    /// Seconds for all of them, crossings included, by the cost model.
    pub seconds: f64,
    /// What they would have been without the move.
    pub instead_of: f64,
}

/// A value that a node writes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PortReport {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
}

/// Why a backend does not run a node.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RefusalReport {
    pub backend: String,
    pub reason: String,
}

/// A value that goes from one backend to another in every run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CrossingReport {
    pub value: String,
    pub from: String,
    pub to: String,
    pub bytes: usize,
}

/// The time one node took.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeTime {
    pub name: String,
    pub op: String,
    pub backend: String,
    pub scope: Vec<String>,
    pub seconds: f64,
}
