//! Products whose left matrix is rounded to signed bytes, each block with a scale of its own, where the operator allows
//! that: sums of products of bytes are exact within a block.

mod panel;
mod round;
mod row;

use kilim_core::Result;
use kilim_host::{Io, Scratch};

use super::{Plan, Product, Weights};
use crate::isa::Isa;
use round::{Layout, Rounded};

/// The largest block: its sum of products of bytes fits in an `i32`.
const LARGEST_BLOCK: usize = 1 << 15;

/// Whether blocks are whole parts of vectors, or the other way round.
pub(super) fn takes(plan: &Plan) -> bool {
    plan.block.is_power_of_two() && plan.block <= LARGEST_BLOCK
}

/// A product with few rows.
pub(super) struct Few {
    isa: Isa,
    plan: Plan,
    layout: Layout,
}

impl Few {
    pub fn new(isa: Isa, plan: Plan) -> Few {
        let layout = Layout::of_lanes(isa, &plan);
        Few { isa, plan, layout }
    }
}

impl Product for Few {
    fn multiply(&self, io: &mut Io, y: &mut [f32]) -> Result<()> {
        let a: &[f32] = io.input(0);
        let scratch = io.scratch::<u32>(self.layout.room(1));
        let (weights, bias) = (Weights::of(&self.plan, io), io.optional(5));
        let (k, n) = (self.plan.k, self.plan.n);
        for (a, y) in a.chunks_exact(k).zip(y.chunks_exact_mut(n)) {
            let a = Rounded::new(io.cpu(), self.isa, &weights, &self.layout, a, scratch)?;
            row::multiply(io.cpu(), self.isa, &weights, &a, bias, y)?;
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<u32>(self.layout.room(1))
    }
}

/// A product with many rows.
pub(super) struct Many {
    isa: Isa,
    plan: Plan,
    layout: Layout,
}

impl Many {
    pub fn new(isa: Isa, plan: Plan) -> Many {
        let layout = Layout::of_blocks(isa, &plan);
        Many { isa, plan, layout }
    }

    /// Elements of scratch memory: for A, and on each thread for a panel.
    fn room(&self) -> [usize; 2] {
        [
            self.layout.room(self.plan.m),
            panel::room(self.isa, &self.plan),
        ]
    }
}

impl Product for Many {
    fn multiply(&self, io: &mut Io, y: &mut [f32]) -> Result<()> {
        let a: &[f32] = io.input(0);
        let [once, each] = self.room();
        let all = io.scratch::<u32>(once + each * io.cpu().threads());
        let (rounded, panels) = all.split_at_mut(once);
        let (weights, bias) = (Weights::of(&self.plan, io), io.optional(5));
        let a = Rounded::new(io.cpu(), self.isa, &weights, &self.layout, a, rounded)?;
        panel::multiply(io.cpu(), self.isa, &weights, &a, bias, y, panels)
    }

    fn scratch(&self) -> Scratch {
        let [once, each] = self.room();
        Scratch::of::<u32>(once).and(Scratch::on_each_thread::<u32>(each))
    }
}
