//! Pooling by windows and of regions.

mod average;
mod max;
mod regions;
mod windows;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{AveragePool, LpPool, MaxPool, MaxRoiPool, MaxUnpool, RoiAlign};

use crate::common::rules;
use crate::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<MaxPool>(any, max::build);
    registry.add::<MaxUnpool>(accepts_unpool, max::build_unpool);
    registry.add::<AveragePool>(rules::reals, average::build_average);
    registry.add::<LpPool>(rules::reals, average::build_lp);
    registry.add::<MaxRoiPool>(rules::reals, regions::build_max);
    registry.add::<RoiAlign>(rules::reals, regions::build_align);
}

fn accepts_unpool(_: &MaxUnpool, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 2)
}
