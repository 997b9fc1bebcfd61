//! Sorting indices by what they stand for.

use std::cmp::Ordering;

/// Sorts `indices`, equal ones in the order in which they stood. The comparison is behind a pointer so
/// that sorting, some five kilobytes, is compiled once and not for every closure.
pub fn sort_indices(indices: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    indices.sort_by(|&a, &b| compare(a, b));
}
