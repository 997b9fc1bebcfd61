//! The distinct elements or slices of a tensor.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::fallible::{push, vec_of, vec_with_room};
use crate::graph::{Flow, InferContext, Operator};
use crate::interrupt::Meter;
use crate::ops::axes::normalize_axis;
use crate::ops::rules::{InputValues, fact, some_of, volume};
use crate::order::sort_first;
use crate::tensor::{Tensor, element_count};

/// Outputs: values, first indices, inverse indices, counts.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Unique {
    pub axis: Option<i64>,
    pub sorted: bool,
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

/// Operations of a comparison of two numbers.
const COST: usize = 16;

/// Elements as integers of the same order; equal elements are equal integers.
fn ordered(meter: &Meter, data: &Tensor) -> Result<Vec<i128>> {
    let order = |v: f64| {
        // Adding 0 makes -0 positive.
        let bits = i128::from((v + 0.0).to_bits() & !(1 << 63));
        if v.is_sign_negative() { -bits } else { bits }
    };
    if let Ok(texts) = data.texts() {
        let mut order = meter.collect(0..texts.len(), 1)?;
        sort_first(meter, &mut order, texts.len(), 4 * COST, &mut |a, b| {
            texts[a].cmp(&texts[b])
        })?;
        let mut places = vec_of(0, texts.len())?;
        for pair in order.windows(2) {
            meter.spend(COST)?;
            let step = i128::from(texts[pair[0]] != texts[pair[1]]);
            places[pair[1]] = places[pair[0]] + step;
        }
        return Ok(places);
    }
    let mut keys = vec_with_room(data.len())?;
    let dtype = data.dtype();
    if dtype == DType::U64 {
        return meter.collect(data.as_slice::<u64>()?.iter().map(|&v| v.into()), 2);
    }
    let (mut real, mut whole) = (Vec::new(), Vec::new());
    meter.pieces(data.len(), 8, |piece| {
        if dtype.is_complex() {
            real.clear();
            data.append_f64s(piece, &mut real)?;
            let (numbers, _) = real.as_chunks::<2>();
            // As numpy sorts them: by the real part, and among equals by the imaginary one.
            keys.extend(
                numbers
                    .iter()
                    .map(|&[re, im]| (order(re) << 64) + order(im)),
            );
        } else if dtype.is_float() || dtype.is_narrow_float() {
            real.clear();
            data.append_f64s(piece, &mut real)?;
            keys.extend(real.iter().map(|&v| order(v)));
        } else {
            whole.clear();
            data.append_i64s(piece, &mut whole)?;
            keys.extend(whole.iter().map(|&v| i128::from(v)));
        }
        Ok(())
    })?;
    Ok(keys)
}

impl Unique {
    /// Finds the distinct items.
    ///
    /// # Errors
    /// `Shape` where the axis is out of range, `Limit` where memory is short, `Aborted` where the work is to stop.
    pub fn find(&self, meter: &Meter, data: &Tensor) -> Result<UniqueParts> {
        let keys = ordered(meter, data)?;
        let (outer, items, inner) = match self.axis {
            None => (1, data.len(), 1),
            Some(axis) => {
                let axis = normalize_axis(axis, data.rank())?;
                let (before, after) = (&data.shape()[..axis], &data.shape()[axis + 1..]);
                let (outer, inner) = (element_count(before)?, element_count(after)?);
                (outer, data.shape()[axis], inner)
            }
        };
        let item = |i: usize| {
            let slices = (0..outer).map(move |o| (o * items + i) * inner);
            slices.flat_map(|at| keys.get(at..at + inner).unwrap_or_default())
        };
        let cost = COST.saturating_mul(outer).saturating_mul(inner);
        let mut order = meter.collect(0..items, 1)?;
        sort_first(meter, &mut order, items, cost, &mut |a, b| {
            item(a).cmp(item(b))
        })?;
        // Where in the order each distinct item begins.
        let mut starts = Vec::new();
        for at in 0..items {
            meter.spend(cost)?;
            if at == 0 || !item(order[at - 1]).eq(item(order[at])) {
                push(&mut starts, at)?;
            }
        }
        let group = |g: usize| {
            let end = starts.get(g + 1).copied().unwrap_or(items);
            &order[starts[g]..end]
        };
        let mut groups = meter.collect(0..starts.len(), 1)?;
        if !self.sorted {
            let all = groups.len();
            sort_first(meter, &mut groups, all, COST, &mut |a, b| {
                group(a)[0].cmp(&group(b)[0])
            })?;
        }
        let mut parts = UniqueParts {
            first: vec_with_room(groups.len())?,
            inverse: vec_of(0, items)?,
            counts: vec_with_room(groups.len())?,
        };
        for (number, &g) in groups.iter().enumerate() {
            let group = group(g);
            meter.spend(group.len())?;
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

    signature! { (data) -> (values, optional first, optional inverse, optional counts) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        let distinct = match ctx.value(0) {
            Some(t) => Dim::Known(self.find(&ctx.meter(), t)?.first.len()),
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
