//! The planner: gives tensors with known lifetimes offsets in one buffer.

use std::cmp::Reverse;

use crate::order::sort_indices;

/// A tensor that needs `bytes` from step `first` to step `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
}

/// Offsets in one buffer, in the order of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    pub offsets: Vec<usize>,
    /// The size of the buffer.
    pub bytes: usize,
}

/// Tries to beat an order by moving the tensor that reaches highest to its front, so often and
/// only while the plan is cheap: placing is quadratic.
const REPAIRS: usize = 64;
const REPAIR_COST: usize = 1 << 25;

/// A plan that is this part of the lower bound above it is good enough to stop at what does not get
/// better at once.
const GOOD: usize = 20;

/// Places every tensor into the gap closest to its size between the tensors that live at the same
/// time, in several orders, and keeps the smallest buffer: the "greedy by size" and "greedy by
/// breadth" of Pisarchyk and Lee (arXiv 2001.03288), by lifetime, and in time from either end.
/// Every offset is a multiple of `alignment`, which is not zero.
pub fn plan(requests: &[Request], alignment: usize) -> Offsets {
    let least = lower_bound(requests).next_multiple_of(alignment);
    let orders = orders(requests);
    let mut found: Option<(Offsets, usize)> = None;
    for (i, order) in orders.iter().enumerate() {
        let placed = place(requests, order, alignment);
        let done = placed.bytes < least + alignment;
        if found.as_ref().is_none_or(|(b, _)| placed.bytes < b.bytes) {
            found = Some((placed, i));
        }
        if done {
            break;
        }
    }
    let Some((mut best, first)) = found else {
        return Offsets::default();
    };
    repair(requests, alignment, least, orders[first].clone(), &mut best);
    for (i, order) in orders.into_iter().enumerate() {
        if best.bytes > least + least / GOOD && i != first {
            repair(requests, alignment, least, order, &mut best);
        }
    }
    best
}

/// Looks for a smaller buffer than `best` from `order` on.
fn repair(
    requests: &[Request],
    alignment: usize,
    least: usize,
    mut order: Vec<usize>,
    best: &mut Offsets,
) {
    let rounds = REPAIRS.min(REPAIR_COST / (requests.len() * requests.len()).max(1));
    let mut last = place(requests, &order, alignment);
    for _ in 0..rounds {
        if best.bytes <= least {
            break;
        }
        let end = |i: &usize| last.offsets[*i] + requests[*i].bytes;
        let top = (0..order.len()).max_by_key(|&at| end(&order[at]));
        let Some(at) = top.filter(|&at| at > 0) else {
            break;
        };
        order[..=at].rotate_right(1);
        let placed = place(requests, &order, alignment);
        if placed.bytes > last.bytes && best.bytes <= least + least / GOOD {
            break;
        }
        if placed.bytes < best.bytes {
            *best = placed.clone();
        }
        last = placed;
    }
}

/// The orders in which tensors are placed.
fn orders(requests: &[Request]) -> Vec<Vec<usize>> {
    let sorted = |key: &dyn Fn(&Request) -> (usize, usize)| {
        let mut order: Vec<usize> = (0..requests.len()).collect();
        let rank = |i: usize| (Reverse(key(&requests[i])), requests[i].first);
        sort_indices(&mut order, &mut |a, b| rank(a).cmp(&rank(b)));
        order
    };
    let steps = |r: &Request| r.last - r.first + 1;
    let live = live_bytes(requests);
    let breadth = |r: &Request| live[r.first..=r.last].iter().copied().max().unwrap_or(0);
    vec![
        sorted(&|r| (r.bytes, steps(r))),
        sorted(&|r| (breadth(r), r.bytes)),
        sorted(&|r| (r.bytes.saturating_mul(steps(r)), r.bytes)),
        sorted(&|r| (steps(r), r.bytes)),
        sorted(&|r| (usize::MAX - r.first, r.bytes)),
        sorted(&|r| (r.last, r.bytes)),
    ]
}

fn place(requests: &[Request], order: &[usize], alignment: usize) -> Offsets {
    let mut offsets = vec![0; requests.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(requests.len());
    let mut total = 0;
    for &i in order {
        let r = requests[i];
        if r.bytes == 0 {
            continue;
        }
        let mut best: Option<(usize, usize)> = None;
        let mut end = 0;
        for &p in &placed {
            let q = requests[p];
            if q.last < r.first || r.last < q.first {
                continue;
            }
            let start = end;
            if offsets[p] > start {
                let gap = offsets[p] - start;
                if gap >= r.bytes && best.is_none_or(|(g, _)| gap < g) {
                    best = Some((gap, start));
                }
            }
            end = end.max((offsets[p] + q.bytes).next_multiple_of(alignment));
        }
        offsets[i] = best.map_or(end, |(_, start)| start);
        total = total.max(offsets[i] + r.bytes);
        let at = placed.partition_point(|&p| offsets[p] < offsets[i]);
        placed.insert(at, i);
    }
    Offsets {
        offsets,
        bytes: total,
    }
}

/// The sum of the bytes alive at each step.
fn live_bytes(requests: &[Request]) -> Vec<usize> {
    let steps = requests.iter().map(|r| r.last + 1).max().unwrap_or(0);
    let mut live = vec![0; steps];
    for r in requests {
        for bytes in &mut live[r.first..=r.last] {
            *bytes += r.bytes;
        }
    }
    live
}

/// The largest sum of bytes alive at one step: no buffer can be smaller.
pub fn lower_bound(requests: &[Request]) -> usize {
    live_bytes(requests).into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(requests: &[Request], layout: &Offsets) -> bool {
        (0..requests.len()).any(|i| {
            (0..i).any(|j| {
                let (a, b) = (requests[i], requests[j]);
                let alive = a.first <= b.last && b.first <= a.last;
                let (x, y) = (layout.offsets[i], layout.offsets[j]);
                alive && x < y + b.bytes && y < x + a.bytes
            })
        })
    }

    #[test]
    fn a_chain_needs_two_tensors() {
        let chain: Vec<_> = (0..10)
            .map(|i| Request {
                bytes: 256,
                first: i,
                last: i + 1,
            })
            .collect();
        let layout = plan(&chain, 64);
        assert!(!overlap(&chain, &layout));
        assert_eq!(layout.bytes, 512);
        assert_eq!(lower_bound(&chain), 512);
    }

    #[test]
    fn a_tensor_goes_into_the_gap_of_its_size() {
        let request = |bytes, first, last| Request { bytes, first, last };
        // At step 1, gaps of 100 and 10 bytes are left between what lives on.
        let requests = [
            request(100, 0, 0),
            request(10, 0, 2),
            request(10, 0, 0),
            request(10, 0, 2),
            request(10, 1, 2),
            request(100, 1, 2),
        ];
        let layout = place(&requests, &[0, 1, 2, 3, 4, 5], 1);
        assert_eq!(layout.offsets, [0, 100, 110, 120, 110, 0]);
        assert_eq!(layout.bytes, lower_bound(&requests));
    }

    #[test]
    fn random_lifetimes_never_overlap() {
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((seed >> 33) % n) as usize
        };
        for _ in 0..50 {
            let requests: Vec<_> = (0..60)
                .map(|_| {
                    let first = next(40);
                    Request {
                        bytes: next(5000),
                        first,
                        last: first + next(8),
                    }
                })
                .collect();
            let layout = plan(&requests, 64);
            assert!(!overlap(&requests, &layout));
            assert!(layout.offsets.iter().all(|o| o % 64 == 0));
            assert!(layout.bytes >= lower_bound(&requests));
        }
    }
}
