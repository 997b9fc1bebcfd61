//! Which keys a query of Attention sees: of whatever there is, a range.

use std::ops::Range;

use kilim_core::ops::{Align, Attention};

use super::Sizes;

/// What the operator says of the keys that a query sees.
#[derive(Clone, Debug)]
pub struct Sight {
    align: Align,
    queries: usize,
    keys: usize,
    /// How far a query sees on each side of its position.
    left: Option<i64>,
    right: Option<i64>,
}

/// [`Sight`] with the inputs of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    sight: &'a Sight,
    offset: Option<&'a [i64]>,
    lengths: Option<&'a [i64]>,
}

impl Sight {
    /// What `op` says of nodes of these dimensions.
    pub fn new(op: &Attention, sizes: &Sizes) -> Sight {
        let bound = |n: i64| (n >= 0).then_some(n);
        // A causal query sees nothing behind its position, however far it sees.
        let right = if op.causal { Some(0) } else { bound(op.right) };
        Sight {
            align: op.align,
            queries: sizes.queries,
            keys: sizes.keys,
            left: bound(op.left),
            right,
        }
    }

    /// The keys that are seen with these inputs, which are those of the operator with the numbers 4 and 5.
    pub fn seen<'a>(&'a self, offset: Option<&'a [i64]>, lengths: Option<&'a [i64]>) -> Seen<'a> {
        Seen {
            sight: self,
            offset,
            lengths,
        }
    }
}

impl Seen<'_> {
    /// The keys that query `query` of batch `batch` sees.
    pub fn keys(&self, batch: usize, query: usize) -> Range<usize> {
        let sight = self.sight;
        let (all, query) = (sight.keys as i64, query as i64);
        let offset = match (sight.align, self.offset) {
            (Align::End, _) => all - sight.queries as i64,
            (Align::Start, Some([one])) => *one,
            (Align::Start, Some(each)) => each[batch],
            (Align::Start, None) => 0,
        };
        let position = offset.saturating_add(query);
        let end = self.lengths.map_or(all, |lengths| lengths[batch].min(all));
        let end = match sight.right {
            Some(right) => end.min(position.saturating_add(right).saturating_add(1)),
            None => end,
        };
        let start = sight
            .left
            .map_or(0, |left| position.saturating_sub(left).max(0));
        let end = end.clamp(0, all) as usize;
        (start.min(all) as usize).min(end)..end
    }
}
