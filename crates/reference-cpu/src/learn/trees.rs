//! Decision trees, row by row.

use std::sync::Arc;

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Aggregate, Branch, Next, TreeEnsemble, TreeNode, Trees};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

pub fn build(op: &TreeEnsemble, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    op.trees.check(op.targets)?;
    let x = required(node, 0)?;
    Ok(Box::new(Ensemble {
        trees: op.trees.clone(),
        targets: op.targets,
        aggregate: op.aggregate,
        base: op.base.clone(),
        features: x.shape.last().copied().unwrap_or(0),
        input: f64::codec(x.dtype),
        output: f64::codec(node.outputs[0].dtype),
        single: x.dtype != DType::F64,
    }))
}

struct Ensemble {
    trees: Arc<Trees>,
    targets: usize,
    aggregate: Aggregate,
    base: Vec<f64>,
    features: usize,
    input: Codec<f64>,
    output: Codec<f64>,
    /// Features are rounded to single precision, as the thresholds of such trees are.
    single: bool,
}

impl Kernel for Ensemble {
    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f64>(self.features.saturating_add(self.targets))
    }

    fn run(&self, io: &mut Io) -> Result<()> {
        let scratch = io.thread_scratch::<f64>(self.features + self.targets);
        let x = io.input_bytes(0);
        let rows = io.output_len(0) / self.targets.max(1);
        let y = by(io.output_bytes(0), self.targets * self.output.size());
        let cost = self.trees.roots.len().saturating_mul(COST);
        let cost = cost.saturating_add(self.features + self.targets);
        io.cpu()
            .rows_with(rows, y, scratch, cost, |piece, y, scratch, cpu| {
                let (row, sums) = scratch.split_at_mut(self.features);
                for r in piece.clone() {
                    cpu.pieces(self.features, 2, |part| {
                        let row = &mut row[part.clone()];
                        self.input.load(x, r * self.features + part.start, row);
                        if self.single {
                            row.iter_mut().for_each(|v| *v = f64::from(*v as f32));
                        }
                        Ok(())
                    })?;
                    self.row(cpu, row, sums)?;
                    let at = (r - piece.start) * self.targets;
                    cpu.pieces(self.targets, 2, |part| {
                        self.output.store(y, at + part.start, &sums[part]);
                        Ok(())
                    })?;
                }
                Ok(())
            })
    }
}

/// Operations of a step down a tree, and of its leaf.
const COST: usize = 16;

impl Ensemble {
    fn row(&self, cpu: &CpuRun, row: &[f64], sums: &mut [f64]) -> Result<()> {
        let empty = match self.aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            Aggregate::Min => f64::INFINITY,
            Aggregate::Max => f64::NEG_INFINITY,
        };
        cpu.fill(sums, empty)?;
        for &root in &self.trees.roots {
            let (from, to) = self.trees.leaves[leaf(cpu, &self.trees, root, row)?];
            let weights = &self.trees.weights[from as usize..to as usize];
            cpu.spend(weights.len())?;
            for &(target, weight) in weights {
                let sum = &mut sums[target as usize];
                *sum = match self.aggregate {
                    Aggregate::Sum | Aggregate::Average => *sum + weight,
                    Aggregate::Min => sum.min(weight),
                    Aggregate::Max => sum.max(weight),
                };
            }
        }
        cpu.pieces(sums.len(), 2, |part| {
            for i in part {
                let sum = &mut sums[i];
                if self.aggregate == Aggregate::Average {
                    *sum /= self.trees.roots.len() as f64;
                }
                // No leaf says anything of this target.
                if sum.is_infinite() && *sum == empty {
                    *sum = 0.0;
                }
                *sum += self.base.get(i).copied().unwrap_or(0.0);
            }
            Ok(())
        })
    }
}

/// The leaf that a row comes to.
fn leaf(cpu: &CpuRun, trees: &Trees, root: Next, row: &[f64]) -> Result<usize> {
    let mut at = root;
    loop {
        match at {
            Next::Leaf(leaf) => return Ok(leaf as usize),
            Next::Node(node) => {
                let node = &trees.nodes[node as usize];
                let (first, end) = node.members;
                cpu.spend(COST + (end - first) as usize)?;
                at = if yes(trees, node, row[node.feature as usize]) {
                    node.yes
                } else {
                    node.no
                };
            }
        }
    }
}

fn yes(trees: &Trees, node: &TreeNode, x: f64) -> bool {
    let answer = match node.branch {
        Branch::LessOrEqual => x <= node.value,
        Branch::Less => x < node.value,
        Branch::GreaterOrEqual => x >= node.value,
        Branch::Greater => x > node.value,
        Branch::Equal => x == node.value,
        Branch::NotEqual => x != node.value,
        Branch::Member => {
            let (from, to) = node.members;
            trees.members[from as usize..to as usize].contains(&x)
        }
    };
    answer || (node.missing && x.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::tensor;

    fn node(feature: u32, branch: Branch, value: f64, yes: Next, no: Next) -> TreeNode {
        TreeNode {
            feature,
            branch,
            value,
            members: (0, 2),
            missing: branch == Branch::Member,
            yes,
            no,
        }
    }

    fn ensemble(aggregate: Aggregate) -> TreeEnsemble {
        let trees = Trees {
            roots: vec![Next::Node(0), Next::Node(2)],
            nodes: vec![
                node(0, Branch::LessOrEqual, 0.5, Next::Leaf(0), Next::Node(1)),
                node(1, Branch::Greater, 1.0, Next::Leaf(1), Next::Leaf(2)),
                node(1, Branch::Member, 0.0, Next::Leaf(2), Next::Leaf(0)),
            ],
            leaves: vec![(0, 1), (1, 3), (3, 4)],
            weights: vec![(0, 1.0), (0, 2.0), (1, 3.0), (1, 10.0)],
            members: vec![4.0, 7.0],
        };
        TreeEnsemble {
            trees: Arc::new(trees),
            targets: 2,
            aggregate,
            base: vec![0.0, 0.25],
        }
    }

    #[test]
    fn rows_come_to_their_leaves() {
        let x = tensor::<f32>(&[4, 2], &[0.5, 4.0, 0.6, 3.0, 9.0, 7.0, 9.0, f32::NAN]);
        let of = |aggregate| run_f32(&ensemble(aggregate), &[&x], &[4, 2]);
        assert_eq!(
            of(Aggregate::Sum),
            [1.0, 10.25, 3.0, 3.25, 2.0, 13.25, 0.0, 20.25]
        );
        assert_eq!(
            of(Aggregate::Average),
            [0.5, 5.25, 1.5, 1.75, 1.0, 6.75, 0.0, 10.25]
        );
        assert_eq!(
            of(Aggregate::Max),
            [1.0, 10.25, 2.0, 3.25, 2.0, 10.25, 0.0, 10.25]
        );
        assert_eq!(
            of(Aggregate::Min),
            [1.0, 10.25, 1.0, 3.25, 2.0, 3.25, 0.0, 10.25]
        );
    }
}
