//! The distinct elements or slices of a tensor.

use std::mem::take;

use crate::ops::*;
use crate::order::sort_indices;

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
