//! Reductions, arg reductions, running sums, softmax.

mod arg;
mod cumulative;
mod fold;
mod softmax;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{ArgReduce, Cumulative, Reduce, Softmax};

use crate::common::rules;
use crate::registry::{KernelRegistry, any};

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

    /// Calls `f` with the first element of every line along the axis; its elements are `inner`
    /// apart.
    pub fn lines(&self, mut f: impl FnMut(usize)) {
        for o in 0..self.outer {
            for i in 0..self.inner {
                f(o * self.n * self.inner + i);
            }
        }
    }
}
