//! Resizing to the nearest element: data movement.

use std::ops::Range;

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{NearestMode, Resize};
use kilim_core::{DType, Result};
use kilim_host::by_size;
use kilim_host::elements::{Wide, contiguous_strides};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, Table, by};

use super::taps::nearest;

pub fn build(
    op: &Resize,
    mode: NearestMode,
    node: &NodeSpec,
    build: &Build,
) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axes = op.resolve(&x.shape, node)?;
    let strides = contiguous_strides(&x.shape);
    // Axes behind the last one that is resized are copied in runs.
    let resized = axes
        .iter()
        .rposition(|a| a.input != a.output || a.scale != 1.0 || a.roi != (0.0, 1.0))
        .map_or(0, |d| d + 1);
    let mut sources = Vec::with_capacity(resized);
    for (a, &stride) in axes[..resized].iter().zip(&strides) {
        sources.push(nearest(build, mode, op, a, stride as usize)?);
    }
    let mut extrapolation = [0u8; 16];
    if !x.dtype.is_only_stored() {
        let outside = &mut extrapolation[..x.dtype.size()];
        f64::codec(x.dtype).set(outside, 0, op.extrapolation.into());
    }
    Ok(Box::new(Nearest {
        dtype: x.dtype,
        sources,
        run: x.shape[resized..].iter().product(),
        extrapolation,
    }))
}

struct Nearest {
    dtype: DType,
    /// For each resized axis, the element that each output element comes from, times the stride.
    sources: Vec<Table<Option<usize>>>,
    /// Elements behind them.
    run: usize,
    /// In its first bytes, the value outside.
    extrapolation: [u8; 16],
}

impl Kernel for Nearest {
    fn run(&self, io: &mut Io) -> Result<()> {
        by_size!(self.dtype, T => {
            let outside: T = bytemuck::pod_read_unaligned(&self.extrapolation[..size_of::<T>()]);
            let (x, y, n) = (io.input::<T>(0), io.output::<T>(0), self.run);
            let Some(runs) = y.len().checked_div(n) else {
                return Ok(());
            };
            io.cpu().rows(runs, by(y, n), n.saturating_add(4), |piece, y, cpu| {
                let mut runs = y.chunks_exact_mut(n);
                visit(&self.sources, piece, Some(0), &mut |at| match (runs.next(), at) {
                    (Some([y]), Some(at)) => {
                        *y = x[at];
                        Ok(())
                    }
                    (Some(y), Some(at)) => cpu.copy(&x[at..at + n], y),
                    (Some(y), None) => cpu.fill(y, outside),
                    (None, _) => Ok(()),
                })
            })
        })
    }
}

/// Calls `f` with the sum of the entries of all axes, for each combination whose number is in the range.
fn visit(
    axes: &[Table<Option<usize>>],
    range: Range<usize>,
    at: Option<usize>,
    f: &mut impl FnMut(Option<usize>) -> Result<()>,
) -> Result<()> {
    let Some((axis, inner)) = axes.split_first() else {
        return f(at);
    };
    let size: usize = inner.iter().map(|axis| axis.len()).product();
    let (mut begin, mut i) = (range.start, range.start / size);
    while begin < range.end {
        let (first, end) = (i * size, range.end.min((i + 1) * size));
        let at = at.zip(axis[i]).map(|(a, b)| a + b);
        visit(inner, begin - first..end - first, at, f)?;
        (begin, i) = (end, i + 1);
    }
    Ok(())
}
