//! Normalisations. Mean and variance are computed in `float64`.

mod channel;
mod row;

use kilim_core::ops::{
    BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LpNorm, Lrn, MeanVarianceNorm, RmsNorm,
};

use crate::common::{Real, rules};
use crate::registry::KernelRegistry;

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<BatchNorm>(rules::reals, channel::build_batch);
    registry.add::<InstanceNorm>(rules::reals, channel::build_instance);
    registry.add::<GroupNorm>(rules::reals, channel::build_group);
    registry.add::<Lrn>(rules::reals, channel::build_lrn);
    registry.add::<LayerNorm>(rules::reals, row::build_layer);
    registry.add::<RmsNorm>(rules::reals, row::build_rms);
    registry.add::<LpNorm>(rules::reals, row::build_lp);
    registry.add::<MeanVarianceNorm>(rules::reals, row::build_mean_variance);
}

/// Mean and variance of what `values` gives; zeros where it gives nothing.
fn moments<T: Real>(values: impl Iterator<Item = T> + Clone) -> (f64, f64) {
    let mut n = 0.0;
    let mut sum = 0.0;
    for v in values.clone() {
        sum += v.wide();
        n += 1.0;
    }
    if n == 0.0 {
        return (0.0, 0.0);
    }
    let mean = sum / n;
    let squares: f64 = values.map(|v| (v.wide() - mean) * (v.wide() - mean)).sum();
    (mean, squares / n)
}
