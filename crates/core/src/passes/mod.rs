//! Rewrites of a graph that keep its results. [`optimise`] runs them in this order:
//!
//! 1. `infer`: element types and shapes, symbolic where dimensions are.
//! 2. `widen_f16`: single precision instead of half, where the backends want it.
//! 3. *simplify*, until nothing changes: `bodies` gives constants to the bodies that capture them;
//!    `fold_constants` computes what is known; `common_subexpressions`; `dead_code`. Where numbers are
//!    quantised, `quantized` works on it before constants are widened.
//! 4. `patterns`, `views`, `dilation`, `fold_batch_norm` and `fuse`, with 3 between, until nothing
//!    changes.
//! 5. `layout` brings spatial operators to channels-last, `transposes` removes what that added and
//!    more; then 3 and 4 again, for what the transposes had kept apart.
//! 6. All of it for the bodies of control flow that are left.
//!
//! [`retype`] is run afterwards where a session mixes precisions.

mod bodies;
pub(crate) mod common_subexpressions;
mod dead_code;
mod dilation;
mod edit;
mod fold_batch_norm;
mod fold_constants;
mod fuse;
mod infer;
mod known_dims;
mod layout;
mod patterns;
mod quantized;
pub(crate) mod retype;
mod tensors;
mod transposes;
mod views;
mod widen_f16;

use crate::backend::DataLayout;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeSpec};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;

pub use infer::infer_graph;
pub(crate) use quantized::moves;
pub use retype::{everywhere as retype_everywhere, run as retype};

/// How passes compute single nodes.
pub struct Evaluator<'a> {
    /// Computes one node on host tensors; `None` where that is not offered.
    pub compute: &'a dyn Fn(&NodeSpec) -> Option<Result<Vec<Tensor>>>,
    /// What may stop the passes.
    pub interrupt: &'a Interrupt,
}

/// Rounds after which a graph is taken as it is. Two or three are the rule.
const ROUNDS: usize = 16;

/// Runs all passes on a sorted graph. `narrow` names the element types that are widened to
/// `float32` inside the graph, `layout` the one that spatial operators are brought to, where that is
/// channels-last.
///
/// # Errors
/// What shape inference says of the graph, `Limit` where memory is short, `Aborted` where loading is to stop.
pub fn optimise(
    graph: &mut Graph,
    evaluate: &Evaluator,
    narrow: &dyn Fn(DType) -> bool,
    layout: DataLayout,
) -> Result<()> {
    infer_graph(graph, evaluate.interrupt)?;
    widen_f16::run(graph, narrow, evaluate.interrupt)?;
    rewrite(graph, evaluate, layout)
}

fn rewrite(graph: &mut Graph, evaluate: &Evaluator, layout: DataLayout) -> Result<()> {
    if quantized::is_quantised(graph) {
        for _ in 0..ROUNDS {
            simplify_but(graph, evaluate, quantized::may_fold)?;
            if !quantized::run(graph, evaluate)? {
                break;
            }
            infer_graph(graph, evaluate.interrupt)?;
        }
    }
    simplify(graph, evaluate)?;
    fuse_all(graph, evaluate)?;
    evaluate.interrupt.check()?;
    let laid_out = layout == DataLayout::ChannelsLast && layout::run(graph);
    if transposes::run(graph)? || laid_out {
        infer_graph(graph, evaluate.interrupt)?;
        simplify(graph, evaluate)?;
        fuse_all(graph, evaluate)?;
    }
    bodies::for_each_inferred(graph, evaluate.interrupt, &mut |body| {
        rewrite(body, evaluate, layout)
    })
}

/// Computes, removes and merges until nothing changes.
fn simplify(graph: &mut Graph, evaluate: &Evaluator) -> Result<()> {
    simplify_but(graph, evaluate, |_| true)
}

/// [`simplify`] that leaves nodes on constants alone unless they `may_go`.
fn simplify_but(graph: &mut Graph, evaluate: &Evaluator, may_go: fn(&Node) -> bool) -> Result<()> {
    for _ in 0..ROUNDS {
        evaluate.interrupt.check()?;
        let mut changed = bodies::move_constants(graph);
        changed |= fold_constants::run(graph, evaluate, may_go)?;
        changed |= common_subexpressions::run(graph);
        changed |= dead_code::run(graph);
        if !changed {
            break;
        }
        infer_graph(graph, evaluate.interrupt)?;
    }
    Ok(())
}

fn fuse_all(graph: &mut Graph, evaluate: &Evaluator) -> Result<()> {
    for _ in 0..ROUNDS {
        if patterns::run(graph) {
            infer_graph(graph, evaluate.interrupt)?;
            simplify(graph, evaluate)?;
        }
        let mut changed = false;
        for pass in [views::run, dilation::run, fold_batch_norm::run, fuse::run] {
            evaluate.interrupt.check()?;
            if pass(graph) {
                changed = true;
                infer_graph(graph, evaluate.interrupt)?;
            }
        }
        if !changed {
            break;
        }
        simplify(graph, evaluate)?;
    }
    Ok(())
}
