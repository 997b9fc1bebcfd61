//! Normalisations. Mean and variance are computed in `float64`.

mod channel;
mod row;

use kilim_core::Result;
use kilim_core::ops::{
    BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LpNorm, Lrn, MeanVarianceNorm, RmsNorm,
};
use kilim_host::CpuRun;
use kilim_host::registry::KernelRegistry;
use kilim_host::rules;

use crate::common::Real;

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

/// Mean and variance of some numbers; zeros where there are none.
///
/// # Errors
/// `Aborted` where the run is to stop.
fn moments<T: Real>(cpu: &CpuRun, x: &[T]) -> Result<(f64, f64)> {
    if x.is_empty() {
        return Ok((0.0, 0.0));
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    cpu.pieces(x.len(), 1, |piece| {
        sum = x[piece].iter().fold(sum, |sum, v| sum + v.wide());
        Ok(())
    })?;
    let mean = sum / x.len() as f64;
    cpu.pieces(x.len(), 1, |piece| {
        let parts = x[piece]
            .iter()
            .map(|v| (v.wide() - mean) * (v.wide() - mean));
        squares = parts.fold(squares, |sum, v| sum + v);
        Ok(())
    })?;
    Ok((mean, squares / x.len() as f64))
}
