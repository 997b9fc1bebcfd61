//! GridSample and AffineGrid.

use std::marker::PhantomData;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{AffineGrid, GridMode, GridPadding, GridSample};
use kilim_core::{DType, Result};
use kilim_host::by_size;
use kilim_host::elements::Wide;
use kilim_host::rules::{self, required};
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::taps::cubic;
use crate::by_real;
use crate::common::Real;

/// Spatial axes at most.
const MOST: usize = 3;
/// Elements along an axis that one sample reads at most.
const TAPS: usize = 4;

/// Data of any type where elements are only chosen; what lies outside is 0, false or the empty text.
pub fn accepts_sample(op: &GridSample, node: &NodeSpec) -> Result<(), Refusal> {
    rules::input_is(node, 1, &rules::FLOATS)?;
    match op.mode {
        GridMode::Nearest => Ok(()),
        _ => rules::weighed(node),
    }
}

pub fn build_sample(op: &GridSample, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, grid) = (required(node, 0)?, required(node, 1)?);
    let spatial = x.shape.get(2..).unwrap_or_default();
    if spatial.is_empty() || spatial.len() > MOST || grid.shape.last() != Some(&spatial.len()) {
        return Err(shape_error("data and grid do not fit each other"));
    }
    if x.elements() == 0 && node.outputs[0].elements() > 0 {
        return Err(shape_error("there is nothing to sample"));
    }
    let sampler = Sampler {
        op: op.clone(),
        batch: x.shape[0],
        channels: x.shape[1],
        spatial: spatial.to_vec(),
        points: grid.shape[1..grid.shape.len() - 1].iter().product(),
        data: x.dtype,
        grid: grid.dtype,
    };
    if op.mode == GridMode::Nearest {
        return Ok(Box::new(Chosen(sampler)));
    }
    by_real!(x.dtype, T => Ok(Box::new(Combined::<T>(sampler, PhantomData))))
}

/// Which elements each point reads, and with which weights.
struct Sampler {
    op: GridSample,
    batch: usize,
    channels: usize,
    spatial: Vec<usize>,
    /// Points of each image.
    points: usize,
    data: DType,
    grid: DType,
}

/// Elements combined by their weights; of complex numbers, each part by itself.
struct Combined<T>(Sampler, PhantomData<T>);

/// The nearest elements, moved.
struct Chosen(Sampler);

/// Mirrors a coordinate into `low..=high`; an infinite one becomes `low`, as in PyTorch.
fn reflect(x: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 || x.is_infinite() {
        return low;
    }
    let folded = (x - low).rem_euclid(2.0 * range);
    low + if folded > range {
        2.0 * range - folded
    } else {
        folded
    }
}

/// The elements along one axis that a coordinate reads; those outside have no index.
type AxisTaps = [(Option<usize>, f64); TAPS];

impl Sampler {
    /// The bounds of an axis of `n` elements.
    fn bounds(&self, n: usize) -> (f64, f64) {
        match self.op.align_corners {
            true => (0.0, n as f64 - 1.0),
            false => (-0.5, n as f64 - 0.5),
        }
    }

    fn pad(&self, i: f64, n: usize) -> Option<usize> {
        let last = n as f64 - 1.0;
        let (low, high) = self.bounds(n);
        let i = match self.op.padding {
            GridPadding::Zeros => i,
            GridPadding::Border => i.clamp(0.0, last),
            GridPadding::Reflection => reflect(i, low, high),
        };
        (0.0..=last).contains(&i).then_some(i as usize)
    }

    /// Where on an axis of `n` elements a coordinate of the grid lies, moved inside as far as that
    /// changes no result.
    fn place(&self, normalised: f64, n: usize) -> f64 {
        let side = n as f64;
        let (low, high) = self.bounds(n);
        let at = match self.op.align_corners {
            true => (normalised + 1.0) / 2.0 * (side - 1.0),
            false => ((normalised + 1.0) * side - 1.0) / 2.0,
        };
        let at = match self.op.padding {
            GridPadding::Border | GridPadding::Reflection if at.is_nan() => low,
            _ => at,
        };
        let at = match self.op.mode {
            GridMode::Nearest => at.round_ties_even(),
            GridMode::Linear | GridMode::Cubic => at,
        };
        match (self.op.padding, self.op.mode) {
            (GridPadding::Zeros, _) => at,
            // Every neighbour is clipped by itself, as PyTorch and onnxruntime do. From two elements
            // outside on all four are the border.
            (GridPadding::Border, GridMode::Cubic) => at.clamp(-2.0, side + 1.0),
            (GridPadding::Border, _) => at.clamp(0.0, side - 1.0),
            (GridPadding::Reflection, _) => reflect(at, low, high),
        }
    }

