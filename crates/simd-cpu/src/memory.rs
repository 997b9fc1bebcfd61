//! Dividing work.

use std::ops::Range;

/// The `i`th of `parts` nearly equal parts of `0..items`.
pub(crate) fn share(items: usize, parts: usize, i: usize) -> Range<usize> {
    let (size, more) = (items / parts, items % parts);
    let start = |i: usize| i * size + i.min(more);
    start(i)..start(i + 1)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn parts_are_nearly_equal_and_all() {
        for items in [0, 1, 7, 64, usize::MAX] {
            for parts in [1, 2, 7, 1000] {
                let mut next = 0;
                for i in 0..parts {
                    let part = share(items, parts, i);
                    assert_eq!(part.start, next);
                    assert!(part.len() - items / parts <= 1);
                    next = part.end;
                }
                assert_eq!(next, items);
            }
        }
    }
}
