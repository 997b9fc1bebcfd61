//! The rules that [`super::optimise`] is made of. Each can be switched off by its name; results stay right without it.

#[cfg(all(any(test, debug_assertions), not(target_arch = "wasm32")))]
use std::any::TypeId;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

#[cfg(all(debug_assertions, not(target_arch = "wasm32")))]
use super::parts::Parts;
use super::{
    Passes, attention, bodies, common_subexpressions, dead_code, dilation, fold_batch_norm,
    fold_constants, fuse, layout, patterns, quantized, rotary, selection, transposes, views,
    widen_f16,
};
use crate::error::{Error, ErrorCode, Result};
use crate::graph::Graph;
#[cfg(all(any(test, debug_assertions), not(target_arch = "wasm32")))]
use crate::ops;

/// An operator that a rule makes, or an optional input that it gives to one.
#[cfg(all(any(test, debug_assertions), not(target_arch = "wasm32")))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub op: TypeId,
    pub input: Option<&'static str>,
}

macro_rules! rules {
    ($($rule:ident, $name:literal, $does:literal, [$($op:ident $(. $input:ident)?),*], $run:expr;)*) => {
        /// A rewrite of graphs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $does] $rule,)*
        }

        impl Rule {
            /// All rules, in the order in which they are first applied.
            pub const ALL: &[Rule] = &[$(Rule::$rule),*];

            /// The name by which the rule is switched off.
            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$rule => $name,)*
                }
            }

            /// What the rule does, in one line.
            pub fn description(self) -> &'static str {
                match self {
                    $(Rule::$rule => $does,)*
                }
            }

            /// What the rule makes of others.
            #[cfg(all(any(test, debug_assertions), not(target_arch = "wasm32")))]
            pub(crate) fn makes(self) -> Vec<Made> {
                match self {
                    $(Rule::$rule => vec![$(Made {
                        op: TypeId::of::<ops::$op>(),
                        input: None$(.or(Some(stringify!($input))))?,
                    }),*],)*
                }
            }

            /// Rewrites a graph whose facts are inferred. True where something changed.
            fn rewrite(self, graph: &mut Graph, passes: &Passes) -> Result<bool> {
                let run: fn(&mut Graph, &Passes) -> Result<bool> = match self {
                    $(Rule::$rule => $run,)*
                };
                run(graph, passes)
            }
        }
    };
}

