//! Placing tensors one by one, in any order, into the gap closest to their size.

use super::{MaxTree, Offsets, Request};
use crate::order::sort_indices;

/// Up to so many tensors, going through all of them is faster than looking up those that are alive.
pub const SCANNED: usize = 1 << 12;

/// The requests by the step at which they begin.
pub struct Lifetimes<'a> {
    pub requests: &'a [Request],
    sorted: Vec<usize>,
    /// The place of each request in `sorted`.
    rank: Vec<usize>,
}

impl<'a> Lifetimes<'a> {
    pub fn of(requests: &'a [Request]) -> Lifetimes<'a> {
        let mut sorted: Vec<usize> = (0..requests.len()).collect();
        sort_indices(&mut sorted, &mut |a, b| {
            requests[a].first.cmp(&requests[b].first)
        });
        let mut rank = vec![0; requests.len()];
        for (at, &i) in sorted.iter().enumerate() {
            rank[i] = at;
        }
        Lifetimes {
            requests,
            sorted,
            rank,
        }
    }

    /// How many requests begin at `step` or before.
    fn begun(&self, step: usize) -> usize {
        (self.sorted).partition_point(|&i| self.requests[i].first <= step)
    }

    /// How many pairs of requests are alive at the same time.
    pub fn pairs(&self) -> usize {
        let later = |(at, &i): (usize, &usize)| self.begun(self.requests[i].last) - at - 1;
        (self.sorted.iter().enumerate())
            .map(later)
            .fold(0, usize::saturating_add)
    }
}

/// What is laid out already.
struct LaidOut<'a> {
    lifetimes: &'a Lifetimes<'a>,
    offsets: Vec<usize>,
    /// The placed requests by offset; empty where there are more than [`SCANNED`].
    scanned: Vec<usize>,
    /// For each request in the order of `Lifetimes::sorted`, the step after its last if it is laid out.
    ends: Option<MaxTree>,
}

impl LaidOut<'_> {
    /// The requests that are alive together with `r`, by offset.
    fn alive(&self, r: &Request, found: &mut Vec<usize>) {
        let Lifetimes {
            requests, sorted, ..
        } = self.lifetimes;
        found.clear();
        match &self.ends {
            Some(ends) => {
                let begun = self.lifetimes.begun(r.last);
                ends.above(r.first, begun, &mut |at| found.push(sorted[at]));
                found.sort_unstable_by_key(|&i| self.offsets[i]);
            }
            None => {
                let laid_out = self.scanned.iter().copied();
                found.extend(laid_out.filter(|&p| requests[p].overlaps(r)));
            }
        }
    }

    fn put(&mut self, i: usize, offset: usize) {
        self.offsets[i] = offset;
        match &mut self.ends {
            Some(ends) => ends.raise(self.lifetimes.rank[i], self.lifetimes.requests[i].last + 1),
            None => {
                let at = (self.scanned).partition_point(|&p| self.offsets[p] < offset);
                self.scanned.insert(at, i);
            }
        }
    }
}

/// Lays out the requests in the order `order`.
pub fn lay_out(lifetimes: &Lifetimes, order: &[usize], alignment: usize) -> Offsets {
    let looked_up = lifetimes.requests.len() > SCANNED;
    lay_out_by(lifetimes, order, alignment, looked_up)
}

/// [`lay_out`], looking up the requests that are alive together, or going through all of them.
pub fn lay_out_by(
    lifetimes: &Lifetimes,
    order: &[usize],
    alignment: usize,
    looked_up: bool,
) -> Offsets {
    let requests = lifetimes.requests;
    let mut laid_out = LaidOut {
        lifetimes,
        offsets: vec![0; requests.len()],
        scanned: Vec::new(),
        ends: looked_up.then(|| MaxTree::of(&vec![0; requests.len()])),
    };
    let mut alive = Vec::new();
    let mut total = 0;
    for &i in order {
        let r = requests[i];
        if r.bytes == 0 {
            continue;
        }
        laid_out.alive(&r, &mut alive);
        let mut best: Option<(usize, usize)> = None;
        let mut end = 0;
        for &p in &alive {
            let (start, offset) = (end, laid_out.offsets[p]);
            if offset > start {
                let gap = offset - start;
                if gap >= r.bytes && best.is_none_or(|(g, _)| gap < g) {
                    best = Some((gap, start));
                }
            }
            end = end.max((offset + requests[p].bytes).next_multiple_of(alignment));
        }
        let offset = best.map_or(end, |(_, start)| start);
        total = total.max(offset + r.bytes);
        laid_out.put(i, offset);
    }
    Offsets {
        offsets: laid_out.offsets,
        bytes: total,
    }
}
