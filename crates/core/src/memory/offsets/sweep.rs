//! Placing tensors as they come and go. It takes the time of sorting, and leaves few gaps where many
//! tensors are alive at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Offsets, Request};
use crate::order::sort_indices;

/// The smaller of the buffers that are found from the first step on and from the last.
pub fn plan(requests: &[Request], alignment: usize) -> Offsets {
    let forwards = sweep(requests, alignment);
    let steps = requests.iter().map(|r| r.last).max().unwrap_or(0);
    let mirrored = requests.iter().map(|r| Request {
        bytes: r.bytes,
        first: steps - r.last,
        last: steps - r.first,
    });
    let backwards = sweep(&mirrored.collect::<Vec<_>>(), alignment);
    match backwards.bytes < forwards.bytes {
        true => backwards,
        false => forwards,
    }
}

/// Gives each tensor the smallest gap that holds it when it begins.
fn sweep(requests: &[Request], alignment: usize) -> Offsets {
    let size = |i: usize| requests[i].bytes.next_multiple_of(alignment);
    let mut begin: Vec<usize> = (0..requests.len())
        .filter(|&i| requests[i].bytes > 0)
        .collect();
    let mut end = begin.clone();
    // The largest of those that begin together comes first.
    let order = |i: usize| (requests[i].first, Reverse(requests[i].bytes));
    sort_indices(&mut begin, &mut |a, b| order(a).cmp(&order(b)));
    sort_indices(&mut end, &mut |a, b| {
        requests[a].last.cmp(&requests[b].last)
    });
    let mut ended = end.into_iter().peekable();
    let mut offsets = vec![0; requests.len()];
    let mut buffer = Buffer::default();
    for i in begin {
        let now = requests[i].first;
        while let Some(gone) = ended.next_if(|&e| requests[e].last < now) {
            buffer.give(offsets[gone], size(gone));
        }
        offsets[i] = buffer.take(size(i));
    }
    let ends = offsets.iter().zip(requests).map(|(o, r)| o + r.bytes);
    let bytes = ends.max().unwrap_or(0);
    Offsets { offsets, bytes }
}

/// A buffer that grows, and the gaps in it.
#[derive(Default)]
struct Buffer {
    top: usize,
    /// Offset and size. No two touch.
    gaps: BTreeMap<usize, usize>,
    /// Size and offset.
    by_size: BTreeSet<(usize, usize)>,
}

impl Buffer {
    fn add(&mut self, offset: usize, size: usize) {
        self.gaps.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.gaps.remove(&offset);
        self.by_size.remove(&(size, offset));
    }

    fn take(&mut self, size: usize) -> usize {
        if let Some(&(gap, offset)) = self.by_size.range((size, 0)..).next() {
            self.remove(offset, gap);
            if gap > size {
                self.add(offset + size, gap - size);
            }
            return offset;
        }
        let last = self.gaps.last_key_value().map(|(&o, &s)| (o, s));
        let mut offset = self.top;
        if let Some((at, gap)) = last.filter(|(at, gap)| at + gap == self.top) {
            self.remove(at, gap);
            offset = at;
        }
        self.top = offset + size;
        offset
    }

    fn give(&mut self, offset: usize, size: usize) {
        let (mut from, mut to) = (offset, offset + size);
        let before = self.gaps.range(..offset).next_back();
        if let Some((at, gap)) = before.map(|(&o, &s)| (o, s)).filter(|(o, s)| o + s == from) {
            self.remove(at, gap);
            from = at;
        }
        if let Some(&gap) = self.gaps.get(&to) {
            self.remove(to, gap);
            to += gap;
        }
        self.add(from, to - from);
    }
}
