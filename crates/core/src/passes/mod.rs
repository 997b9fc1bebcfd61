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

use crate::backend::{DataLayout, NodeSpec};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;

pub use infer::infer_graph;
pub(crate) use quantized::moves;
pub use retype::{everywhere as retype_everywhere, run as retype};

/// Computes one node on host tensors; `None` where that is not offered.
pub type Evaluator<'a> = dyn Fn(&NodeSpec) -> Option<Result<Vec<Tensor>>> + 'a;

/// Rounds after which a graph is taken as it is. Two or three are the rule.
const ROUNDS: usize = 16;

/// What the passes have of a session.
#[derive(Clone, Copy)]
struct Context<'a> {
    evaluate: &'a Evaluator<'a>,
    interrupt: &'a Interrupt,
}

/// Runs all passes on a sorted graph, until `interrupt` stops them. `narrow` names the element types that are widened to
/// `float32` inside the graph, `layout` the one that spatial operators are brought to, where that is
/// channels-last.
///
/// # Errors
/// What shape inference says of the graph, `Limit` where memory is short, `Aborted` where `interrupt`
/// stops it.
pub fn optimise(
    graph: &mut Graph,
    evaluate: &Evaluator,
    narrow: &dyn Fn(DType) -> bool,
    layout: DataLayout,
    interrupt: &Interrupt,
) -> Result<()> {
    infer_graph(graph)?;
    widen_f16::run(graph, narrow)?;
    let ctx = Context {
        evaluate,
        interrupt,
    };
    rewrite(graph, ctx, layout)
}

fn rewrite(graph: &mut Graph, ctx: Context, layout: DataLayout) -> Result<()> {
    if quantized::is_quantised(graph) {
        for _ in 0..ROUNDS {
            simplify_but(graph, ctx, quantized::may_fold)?;
            if !quantized::run(graph, ctx.evaluate)? {
                break;
            }
            infer_graph(graph)?;
        }
    }
    simplify(graph, ctx)?;
    fuse_all(graph, ctx)?;
    ctx.interrupt.check()?;
    let laid_out = layout == DataLayout::ChannelsLast && layout::run(graph);
    if transposes::run(graph)? || laid_out {
        infer_graph(graph)?;
        simplify(graph, ctx)?;
        fuse_all(graph, ctx)?;
    }
    bodies::for_each_inferred(graph, &mut |body| rewrite(body, ctx, layout))
}

/// Computes, removes and merges until nothing changes.
fn simplify(graph: &mut Graph, ctx: Context) -> Result<()> {
    simplify_but(graph, ctx, |_| true)
}

/// [`simplify`] that leaves nodes on constants alone unless they `may_go`.
fn simplify_but(graph: &mut Graph, ctx: Context, may_go: fn(&Node) -> bool) -> Result<()> {
    for _ in 0..ROUNDS {
        ctx.interrupt.check()?;
        let mut changed = bodies::move_constants(graph);
        changed |= fold_constants::run(graph, ctx.evaluate, may_go)?;
        changed |= common_subexpressions::run(graph);
        changed |= dead_code::run(graph);
        if !changed {
            break;
        }
        infer_graph(graph)?;
    }
    Ok(())
}

fn fuse_all(graph: &mut Graph, ctx: Context) -> Result<()> {
    for _ in 0..ROUNDS {
        if patterns::run(graph) {
            infer_graph(graph)?;
            simplify(graph, ctx)?;
        }
        let mut changed = false;
        for pass in [views::run, dilation::run, fold_batch_norm::run, fuse::run] {
            ctx.interrupt.check()?;
            if pass(graph) {
                changed = true;
                infer_graph(graph)?;
            }
        }
        if !changed {
            break;
        }
        simplify(graph, ctx)?;
    }
    Ok(())
}
