//! Pad and CenterCropPad.

use kilim_core::backend::TensorSpec;
use kilim_core::ops::{CenterCropPad, Pad, PadAxis, PadMode};

use super::words_of;
use crate::lowering::elements::carrier;
use crate::lowering::walk::{MAX_RANK, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::movement::pad::{Launch, Mode, Params};
use crate::shaders::{Operand, Target};

/// What is added around a tensor.
pub(crate) struct Padding<'a> {
    pub mode: Mode,
    /// In front of and behind each dimension; negative numbers crop.
    pub pads: &'a [(i64, i64)],
    /// The words of an element, for [`Mode::Constant`].
    pub fill: [u32; 2],
}

/// Pads input `x`.
pub(crate) fn padded(
    l: &mut Lowering,
    x: usize,
    Padding { mode, pads, fill }: Padding,
    y: Target,
) -> Lowers {
    let (x, TensorSpec { dtype, shape, .. }) = (Operand::Input(x), l.input(x)?);
    let t = carrier(*dtype)?;
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
    let launch = Launch {
        t,
        mode,
        x,
        y,
        params: Params {
            dims: &dims,
            sizes: &kept,
            walk: &steps,
            begin: &befores,
            rank: shape.len(),
            count,
            fill,
            first,
        },
    };
    l.linear(launch, count);
    Ok(())
}

pub(super) fn pad(op: &Pad, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let pads = ok(op.resolve(&x.shape, l.node))?;
    let mode = match op.mode {
        PadMode::Constant => Mode::Constant,
        PadMode::Edge => Mode::Edge,
        PadMode::Wrap => Mode::Wrap,
        PadMode::Reflect => Mode::Reflect,
        PadMode::Symmetric => Mode::Symmetric,
    };
    let fill = match (op.mode, l.optional(2).map(|s| s.value.as_ref())) {
        (PadMode::Constant, Some(Some(value))) if !value.is_empty() => words_of(value)?,
        (PadMode::Constant, Some(None)) => return refuse("the padding value is not known"),
        _ => [0, 0],
    };
    let padding = Padding {
        mode,
        pads: &pads,
        fill,
    };
    padded(l, 0, padding, Target::Output(0))
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
    let padding = Padding {
        mode: Mode::Constant,
        pads: &pads,
        fill: [0, 0],
    };
    padded(l, 0, padding, Target::Output(0))
}
