//! The best of boxes that overlap.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, dtype_error, shape_error, value_error};
use crate::fact::Fact;
use crate::fallible::push;
use crate::graph::{Flow, InferContext, Operator};
use crate::interrupt::Meter;
use crate::ops::rules::{INDICES, InputValues, missing_value, unify_shapes};
use crate::order::sort_first;

/// Inputs: boxes `[batch, n, 4]`, scores `[batch, classes, n]`, optional max boxes, IoU threshold,
/// score threshold. Output `int64[m, 3]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct NonMaxSuppression {
    /// Boxes are centre and size instead of two corners.
    pub center_point_box: bool,
}

/// A box as its corners, the smaller coordinates first.
#[derive(Clone, Copy)]
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
}

impl Corners {
    fn new(b: &[f32], center_point: bool) -> Corners {
        if center_point {
            let [x, y, w, h] = [b[0], b[1], b[2] / 2.0, b[3] / 2.0];
            return Corners {
                low: [y - h, x - w],
                high: [y + h, x + w],
            };
        }
        Corners {
            low: [b[0].min(b[2]), b[1].min(b[3])],
            high: [b[0].max(b[2]), b[1].max(b[3])],
        }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// Intersection over union, 0 for empty boxes.
    fn overlap(&self, other: &Corners) -> f32 {
        let side = |i: usize| {
            let span = self.high[i].min(other.high[i]) - self.low[i].max(other.low[i]);
            span.max(0.0)
        };
        let (common, a, b) = (side(0) * side(1), self.area(), other.area());
        if common <= 0.0 || a <= 0.0 || b <= 0.0 {
            return 0.0;
        }
        common / (a + b - common)
    }
}

/// The boxes that [`NonMaxSuppression`] keeps, as `[batch, class, box]` in the order of the output:
/// of every class of every image the best boxes first, each overlapping no better one that is kept.
///
/// # Errors
/// `Shape` and `DType` where boxes and scores do not fit each other, `InvalidValue` where an input is
/// not known, `Limit` where memory is short, `Aborted` where the work is to stop.
pub fn non_max_suppression(
    meter: &Meter,
    op: &NonMaxSuppression,
    values: &dyn InputValues,
) -> Result<Vec<[i64; 3]>> {
    let tensor = |i: usize| values.value(i).ok_or_else(|| missing_value(i));
    let (boxes, scores) = (tensor(0)?, tensor(1)?);
    check_boxes(&Shape::fixed(boxes.shape()), &Shape::fixed(scores.shape()))?;
    let threshold = |i: usize| -> Result<Option<f32>> {
        if !values.has(i) {
            return Ok(None);
        }
        match tensor(i)?.to_f64s()?.as_slice() {
            [] => Ok(None),
            [t] => Ok(Some(*t as f32)),
            _ => Err(shape_error(format!("input {i} must be a scalar"))),
        }
    };
    let (overlap, least) = (threshold(3)?.unwrap_or(0.0), threshold(4)?);
    let most = match values.has(2) {
        true => values.need_ints(2)?.first().copied().unwrap_or(0),
        false => 0,
    };
    if !(0.0..=1.0).contains(&overlap) {
        return Err(value_error("an IoU threshold is between 0 and 1").with_got(overlap));
    }
    let rules = Rules {
        overlap,
        least,
        most: usize::try_from(most).unwrap_or(0),
    };
    let (count, classes) = (boxes.shape()[1], scores.shape()[1]);
    let mut kept = Vec::new();
    if rules.most == 0 || count == 0 || classes == 0 {
        return Ok(kept);
    }
    let (boxes, scores) = (boxes.as_slice::<f32>()?, scores.as_slice::<f32>()?);
    for (batch, (boxes, scores)) in boxes
        .chunks_exact(4 * count)
        .zip(scores.chunks_exact(classes * count))
        .enumerate()
    {
        let (boxes, _) = boxes.as_chunks::<4>();
        let corners = boxes.iter().map(|b| Corners::new(b, op.center_point_box));
        let corners = meter.collect(corners, 8)?;
        for (class, scores) in scores.chunks_exact(count).enumerate() {
            for i in rules.best_of_class(meter, &corners, scores)? {
                push(&mut kept, [batch as i64, class as i64, i as i64])?;
            }
        }
    }
    Ok(kept)
}

/// Operations of comparing two boxes, or two scores.
const COST: usize = 16;

/// Which boxes are kept.
struct Rules {
    /// The overlap with a better box, at most.
    overlap: f32,
    /// Scores are larger than this.
    least: Option<f32>,
    /// Boxes of a class.
    most: usize,
}

impl Rules {
    /// The boxes of a class that are kept, the best first.
    fn best_of_class(
        &self,
        meter: &Meter,
        boxes: &[Corners],
        scores: &[f32],
    ) -> Result<Vec<usize>> {
        let mut best = Vec::new();
        meter.pieces(boxes.len(), 2, |mut piece| {
            piece.try_for_each(|i| match self.least.is_none_or(|least| scores[i] > least) {
                true => push(&mut best, i),
                false => Ok(()),
            })
        })?;
        let all = best.len();
        sort_first(meter, &mut best, all, COST, &mut |a, b| {
            scores[b].total_cmp(&scores[a])
        })?;
        let mut chosen: Vec<usize> = Vec::new();
        for i in best {
            if chosen.len() == self.most {
                break;
            }
            let mut apart = true;
            for c in chosen.chunks(COMPARED) {
                meter.spend(COST * c.len())?;
                apart = c
                    .iter()
                    .all(|&c| boxes[c].overlap(&boxes[i]) <= self.overlap);
                if !apart {
                    break;
                }
            }
            if apart {
                push(&mut chosen, i)?;
            }
        }
        Ok(chosen)
    }
}

/// Boxes with which another one is compared before the operations are counted again.
const COMPARED: usize = 256;

fn check_boxes(boxes: &Shape, scores: &Shape) -> Result<()> {
    let expected = Shape(vec![
        scores.0.first().cloned().unwrap_or(Dim::Unknown),
        scores.0.get(2).cloned().unwrap_or(Dim::Unknown),
        Dim::Known(4),
    ]);
    unify_shapes(boxes, &expected, || "the shape of the boxes".into())?;
    unify_shapes(scores, &Shape::unknown(3), || {
        "the shape of the scores".into()
    })?;
    Ok(())
}

impl Operator for NonMaxSuppression {
    fn name(&self) -> &'static str {
        "NonMaxSuppression"
    }

    signature! {
        (
            boxes, scores, optional max_boxes, optional iou_threshold, optional score_threshold
        ) -> (indices)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for i in [0, 1, 3, 4] {
            if let Some(d) = ctx.optional(i).and_then(|f| f.fact.dtype)
                && d != DType::F32
            {
                return Err(dtype_error(format!("input {i} must be float32")).with_got(d));
            }
        }
        ctx.typed_optional(2, &INDICES)?;
        let (boxes, scores) = (ctx.shape(0)?, ctx.shape(1)?);
        let unknown = Shape::unknown(3);
        check_boxes(boxes.unwrap_or(&unknown), scores.unwrap_or(&unknown))?;
        let count = if ctx.known(self.value_inputs()) {
            Dim::Known(non_max_suppression(&ctx.meter(), self, ctx)?.len())
        } else {
            Dim::Unknown
        };
        Ok(vec![Fact::new(
            DType::I64,
            Shape(vec![count, Dim::Known(3)]),
        )])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0, 1, 2, 3, 4]
    }
}