rules! {
    WidenHalf, "widen-half",
        "float16 and bfloat16 become float32 inside the graph, where no backend keeps them",
        [Cast], |g, passes| widen_f16::run(g, passes.narrow);
    BodyConstants, "body-constants",
        "bodies of control flow hold the constants they read, and capture nothing unread",
        [], |g, _| bodies::move_constants(g);
    InlineBranches, "inline-branches",
        "an If whose condition is constant becomes the nodes of its branch",
        [], |g, _| fold_constants::branches(g);
    Identities, "identities",
        "nodes that only pass on their input go",
        [], |g, _| fold_constants::identities(g);
    FoldConstants, "fold-constants",
        "nodes on constants and known dimensions are computed while loading",
        [], |g, passes| fold_constants::run(g, &passes.evaluate);
    DequantizeConstants, "dequantize-constants",
        "quantized weights become real numbers where no integer arithmetic reads them",
        [], |g, passes| fold_constants::dequantize(g, &passes.evaluate);
    CommonSubexpressions, "common-subexpressions",
        "nodes that compute the same from the same, or the same dimensions, become one",
        [], |g, _| common_subexpressions::run(g);
    DeadCode, "dead-code",
        "nodes and optional outputs that nothing reads go",
        [], |g, _| dead_code::run(g);
    QuantizedMovement, "quantized-movement",
        "what only moves elements moves quantized ones",
        [DequantizeLinear], |g, _| quantized::movement(g);
    QuantizedArithmetic, "quantized-arithmetic",
        "what stands between DequantizeLinear and QuantizeLinear computes in integers",
        [QLinearBinary, QLinearConv, QLinearMatMul, TableLookup, Unary], |g, passes| quantized::arithmetic(g, &passes.evaluate);
    Activations, "activations",
        "activations spelled out in smaller operators become one node",
        [Unary], |g, _| patterns::activations(g);
    Normalisations, "normalisations",
        "layer and root-mean-square normalisations spelled out become one node",
        [LayerNorm, RmsNorm], |g, _| patterns::normalisations(g);
    Rotary, "rotary",
        "pairs of numbers that are turned by cosines and sines become one node",
        [Reshape, RotaryEmbedding], |g, _| rotary::run(g);
    FuseAttention, "attention",
        "a softmax between two matrix products becomes one node",
        [Attention, Squeeze, Transpose, Unsqueeze], |g, _| attention::run(g);
    Views, "views",
        "views of views become one, and a padding moves behind a view before a convolution",
        [Pad, Reshape], |g, _| views::run(g);
    Dilation, "dilation",
        "SpaceToBatch, Conv and BatchToSpace become one dilated Conv",
        [], |g, _| dilation::run(g);
    FuseDequantization, "fuse-dequantization",
        "the scales and the bias behind a product of bytes become part of it",
        [MatMulIntegerToFloat], |g, _| quantized::dequantized_products(g);
    BatchNorm, "batch-norm",
        "scales and shifts of channels go into the weights before them",
        [Binary, Conv.bias, ConvTranspose.bias, Gemm.c, MatMul.bias], |g, _| fold_batch_norm::run(g);
    FusePadding, "fuse-padding",
        "a padding with zeros becomes the padding of the convolution behind it",
        [], |g, _| fuse::paddings(g);
    FuseIndexCast, "fuse-index-cast",
        "a Gather reads float32 indices without a Cast",
        [GatherCast], |g, _| fuse::index_casts(g);
    FuseActivation, "fuse-activation",
        "an activation becomes part of the node before it",
        [], |g, _| fuse::activations(g);
    FuseBias, "fuse-bias",
        "a vector added to a matrix product becomes its bias",
        [MatMul.bias], |g, _| fuse::biases(g);
    FuseScale, "fuse-scale",
        "a constant factor of a matrix product becomes its alpha",
        [], |g, _| fuse::scales(g);
    FuseResidual, "fuse-residual",
        "a value of the same shape that is added to a convolution or a packed product becomes its addend",
        [], |g, _| fuse::residuals(g);
    FuseFactor, "fuse-factor",
        "a value of the same shape that a packed product is multiplied with becomes its factor",
        [], |g, _| fuse::factors(g);
    EarlySelection, "early-selection",
        "one place along an axis is taken before nodes that compute each place apart",
        [Gather, Slice, Squeeze], |g, _| selection::run(g);
    ChannelsLast, "channels-last",
        "convolutions and their kin work on channels-last data, where the backend that gets them prefers that",
        [Transpose], |g, passes| layout::run(g, &passes.layout);
    Transposes, "transposes",
        "transposes move until they cancel, or move as little data as possible",
        [Reduce.axes, Reshape, Slice.axes, Transpose, Unsqueeze], |g, _| transposes::run(g);
}

impl Rule {
    /// Rewrites a graph whose facts are inferred. True where something changed.
    ///
    /// # Errors
    /// Those of the rewrite; with debug assertions, `State` where it makes an operator that the rule does not list, or gives one
    /// an input.
    pub(super) fn run(self, graph: &mut Graph, passes: &Passes) -> Result<bool> {
        #[cfg(all(debug_assertions, not(target_arch = "wasm32")))]
        let before = Parts::of(graph);
        let changed = self.rewrite(graph, passes)?;
        #[cfg(all(debug_assertions, not(target_arch = "wasm32")))]
        before.check(self, graph)?;
        Ok(changed)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Rule {
    type Err = Error;

    /// The rule of this name.
    ///
    /// # Errors
    /// `InvalidValue` with the names of all rules.
    fn from_str(name: &str) -> Result<Rule> {
        if let Some(&rule) = Rule::ALL.iter().find(|rule| rule.name() == name) {
            return Ok(rule);
        }
        let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        let message = format!("there is no rule `{name}`");
        Err(Error::new(ErrorCode::InvalidValue, message).with_known(name, &names))
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
