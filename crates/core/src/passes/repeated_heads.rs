//! Finds heads of keys and values that a file repeats for the heads of the query.

use super::patterns::Finder;
use crate::dim::Dim;
use crate::graph::{Axes, ValueId};
use crate::ops::{Expand, Gather, Tile, normalize_axis};

/// Heads `[batch, heads, keys, size]` that another value holds `times` times, the copies of a head behind each other.
pub struct Repeated {
    pub heads: ValueId,
    pub times: usize,
}

impl Finder<'_> {
    /// What `v` repeats, where it is `[batch, heads * times, keys, size]` and nothing but heads is repeated.
    pub fn repeated_heads(&self, v: ValueId) -> Option<Repeated> {
        self.gathered(v).or_else(|| self.expanded(v))
    }

    /// Gather of the heads 0, 0, 1, 1, …
    fn gathered(&self, v: ValueId) -> Option<Repeated> {
        let (gather, node) = self.patch.produced_by::<Gather>(Some(v))?;
        let heads = node.input(0)?;
        let [_, count, _, _] = self.dims(heads)? else {
            return None;
        };
        let of_heads = normalize_axis(gather.axis, 4).ok()? == 1;
        let indices = self.graph.constant(node.input(1))?;
        let times = repeats(count.known()?, indices.len())?;
        let numbers = indices.to_i64s().ok()?;
        let mut places = numbers.iter().enumerate();
        let in_turn = places.all(|(i, &head)| usize::try_from(head) == Ok(i / times));
        (of_heads && indices.rank() == 1 && in_turn).then_some(Repeated { heads, times })
    }

    /// `[batch, heads, 1, keys, size]`, repeated along the third dimension, which then becomes one with the second.
    fn expanded(&self, v: ValueId) -> Option<Repeated> {
        let wide = self.regrouped(v)?;
        let repeat = self.patch.producer(Some(wide))?;
        if !repeat.op.is::<Expand>() && !repeat.op.is::<Tile>() {
            return None;
        }
        let narrow = repeat.input(0)?;
        let heads = self.regrouped(narrow)?;
        let [batch, count, keys, size] = self.dims(heads)? else {
            return None;
        };
        let [all, narrow, wide] = [v, narrow, wide].map(|v| self.dims(v));
        let [_, merged, _, _] = all? else {
            return None;
        };
        let times = repeats(count.known()?, merged.known()?)?;
        let are = |dims: &[Dim], wanted: &[&Dim]| {
            dims.len() == wanted.len() && dims.iter().zip(wanted).all(|(a, b)| a.same(b))
        };
        let fits = are(narrow?, &[batch, count, &Dim::Known(1), keys, size])
            && are(wide?, &[batch, count, &Dim::Known(times), keys, size])
            && are(all?, &[batch, merged, keys, size]);
        fits.then_some(Repeated { heads, times })
    }

    fn dims(&self, v: ValueId) -> Option<&[Dim]> {
        Some(&self.graph.fact(v).shape.as_ref()?.0)
    }

    /// What `v` shows under another shape, its elements in their order.
    fn regrouped(&self, v: ValueId) -> Option<ValueId> {
        let node = self.patch.producer(Some(v))?;
        (node.op.flow().axes == Axes::Regrouped).then(|| node.input(0))?
    }
}

/// How often each of `heads` is there among `all`, if they are there equally often.
fn repeats(heads: usize, all: usize) -> Option<usize> {
    (heads > 0 && all > 0 && all.is_multiple_of(heads)).then(|| all / heads)
}
