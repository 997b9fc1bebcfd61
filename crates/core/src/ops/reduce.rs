//! Reductions over axes, arg reductions, running sums and softmax.

use super::*;

/// The function of [`Reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
}

/// Inputs: data, optional axes. Without axes all, or none with `noop_with_empty_axes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    pub kind: ReduceKind,
    pub keep_dims: bool,
    pub noop_with_empty_axes: bool,
}

/// The index of the largest or smallest element, `int64`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgReduce {
    pub max: bool,
    pub axis: i64,
    pub keep_dims: bool,
    /// Of equal elements, the last.
    pub select_last: bool,
    /// `int64` unless a format says otherwise.
    pub output: DType,
}

/// Inputs: data, axis (scalar).
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulative {
    /// Product instead of sum.
    pub product: bool,
    pub exclusive: bool,
    pub reverse: bool,
}

/// The function of [`Softmax`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SoftmaxKind {
    Softmax,
    LogSoftmax,
    /// One at the first maximum, zero elsewhere.
    Hardmax,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Softmax {
    pub kind: SoftmaxKind,
    pub axis: i64,
    /// Multiplies the input (TFLite's beta).
    pub beta: f32,
}

impl Operator for Reduce {
    fn name(&self) -> &'static str {
        match self.kind {
            ReduceKind::Sum => "ReduceSum",
            ReduceKind::Mean => "ReduceMean",
            ReduceKind::Max => "ReduceMax",
            ReduceKind::Min => "ReduceMin",
            ReduceKind::Prod => "ReduceProd",
            ReduceKind::L1 => "ReduceL1",
            ReduceKind::L2 => "ReduceL2",
            ReduceKind::LogSum => "ReduceLogSum",
            ReduceKind::LogSumExp => "ReduceLogSumExp",
            ReduceKind::SumSquare => "ReduceSumSquare",
        }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for ArgReduce {
    fn name(&self) -> &'static str {
        if self.max { "ArgMax" } else { "ArgMin" }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Cumulative {
    fn name(&self) -> &'static str {
        if self.product { "CumProd" } else { "CumSum" }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}

impl Operator for Softmax {
    fn name(&self) -> &'static str {
        match self.kind {
            SoftmaxKind::Softmax => "Softmax",
            SoftmaxKind::LogSoftmax => "LogSoftmax",
            SoftmaxKind::Hardmax => "Hardmax",
        }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        same_as_first(ctx)
    }
}
