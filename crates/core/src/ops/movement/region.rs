//! Parts of a tensor, and tensors around it.

use crate::error::value_error;
use crate::ops::*;

/// Inputs: data, starts, ends, optional axes, optional steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice;

/// How [`Pad`] fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PadMode {
    Constant,
    Reflect,
    Edge,
    Wrap,
    /// Reflects the border element too (TFLite's MIRROR_PAD SYMMETRIC).
    Symmetric,
}

/// Inputs: data, pads (begin of each axis, then end; negative crops), optional value, optional axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    pub mode: PadMode,
}

/// Inputs: data, repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile;

/// Inputs: data, shape; broadcast both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Expand;

/// Keeps one triangle of the last two dimensions. Inputs: data, optional diagonal `k`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trilu {
    pub upper: bool,
}

/// Crops or pads around the centre. Inputs: data, shape of `axes` (all axes if `None`).
#[derive(Clone, Debug, PartialEq)]
pub struct CenterCropPad {
    pub axes: Option<Vec<i64>>,
}

/// What [`Slice`] takes of one axis: `length` elements from `start` on, `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceAxis {
    pub start: usize,
    pub step: i64,
    pub length: usize,
}

/// One axis of a slice, before the dimension is known.
#[derive(Clone, Copy, Debug)]
struct Cut {
    start: i64,
    end: i64,
    step: i64,
}

/// Ends from here on mean "to the end" whatever the dimension is.
const FAR: i64 = i32::MAX as i64;

impl Cut {
    const WHOLE: Cut = Cut {
        start: 0,
        end: i64::MAX,
        step: 1,
    };

    fn resolve(self, dim: usize) -> Result<SliceAxis> {
        let n = i64::try_from(dim).map_err(|_| too_large())?;
        let from_end = |v: i64| if v < 0 { v.saturating_add(n) } else { v };
        let (start, end) = (from_end(self.start), from_end(self.end));
        let (start, span) = if self.step > 0 {
            let start = start.clamp(0, n);
            (start, end.clamp(0, n) - start)
        } else {
            // In an empty dimension everything is clamped to -1.
            let start = start.clamp(0.min(n - 1), n - 1);
            (start, start - end.clamp(-1, n - 1))
        };
        let length = (span.max(0) as u64).div_ceil(self.step.unsigned_abs());
        Ok(SliceAxis {
            start: if length == 0 { 0 } else { start as usize },
            step: self.step,
            length: length as usize,
        })
    }

    fn dim(self, dim: &Dim) -> Result<Dim> {
        let whole = (self.step == 1 && self.start == 0 && self.end >= FAR)
            || (self.step == -1 && (self.start == -1 || self.start >= FAR) && self.end <= -FAR);
        match dim {
            Dim::Known(n) => Ok(Dim::Known(self.resolve(*n)?.length)),
            other if whole => Ok(other.clone()),
            _ => Ok(Dim::Unknown),
        }
    }
}

impl Slice {
    /// What is taken of each axis of the data.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where starts, ends, axes and steps do not fit the data or are not
    /// known.
    pub fn resolve(&self, shape: &[usize], values: &dyn InputValues) -> Result<Vec<SliceAxis>> {
        let cuts = self.cuts(shape.len(), values)?;
        let axes = cuts.iter().zip(shape);
        axes.map(|(cut, &dim)| cut.resolve(dim)).collect()
    }

