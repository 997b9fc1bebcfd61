//! Reshapes of data that lies in another order than the graph says.

use std::ops::Range;

use super::super::edit::is_identity;
use super::super::layout::permuted_fact;
use super::{Held, Pass, price};
use crate::dim::Dim;
use crate::error::Result;
use crate::graph::Node;
use crate::ops::{Reshape, Transpose};
use crate::order::sort_indices;

/// Dimensions of the input that together become dimensions of the output.
#[derive(Debug, PartialEq)]
pub struct Group {
    pub from: Range<usize>,
    pub to: Range<usize>,
}

/// The shape `to` as Reshape takes it for data of shape `from`: zero copies a dimension that stays
/// in its place, one that is not known may be left open.
pub fn literal(from: &[Dim], to: &[Dim]) -> Option<Vec<i64>> {
    let mut open = 0;
    let shape = to.iter().enumerate().map(|(i, d)| match d {
        Dim::Known(0) => None,
        Dim::Known(n) => i64::try_from(*n).ok(),
        d if from.get(i).is_some_and(|from| from.same(d)) => Some(0),
        _ => {
            open += 1;
            Some(-1)
        }
    });
    let shape = shape.collect::<Option<Vec<i64>>>()?;
    (open <= 1).then_some(shape)
}

/// The smallest groups at the front of both shapes; stops at what is not known.
fn front(from: &[Dim], to: &[Dim]) -> Vec<(usize, usize)> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let size = match (from.get(i), to.get(j)) {
            (Some(a), Some(b)) if a.same(b) => Some((1, 1)),
            (Some(Dim::Known(1)), _) => Some((1, 0)),
            (_, Some(Dim::Known(1))) => Some((0, 1)),
            (Some(Dim::Known(_)), Some(Dim::Known(_))) => equal_products(&from[i..], &to[j..]),
            _ => None,
        };
        let Some((m, n)) = size else { break };
        groups.push((m, n));
        (i, j) = (i + m, j + n);
    }
    groups
}

/// How many dimensions on each side have the same product, one at least.
fn equal_products(from: &[Dim], to: &[Dim]) -> Option<(usize, usize)> {
    let (mut m, mut n) = (1, 1);
    let (mut a, mut b) = (from.first()?.known()?, to.first()?.known()?);
    while a != b {
        if a < b {
            a = a.checked_mul(from.get(m)?.known()?)?;
            m += 1;
        } else {
            b = b.checked_mul(to.get(n)?.known()?)?;
            n += 1;
        }
    }
    Some((m, n))
}

/// Which dimensions of `from` become which of `to` when the data is read in order. Between what
/// matches from the front and from the back, everything is one group.
pub fn groups(from: &[Dim], to: &[Dim]) -> Option<Vec<Group>> {
    let empty = Dim::Known(0);
    if from.contains(&empty) || to.contains(&empty) {
        return None;
    }
    let mut all = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (m, n) in front(from, to) {
        all.push(Group {
            from: i..i + m,
            to: j..j + n,
        });
        (i, j) = (i + m, j + n);
    }
    let reversed = |dims: &[Dim]| dims.iter().rev().cloned().collect::<Vec<_>>();
    let back = front(&reversed(&from[i..]), &reversed(&to[j..]));
    let (mut k, mut l) = (from.len(), to.len());
    let mut tail = Vec::new();
    for (m, n) in back {
        tail.push(Group {
            from: k - m..k,
            to: l - n..l,
        });
        (k, l) = (k - m, l - n);
    }
    if i < k || j < l {
        all.push(Group {
            from: i..k,
            to: j..l,
        });
    }
    all.extend(tail.into_iter().rev());
    Some(all)
}

