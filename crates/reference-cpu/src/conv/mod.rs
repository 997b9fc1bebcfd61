//! Convolutions of any rank and layout.

mod deform;
mod image;
pub mod plain;
pub mod window;

use kilim_core::ops::{Col2Im, Conv, ConvTranspose, DeformConv};
use kilim_host::registry::KernelRegistry;
use kilim_host::rules;

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<Conv>(rules::reals, plain::build_conv);
    registry.add::<ConvTranspose>(rules::reals, plain::build_transpose);
    registry.add_for_every_type::<Col2Im>(image::accepts, image::build);
    registry.add::<DeformConv>(deform::accepts, deform::build);
}
