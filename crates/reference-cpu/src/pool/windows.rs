//! Visiting the windows of a pooling, over any number of spatial axes.

use std::ops::Range;

use kilim_core::Result;
use kilim_core::error::shape_error;
use kilim_core::ops::{PoolGeometry, WindowAxis};
use kilim_host::{CpuRun, Parts};

/// Spatial axes at most.
pub const MOST: usize = 6;

/// Where a window is: its position along each axis, and the kernel positions inside the input.
#[derive(Clone)]
pub struct Place {
    pub output: [usize; MOST],
    pub taps: [Range<usize>; MOST],
}

/// A window: its plane, and the row of the output that it computes, counted in the part that is computed together.
pub struct Window<'a> {
    pub plane: usize,
    pub row: usize,
    pub place: &'a Place,
}

/// The windows of a pooling. Data is seen as `[planes, pixels.., deep]`: channels-last data is
/// pooled for all channels at once.
pub struct Windows {
    pub planes: usize,
    pub deep: usize,
    pub axes: Vec<WindowAxis>,
    pub input: usize,
    pub output: usize,
}

impl Windows {
    pub fn new(g: PoolGeometry) -> Result<Windows> {
        if g.axes.len() > MOST {
            return Err(shape_error(format!("more than {MOST} spatial dimensions")));
        }
        let (planes, deep) = match g.channels_last {
            true => (g.batch, g.channels),
            false => (g.batch * g.channels, 1),
        };
        Ok(Windows {
            planes,
            deep,
            input: g.axes.iter().map(|a| a.input).product(),
            output: g.axes.iter().map(|a| a.output).product(),
            axes: g.axes,
        })
    }

    /// Calls `work` for each window of each plane, with the part of the `outputs` that is computed together;
    /// a window gives one row of it. `cost` is that of a tap of a channel.
    ///
    /// # Errors
    /// Those of `work`, and `Aborted` where the run is to stop.
    pub fn run<P: Parts>(
        &self,
        cpu: &CpuRun,
        outputs: P,
        cost: usize,
        work: impl Fn(Window, &mut P::Part<'_>, &CpuRun) -> Result<()> + Sync,
    ) -> Result<()> {
        let taps = self
            .axes
            .iter()
            .fold(1usize, |n, a| n.saturating_mul(a.kernel));
        let cost = cost.saturating_mul(self.deep).saturating_mul(taps);
        cpu.rows(
            self.planes * self.output,
            outputs,
            cost,
            |piece, mut part, cpu| {
                let mut place = Place {
                    output: [0; MOST],
                    taps: std::array::from_fn(|_| 0..0),
                };
                let first = piece.start;
                let mut number = first;
                self.descend(
                    0,
                    self.planes * self.output,
                    piece,
                    &mut place,
                    &mut |place| {
                        let window = Window {
                            plane: number / self.output,
                            row: number - first,
                            place,
                        };
                        number += 1;
                        work(window, &mut part, cpu)
                    },
                )
            },
        )
    }

    /// Shows the windows of some numbers, of `size`; depth 0 is that of the planes, `d` that of axis `d - 1`.
    fn descend(
        &self,
        d: usize,
        size: usize,
        range: Range<usize>,
        place: &mut Place,
        f: &mut dyn FnMut(&Place) -> Result<()>,
    ) -> Result<()> {
        let count = match d.checked_sub(1).map(|d| self.axes.get(d)) {
            None => self.planes,
            Some(Some(axis)) => axis.output,
            Some(None) => return f(place),
        };
        let size = size / count;
        for i in range.start / size..range.end.div_ceil(size) {
            if let Some(d) = d.checked_sub(1) {
                place.output[d] = i;
                place.taps[d] = self.axes[d].taps(i);
            }
            let (first, end) = (range.start.max(i * size), range.end.min((i + 1) * size));
            let range = first - i * size..end - i * size;
            self.descend(d + 1, size, range, place, f)?;
        }
        Ok(())
    }

    /// Calls `f` with the pixels of the input that a window sees, in order; `cost` is that of a pixel.
    ///
    /// # Errors
    /// Those of `f`, and `Aborted` where the run is to stop.
    pub fn pixels(
        &self,
        cpu: &CpuRun,
        place: &Place,
        cost: usize,
        mut f: impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        self.inside(cpu, 0, 0, place, cost, &mut f)
    }

    fn inside(
        &self,
        cpu: &CpuRun,
        d: usize,
        at: usize,
        place: &Place,
        cost: usize,
        f: &mut impl FnMut(usize) -> Result<()>,
    ) -> Result<()> {
        let Some(axis) = self.axes.get(d) else {
            return f(at);
        };
        let (start, taps) = (axis.start(place.output[d]), &place.taps[d]);
        let pixel = |k: usize| at * axis.input + (start + (k * axis.dilation) as isize) as usize;
        if d + 1 == self.axes.len() {
            return cpu.pieces(taps.len(), cost, |part| {
                part.into_iter().try_for_each(|k| f(pixel(taps.start + k)))
            });
        }
        let mut taps = taps.clone();
        taps.try_for_each(|k| self.inside(cpu, d + 1, pixel(k), place, cost, f))
    }

    /// Calls `f` with all channels of a pixel, many of them part by part.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    #[inline]
    pub fn across(&self, cpu: &CpuRun, mut f: impl FnMut(Range<usize>)) -> Result<()> {
        if self.deep < cpu.piece() / 64 {
            f(0..self.deep);
            return Ok(());
        }
        cpu.pieces(self.deep, 1, |part| {
            f(part);
            Ok(())
        })
    }

    /// Where a window would divide by: elements of the input that it sees, or of the padded input.
    pub fn count(&self, place: &Place, padded: bool) -> usize {
        let axes = self.axes.iter().enumerate();
        axes.map(|(d, axis)| match padded {
            true => axis.padded_taps(place.output[d]),
            false => place.taps[d].len(),
        })
        .product()
    }
}
