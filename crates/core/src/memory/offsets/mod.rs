//! The planner: gives tensors with known lifetimes offsets in one buffer.

mod fit;
mod sweep;
#[cfg(test)]
mod tests;
mod tree;

use std::cmp::Reverse;

use crate::order::sort_indices;
use fit::{Lifetimes, lay_out};
use tree::MaxTree;

/// A tensor that needs `bytes` from step `first` to step `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
}

impl Request {
    fn overlaps(&self, other: &Request) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Offsets in one buffer, in the order of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    pub offsets: Vec<usize>,
    /// The size of the buffer.
    pub bytes: usize,
}

/// Tries to beat an order by moving the tensor that reaches highest to its front, so often and
/// only while the plan is cheap: placing is quadratic in what is alive at the same time.
const REPAIRS: usize = 64;

/// What the repairs of one order, and a large plan as a whole, may cost in pairs of tensors that are
/// alive at the same time: about half a second.
const MOST_PAIRS: usize = 1 << 25;

/// What looking up the tensors that are alive with one costs, in pairs.
const LOOK_UP: usize = 64;

/// A plan that is this part of the lower bound above it is good enough to stop at what does not get
/// better at once.
const GOOD: usize = 20;

/// Puts every tensor into the gap closest to its size between the tensors that live at the same
/// time, in several orders, and keeps the smallest buffer: the "greedy by size" and "greedy by
/// breadth" of Pisarchyk and Lee (arXiv 2001.03288), by lifetime, and in time from either end. In large
/// plans, tensors are first laid out as they come and go; where that is not good enough, as many orders
/// follow as [`MOST_PAIRS`] allows. Every offset is a multiple of `alignment`, which is not zero.
pub fn plan(requests: &[Request], alignment: usize) -> Offsets {
    let lifetimes = Lifetimes::of(requests);
    let mut search = Search::new(&lifetimes, alignment);
    let mut best = None;
    if search.is_large() {
        let swept = sweep::plan(requests, alignment);
        if search.is_good(&swept) {
            return swept;
        }
        best = Some(swept);
    }
    let orders = orders(requests);
    let mut first = 0;
    for (i, order) in orders.iter().enumerate() {
        let Some(laid_out) = search.lay_out(order) else {
            break;
        };
        let done = laid_out.bytes <= search.least;
        if best.as_ref().is_none_or(|b| laid_out.bytes < b.bytes) {
            (best, first) = (Some(laid_out), i);
        }
        if done {
            break;
        }
    }
    let Some(mut best) = best else {
        return Offsets::default();
    };
    search.repair(orders[first].clone(), &mut best);
    for (i, order) in orders.into_iter().enumerate() {
        if !search.is_good(&best) && i != first {
            search.repair(order, &mut best);
        }
    }
    best
}

/// The search for a small buffer.
struct Search<'a> {
    lifetimes: &'a Lifetimes<'a>,
    alignment: usize,
    /// The lower bound of tensors whose sizes are multiples of the alignment: no buffer is smaller by the alignment
    /// or more.
    least: usize,
    /// How often an order is repaired.
    repairs: usize,
    /// How often all tensors may still be laid out.
    left: usize,
}

