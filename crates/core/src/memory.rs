//! The memory planner: gives tensors with known lifetimes offsets in one buffer.

/// A tensor that needs `bytes` from step `first` to step `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
}

/// Offsets in one buffer, in the order of the requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub offsets: Vec<usize>,
    /// The size of the buffer.
    pub bytes: usize,
}

/// Largest first, each into the smallest gap between the tensors that live at the same time (the
/// "greedy by size" of Pisarchyk and Lee, arXiv 2001.03288). Every offset is a multiple of
/// `alignment`, which is not zero.
pub fn plan(requests: &[Request], alignment: usize) -> Layout {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(requests[i].bytes), requests[i].first));
    let mut offsets = vec![0; requests.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(requests.len());
    let mut total = 0;
    for i in order {
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
    Layout {
        offsets,
        bytes: total.next_multiple_of(alignment),
    }
}

/// The largest sum of bytes alive at one step: no layout can be smaller.
pub fn lower_bound(requests: &[Request]) -> usize {
    let steps = requests.iter().map(|r| r.last + 1).max().unwrap_or(0);
    (0..steps)
        .map(|t| {
            requests
                .iter()
                .filter(|r| r.first <= t && t <= r.last)
                .map(|r| r.bytes)
                .sum()
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(requests: &[Request], layout: &Layout) -> bool {
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
