//! Ensembles of decision trees (`ai.onnx.ml`).

use std::sync::Arc;

use super::rules::{NUMBERS, fact};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Flow, InferContext, Operator};

/// How a feature is compared with a node's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
pub enum Branch {
    LessOrEqual,
    Less,
    GreaterOrEqual,
    Greater,
    Equal,
    NotEqual,
    /// Is one of several values.
    Member,
}

/// Where a branch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
pub enum Next {
    /// Index into [`Trees::nodes`], behind that of the node itself.
    Node(u32),
    /// Index into [`Trees::leaves`].
    Leaf(u32),
}

/// One question.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct TreeNode {
    pub feature: u32,
    pub branch: Branch,
    pub value: f64,
    /// For [`Branch::Member`], a range of [`Trees::members`].
    pub members: (u32, u32),
    /// Whether NaN answers yes.
    pub missing: bool,
    pub yes: Next,
    pub no: Next,
}

/// The trees of an ensemble. Every node stands before those it leads to, so that every path ends.
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
pub struct Trees {
    pub roots: Vec<Next>,
    pub nodes: Vec<TreeNode>,
    /// For each leaf, a range of [`Trees::weights`].
    pub leaves: Vec<(u32, u32)>,
    /// Target and what the leaf adds to it.
    pub weights: Vec<(u32, f64)>,
    pub members: Vec<f64>,
}

/// How the leaves that a row comes to are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
pub enum Aggregate {
    Sum,
    Average,
    Min,
    Max,
}

/// Input: features `[rows, features]`, or `[features]` of one row, of any numeric type. Output: for
/// each row and target what the leaves say, and `base` added: `[rows, targets]`, `float64` for
/// features of that type, else `float32`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct TreeEnsemble {
    #[attribute(hidden)]
    pub trees: Arc<Trees>,
    pub targets: usize,
    pub aggregate: Aggregate,
    /// For each target, or empty.
    pub base: Vec<f64>,
}

impl Trees {
    /// The features that are asked for: one more than the largest.
    pub fn features(&self) -> usize {
        let features = self
            .nodes
            .iter()
            .map(|n| (n.feature as usize).saturating_add(1));
        features.max().unwrap_or(0)
    }

    /// `InvalidValue` unless all paths end at leaves that say something of `targets`.
    pub fn check(&self, targets: usize) -> Result<()> {
        let leads = |next: &Next, from: usize| match *next {
            Next::Node(node) => (node as usize) >= from && (node as usize) < self.nodes.len(),
            Next::Leaf(leaf) => (leaf as usize) < self.leaves.len(),
        };
        let within = |(from, to): (u32, u32), len: usize| from <= to && to as usize <= len;
        let nodes = self.nodes.iter().enumerate().all(|(i, node)| {
            leads(&node.yes, i + 1)
                && leads(&node.no, i + 1)
                && within(node.members, self.members.len())
        });
        let leaves = self
            .leaves
            .iter()
            .all(|&leaf| within(leaf, self.weights.len()));
        let known = self.weights.iter().all(|&(t, _)| (t as usize) < targets);
        if nodes && leaves && known && self.roots.iter().all(|root| leads(root, 0)) {
            return Ok(());
        }
        Err(value_error(
            "a tree leads nowhere, or to a target that is not there",
        ))
    }
}

impl Operator for TreeEnsemble {
    fn name(&self) -> &'static str {
        "TreeEnsemble"
    }

    signature! { (features) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &NUMBERS)?.map(|d| match d {
            DType::F64 => DType::F64,
            _ => DType::F32,
        });
        let targets = Dim::Known(self.targets);
        let shape = match ctx.shape(0)? {
            Some(x) => {
                let (rows, features) = match &x.0[..] {
                    [features] => (Dim::Known(1), features),
                    [rows, features] => (rows.clone(), features),
                    _ => {
                        return Err(
                            shape_error("features must be a vector or a matrix").with_got(x)
                        );
                    }
                };
                if features.known().is_some_and(|n| n < self.trees.features()) {
                    return Err(shape_error("the trees ask for more features")
                        .with_expected(format!("{} features", self.trees.features()))
                        .with_got(x));
                }
                Shape(vec![rows, targets])
            }
            None => Shape(vec![Dim::Unknown, targets]),
        };
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let each = Cost::elementwise(inputs, outputs);
        let rows = outputs.first().and_then(|o| o.first()).copied();
        let depth =
            (self.trees.nodes.len() as f64 / self.trees.roots.len().max(1) as f64 + 1.0).log2();
        let steps = rows.unwrap_or(0) as f64 * self.trees.roots.len() as f64 * depth;
        Cost {
            flops: each.flops + 4.0 * steps,
            bytes: each.bytes + 32.0 * steps,
        }
    }
}
