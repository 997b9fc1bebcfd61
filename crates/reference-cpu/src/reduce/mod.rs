//! Reductions, arg reductions, running sums, softmax.

mod arg;
mod cumulative;
mod fold;
mod softmax;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{ArgReduce, Cumulative, Reduce, Softmax};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules;
use kilim_host::{CpuRun, by};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<Reduce>(accepts_reduce, fold::build);
    registry.add::<ArgReduce>(any, arg::build);
    registry.add::<Cumulative>(any, cumulative::build);
    registry.add::<Softmax>(rules::float_data, softmax::build);
}

fn accepts_reduce(_: &Reduce, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)
}

/// A tensor seen along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Along {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

impl Along {
    pub fn new(shape: &[usize], axis: usize) -> Along {
        Along {
            outer: shape[..axis].iter().product(),
            n: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    /// Elements of a block: of all lines that lie among each other.
    pub fn block(&self) -> usize {
        self.n * self.inner
    }

    /// Calls `work` for every line along the axis: with the number of its block, its number in the block, and the
    /// block of `output`, which has `size` elements of the slice for each of the tensor's. The elements of line `i` are
    /// `i`, `i + inner`, .. of the block. `cost` is that of an element.
    ///
    /// # Errors
    /// Those of `work`, and `Aborted` where the run is to stop.
    pub fn lines<T: Send + 'static>(
        &self,
        cpu: &CpuRun,
        output: &mut [T],
        size: usize,
        cost: usize,
        work: impl Fn(usize, usize, &mut [T], &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        let (block, line) = (self.block() * size, self.n.saturating_mul(cost));
        let cost = line.saturating_mul(self.inner);
        cpu.rows(self.outer, by(output, block), cost, |piece, output, cpu| {
            for (o, output) in piece.zip(output.chunks_exact_mut(block.max(1))) {
                for i in 0..self.inner {
                    work(o, i, output, cpu)?;
                }
            }
            Ok(())
        })
    }
}
