//! The operators of a format.

use std::borrow::Borrow;

/// Operators by what a file calls them, names or numbers, in ascending order; with each, what brings it into the
/// graph.
pub struct OpTable<K: 'static, F: 'static>(pub &'static [(K, F)]);

impl<K: Ord, F> OpTable<K, F> {
    /// What brings an operator into the graph; `None` where the table does not have it.
    pub fn find<Q: Ord + ?Sized>(&self, operator: &Q) -> Option<&'static F>
    where
        K: Borrow<Q>,
    {
        let i = self
            .0
            .binary_search_by(|(key, _)| key.borrow().cmp(operator));
        self.0.get(i.ok()?).map(|(_, map)| map)
    }

    /// The first operator that stands in the wrong place or twice; a test of each format asks for it.
    #[cfg(test)]
    pub fn misplaced(&self) -> Option<&'static K> {
        let pair = self.0.windows(2).find(|pair| pair[0].0 >= pair[1].0)?;
        Some(&pair[1].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_found_by_name_and_number() {
        static NAMES: OpTable<&str, i32> = OpTable(&[("Abs", 1), ("Add", 2), ("Where", 3)]);
        assert_eq!(NAMES.find("Add"), Some(&2));
        assert_eq!(NAMES.find("Adder"), None);
        assert_eq!(NAMES.misplaced(), None);
        static NUMBERS: OpTable<u8, char> = OpTable(&[(1, 'a'), (9, 'b'), (3, 'c')]);
        assert_eq!(NUMBERS.find(&1), Some(&'a'));
        assert_eq!(NUMBERS.misplaced(), Some(&3));
    }
}
