//! Rewrites of a graph that keep its results. [`optimise`] applies the rules of [`Rule`] in this order, and infers
//! element types and shapes (`infer`) after each that changed something:
//!
//! 1. Single precision instead of half, where the backends want it.
//! 2. *Simplify*, until nothing changes: constants move into the bodies that capture them, what is known is
//!    computed, what is computed twice becomes one node, dead code goes. Where numbers are quantised, the rules for
//!    these alternate with it before constants are widened.
//! 3. Larger operators for those spelled out, views, dilation, products of bytes with their scales, batch normalisation
//!    and the fusions, with 2 between,
//!    until nothing changes.
//! 4. Spatial operators are brought to channels-last, and transposes remove what that added and
//!    more; then 2 and 3 again, for what the transposes had kept apart.
//! 5. 2 to 4 for the bodies of control flow that are left.
//!
//! Nodes are changed by a `Patch` alone, which checks in builds with debug assertions what a rewrite has to leave.
//!
//! [`retype`] is run afterwards where a session mixes precisions.

mod attention;
mod bodies;
mod changes;
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
#[cfg(all(debug_assertions, not(target_arch = "wasm32")))]
mod parts;
mod patch;
mod patterns;
mod quantized;
mod repeated_heads;
pub(crate) mod retype;
mod rotary;
mod rules;
mod selection;
mod tensors;
mod transposes;
mod views;
mod widen_f16;

use crate::dtype::DType;
use crate::error::{ErrorCode, Result};
use crate::graph::{Graph, NodeSpec};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;

pub use changes::{Change, ChangeLog, NodeName, Observer};
pub use infer::infer_graph;
pub use known_dims::KnownDims;
pub use layout::Layout;
pub(crate) use layout::Turned;
pub(crate) use quantized::moves;
pub use retype::{everywhere as retype_everywhere, run as retype};
pub use rules::Rule;

/// How passes compute single nodes.
pub struct Evaluator<'a> {
    /// Computes one node on host tensors; `None` where that is not offered.
    pub compute: &'a dyn Fn(&NodeSpec) -> Option<Result<Vec<Tensor>>>,
    /// What may stop the passes.
    pub interrupt: &'a Interrupt,
}

/// How a graph is to be optimised.
pub struct Passes<'a> {
    pub evaluate: Evaluator<'a>,
    /// Element types that are widened to `float32` inside the graph.
    pub narrow: &'a dyn Fn(DType) -> bool,
    pub layout: Layout<'a>,
    /// Rules that are not applied.
    pub without: &'a [Rule],
    /// Sees what each rule changes.
    pub observer: Option<&'a dyn Observer>,
}

/// Rounds after which a graph is taken as it is. Two or three are the rule.
const ROUNDS: usize = 16;

/// What is done again and again until nothing changes.
const SIMPLIFY: &[Rule] = &[
    Rule::BodyConstants,
    Rule::InlineBranches,
    Rule::Identities,
    Rule::FoldConstants,
    Rule::CommonSubexpressions,
    Rule::DeadCode,
];

/// Rules that find what a file spells out in smaller nodes; the fusions would take the pieces apart.
const SPELLED: &[Rule] = &[
    Rule::Activations,
    Rule::Normalisations,
    Rule::Rotary,
    Rule::FuseAttention,
];

/// Rules between which facts are inferred.
const COMBINE: &[&[Rule]] = &[
    &[Rule::Views],
    &[Rule::Dilation],
    // Before rules that give sums an activation, or move factors through them.
    &[Rule::FuseDequantization],
    &[Rule::BatchNorm],
    &[
        Rule::FusePadding,
        Rule::FuseIndexCast,
        Rule::FuseActivation,
        Rule::FuseBias,
        Rule::FuseScale,
        Rule::FuseResidual,
        Rule::FuseFactor,
    ],
    &[Rule::EarlySelection],
];

/// Applies all rules but those switched off to a sorted graph.
///
/// # Errors
/// What shape inference says of the graph, `Limit` where memory is short, `Aborted` where loading is to stop.
pub fn optimise(graph: &mut Graph, passes: &Passes) -> Result<()> {
    passes.infer(graph)?;
    if passes.apply(&[Rule::WidenHalf], graph)? {
        passes.infer(graph)?;
    }
    passes.rewrite(graph)
}

impl Passes<'_> {
    fn infer(&self, graph: &mut Graph) -> Result<()> {
        infer_graph(graph, self.evaluate.interrupt)
    }

    /// Applies each of `rules` once; true where one of them changed something.
    fn apply(&self, rules: &[Rule], graph: &mut Graph) -> Result<bool> {
        let mut any = false;
        for &rule in rules.iter().filter(|rule| !self.without.contains(rule)) {
            self.evaluate.interrupt.check()?;
            let before = self
                .observer
                .map(|observer| (observer, graph.nodes.clone()));
            let changed = rule.run(graph, self).map_err(|e| match e.code() {
                ErrorCode::State => e.with_hint(format!("the rule `{rule}` is wrong")),
                _ => e,
            })?;
            if let (true, Some((observer, before))) = (changed, before) {
                observer.changed(rule, &before, graph);
            }
            any |= changed;
        }
        Ok(any)
    }

    fn rewrite(&self, graph: &mut Graph) -> Result<()> {
        if quantized::is_quantised(graph) {
            for _ in 0..ROUNDS {
                self.simplify(graph, &[])?;
                let rules = &[Rule::QuantizedMovement, Rule::QuantizedArithmetic];
                if !self.apply(rules, graph)? {
                    break;
                }
                self.infer(graph)?;
            }
        }
        self.simplify(graph, &[Rule::DequantizeConstants])?;
        self.combine(graph)?;
        if self.apply(&[Rule::ChannelsLast, Rule::Transposes], graph)? {
            self.infer(graph)?;
            self.simplify(graph, &[Rule::DequantizeConstants])?;
            self.combine(graph)?;
        }
        let interrupt = self.evaluate.interrupt;
        bodies::for_each_inferred(graph, interrupt, &mut |body| self.rewrite(body))
    }

    /// Computes, removes and merges, by the rules `also`, too, until nothing changes.
    fn simplify(&self, graph: &mut Graph, also: &[Rule]) -> Result<()> {
        for _ in 0..ROUNDS {
            if !(self.apply(SIMPLIFY, graph)? | self.apply(also, graph)?) {
                break;
            }
            self.infer(graph)?;
        }
        Ok(())
    }

    fn combine(&self, graph: &mut Graph) -> Result<()> {
        for _ in 0..ROUNDS {
            if self.apply(SPELLED, graph)? {
                self.infer(graph)?;
                self.simplify(graph, &[Rule::DequantizeConstants])?;
            }
            let mut changed = false;
            for rules in COMBINE {
                if self.apply(rules, graph)? {
                    changed = true;
                    self.infer(graph)?;
                }
            }
            if !changed {
                break;
            }
            self.simplify(graph, &[Rule::DequantizeConstants])?;
        }
        Ok(())
    }
}
