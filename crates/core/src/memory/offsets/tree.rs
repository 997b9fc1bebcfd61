//! Maxima over ranges of a list whose numbers change.

use std::ops::Range;

/// Numbers in a complete binary tree: node `i` holds the larger of nodes `2i` and `2i + 1`, the leaves
/// are the list.
pub struct MaxTree {
    nodes: Vec<usize>,
}

impl MaxTree {
    /// The tree of a list.
    pub fn of(list: &[usize]) -> MaxTree {
        let leaves = list.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        nodes[leaves..][..list.len()].copy_from_slice(list);
        for i in (1..leaves).rev() {
            nodes[i] = nodes[2 * i].max(nodes[2 * i + 1]);
        }
        MaxTree { nodes }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Makes number `i` `value`, which is not below what it was.
    pub fn raise(&mut self, i: usize, value: usize) {
        let mut node = self.leaves() + i;
        while node > 0 && self.nodes[node] < value {
            self.nodes[node] = value;
            node /= 2;
        }
    }

    /// The largest number of a range; 0 for an empty one.
    pub fn max(&self, range: Range<usize>) -> usize {
        let (mut from, mut to) = (self.leaves() + range.start, self.leaves() + range.end);
        let mut max = 0;
        while from < to {
            if from % 2 == 1 {
                max = max.max(self.nodes[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                max = max.max(self.nodes[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        max
    }

    /// Shows the places before `end` whose numbers are above `bound`, in order.
    pub fn above(&self, bound: usize, end: usize, each: &mut dyn FnMut(usize)) {
        let mut open = vec![(1, 0, self.leaves())];
        while let Some((node, from, to)) = open.pop() {
            if from >= end || self.nodes[node] <= bound {
                continue;
            }
            if to - from == 1 {
                each(from);
                continue;
            }
            let middle = from.midpoint(to);
            open.push((2 * node + 1, middle, to));
            open.push((2 * node, from, middle));
        }
    }
}
