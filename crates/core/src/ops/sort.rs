//! Operators that order elements.

use super::*;

/// Inputs: x, k. Outputs: values, `int64` indices.
#[derive(Clone, Debug, PartialEq)]
pub struct TopK {
    pub axis: i64,
    pub largest: bool,
    pub sorted: bool,
}

impl Operator for TopK {
    fn name(&self) -> &'static str {
        "TopK"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
