//! Operators whose output shape depends on the data itself.

use std::mem::take;

use super::*;
use crate::error::{dtype_error, value_error};
use crate::order::sort_indices;

/// The indices of elements that are not zero, `int64[rank, n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NonZero;

/// Inputs: data, condition `bool[n]`. Without an axis the data is flattened.
#[derive(Clone, Debug, PartialEq)]
pub struct Compress {
    pub axis: Option<i64>,
}

/// Outputs: values, first indices, inverse indices, counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Unique {
    pub axis: Option<i64>,
    pub sorted: bool,
}

/// Inputs: boxes `[batch, n, 4]`, scores `[batch, classes, n]`, optional max boxes, IoU threshold,
/// score threshold. Output `int64[m, 3]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NonMaxSuppression {
    /// Boxes are centre and size instead of two corners.
    pub center_point_box: bool,
}

impl NonZero {
    /// The output, row-major: for each dimension of the data the coordinates of all elements that
    /// are not zero, in order.
    ///
    /// # Errors
    /// `DType` where the elements cannot be read.
    pub fn positions(data: &Tensor) -> Result<Vec<i64>> {
        let hits = NonZero::hits(data);
        let mut positions = Vec::with_capacity(data.rank().saturating_mul(hits.len()));
        let mut inner = data.len();
        for &dim in data.shape() {
            // Without elements there are no hits, so nothing is divided by 0.
            inner = inner.checked_div(dim).unwrap_or(0);
            positions.extend(hits.iter().map(|&i| (i / inner % dim) as i64));
        }
        Ok(positions)
    }

    /// The elements that are not zero; of strings, not empty.
    fn hits(data: &Tensor) -> Vec<usize> {
        let chosen =
            |not_zero: &dyn Fn(usize) -> bool| (0..data.len()).filter(|&i| not_zero(i)).collect();
        if let Ok(texts) = data.texts() {
            return chosen(&|i| !texts[i].is_empty());
        }
        let (dtype, bytes, size) = (data.dtype(), data.bytes(), data.dtype().size());
        chosen(&|i| !is_zero(dtype, &bytes[i * size..][..size]))
    }
}

/// True for 0 and, among floating-point numbers, -0.
fn is_zero(dtype: DType, element: &[u8]) -> bool {
    let part = match dtype.is_complex() {
        true => element.len() / 2,
        false => element.len(),
    };
    let sign = if dtype.is_float() || dtype.is_complex() {
        0x7f
    } else {
        0xff
    };
    element
        .chunks_exact(part)
        .all(|number| match number.split_last() {
            Some((last, rest)) => last & sign == 0 && rest.iter().all(|&b| b == 0),
            None => true,
        })
}

const TESTED: Types = Types::new("a numeric type, bool, a complex type or string", |d| {
    !d.is_narrow()
});

impl Operator for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &TESTED)?;
        let rank = ctx.shape(0)?.map_or(Dim::Unknown, |x| Dim::Known(x.rank()));
        let count = ctx
            .value(0)
            .map_or(Dim::Unknown, |t| Dim::Known(NonZero::hits(t).len()));
        Ok(vec![Fact::new(DType::I64, Shape(vec![rank, count]))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}

impl Compress {
    /// The indices that are kept of a dimension (of the flattened data without an axis).
    ///
    /// # Errors
    /// `Shape` where the condition is longer than `dim`, `InvalidValue` where it is not known.
    pub fn selected(&self, dim: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        let condition = values.need_ints(1)?;
        if condition.len() > dim {
            return Err(shape_error("the condition is longer than the axis")
                .with_expected(format!("at most {dim}"))
                .with_got(condition.len()));
        }
        Ok((0..condition.len())
            .filter(|&i| condition[i] != 0)
            .collect())
    }
}

impl Operator for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &BOOL)?;
        ctx.shape_of_rank(1, 1)?;
        let count = |whole: &Dim| match (ctx.value(1), whole) {
            (None, _) => Ok(Dim::Unknown),
            (Some(_), Dim::Known(n)) => Ok(Dim::Known(self.selected(*n, ctx)?.len())),
            (Some(c), _) => Ok(Dim::Known(self.selected(c.len(), ctx)?.len())),
        };
        let shape = match (self.axis, ctx.shape(0)?) {
            (None, x) => Some(Shape(vec![match x {
                Some(x) => count(&volume(&x.0)?)?,
                None => count(&Dim::Unknown)?,
            }])),
            (Some(_), None) => None,
            (Some(axis), Some(x)) => {
                let axis = normalize_axis(axis, x.rank())?;
                let mut shape = x.clone();
                shape.0[axis] = count(&x.0[axis])?;
                Some(shape)
            }
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

/// What [`Unique`] finds. An item is a slice across the axis, or an element without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueParts {
    /// For each distinct item, in the order of the output, where it stands first.
    pub first: Vec<i64>,
    /// For each item of the data, which distinct item it is.
    pub inverse: Vec<i64>,
    /// How often each distinct item stands there.
    pub counts: Vec<i64>,
}