    fn cuts(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<Cut>> {
        let (starts, ends) = (values.need_ints(1)?, values.need_ints(2)?);
        let count = starts.len();
        let axes = self.axes(rank, count, values)?;
        let steps = if values.has(4) {
            values.need_ints(4)?
        } else {
            vec![1; count]
        };
        for (what, list) in [("the list of ends", &ends), ("the list of steps", &steps)] {
            if list.len() != count {
                return Err(wrong_count(what, count, list.len()));
            }
        }
        if steps.contains(&0) {
            return Err(value_error("the step of a slice must not be 0"));
        }
        let mut cuts = vec![Cut::WHOLE; rank];
        for (i, &axis) in axes.iter().enumerate() {
            cuts[axis] = Cut {
                start: starts[i],
                end: ends[i],
                step: steps[i],
            };
        }
        Ok(cuts)
    }

    fn axes(&self, rank: usize, count: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        if !values.has(3) {
            return if count <= rank {
                Ok((0..count).collect())
            } else {
                Err(wrong_count("the list of starts", rank, count))
            };
        }
        let axes = normalize_axes(&values.need_ints(3)?, rank)?;
        if axes.len() != count {
            return Err(wrong_count("the list of axes", count, axes.len()));
        }
        Ok(axes)
    }
}

impl Operator for Slice {
    fn name(&self) -> &'static str {
        "Slice"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.require(3)?;
        for i in 1..5 {
            ctx.typed_optional(i, &INDICES)?;
        }
        let Some(x) = ctx.shape(0)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let mut shape = x.clone();
        if ctx.known(self.value_inputs()) {
            for (dim, cut) in shape.0.iter_mut().zip(self.cuts(x.rank(), ctx)?) {
                *dim = cut.dim(dim)?;
            }
        } else {
            // Dimensions that are not cut stay.
            let count = ctx.shape_of_rank(1, 1)?.and_then(|s| s.0[0].known());
            let axes = match count {
                Some(n) if ctx.known(&[3]) => self.axes(x.rank(), n, ctx)?,
                _ => (0..x.rank()).collect(),
            };
            for axis in axes {
                shape.0[axis] = Dim::Unknown;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2, 3, 4]
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
        if *n == 0 && padded > 0 && self.mode != PadMode::Constant {
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
}

impl Tile {
    /// How often each axis is repeated.
    ///
    /// # Errors
    /// `Shape` where there are not `rank` numbers, `InvalidValue` where one is negative or they are
    /// not known.
    pub fn repeats(&self, rank: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        let repeats = sizes(&values.need_ints(1)?, "a number of repeats")?;
        if repeats.len() != rank {
            return Err(wrong_count("the list of repeats", rank, repeats.len()));
        }
        Ok(repeats)
    }
}

impl Operator for Tile {
    fn name(&self) -> &'static str {
        "Tile"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let shape = match ctx.shape(0)? {
            Some(x) if ctx.value(1).is_some() => {
                let repeats = self.repeats(x.rank(), ctx)?;
                let dims = x.0.iter().zip(repeats);
                let dims = dims.map(|(d, r)| times(d, &Dim::Known(r)));
                Some(Shape(dims.collect::<Result<_>>()?))
            }
            Some(x) => Some(Shape::unknown(x.rank())),
            None => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

impl Operator for Expand {
    fn name(&self) -> &'static str {
        "Expand"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &INDICES)?;
        let length = ctx.shape_of_rank(1, 1)?.and_then(|s| s.0[0].known());
        let target = match (ctx.ints(1)?, length) {
            (Some(t), _) => Some(Shape::fixed(&sizes(&t, "a dimension of the new shape")?)),
            (None, Some(n)) if n <= MAX_RANK => Some(Shape::unknown(n)),
            _ => None,
        };
        let shape = match (ctx.shape(0)?, target) {
            (Some(x), Some(target)) => Some(broadcast(x, &target)?),
            _ => None,
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let facts = self.infer(ctx)?;
        match (ctx.shape(0)?, partly_known(ctx, elements, 1)) {
            (Some(x), Some(target)) => {
                let shape = broadcast(x, &Shape(target.to_vec()))?;
                Ok(vec![fact(ctx.dtype(0)?, Some(shape))])
            }
            _ => Ok(facts),
        }
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

impl Trilu {
    /// The diagonal that the triangle begins on; 0 without an input.
    ///
    /// # Errors
    /// `InvalidValue` where it is given but not known.
    pub fn diagonal(&self, values: &dyn InputValues) -> Result<i64> {
        match (values.has(1), values.int(1)?) {
            (_, Some(k)) => Ok(k),
            (true, None) => Err(missing_value(1)),
            (false, None) => Ok(0),
        }
    }
}

impl Operator for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed_optional(1, &INDICES)?;
        ctx.scalar(1)?;
        let x = ctx.shape_of_min_rank(0, 2)?;
        Ok(vec![fact(dtype, x.cloned())])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
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
