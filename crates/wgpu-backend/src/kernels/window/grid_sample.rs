//! Sampling where a grid of coordinates says.

use kilim_core::ops::{AffineGrid, GridMode, GridPadding, GridSample};

use crate::kernels::Kernels;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::window::affine_grid;
use crate::shaders::window::grid_sample::{self, Mode};
use crate::shaders::{Operand, Target};

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
        GridMode::Nearest => Mode::Nearest,
        GridMode::Linear => Mode::Linear,
        GridMode::Cubic => Mode::Cubic,
    };
    let padding = match op.padding {
        GridPadding::Zeros => 0,
        GridPadding::Border => 1,
        GridPadding::Reflection => 2,
    };
    let mut sizes = [1; 3];
    sizes[3 - rank..].copy_from_slice(spatial);
    let [size_0, size_1, size_2] = sizes;
    let count = y.elements();
    let launch = grid_sample::Launch {
        mode,
        x: Operand::Input(0),
        grid: Operand::Input(1),
        y: Target::Output(0),
        params: grid_sample::Params {
            count,
            points: grid.shape[1..grid.shape.len() - 1].iter().product(),
            channels: *channels,
            rank,
            size_0,
            size_1,
            size_2,
            padding,
            align: op.align_corners.into(),
        },
    };
    l.linear(launch, count);
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
    let [size_0, size_1, size_2] = sizes;
    let count = l.output(0)?.elements();
    let launch = affine_grid::Launch {
        theta: Operand::Input(0),
        y: Target::Output(0),
        params: affine_grid::Params {
            count,
            points: spatial.iter().product(),
            rank,
            align: op.align_corners.into(),
            size_0,
            size_1,
            size_2,
        },
    };
    l.linear(launch, count);
    Ok(())
}
