//! Resizing to the nearest element: data movement.

use kilim_core::backend::NodeSpec;
use kilim_core::ops::{NearestMode, Resize};
use kilim_core::{DType, Result};

use super::taps::nearest;
use crate::by_size;
use crate::common::rules::required;
use crate::common::{Wide, contiguous_strides};
use crate::frame::{Io, Kernel};

pub fn build(op: &Resize, mode: NearestMode, node: &NodeSpec) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axes = op.resolve(&x.shape, node)?;
    let strides = contiguous_strides(&x.shape);
    // Axes behind the last one that is resized are copied in runs.
    let resized = axes
        .iter()
        .rposition(|a| a.input != a.output || a.scale != 1.0 || a.roi != (0.0, 1.0))
        .map_or(0, |d| d + 1);
    let sources = axes[..resized]
        .iter()
        .zip(&strides)
        .map(|(a, &stride)| {
            nearest(mode, op, a)
                .into_iter()
                .map(|i| i.map(|i| i * stride as usize))
                .collect()
        })
        .collect();
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
    sources: Vec<Vec<Option<usize>>>,
    /// Elements behind them.
    run: usize,
    /// In its first bytes, the value outside.
    extrapolation: [u8; 16],
}

impl Kernel for Nearest {
    fn run(&self, io: &mut Io) -> Result<()> {
        by_size!(self.dtype, T => {
            let outside: T = bytemuck::pod_read_unaligned(&self.extrapolation[..size_of::<T>()]);
            let x = io.input::<T>(0);
            let y = io.output::<T>(0);
            if self.run == 0 {
                return Ok(());
            }
            let mut runs = y.chunks_exact_mut(self.run);
            visit(&self.sources, Some(0), &mut |at| match (runs.next(), at) {
                (Some(y), Some(at)) if self.run == 1 => y[0] = x[at],
                (Some(y), Some(at)) => y.copy_from_slice(&x[at..at + self.run]),
                (Some(y), None) => y.fill(outside),
                (None, _) => {}
            });
        });
        Ok(())
    }
}

fn visit(axes: &[Vec<Option<usize>>], at: Option<usize>, f: &mut impl FnMut(Option<usize>)) {
    match axes.split_first() {
        None => f(at),
        Some((axis, inner)) => {
            for i in axis {
                visit(inner, at.zip(*i).map(|(a, b)| a + b), f);
            }
        }
    }
}