impl Pass<'_> {
    /// Reshapes the data as it lies where every group of dimensions lies together, moves no more
    /// than it takes to bring the groups together elsewhere.
    pub(super) fn sink_reshape(&mut self, node: &Node) -> Result<bool> {
        let (Some(x), [out]) = (node.input(0), &node.outputs[..]) else {
            return Ok(false);
        };
        let out = *out;
        let Some(held) = self.held(x).cloned() else {
            return Ok(false);
        };
        let shapes = (&self.graph.fact(x).shape, &self.graph.fact(out).shape);
        let (Some(from), Some(to)) = shapes else {
            return Ok(false);
        };
        let (from, to) = (from.0.clone(), to.0.clone());
        let Some(mut groups) = groups(&from, &to) else {
            return Ok(false);
        };
        // Groups in the order in which their data lies; what has no input dimension stays behind
        // the group before it.
        let mut place = 0;
        let mut keyed: Vec<(usize, Group)> = Vec::with_capacity(groups.len());
        for group in groups.drain(..) {
            let large = group.from.clone().filter(|&d| from[d] != Dim::Known(1));
            let first = large.map(|d| held.perm[d]).min();
            place = first.unwrap_or(place);
            keyed.push((place, group));
        }
        let mut sorted: Vec<usize> = (0..keyed.len()).collect();
        sort_indices(&mut sorted, &mut |a, b| keyed[a].0.cmp(&keyed[b].0));
        let mut order = Vec::with_capacity(from.len());
        let mut perm = vec![0; to.len()];
        let mut dims = Vec::with_capacity(to.len());
        for group in sorted.iter().map(|&i| &keyed[i].1) {
            order.extend(group.from.clone().map(|d| held.perm[d]));
            for d in group.to.clone() {
                perm[d] = dims.len();
                dims.push(to[d].clone());
            }
        }

        let toll = price(self.graph, held.source, &order);
        let lies = &self.graph.fact(held.source).shape;
        let lies = lies.as_ref().map_or(&[][..], |s| &s.0);
        let gathered: Vec<Dim> = if toll > 0 {
            order.iter().filter_map(|&d| lies.get(d).cloned()).collect()
        } else {
            lies.to_vec()
        };
        let Some(literal) = literal(&gathered, &dims) else {
            return Ok(false);
        };
        if !self.worth(toll, self.price_of_order(x), &[out], &perm) {
            return Ok(false);
        }
        let mut source = held.source;
        if toll > 0 {
            let name = format!("{}/gathered", node.name);
            let fact = permuted_fact(self.graph.fact(source), &order);
            let gathered = self.graph.add_value(name.clone(), fact);
            let transpose = Transpose { perm: order };
            self.patch.push(node_of(&name, transpose, source, gathered));
            source = gathered;
        }
        let shape = self
            .graph
            .add_ints(format!("{}/shape", node.name), &literal)?;
        let reshape = Reshape { allow_zero: false };
        let inputs = vec![Some(source), Some(shape)];
        if is_identity(&perm) {
            self.patch
                .push(super::node(&node.name, reshape, inputs, out));
            return Ok(true);
        }
        let mut fact = self.graph.fact(out).clone();
        fact.shape = Some(crate::dim::Shape(dims));
        let lying = self.graph.add_value(format!("{}/lying", node.name), fact);
        self.patch
            .push(super::node(&node.name, reshape, inputs, lying));
        let name = format!("{}/order", node.name);
        self.hold(
            out,
            Held {
                source: lying,
                perm,
                name,
            },
        );
        Ok(true)
    }
}

fn node_of(name: &str, op: Transpose, from: crate::ValueId, to: crate::ValueId) -> Node {
    super::node(name, op, vec![Some(from)], to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(numbers: &[usize]) -> Vec<Dim> {
        // Zero stands for what is not known.
        let of = |&n: &usize| if n == 0 { Dim::Unknown } else { Dim::Known(n) };
        numbers.iter().map(of).collect()
    }

    fn shape_of(from: &[usize], to: &[usize]) -> Vec<(usize, usize)> {
        groups(&dims(from), &dims(to))
            .unwrap()
            .iter()
            .map(|g| (g.from.len(), g.to.len()))
            .collect()
    }

    #[test]
    fn groups_of_a_reshape() {
        assert_eq!(
            shape_of(&[2, 6, 5], &[2, 3, 2, 5]),
            [(1, 1), (1, 2), (1, 1)]
        );
        assert_eq!(shape_of(&[2, 3, 4], &[6, 4]), [(2, 1), (1, 1)]);
        assert_eq!(shape_of(&[4, 6], &[2, 12]), [(2, 2)]);
        assert_eq!(
            shape_of(&[3, 1, 4], &[3, 4, 1]),
            [(1, 1), (1, 0), (1, 1), (0, 1)]
        );
        assert_eq!(
            shape_of(&[0, 6, 5], &[0, 2, 3, 5]),
            [(1, 1), (1, 2), (1, 1)]
        );
        assert_eq!(shape_of(&[0, 0, 5], &[0, 5]), [(2, 1), (1, 1)]);
        assert_eq!(shape_of(&[], &[1]), [(0, 1)]);
    }
}
