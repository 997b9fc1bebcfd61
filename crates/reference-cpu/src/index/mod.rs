//! Reading and writing by index. Indices count from the end where they are negative; one that is
//! out of range is an error.

pub(crate) mod combine;
mod dynamic;
mod gather;
mod one_hot;
mod packed;
mod scatter;

use kilim_core::Result;
use kilim_core::error::value_error;
use kilim_core::ops::{
    Compress, Gather, GatherBlockQuantized, GatherCast, GatherElements, GatherNd,
    NonMaxSuppression, NonZero, OneHot, ScatterElements, ScatterNd, TensorScatter, Unique,
};
use kilim_host::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<Gather>(any, gather::build);
    registry
        .add_for_every_type::<GatherCast>(any, |op, node, build| gather::build(&op.0, node, build));
    registry.add_for_every_type::<GatherBlockQuantized>(any, packed::build);
    registry.add_for_every_type::<GatherElements>(any, gather::build_elements);
    registry.add_for_every_type::<GatherNd>(any, gather::build_nd);
    registry
        .add_for_every_type::<ScatterElements>(scatter::accepts_elements, scatter::build_elements);
    registry.add_for_every_type::<ScatterNd>(scatter::accepts_nd, scatter::build_nd);
    registry.add_for_every_type::<TensorScatter>(any, scatter::build_cache);
    registry.add_for_every_type::<NonZero>(dynamic::accepts_data, dynamic::build_non_zero);
    registry.add_for_every_type::<Compress>(dynamic::accepts_compress, dynamic::build_compress);
    registry.add_for_every_type::<Unique>(dynamic::accepts_data, dynamic::build_unique);
    registry.add::<NonMaxSuppression>(dynamic::accepts_boxes, dynamic::build_boxes);
    registry.add_for_every_type::<OneHot>(one_hot::accepts, one_hot::build);
}

/// An index into `0..n`.
fn position(index: i64, n: usize) -> Result<usize> {
    let wrapped = if index < 0 {
        index.saturating_add(n as i64)
    } else {
        index
    };
    usize::try_from(wrapped)
        .ok()
        .filter(|&i| i < n)
        .ok_or_else(|| {
            value_error("an index is out of range")
                .with_expected(format!("-{n}..{n}"))
                .with_got(index)
        })
}