impl Search<'_> {
    fn new<'a>(lifetimes: &'a Lifetimes<'a>, alignment: usize) -> Search<'a> {
        let count = lifetimes.requests.len();
        let aligned = lifetimes.requests.iter().map(|r| Request {
            bytes: r.bytes.next_multiple_of(alignment),
            ..*r
        });
        let aligned: Vec<Request> = aligned.collect();
        let (repairs, left) = match count {
            ..=fit::SCANNED => (MOST_PAIRS / (count * count).max(1), usize::MAX),
            _ => {
                let cost = lifetimes.pairs().saturating_add(count * LOOK_UP);
                (MOST_PAIRS / cost, MOST_PAIRS / cost)
            }
        };
        Search {
            lifetimes,
            alignment,
            least: lower_bound(&aligned),
            repairs: repairs.min(REPAIRS),
            left,
        }
    }

    fn is_large(&self) -> bool {
        self.lifetimes.requests.len() > fit::SCANNED
    }

    /// Whether only what gets better at once is worth looking further.
    fn is_good(&self, found: &Offsets) -> bool {
        found.bytes <= self.least + self.least / GOOD
    }

    /// The tensors laid out in an order; `None` where that costs too much.
    fn lay_out(&mut self, order: &[usize]) -> Option<Offsets> {
        self.left = self.left.checked_sub(1)?;
        Some(lay_out(self.lifetimes, order, self.alignment))
    }

    /// Looks for a smaller buffer than `best` from `order` on.
    fn repair(&mut self, mut order: Vec<usize>, best: &mut Offsets) {
        if self.repairs == 0 {
            return;
        }
        let Some(mut last) = self.lay_out(&order) else {
            return;
        };
        for _ in 0..self.repairs {
            if best.bytes <= self.least || !self.move_up(&mut order, &last) {
                break;
            }
            let Some(laid_out) = self.lay_out(&order) else {
                break;
            };
            if laid_out.bytes > last.bytes && self.is_good(best) {
                break;
            }
            if laid_out.bytes < best.bytes {
                *best = laid_out.clone();
            }
            last = laid_out;
        }
    }

    /// Moves to the front of the order the tensor that reaches highest, in a large plan all that reach
    /// higher than is good; false where none can move.
    fn move_up(&self, order: &mut [usize], last: &Offsets) -> bool {
        let requests = self.lifetimes.requests;
        let end = |i: usize| last.offsets[i] + requests[i].bytes;
        if !self.is_large() {
            let top = (0..order.len()).max_by_key(|&at| end(order[at]));
            let Some(at) = top.filter(|&at| at > 0) else {
                return false;
            };
            order[..=at].rotate_right(1);
            return true;
        }
        let good = self.least + self.least / GOOD;
        let fits = |i: usize| end(i) <= good;
        if order.is_sorted_by_key(|&i| fits(i)) {
            return false;
        }
        sort_indices(order, &mut |a, b| fits(a).cmp(&fits(b)));
        true
    }
}

/// The orders in which tensors are laid out.
fn orders(requests: &[Request]) -> Vec<Vec<usize>> {
    let sorted = |key: &dyn Fn(&Request) -> (usize, usize)| {
        let ranks: Vec<_> = (requests.iter())
            .map(|r| (Reverse(key(r)), r.first))
            .collect();
        let mut order: Vec<usize> = (0..requests.len()).collect();
        sort_indices(&mut order, &mut |a, b| ranks[a].cmp(&ranks[b]));
        order
    };
    let steps = |r: &Request| r.last - r.first + 1;
    let live = MaxTree::of(&live_bytes(requests));
    let breadth = |r: &Request| live.max(r.first..r.last + 1);
    vec![
        sorted(&|r| (r.bytes, steps(r))),
        sorted(&|r| (breadth(r), r.bytes)),
        sorted(&|r| (r.bytes.saturating_mul(steps(r)), r.bytes)),
        sorted(&|r| (steps(r), r.bytes)),
        sorted(&|r| (usize::MAX - r.first, r.bytes)),
        sorted(&|r| (r.last, r.bytes)),
    ]
}

/// The sum of the bytes alive at each step.
fn live_bytes(requests: &[Request]) -> Vec<usize> {
    let steps = requests.iter().map(|r| r.last + 1).max().unwrap_or(0);
    let mut come = vec![0; steps];
    let mut go = vec![0; steps + 1];
    for r in requests {
        come[r.first] += r.bytes;
        go[r.last + 1] += r.bytes;
    }
    let mut live = 0;
    let sum = |(come, go): (usize, usize)| {
        live = live + come - go;
        live
    };
    come.into_iter().zip(go).map(sum).collect()
}

/// The largest sum of bytes alive at one step: no buffer can be smaller.
pub fn lower_bound(requests: &[Request]) -> usize {
    live_bytes(requests).into_iter().max().unwrap_or(0)
}