    fn taps(&self, normalised: f64, n: usize) -> (usize, AxisTaps) {
        let at = self.place(normalised, n);
        let base = at.floor();
        let ratio = at - base;
        let mut taps = [(None, 0.0); TAPS];
        let count = match self.op.mode {
            GridMode::Nearest => {
                taps[0] = (self.pad(at.round_ties_even(), n), 1.0);
                1
            }
            GridMode::Linear => {
                taps[0] = (self.pad(base, n), 1.0 - ratio);
                taps[1] = (self.pad(base + 1.0, n), ratio);
                2
            }
            GridMode::Cubic => {
                for (k, tap) in taps.iter_mut().enumerate() {
                    let offset = k as f64 - 1.0;
                    *tap = (
                        self.pad(base + offset, n),
                        cubic((offset - ratio).abs(), -0.75),
                    );
                }
                4
            }
        };
        (count, taps)
    }

    /// Calls `visit` for every point of every image: with the image and its part of `y`, in which an element has `parts`
    /// numbers, with the point and its taps along each axis.
    fn visit<T: Send + 'static>(
        &self,
        cpu: &CpuRun,
        grid: &[u8],
        (y, parts): (&mut [T], usize),
        visit: impl Fn(usize, &mut [T], usize, &[(usize, AxisTaps)], &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        let codec = f64::codec(self.grid);
        let rank = self.spatial.len();
        let image = self.channels * self.points * parts;
        // The elements between which a point lies, of each channel, and finding these.
        let cost = COST + (self.channels * parts).saturating_mul(TAPS.pow(rank as u32));
        let all = cost.saturating_mul(self.points);
        cpu.rows(self.batch, by(y, image), all, |piece, y, cpu| {
            for (b, y) in piece.zip(y.chunks_exact_mut(image.max(1))) {
                cpu.pieces(self.points, cost, |points| {
                    let (mut point, mut axes) = ([0.0; MOST], [(0, [(None, 0.0); TAPS]); MOST]);
                    for p in points {
                        codec.load(grid, (b * self.points + p) * rank, &mut point[..rank]);
                        for d in 0..rank {
                            // The grid names the innermost axis first.
                            axes[d] = self.taps(point[rank - 1 - d], self.spatial[d]);
                        }
                        visit(b, y, p, &axes[..rank], cpu)?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    fn plane(&self) -> usize {
        self.spatial.iter().product()
    }

    /// Numbers of an element.
    fn parts(&self) -> usize {
        1 + usize::from(self.data.is_complex())
    }

    /// The sum over the axes from `d` on. `plane` begins with the part that is wanted.
    fn gather<T: Real>(&self, axes: &[(usize, AxisTaps)], d: usize, at: usize, plane: &[T]) -> f64 {
        let Some((count, taps)) = axes.get(d) else {
            return plane[at * self.parts()].wide();
        };
        taps[..*count]
            .iter()
            .map(|&(i, w)| match i {
                Some(i) if w != 0.0 => {
                    w * self.gather(axes, d + 1, at * self.spatial[d] + i, plane)
                }
                _ => 0.0,
            })
            .sum()
    }
}

impl<T: Real> Kernel for Combined<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (sampler, parts) = (&self.0, self.0.parts());
        let plane = sampler.plane() * parts;
        let (x, grid, y) = (io.input::<T>(0), io.input_bytes(1), io.output::<T>(0));
        let channels = sampler.channels;
        sampler.visit(io.cpu(), grid, (y, parts), |b, y, p, axes, cpu| {
            cpu.pieces(channels, TAPS * parts, |part| {
                for c in part {
                    let x = &x[(b * channels + c) * plane..][..plane];
                    let y = &mut y[(c * sampler.points + p) * parts..][..parts];
                    for (part, y) in y.iter_mut().enumerate() {
                        *y = T::of(sampler.gather(axes, 0, 0, &x[part..]));
                    }
                }
                Ok(())
            })
        })
    }
}

impl Kernel for Chosen {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (sampler, plane) = (&self.0, self.0.plane());
        let (grid, channels) = (io.input_bytes(1), sampler.channels);
        by_size!(sampler.data, T => {
            let (x, y) = (io.input::<T>(0), io.output::<T>(0));
            sampler.visit(io.cpu(), grid, (y, 1), |b, y, p, axes, cpu| {
                let mut sides = axes.iter().zip(&sampler.spatial);
                let at = sides.try_fold(0, |at, ((_, taps), &n)| Some(at * n + taps[0].0?));
                cpu.pieces(channels, 4, |part| {
                    for c in part {
                        let chosen = at.map(|at| x[(b * channels + c) * plane + at]);
                        y[c * sampler.points + p] = chosen.unwrap_or_default();
                    }
                    Ok(())
                })
            })
        })
    }
}

/// Operations of finding the elements around a point.
const COST: usize = 128;

pub fn build_affine(op: &AffineGrid, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let theta = required(node, 0)?;
    let size = op.size(node)?;
    let spatial = size.get(2..).unwrap_or_default().to_vec();
    let rank = spatial.len();
    if !(1..=MOST).contains(&rank) || theta.shape[1..] != [rank, rank + 1] {
        return Err(shape_error("theta does not fit the size"));
    }
    by_real!(theta.dtype, T => Ok(Box::new(Affine::<T> {
        align_corners: op.align_corners,
        batch: size[0],
        spatial,
        element: PhantomData,
    })))
}

struct Affine<T> {
    align_corners: bool,
    batch: usize,
    spatial: Vec<usize>,
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Affine<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (theta, y) = (io.input::<T>(0), io.output::<T>(0));
        let rank = self.spatial.len();
        let points: usize = self.spatial.iter().product();
        let coordinate = |i: usize, n: usize| {
            let (i, n) = (i as f64, n as f64);
            match self.align_corners {
                true if n > 1.0 => -1.0 + 2.0 * i / (n - 1.0),
                // The centre, as in PyTorch.
                true => 0.0,
                false => (2.0 * i + 1.0) / n - 1.0,
            }
        };
        let all = self.batch * points;
        io.cpu().rows(all, by(y, rank), COST, |piece, y, _| {
            let mut point = [0.0; MOST];
            for (i, y) in piece.zip(y.chunks_exact_mut(rank)) {
                let theta = &theta[i / points * rank * (rank + 1)..][..rank * (rank + 1)];
                let mut rest = i % points;
                // The innermost axis comes first.
                for (value, &n) in point.iter_mut().zip(self.spatial.iter().rev()) {
                    *value = coordinate(rest % n, n);
                    rest /= n;
                }
                for (y, row) in y.iter_mut().zip(theta.chunks_exact(rank + 1)) {
                    let moved: f64 = (0..rank).map(|k| row[k].wide() * point[k]).sum();
                    *y = T::of(moved + row[rank].wide());
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::{assert_close, noise, tensor};

    #[test]
    fn the_identity_grid_gives_the_image() {
        let (h, w) = (4, 5);
        let theta = tensor(&[1, 2, 3], &[1.0f32, 0.0, 0.0, 0.0, 1.0, 0.0]);
        let size = tensor::<i64>(&[4], &[1, 2, h as i64, w as i64]);
        let x = noise(2 * h * w, 3);
        let want: Vec<f64> = x.iter().map(|&v| v.into()).collect();
        for align_corners in [false, true] {
            let grid = run_f32(
                &AffineGrid { align_corners },
                &[&theta, &size],
                &[1, h, w, 2],
            );
            for mode in [GridMode::Nearest, GridMode::Linear, GridMode::Cubic] {
                let op = GridSample {
                    mode,
                    padding: GridPadding::Border,
                    align_corners,
                };
                let y = run_f32(
                    &op,
                    &[&tensor(&[1, 2, h, w], &x), &tensor(&[1, h, w, 2], &grid)],
                    &[1, 2, h, w],
                );
                assert_close(&y, &want);
            }
        }
    }

    #[test]
    fn padding_modes() {
        let x = tensor(&[1, 1, 1, 3], &[1.0f32, 2.0, 3.0]);
        // Half a pixel beyond the last one, then a pixel and a half.
        let grid = tensor(&[1, 1, 2, 2], &[1.0f32, 0.0, 5.0 / 3.0, 0.0]);
        let of = |padding| {
            let op = GridSample {
                mode: GridMode::Linear,
                padding,
                align_corners: false,
            };
            run_f32(&op, &[&x, &grid], &[1, 1, 1, 2])
        };
        assert_close(&of(GridPadding::Zeros), &[1.5, 0.0]);
        assert_close(&of(GridPadding::Border), &[3.0, 3.0]);
        assert_close(&of(GridPadding::Reflection), &[3.0, 2.5]);
    }

    /// What PyTorch 2.15 gives, but for zeros, where its kernels differ from each other.
    #[test]
    fn neighbours_are_clipped_and_nan_is_the_first_element() {
        let x = tensor(&[1, 1, 1, 3], &[1.0f32, 2.0, 3.0]);
        let of = |mode, padding, at: &[f32]| {
            let grid: Vec<f32> = at.iter().flat_map(|&x| [x, 0.0]).collect();
            let op = GridSample {
                mode,
                padding,
                align_corners: true,
            };
            let shape = [1, 1, at.len(), 2];
            run_f32(&op, &[&x, &tensor(&shape, &grid)], &[1, 1, 1, at.len()])
        };
        let border = of(
            GridMode::Cubic,
            GridPadding::Border,
            &[-1.5, 1.5, -2.0, 9.0],
        );
        assert_close(&border, &[0.90625, 3.09375, 1.0, 3.0]);
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        for mode in [GridMode::Nearest, GridMode::Linear, GridMode::Cubic] {
            assert_close(&of(mode, GridPadding::Border, &odd), &[1.0, 3.0, 1.0]);
            assert_close(&of(mode, GridPadding::Reflection, &odd), &[1.0; 3]);
            assert_close(&of(mode, GridPadding::Zeros, &odd), &[0.0; 3]);
        }
    }
}
