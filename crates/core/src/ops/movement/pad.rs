//! Tensors with something around them, or cropped.

use crate::Reflect;
use crate::dim::Dim;
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeView, Operator, Renumbered};
use crate::ops::axes::normalize_axes;
use crate::ops::rules::{INDICES, InputValues, fact, sizes, too_large, wrong_count};

/// How [`Pad`] fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum PadMode {
    Constant,
    Reflect,
    Edge,
    Wrap,
    /// Reflects the border element too (TFLite's MIRROR_PAD SYMMETRIC).
    Symmetric,
}

/// Inputs: data, pads (begin of each axis, then end; negative crops), optional value, optional axes.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Pad {
    pub mode: PadMode,
}

/// Crops or pads around the centre. Inputs: data, shape of `axes` (all axes if `None`).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct CenterCropPad {
    pub axes: Option<Vec<i64>>,
}

/// What [`Pad`] does along one axis: keeps `kept` elements of the data from `first` on, and puts `before`
/// elements before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PadAxis {
    pub first: usize,
    pub kept: usize,
    pub before: usize,
}

impl PadAxis {
    /// An axis of `n` elements under the pads before and after it. Negative ones crop first: what is repeated
    /// is what is left, as in PyTorch and onnxruntime.
    pub fn new(n: usize, (before, after): (i64, i64)) -> PadAxis {
        let cropped = |pad: i64| usize::try_from(pad.saturating_neg()).unwrap_or(0);
        let first = cropped(before).min(n);
        PadAxis {
            first,
            kept: n - first - cropped(after).min(n - first),
            before: usize::try_from(before).unwrap_or(0),
        }
    }
}

impl Pad {
    /// What is added (or, where negative, cropped) before and after each axis of the data.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where pads and axes do not fit the data or are not known.
    pub fn resolve(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<(i64, i64)>> {
        let pads = self.pads(shape.len(), values)?;
        for (&dim, &pads) in shape.iter().zip(&pads) {
            self.dim(&Dim::Known(dim), pads)?;
        }
        Ok(pads)
    }

    fn pads(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<(i64, i64)>> {
        let given = values.need_ints(1)?;
        let axes = self.axes(rank, values)?;
        if given.len() != 2 * axes.len() {
            return Err(wrong_count("the list of pads", 2 * axes.len(), given.len()));
        }
        let mut pads = vec![(0, 0); rank];
        for (i, &axis) in axes.iter().enumerate() {
            pads[axis] = (given[i], given[axes.len() + i]);
        }
        Ok(pads)
    }

    fn axes(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        if values.has(3) {
            normalize_axes(&values.need_ints(3)?, rank)
        } else {
            Ok((0..rank).collect())
        }
    }

    fn dim(&self, dim: &Dim, (before, after): (i64, i64)) -> Result<Dim> {
        let Dim::Known(n) = dim else {
            let same = before == 0 && after == 0;
            return Ok(if same { dim.clone() } else { Dim::Unknown });
        };
        let padded = i64::try_from(*n)
            .ok()
            .and_then(|n| n.checked_add(before)?.checked_add(after))
            .ok_or_else(too_large)?;
        let padded = usize::try_from(padded).map_err(|_| {
            shape_error("more is cropped than there is")
                .with_expected(format!("at most {n}"))
                .with_got(format!("{before} and {after}"))
        })?;
        let kept = PadAxis::new(*n, (before, after)).kept;
        if kept == 0 && padded > 0 && self.mode != PadMode::Constant {
            return Err(shape_error(
                "an axis without elements has nothing to pad with",
            ));
        }
        Ok(Dim::Known(padded))
    }
}

impl Operator for Pad {
    fn name(&self) -> &'static str {
        "Pad"
    }

    signature! { (data, pads, optional value, optional axes) -> (output) }

    fn flow(&self) -> Flow {
        Flow::computed(Axes::Kept)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.common_type([0, 2])?;
        ctx.typed(1, &INDICES)?;
        ctx.typed_optional(3, &INDICES)?;
        ctx.scalar(2)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let mut shape = x.clone();
        if ctx.known(&[1, 3]) {
            for (dim, pads) in shape.0.iter_mut().zip(self.pads(x.rank(), ctx)?) {
                *dim = self.dim(dim, pads)?;
            }
        } else {
            let axes = if ctx.known(&[3]) {
                self.axes(x.rank(), ctx)?
            } else {
                (0..x.rank()).collect()
            };
            for axis in axes {
                shape.0[axis] = Dim::Unknown;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2, 3]
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let rank = perm.len();
        let axes = self.axes(rank, ctx).ok()?;
        let pads = ctx.ints(1).ok()??;
        let (before, after) = pads.split_at_checked(axes.len())?;
        if before.len() != after.len() {
            return None;
        }
        let mut all = vec![0; 2 * rank];
        for (i, &a) in axes.iter().enumerate() {
            all[perm[a]] = before[i];
            all[rank + perm[a]] = after[i];
        }
        let mut renumbered = Renumbered::new(self.clone(), perm).with_ints(1, &all)?;
        renumbered.inputs.push((3, None));
        Some(renumbered)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.ints(1)
            .is_some_and(|pads| pads.iter().all(|&n| n == 0))
    }
}

/// What [`CenterCropPad`] does along one axis: copies `length` elements from `input_start` of the
/// data to `output_start` of the output, which has `output` elements, the others zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CropPadAxis {
    pub input_start: usize,
    pub output_start: usize,
    pub length: usize,
    pub output: usize,
}

impl CenterCropPad {
    /// What happens along each axis of the data.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shape and axes do not fit the data or are not known.
    pub fn resolve(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<CropPadAxis>> {
        let targets = self.targets(shape.len(), values)?;
        let axes = shape.iter().zip(targets).map(|(&input, target)| {
            let output = target.unwrap_or(input);
            CropPadAxis {
                input_start: input.saturating_sub(output) / 2,
                output_start: output.saturating_sub(input) / 2,
                length: input.min(output),
                output,
            }
        });
        Ok(axes.collect())
    }

    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match &self.axes {
            Some(axes) => normalize_axes(axes, rank),
            None => Ok((0..rank).collect()),
        }
    }

    fn targets(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<Option<usize>>> {
        let shape = sizes(&values.need_ints(1)?, "a dimension of the new shape")?;
        let axes = self.axes(rank)?;
        if shape.len() != axes.len() {
            return Err(wrong_count("the new shape", axes.len(), shape.len()));
        }
        let mut targets = vec![None; rank];
        for (&axis, &target) in axes.iter().zip(&shape) {
            targets[axis] = Some(target);
        }
        Ok(targets)
    }
}

impl Operator for CenterCropPad {
    fn name(&self) -> &'static str {
        "CenterCropPad"
    }

    signature! { (data, shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let mut shape = x.clone();
        if ctx.value(1).is_some() {
            let targets = self.targets(x.rank(), ctx)?;
            for (dim, target) in shape.0.iter_mut().zip(targets) {
                if let Some(target) = target {
                    *dim = Dim::Known(target);
                }
            }
        } else {
            for axis in self.axes(x.rank())? {
                shape.0[axis] = Dim::Unknown;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}
