//! Sorting indices by what they stand for.

use std::cmp::Ordering;

use crate::error::Result;
use crate::interrupt::Meter;

/// How indices are compared. Behind a pointer, so that sorting, some five kilobytes, is compiled once and not for every
/// closure.
type Compare<'a> = &'a mut dyn FnMut(usize, usize) -> Ordering;

/// Sorts `indices`, equal ones in the order in which they stood. For a few: what data says how many there are of is
/// sorted by [`sort_first`].
pub fn sort_indices(indices: &mut [usize], compare: Compare) {
    indices.sort_by(|&a, &b| compare(a, b));
}

/// Indices that are sorted without a look at what may stop the work.
const FEW: usize = 4 * 1024;

/// Brings the `k` first of different indices to the front, sorted: equal ones by their numbers. `cost` is that of a
/// comparison.
///
/// # Errors
/// `Aborted` where the work is to stop.
pub fn sort_first(
    meter: &Meter,
    mut indices: &mut [usize],
    mut k: usize,
    cost: usize,
    compare: Compare,
) -> Result<()> {
    while k > 0 && indices.len() > FEW {
        let place = divide(meter, indices, cost, compare)?;
        let (left, right) = std::mem::take(&mut indices).split_at_mut(place);
        let right = &mut right[1..];
        let (own, rest) = (k.min(place), k.saturating_sub(place + 1));
        // The longer side is the one that goes on, so that calls do not pile up.
        (indices, k) = match left.len() < right.len() {
            true => {
                sort_first(meter, left, own, cost, compare)?;
                (right, rest)
            }
            false => {
                sort_first(meter, right, rest, cost, compare)?;
                (left, own)
            }
        };
    }
    if k == 0 {
        return Ok(());
    }
    let rounds = indices.len().max(2).ilog2() as usize;
    meter.spend(cost.saturating_mul(indices.len() + k * rounds))?;
    let mut order = |a: &usize, b: &usize| compare(*a, *b).then(a.cmp(b));
    if k < indices.len() {
        indices.select_nth_unstable_by(k - 1, &mut order);
    }
    indices[..k].sort_unstable_by(order);
    Ok(())
}

/// Divides indices by one of their number, the pivot, and gives its place.
fn divide(meter: &Meter, indices: &mut [usize], cost: usize, compare: Compare) -> Result<usize> {
    let mut less = |a: usize, b: usize| compare(a, b).then(a.cmp(&b)) == Ordering::Less;
    let last = indices.len() - 1;
    // The middle one of three at places that no order of the data is likely to have in mind.
    let [a, b, c] = [1, 5, 9].map(|part| indices.len() / 11 * part + last % 7);
    let middle = match [(a, b), (b, c), (a, c)].map(|(x, y)| less(indices[x], indices[y])) {
        [true, true, _] | [false, false, _] => b,
        [true, false, true] | [false, true, false] => c,
        _ => a,
    };
    indices.swap(middle, last);
    let (pivot, mut place) = (indices[last], 0);
    meter.pieces(last, cost, |piece| {
        for i in piece {
            if less(indices[i], pivot) {
                indices.swap(i, place);
                place += 1;
            }
        }
        Ok(())
    })?;
    indices.swap(place, last);
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;

    #[test]
    fn the_first_of_many_are_those_of_a_stable_sort() {
        let n = 3 * FEW + 5;
        let noise: Vec<usize> = (0..n).map(|i| i.wrapping_mul(7919) % 1000).collect();
        let equal = vec![7; n];
        let falling: Vec<usize> = (0..n).rev().collect();
        let meter = Meter::new(&Interrupt::NEVER);
        for data in [noise, equal, falling] {
            let mut want: Vec<usize> = (0..n).collect();
            want.sort_by_key(|&i| data[i]);
            for k in [0, 1, 10, FEW, n / 2, n] {
                let mut indices: Vec<usize> = (0..n).rev().collect();
                let mut compare = |a: usize, b: usize| data[a].cmp(&data[b]);
                sort_first(&meter, &mut indices, k, 1, &mut compare).unwrap();
                assert_eq!(indices[..k], want[..k]);
                indices.sort_unstable();
                assert!(indices.into_iter().eq(0..n));
            }
        }
    }
}
