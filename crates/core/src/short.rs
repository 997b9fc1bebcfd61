//! Lists that are short as a rule.

use std::ops::Deref;

/// A list that lies in its owner up to `N` items, and in memory of its own beyond that.
#[derive(Clone, Debug)]
pub struct Short<T, const N: usize> {
    few: [T; N],
    /// How many of the few there are.
    len: usize,
    /// All items where they are more than a few.
    many: Vec<T>,
}

impl<T: Copy + Default, const N: usize> FromIterator<T> for Short<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Short {
            few: [T::default(); N],
            len: 0,
            many: Vec::new(),
        };
        for item in items {
            if let (true, Some(free)) = (list.many.is_empty(), list.few.get_mut(list.len)) {
                *free = item;
                list.len += 1;
                continue;
            }
            if list.many.is_empty() {
                list.many.extend_from_slice(&list.few[..list.len]);
            }
            list.many.push(item);
        }
        list
    }
}

impl<T, const N: usize> Deref for Short<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self.many.is_empty() {
            true => &self.few[..self.len],
            false => &self.many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Short;

    #[test]
    fn few_and_many_items_come_in_order() {
        for count in 0..7 {
            let list: Short<usize, 3> = (0..count).collect();
            assert_eq!(*list, *(0..count).collect::<Vec<_>>());
        }
        assert!((0..3).collect::<Short<u8, 3>>().many.is_empty());
    }
}
