//! Counting n-grams with a tree of all that are known.

use std::collections::HashMap;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::value_error;
use kilim_core::memory::out_of_memory;
use kilim_core::ops::CountNgrams;
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::Identities;

pub fn build(op: &CountNgrams, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    Ok(Box::new(Count {
        op: op.clone(),
        identities: Identities { dtype: x.dtype },
        items: x.shape.last().copied().unwrap_or(0),
        pool: required(node, 1)?.elements(),
    }))
}

struct Count {
    op: CountNgrams,
    identities: Identities,
    /// In a row.
    items: usize,
    /// In the pool.
    pool: usize,
}

/// A tree of n-grams: from a node and an item to the node of the longer n-gram. The root is node 0.
#[derive(Default)]
struct Tree {
    next: HashMap<(usize, u64), usize>,
    /// The column of each node's n-gram, if it is one.
    columns: Vec<Option<usize>>,
}

impl Tree {
    /// Room for another node.
    fn reserve(&mut self) -> Result<()> {
        let room = self.next.try_reserve(1).is_ok() && self.columns.try_reserve(1).is_ok();
        match room {
            true => Ok(()),
            false => Err(out_of_memory(
                self.columns.len() * size_of::<Option<usize>>(),
            )),
        }
    }
}

/// Operations of a step in the tree.
const COST: usize = 64;

impl Count {
    fn tree(&self, cpu: &CpuRun, pool: &[u8]) -> Result<Tree> {
        let mut tree = Tree {
            columns: vec![None],
            ..Tree::default()
        };
        let wrong = || value_error("the n-grams do not fit their pool");
        let (shortest, longest) = self.op.lengths;
        let mut columns = self.op.columns.iter();
        for (k, &start) in self.op.starts.iter().enumerate() {
            let length = k + 1;
            let end = self.op.starts.get(k + 1).copied().unwrap_or(self.pool);
            if start > end || end > self.pool {
                return Err(wrong());
            }
            for first in (start..end).step_by(length).take((end - start) / length) {
                let column = *columns.next().ok_or_else(wrong)?;
                cpu.spend(COST)?;
                if length < shortest || length > longest {
                    continue;
                }
                let mut node = 0;
                for i in first..first + length {
                    cpu.spend(COST)?;
                    tree.reserve()?;
                    let fresh = tree.columns.len();
                    let item = self.identities.get(pool, i);
                    node = *tree.next.entry((node, item)).or_insert(fresh);
                    if node == fresh {
                        tree.columns.push(None);
                    }
                }
                tree.columns[node] = Some(column);
            }
        }
        Ok(tree)
    }

    fn row(
        &self,
        cpu: &CpuRun,
        tree: &Tree,
        item: impl Fn(usize) -> u64,
        y: &mut [f32],
    ) -> Result<()> {
        let (shortest, longest) = self.op.lengths;
        for step in 1..=self.op.skips.min(self.items).saturating_add(1) {
            // Nothing can be left out of a single item: it counts once.
            let shortest = shortest.max(if step > 1 { 2 } else { 1 });
            for first in 0..self.items {
                cpu.spend(COST)?;
                let mut node = 0;
                let places = (first..self.items).step_by(step).take(longest);
                for (k, place) in places.enumerate() {
                    cpu.spend(COST)?;
                    match tree.next.get(&(node, item(place))) {
                        Some(&next) => node = next,
                        None => break,
                    }
                    if let Some(column) = tree.columns[node]
                        && k + 1 >= shortest
                    {
                        y[column] += 1.0;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Kernel for Count {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x) = (io.cpu(), io.input_bytes(0));
        let tree = self.tree(cpu, io.input_bytes(1))?;
        let y = io.output::<f32>(0);
        cpu.fill(y, 0.0)?;
        let width = self.op.width();
        if width == 0 {
            return Ok(());
        }
        let cost = self.items.saturating_mul(COST);
        cpu.rows(y.len() / width, by(y, width), cost, |piece, y, cpu| {
            for (r, y) in piece.zip(y.chunks_exact_mut(width)) {
                let item = |i| self.identities.get(x, r * self.items + i);
                self.row(cpu, &tree, item, y)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::tensor;

    #[test]
    fn ngrams_with_items_left_out() {
        let op = CountNgrams {
            starts: vec![0, 2],
            columns: vec![0, 2, 1],
            lengths: (1, 2),
            skips: 1,
        };
        let pool = tensor::<i64>(&[4], &[5, 6, 5, 6]);
        let x = tensor::<i64>(&[2, 4], &[5, 6, 7, 6, 5, 7, 6, 5]);
        // 5, 5 6, 6: in the first row 5 6 stands once side by side; 5 . 6 in the second.
        assert_eq!(
            run_f32(&op, &[&x, &pool], &[2, 3]),
            [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
        );
    }
}
