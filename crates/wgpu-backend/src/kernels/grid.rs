//! Sampling where a grid of coordinates says.

use kilim_core::ops::{AffineGrid, GridMode, GridPadding, GridSample};

use super::Kernels;
use super::movement::ok;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

pub(crate) const MODES: &[&str] = &["Nearest", "Linear", "Cubic"];

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<GridSample>(sample);
    kernels.add::<AffineGrid>(affine);
}

fn sample(op: &GridSample, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let (x, grid, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let [_, channels, spatial @ ..] = &x.shape[..] else {
        return refuse("the data has no spatial dimensions");
    };
    let rank = spatial.len();
    if !(1..=3).contains(&rank) || grid.shape.last() != Some(&rank) || spatial.contains(&0) {
        return refuse("the GPU samples one to three dimensions that are not empty");
    }
    let mode = match op.mode {
        GridMode::Nearest => "Nearest",
        GridMode::Linear => "Linear",
        GridMode::Cubic => "Cubic",
    };
    let padding = match op.padding {
        GridPadding::Zeros => 0,
        GridPadding::Border => 1,
        GridPadding::Reflection => 2,
    };
    let mut sizes = [1; 3];
    sizes[3 - rank..].copy_from_slice(spatial);
    let count = y.elements();
    let params = Params::new()
        .u(count)
        .u(grid.shape[1..grid.shape.len() - 1].iter().product())
        .u(*channels)
        .u(rank);
    let params = sizes.into_iter().fold(params, Params::u);
    l.linear(
        "grid_sample",
        &[("MODE", mode)],
        &[Operand::Input(0), Operand::Input(1), Operand::Output(0)],
        params.u(padding).u(usize::from(op.align_corners)),
        count,
    );
    Ok(())
}

fn affine(op: &AffineGrid, l: &mut Lowering) -> Lowers {
    l.want(0, kilim_core::DType::F32)?;
    let size = ok(op.size(l.node))?;
    let spatial = size.get(2..).unwrap_or_default();
    let rank = spatial.len();
    let theta = &l.input(0)?.shape;
    if !(1..=3).contains(&rank) || theta.get(1..) != Some(&[rank, rank + 1]) {
        return refuse("theta does not fit the size");
    }
    let mut sizes = [1; 3];
    for (to, &n) in sizes.iter_mut().zip(spatial.iter().rev()) {
        *to = n;
    }
    let count = l.output(0)?.elements();
    let params = Params::new()
        .u(count)
        .u(spatial.iter().product())
        .u(rank)
        .u(usize::from(op.align_corners));
    l.linear(
        "affine_grid",
        &[],
        &[Operand::Input(0), Operand::Output(0)],
        sizes.into_iter().fold(params, Params::u),
        count,
    );
    Ok(())
}
