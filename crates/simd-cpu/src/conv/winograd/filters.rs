//! Filters at the points of a tile.

use std::mem::MaybeUninit;

use kilim_core::memory::vec_of;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};
use kilim_host::{CpuRun, Shared};

use super::Shape;
use super::lines::filter_line;
use crate::gemm::{Matrix, Panels, Reading, RowStarts};
use crate::isa::{Isa, Simd, Task};

/// Channels whose filters are transformed together.
const CHANNELS: usize = 16;

/// The weights `[m, c, 3, 3]`, transformed, as packed columns for each point.
///
/// # Errors
/// `Limit` where memory is short, `Aborted` where the building is to stop.
pub(crate) fn pack_weights<const IN: usize>(
    cpu: &CpuRun,
    isa: Isa,
    shape: &Shape,
    weights: &Tensor,
) -> Result<AlignedBytes> {
    let (c, m) = (shape.window.channels, shape.m);
    let panels = Panels::new(isa, m);
    let point = panels.elements(c);
    let size = IN * IN * point * size_of::<f32>();
    let mut packed = AlignedBytes::with_capacity(size)?;
    let widest = panels.each().map(|(_, width)| width).max().unwrap_or(0);
    let to = Shared::new(&mut packed.spare::<f32>()[..IN * IN * point]);
    // A transformation takes about as long as its results and as many more.
    let cost = 2 * IN * IN * panels.cost(CHANNELS);
    let mut room = Vec::new();
    for (first, width) in panels.each() {
        let used = width.min(m - first);
        // Read here, since a file may be this thread's alone.
        let weights = weights.run(cpu, first * c * 9..(first + used) * c * 9, &mut room)?;
        cpu.split(c.div_ceil(CHANNELS), cost, |blocks, cpu| {
            let mut filters = vec_of(0.0, 9 * CHANNELS * widest)?;
            for channel in blocks.map(|block| block * CHANNELS) {
                let rows = CHANNELS.min(c - channel);
                let taps = Matrix {
                    rows: RowStarts::even(9 * rows, 1),
                    column_stride: 9 * c,
                    reading: Reading::PLAIN,
                };
                let filters = &mut filters[..9 * rows * width];
                taps.panel(cpu, &weights[9 * channel..], used, width, filters)?;
                let first = first * c + channel * width;
                transform_filters::<IN>(isa, filters, width, (to, first), point);
            }
            Ok(())
        })?;
    }
    // SAFETY: at each point all rows of all panels were written.
    unsafe { packed.assume_init(size) }
    Ok(packed)
}

/// A function of its own, which a browser optimises while the first layers are packed.
#[inline(never)]
fn transform_filters<const IN: usize>(
    isa: Isa,
    filters: &[f32],
    width: usize,
    to: (Shared<MaybeUninit<f32>>, usize),
    point: usize,
) {
    isa.dispatch(FilterPoints::<IN> {
        filters,
        width,
        to,
        point,
    });
}

/// Transforms filters; `width` of them stand side by side.
struct FilterPoints<'a, const IN: usize> {
    /// Nine rows of taps for each channel.
    filters: &'a [f32],
    width: usize,
    /// At each point a row for each channel, and where the first is. Nobody else has these rows.
    to: (Shared<MaybeUninit<f32>>, usize),
    /// Elements from a point to the next.
    point: usize,
}

impl<const IN: usize> Task for FilterPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "an index counts several arrays, all unrolled"
    )]
    fn run<S: Simd>(self, s: S) {
        assert!(self.width.is_multiple_of(S::LANES));
        let least = s.splat(f32::MIN_POSITIVE);
        let rows = self.filters.len() / (9 * self.width);
        let last = (IN * IN - 1) * self.point;
        let (to, first) = self.to;
        let to = to.at(first, last + rows * self.width).cast::<f32>();
        for row in 0..rows {
            for column in (0..self.width).step_by(S::LANES) {
                let from = self.filters[row * 9 * self.width + column..].as_ptr();
                let to = to.wrapping_add(row * self.width + column);
                // SAFETY: nine rows of whole vectors, by the assertion, and one at each point, where `at` found room.
                unsafe {
                    let mut lines = [[s.splat(0.0); IN]; 3];
                    for (y, line) in lines.iter_mut().enumerate() {
                        let mut taps = [s.splat(0.0); 3];
                        for (x, tap) in taps.iter_mut().enumerate() {
                            *tap = s.load(from.add((y * 3 + x) * self.width));
                        }
                        *line = filter_line::<S, IN>(s, taps);
                    }
                    for x in 0..IN {
                        let column = [lines[0][x], lines[1][x], lines[2][x]];
                        let column = filter_line::<S, IN>(s, column);
                        for (y, v) in column.into_iter().enumerate() {
                            let subnormal = s.less(s.abs(v), least);
                            let v = s.select(subnormal, s.splat(0.0), v);
                            s.store(to.add((y * IN + x) * self.point), v);
                        }
                    }
                }
            }
        }
    }
}
