//! Pooling by windows and of regions.

mod average;
mod max;
mod regions;
mod windows;

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Activation, AveragePool, LpPool, MaxPool, MaxRoiPool, MaxUnpool, RoiAlign};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules;

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<MaxPool>(any, max::build);
    registry.add::<MaxUnpool>(accepts_unpool, max::build_unpool);
    registry.add::<AveragePool>(accepts_average, average::build_average);
    registry.add::<LpPool>(rules::reals, average::build_lp);
    registry.add::<MaxRoiPool>(rules::reals, regions::build_max);
    registry.add::<RoiAlign>(rules::reals, regions::build_align);
}

fn accepts_average(op: &AveragePool, node: &NodeSpec) -> Result<(), Refusal> {
    match node.input(0).map(|x| x.dtype) {
        Some(DType::I8 | DType::U8) if op.activation == Activation::None => Ok(()),
        _ => rules::reals(op, node),
    }
}

fn accepts_unpool(_: &MaxUnpool, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 2)
}
