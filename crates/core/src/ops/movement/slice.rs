//! Parts of a tensor.

use crate::Reflect;
use crate::dim::Dim;
use crate::error::{Result, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, NodeSpec, NodeView, Operator, Renumbered};
use crate::ops::axes::normalize_axes;
use crate::ops::rules::{INDICES, InputValues, fact, too_large, wrong_count};

/// Inputs: data, starts, ends, optional axes, optional steps.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Slice;

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

    signature! { (data, starts, ends, optional axes, optional steps) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Kept)
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
            let count = ctx.length(1)?;
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

    fn elements(&self, ctx: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let data = elements.first()?.as_ref()?;
        let [cut] = self.resolve(&[data.len()], ctx).ok()?[..] else {
            return None;
        };
        let at = |i: usize| {
            let i = cut.start as i64 + i as i64 * cut.step;
            data.get(usize::try_from(i).ok()?).cloned()
        };
        (0..cut.length).map(at).collect()
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2, 3, 4]
    }

    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        if ctx.optional(3).is_some() && ctx.ints(3).ok()?.is_none() {
            return None;
        }
        let axes = self.axes(perm.len(), ctx.length(1).ok()??, ctx).ok()?;
        let axes: Vec<i64> = axes.iter().map(|&a| perm[a] as i64).collect();
        Renumbered::new(self.clone(), perm).with_ints(3, &axes)
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        // Steps of minus one keep the shape as well.
        let forward = match node.input(4) {
            None => true,
            Some(_) => node
                .ints(4)
                .is_some_and(|steps| steps.iter().all(|&step| step == 1)),
        };
        forward && node.keeps_shape() && !node.is_empty()
    }

    fn is_view_for(&self, node: &NodeSpec) -> bool {
        let Some(x) = node.input(0) else {
            return false;
        };
        let whole =
            |(cut, &dim): (&SliceAxis, &usize)| cut.length == dim && (cut.step == 1 || dim <= 1);
        let cuts = self.resolve(&x.shape, node);
        cuts.is_ok_and(|cuts| cuts.iter().zip(&x.shape).all(whole))
    }
}
