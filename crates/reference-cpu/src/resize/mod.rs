//! Resize, GridSample, AffineGrid.

mod grid;
mod nearest;
mod quantized;
mod separable;
mod taps;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{
    AffineGrid, CoordinateMode, GridSample, QuantizedResize, Resize, ResizeMode,
};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules;
use kilim_host::{Build, Kernel};

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<Resize>(accepts, build);
    registry.add::<QuantizedResize>(any, quantized::build);
    registry.add_for_every_type::<GridSample>(grid::accepts_sample, grid::build_sample);
    registry.add::<AffineGrid>(accepts_affine, grid::build_affine);
}

fn accepts(op: &Resize, node: &NodeSpec) -> Result<(), Refusal> {
    (1..4).try_for_each(|i| rules::known(node, i))?;
    match op.mode {
        // Only one way to crop writes a number where there is nothing to move.
        ResizeMode::Nearest(_) if op.coordinates == CoordinateMode::TfCropAndResize => {
            rules::computed(node, 0)
        }
        ResizeMode::Nearest(_) => Ok(()),
        _ => rules::weighed(node),
    }
}

fn build(op: &Resize, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    match op.mode {
        ResizeMode::Nearest(mode) => nearest::build(op, mode, node, build),
        _ => separable::build(op, node, build),
    }
}

fn accepts_affine(op: &AffineGrid, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::reals(op, node)
}
