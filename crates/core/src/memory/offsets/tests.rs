use std::collections::BTreeMap;

use super::fit::lay_out_by;
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
    let layout = lay_out(&Lifetimes::of(&requests), &[0, 1, 2, 3, 4, 5], 1);
    assert_eq!(layout.offsets, [0, 100, 110, 120, 110, 0]);
    assert_eq!(layout.bytes, lower_bound(&requests));
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    /// A number below `n`.
    fn next(&mut self, n: usize) -> usize {
        self.0 = (self.0)
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n as u64) as usize
    }

    /// Requests that begin at one of `steps`, of `bytes` bytes and `life` steps at most.
    fn requests(&mut self, count: usize, steps: usize, bytes: usize, life: usize) -> Vec<Request> {
        let request = |_| {
            let first = self.next(steps);
            Request {
                bytes: self.next(bytes),
                first,
                last: first + self.next(life),
            }
        };
        (0..count).map(request).collect()
    }
}

#[test]
fn random_lifetimes_never_overlap() {
    let mut numbers = Numbers(7);
    for _ in 0..50 {
        let requests = numbers.requests(60, 40, 5000, 8);
        for layout in [plan(&requests, 64), sweep::plan(&requests, 64)] {
            assert!(!overlap(&requests, &layout));
            assert!(layout.offsets.iter().all(|o| o % 64 == 0));
            assert!(layout.bytes >= lower_bound(&requests));
        }
    }
}

#[test]
fn looking_up_what_is_alive_gives_the_same_as_going_through_all() {
    let mut numbers = Numbers(11);
    for life in [1, 3, 40, 200] {
        let requests = numbers.requests(150, 100, 3000, life);
        let lifetimes = Lifetimes::of(&requests);
        for order in orders(&requests) {
            let looked_up = lay_out_by(&lifetimes, &order, 64, true);
            assert_eq!(looked_up, lay_out_by(&lifetimes, &order, 64, false));
        }
    }
}

#[test]
fn pairs_are_counted() {
    let requests = Numbers(5).requests(80, 50, 10, 20);
    let count = |i: usize| {
        let later = &requests[i + 1..];
        later.iter().filter(|r| r.overlaps(&requests[i])).count()
    };
    let pairs: usize = (0..requests.len()).map(count).sum();
    assert_eq!(Lifetimes::of(&requests).pairs(), pairs);
}

/// [`overlap`] of a plan too large to compare all pairs.
fn large_overlap(requests: &[Request], layout: &Offsets) -> bool {
    let mut events: Vec<(usize, bool, usize)> = Vec::new();
    for (i, r) in requests.iter().enumerate().filter(|(_, r)| r.bytes > 0) {
        events.extend([(r.first, true, i), (r.last + 1, false, i)]);
    }
    // What ends before a step goes before what begins at it.
    events.sort_unstable();
    let mut alive: BTreeMap<usize, usize> = BTreeMap::new();
    events.into_iter().any(|(_, begins, i)| {
        let (offset, end) = (layout.offsets[i], layout.offsets[i] + requests[i].bytes);
        if !begins {
            alive.remove(&offset);
            return false;
        }
        let before = alive.range(..end).next_back();
        let free = before.is_none_or(|(_, &e)| e <= offset);
        alive.insert(offset, end);
        !free
    })
}

fn large_plans() -> Vec<(&'static str, Vec<Request>)> {
    const N: usize = 6_000;
    let each = |request: &dyn Fn(usize) -> (usize, usize, usize)| {
        let request = |i| {
            let (bytes, first, last) = request(i);
            Request { bytes, first, last }
        };
        (0..N).map(request).collect::<Vec<_>>()
    };
    let size = |i: usize| 64 * (1 + i * 7919 % 97);
    let mut numbers = Numbers(3);
    vec![
        ("a chain", each(&|i| (size(i), i, i + 1))),
        (
            "written in order, read in reverse",
            each(&|i| (size(i), i, 2 * N - i)),
        ),
        (
            "written in order, read in order",
            each(&|i| (size(i), i, N + i)),
        ),
        ("all at once", each(&|i| (size(i), 0, i))),
        (
            "read a thousand steps later",
            each(&|i| (size(i), i, i + 1000)),
        ),
        (
            "lifetimes of every length",
            each(&|i| (size(i), i, i + i * 31 % 4000)),
        ),
        ("few lengths", numbers.requests(N, N, 1 << 16, 30)),
        ("any length", numbers.requests(N, N, 1 << 16, N)),
    ]
}

#[test]
fn large_plans_are_close_to_the_lower_bound() {
    for (what, requests) in large_plans() {
        let layout = plan(&requests, 64);
        assert!(!large_overlap(&requests, &layout), "{what}");
        let ratio = layout.bytes as f64 / lower_bound(&requests) as f64;
        assert!(ratio <= 1.10, "{what}: {ratio}");
    }
}
