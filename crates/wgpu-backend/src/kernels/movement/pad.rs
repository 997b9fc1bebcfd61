//! Pad and CenterCropPad.

use kilim_core::DType;
use kilim_core::ops::*;

use super::super::select::carrier;
use super::{ok, words_of};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::{MAX_RANK, Params};
use crate::walk::strides;

pub(crate) const PAD_MODES: &[&str] = &["Constant", "Edge", "Wrap", "Reflect", "Symmetric"];

/// Adds padding of `pads` around a tensor of `shape`.
pub(super) fn padded(
    l: &mut Lowering,
    dtype: DType,
    mode: &'static str,
    shape: &[usize],
    pads: &[(i64, i64)],
    fill: [u32; 2],
    to: Operand,
) -> Lowers {
    let t = carrier(dtype)?;
    if shape.len() > MAX_RANK {
        return refuse(format!("the GPU kernel pads at most {MAX_RANK} dimensions"));
    }
    let mut dims = Vec::with_capacity(shape.len());
    for (&d, &(begin, end)) in shape.iter().zip(pads) {
        match usize::try_from(d as i64 + begin + end) {
            Ok(d) => dims.push(d),
            Err(_) => return refuse("the pads crop more than there is"),
        }
    }
    let axes: Vec<PadAxis> = shape
        .iter()
        .zip(pads)
        .map(|(&n, &pads)| PadAxis::new(n, pads))
        .collect();
    let kept: Vec<usize> = axes.iter().map(|a| a.kept).collect();
    let befores: Vec<i64> = axes.iter().map(|a| a.before as i64).collect();
    let steps = strides(shape);
    let first: usize = axes.iter().zip(&steps).map(|(a, s)| a.first * s).sum();
    let count = dims.iter().product();
    let params = Params::new()
        .dims(&dims)
        .dims(&kept)
        .dims(&steps)
        .signed(&befores)
        .u(shape.len())
        .u(count)
        .u(first)
        .u(fill[0] as usize)
        .u(fill[1] as usize);
    l.linear(
        "pad",
        &[("T", t), ("MODE", mode)],
        &[Operand::Input(0), to],
        params,
        count,
    );
    Ok(())
}

pub(super) fn pad(op: &Pad, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let pads = ok(op.resolve(&x.shape, l.node))?;
    let mode = match op.mode {
        PadMode::Constant => "Constant",
        PadMode::Edge => "Edge",
        PadMode::Wrap => "Wrap",
        PadMode::Reflect => "Reflect",
        PadMode::Symmetric => "Symmetric",
    };
    let fill = match (op.mode, l.optional(2).map(|s| s.value.as_ref())) {
        (PadMode::Constant, Some(Some(value))) if !value.is_empty() => words_of(value)?,
        (PadMode::Constant, Some(None)) => return refuse("the padding value is not known"),
        _ => [0, 0],
    };
    padded(l, x.dtype, mode, &x.shape, &pads, fill, Operand::Output(0))
}

pub(super) fn center_crop_pad(op: &CenterCropPad, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axes = ok(op.resolve(&x.shape, l.node))?;
    let pads: Vec<_> = axes
        .iter()
        .zip(&x.shape)
        .map(|(a, &input)| {
            let begin = a.output_start as i64 - a.input_start as i64;
            (begin, a.output as i64 - begin - input as i64)
        })
        .collect();
    let to = Operand::Output(0);
    padded(l, x.dtype, "Constant", &x.shape, &pads, [0, 0], to)
}