/// Elements as integers of the same order; equal elements are equal integers.
fn ordered(data: &Tensor) -> Result<Vec<i128>> {
    let order = |v: f64| {
        // Adding 0 makes -0 positive.
        let bits = i128::from((v + 0.0).to_bits() & !(1 << 63));
        if v.is_sign_negative() { -bits } else { bits }
    };
    if data.dtype().is_complex() {
        // As numpy sorts them: by the real part, and among equals by the imaginary one.
        let parts = data.to_f64s()?;
        let (numbers, _) = parts.as_chunks::<2>();
        let keys = numbers
            .iter()
            .map(|&[re, im]| (order(re) << 64) + order(im));
        return Ok(keys.collect());
    }
    if data.dtype() == DType::U64 {
        let elements = data.as_slice::<u64>()?;
        return Ok(elements.iter().map(|&v| v.into()).collect());
    }
    if let Ok(texts) = data.texts() {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        sort_indices(&mut order, &mut |a, b| texts[a].cmp(&texts[b]));
        let mut places = vec![0; texts.len()];
        for pair in order.windows(2) {
            let step = i128::from(texts[pair[0]] != texts[pair[1]]);
            places[pair[1]] = places[pair[0]] + step;
        }
        return Ok(places);
    }
    if !data.dtype().is_float() && !data.dtype().is_narrow_float() {
        return Ok(data.to_i64s()?.into_iter().map(i128::from).collect());
    }
    Ok(data.to_f64s()?.into_iter().map(order).collect())
}

impl Unique {
    /// Finds the distinct items.
    ///
    /// # Errors
    /// `Shape` where the axis is out of range.
    pub fn find(&self, data: &Tensor) -> Result<UniqueParts> {
        let keys = ordered(data)?;
        let (outer, items, inner) = match self.axis {
            None => (1, data.len(), 1),
            Some(axis) => {
                let axis = normalize_axis(axis, data.rank())?;
                let count = |dims: &[usize]| dims.iter().product::<usize>();
                let (before, after) = (&data.shape()[..axis], &data.shape()[axis + 1..]);
                (count(before), data.shape()[axis], count(after))
            }
        };
        let item = |i: usize| {
            let slices = (0..outer).map(move |o| (o * items + i) * inner);
            slices.flat_map(|at| keys.get(at..at + inner).unwrap_or_default())
        };
        let mut order: Vec<usize> = (0..items).collect();
        sort_indices(&mut order, &mut |a, b| item(a).cmp(item(b)));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for i in order {
            match groups.last_mut() {
                Some(group) if item(group[0]).eq(item(i)) => group.push(i),
                _ => groups.push(vec![i]),
            }
        }
        if !self.sorted {
            let mut by_first: Vec<usize> = (0..groups.len()).collect();
            sort_indices(&mut by_first, &mut |a, b| groups[a][0].cmp(&groups[b][0]));
            groups = by_first.iter().map(|&g| take(&mut groups[g])).collect();
        }
        let mut parts = UniqueParts {
            inverse: vec![0; items],
            ..UniqueParts::default()
        };
        for (number, group) in groups.iter().enumerate() {
            parts.first.push(group[0] as i64);
            parts.counts.push(group.len() as i64);
            for &i in group {
                parts.inverse[i] = number as i64;
            }
        }
        Ok(parts)
    }
}

impl Operator for Unique {
    fn name(&self) -> &'static str {
        "Unique"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        let distinct = match ctx.value(0) {
            Some(t) => Dim::Known(self.find(t)?.first.len()),
            None => Dim::Unknown,
        };
        let (shape, items) = match (self.axis, ctx.shape(0)?) {
            (None, None) => (Some(Shape(vec![distinct.clone()])), Dim::Unknown),
            (None, Some(x)) => (Some(Shape(vec![distinct.clone()])), volume(&x.0)?),
            (Some(_), None) => (None, Dim::Unknown),
            (Some(axis), Some(x)) => {
                let axis = normalize_axis(axis, x.rank())?;
                let mut shape = x.clone();
                let items = std::mem::replace(&mut shape.0[axis], distinct.clone());
                (Some(shape), items)
            }
        };
        let vector = |d: &Dim| Fact::new(DType::I64, Shape(vec![d.clone()]));
        let (first, inverse, counts) = (vector(&distinct), vector(&items), vector(&distinct));
        Ok(some_of(ctx, [fact(dtype, shape), first, inverse, counts]))
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
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
/// not known.
pub fn non_max_suppression(
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
    let most = usize::try_from(most).unwrap_or(0);
    let (count, classes) = (boxes.shape()[1], scores.shape()[1]);
    let mut kept = Vec::new();
    if most == 0 || count == 0 || classes == 0 {
        return Ok(kept);
    }
    let (boxes, scores) = (boxes.as_slice::<f32>()?, scores.as_slice::<f32>()?);
    for (batch, (boxes, scores)) in boxes
        .chunks_exact(4 * count)
        .zip(scores.chunks_exact(classes * count))
        .enumerate()
    {
        let corners: Vec<Corners> = boxes
            .chunks_exact(4)
            .map(|b| Corners::new(b, op.center_point_box))
            .collect();
        for (class, scores) in scores.chunks_exact(count).enumerate() {
            let mut best: Vec<usize> = (0..count)
                .filter(|&i| least.is_none_or(|least| scores[i] > least))
                .collect();
            sort_indices(&mut best, &mut |a, b| scores[b].total_cmp(&scores[a]));
            let mut chosen: Vec<usize> = Vec::new();
            for i in best {
                if chosen.len() == most {
                    break;
                }
                if chosen
                    .iter()
                    .all(|&c| corners[c].overlap(&corners[i]) <= overlap)
                {
                    chosen.push(i);
                }
            }
            kept.extend(
                chosen
                    .iter()
                    .map(|&i| [batch as i64, class as i64, i as i64]),
            );
        }
    }
    Ok(kept)
}

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
            Dim::Known(non_max_suppression(self, ctx)?.len())
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
