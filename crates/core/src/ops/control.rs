//! Control flow, run by `builtin` alone. Bodies capture nothing: what they use of the graph around
//! them is passed as additional inputs.

use std::sync::Arc;

use super::*;

/// Inputs: condition, then the inputs of both bodies (each body takes all of them).
#[derive(Clone, Debug)]
pub struct If {
    pub then_body: Arc<Graph>,
    pub else_body: Arc<Graph>,
}

/// Inputs: optional trip count, optional condition, the `carried` values, then captures. The body
/// takes iteration (`int64` scalar), condition, carried values, captures, and gives condition,
/// carried values, scan outputs. Outputs: carried values, then each scan output stacked.
#[derive(Clone, Debug)]
pub struct Loop {
    pub body: Arc<Graph>,
    pub carried: usize,
}

/// Inputs: states, scanned values, then captures. The body takes states, one slice of each scanned
/// value, captures, and gives states and scan outputs.
#[derive(Clone, Debug)]
pub struct Scan {
    pub body: Arc<Graph>,
    pub states: usize,
    pub scan_inputs: usize,
    pub input_axes: Vec<i64>,
    pub input_reverse: Vec<bool>,
    pub output_axes: Vec<i64>,
    pub output_reverse: Vec<bool>,
}

impl Operator for If {
    fn name(&self) -> &'static str {
        "If"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Loop {
    fn name(&self) -> &'static str {
        "Loop"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
