//! Operators that move elements: nearly all are a [`strided::StridedCopy`] or several.

mod blocks;
mod fill;
mod layout;
mod parts;
mod sequence;
pub mod strided;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::ops::{
    BatchToSpace, CenterCropPad, Concat, DepthToSpace, Expand, Flatten, Pad, Reshape,
    ReverseSequence, Slice, SpaceToBatch, SpaceToDepth, Split, Squeeze, Tile, Transpose, Trilu,
    Unsqueeze,
};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules::required;
use kilim_host::{Build, Kernel};

use crate::elementwise::Copy;

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<Reshape>(any, build_view);
    registry.add_for_every_type::<Squeeze>(any, build_view);
    registry.add_for_every_type::<Unsqueeze>(any, build_view);
    registry.add_for_every_type::<Flatten>(any, build_view);
    registry.add_for_every_type::<Transpose>(any, layout::build_transpose);
    registry.add_for_every_type::<Expand>(any, layout::build_expand);
    registry.add_for_every_type::<Tile>(layout::accepts_tile, layout::build_tile);
    registry.add_for_every_type::<DepthToSpace>(any, layout::build_depth_to_space);
    registry.add_for_every_type::<SpaceToDepth>(any, layout::build_space_to_depth);
    registry.add_in_place_for_every_type::<Concat, _>(any, parts::build_concat);
    registry.add_for_every_type::<Split>(any, parts::build_split);
    registry.add_for_every_type::<Slice>(parts::accepts_slice, parts::build_slice);
    registry.add_for_every_type::<Pad>(fill::accepts_pad, fill::build_pad);
    registry.add_for_every_type::<CenterCropPad>(any, fill::build_center);
    registry.add_for_every_type::<SpaceToBatch>(blocks::accepts, blocks::build_space_to_batch);
    registry.add_for_every_type::<BatchToSpace>(blocks::accepts, blocks::build_batch_to_space);
    registry.add_for_every_type::<Trilu>(sequence::accepts_trilu, sequence::build_trilu);
    registry.add_for_every_type::<ReverseSequence>(any, sequence::build_reverse);
}

/// Views where the planner could not share the bytes.
fn build_view<T>(_: &T, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Copy))
}

fn data<'a>(node: &'a NodeSpec) -> Result<&'a TensorSpec> {
    required(node, 0)
}
