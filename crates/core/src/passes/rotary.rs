//! Finds rotary embedding that a file spells out: pairs of numbers, their products with cosines and sines, and the sums of these.

use super::edit::node;
use super::patch::Patch;
use super::patterns::{Finder, as_binary};
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, InferContext, Node, ValueId};
use crate::ops::{
    Angles, BinaryKind, Concat, Gather, Reshape, RotaryEmbedding, Slice, Split, Squeeze, UnaryKind,
    Unsqueeze, normalize_axis,
};

/// Puts RotaryEmbedding in the place of `float32` nodes that spell it out. Needs inferred facts. True where it found one.
///
/// It finds `x · cos + rotated(x) · sin`, where `rotated` puts the second numbers of all pairs, negated, in the place of the first and
/// these in theirs, and the join of `a · cos - b · sin` and `b · cos + a · sin`. The numbers of a pair may stand in two halves or beside
/// each other, and are taken apart by Slice, Split or Gather.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(node) = patch.next_node() {
        let finder = Finder {
            graph,
            patch: &patch,
        };
        match Spelled::of(&finder, &node) {
            Some(spelled) => {
                patch.changed = true;
                spelled.push(graph, &mut patch, &node)?;
            }
            None => patch.push(node),
        }
    }
    patch.finish(graph)
}

/// How the numbers of a pair stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// In the two halves of the last dimension.
    Halves,
    /// Beside each other in the last dimension.
    Beside,
    /// In a last dimension of two, of their own.
    Apart,
}

/// The first or the second numbers of the pairs in `of`.
#[derive(Clone, Copy, Debug)]
struct Side {
    of: ValueId,
    second: bool,
    layout: Layout,
}

/// The first and the second numbers of pairs that a node joins.
struct Joined {
    sides: [ValueId; 2],
    /// Whether they become a last dimension of two.
    apart: bool,
}

/// What rotary embedding is computed of.
struct Spelled {
    x: ValueId,
    cosines: ValueId,
    sines: ValueId,
    interleaved: bool,
    angles: Angles,
    /// Dimensions before the pairs, and the number of these, where data or result has its pairs in a dimension of their own.
    pairs: Option<[usize; 2]>,
    /// Whether the data has.
    from_apart: bool,
    /// Whether the result has.
    to_apart: bool,
}

impl Spelled {
    /// What the rotary embedding that ends in `node` is computed of.
    fn of(g: &Finder, node: &Node) -> Option<Spelled> {
        let [out] = node.outputs[..] else { return None };
        if !g.graph.is_f32(out) {
            return None;
        }
        match node.op.is::<Concat>() {
            true => Spelled::joined(g, node),
            false => Spelled::sum(g, node),
        }
    }

    /// `x · cos + rotated(x) · sin`.
    fn sum(g: &Finder, node: &Node) -> Option<Spelled> {
        let [a, b] = as_binary(node, BinaryKind::Add)?.into();
        let [a, b] = [g.binary(a, BinaryKind::Mul)?, g.binary(b, BinaryKind::Mul)?];
        let either = |(a, b): (ValueId, ValueId)| [[a, b], [b, a]];
        for (straight, turned) in [(a, b), (b, a)] {
            for [rotated, sines] in either(turned) {
                let Some((x, interleaved)) = rotation(g, rotated) else {
                    continue;
                };
                let mut both = either(straight).into_iter();
                let Some([_, cosines]) = both.find(|[y, _]| *y == x) else {
                    continue;
                };
                let shape = g.graph.fact(x).shape.as_ref()?;
                let fits = [cosines, sines].into_iter().all(|v| turns(g, v, shape));
                return fits.then_some(Spelled {
                    x,
                    cosines,
                    sines,
                    interleaved,
                    angles: Angles::OfNumbers,
                    pairs: None,
                    from_apart: false,
                    to_apart: false,
                });
            }
        }
        None
    }

    /// The join of `a · cos - b · sin` and `b · cos + a · sin`.
    fn joined(g: &Finder, node: &Node) -> Option<Spelled> {
        let joined = Joined::of(g, node)?;
        let [real, imaginary] = joined.sides;
        let (ac, bs) = g.binary(real, BinaryKind::Sub)?;
        let (p, q) = g.binary(imaginary, BinaryKind::Add)?;
        let [ac, bs, p, q] = [
            g.binary(ac, BinaryKind::Mul)?,
            g.binary(bs, BinaryKind::Mul)?,
            g.binary(p, BinaryKind::Mul)?,
            g.binary(q, BinaryKind::Mul)?,
        ];
        let either = |(a, b): (ValueId, ValueId)| [(a, b), (b, a)];
        let is = |of: (ValueId, ValueId), u, v| of == (u, v) || of == (v, u);
        let orders = either(ac).into_iter();
        for ((a, cosines), (b, sines)) in orders.flat_map(|ac| either(bs).map(|bs| (ac, bs))) {
            let crossed = |p, q| is(p, b, cosines) && is(q, a, sines);
            if !crossed(p, q) && !crossed(q, p) {
                continue;
            }
            let Some(from) = Side::both(g, a, b) else {
                continue;
            };
            let shape = g.graph.fact(a).shape.as_ref()?;
            let pairs = shape.0.last()?.known()?;
            let fits = [cosines, sines].into_iter().all(|v| turns(g, v, shape));
            return (fits && joined.apart == (from.layout != Layout::Halves)).then_some(Spelled {
                x: from.of,
                cosines,
                sines,
                interleaved: joined.apart,
                angles: Angles::OfPairs,
                pairs: joined.apart.then_some([shape.rank() - 1, pairs]),
                from_apart: from.layout == Layout::Apart,
                to_apart: joined.apart,
            });
        }
        None
    }

    /// Puts the operator in the place of `last`.
    ///
    /// # Errors
    /// `Limit` where there is no memory.
    fn push(self, graph: &mut Graph, patch: &mut Patch, last: &Node) -> Result<()> {
        let name = &last.name;
        let mut x = self.x;
        let [before, pairs] = self.pairs.unwrap_or_default();
        let reshape = Reshape { allow_zero: false };
        if self.from_apart {
            let mut together = vec![0; before];
            together.push(2 * pairs as i64);
            let shape = graph.add_ints(format!("{name}/together"), &together)?;
            let whole = graph.add_value(format!("{name}/numbers"), Fact::default());
            let inputs = vec![Some(x), Some(shape)];
            patch.push(node(
                &format!("{name}/numbers"),
                reshape.clone(),
                inputs,
                whole,
            ));
            x = whole;
        }
        let op = RotaryEmbedding {
            interleaved: self.interleaved,
            angles: self.angles,
            partial: false,
        };
        let inputs = [x, self.cosines, self.sines].map(Some).to_vec();
        let out = last.outputs[0];
        if !self.to_apart {
            patch.push(node(name, op, inputs, out));
            return Ok(());
        }
        let whole = graph.add_value(format!("{name}/turned"), Fact::default());
        patch.push(node(&format!("{name}/turned"), op, inputs, whole));
        let mut apart = vec![0; before];
        apart.extend([pairs as i64, 2]);
        let shape = graph.add_ints(format!("{name}/apart"), &apart)?;
        patch.push(node(name, reshape, vec![Some(whole), Some(shape)], out));
        Ok(())
    }
}

impl Joined {
    /// The two values that `node` joins along the last dimension.
    fn of(g: &Finder, node: &Node) -> Option<Joined> {
        let op = node.op.downcast_ref::<Concat>()?;
        let (&[Some(a), Some(b)], &[out]) = (&node.inputs[..], &node.outputs[..]) else {
            return None;
        };
        let rank = g.graph.fact(out).rank()?;
        if normalize_axis(op.axis, rank).ok()? + 1 != rank {
            return None;
        }
        let single = |v: ValueId| {
            let (_, unsqueeze) = g.patch.produced_by::<Unsqueeze>(Some(v))?;
            let axes = g.graph.ints(unsqueeze.input(1))?;
            (axes == [-1] || axes == [rank as i64 - 1]).then(|| unsqueeze.input(0))?
        };
        Some(match (single(a), single(b)) {
            (Some(a), Some(b)) => Joined {
                sides: [a, b],
                apart: true,
            },
            _ => Joined {
                sides: [a, b],
                apart: false,
            },
        })
    }
}

impl Side {
    /// The pairs that `v` has a number of each from.
    fn of(g: &Finder, v: ValueId) -> Option<Side> {
        g.patch.producer(Some(v))?;
        Side::sliced(g, v)
            .or_else(|| Side::split(g, v))
            .or_else(|| Side::squeezed(g, v))
            .or_else(|| Side::gathered(g, v))
    }

    /// What the first numbers are, where `first` and `second` are the two of the same pairs.
    fn both(g: &Finder, first: ValueId, second: ValueId) -> Option<Side> {
        let (first, second) = (Side::of(g, first)?, Side::of(g, second)?);
        let alike = first.of == second.of && first.layout == second.layout;
        (alike && !first.second && second.second).then_some(first)
    }

    /// A half of the last dimension, or every second number of it.
    fn sliced(g: &Finder, v: ValueId) -> Option<Side> {
        let (slice, node) = g.patch.produced_by::<Slice>(Some(v))?;
        let of = node.input(0)?;
        let shape = g.graph.fact(of).shape.as_ref()?;
        let size = shape.0.last()?.known()?;
        let axes = g.graph.ints(node.input(3))?;
        if axes != [-1] && axes != [shape.rank() as i64 - 1] {
            return None;
        }
        let inputs = g.graph.input_facts(&node.inputs);
        // The other dimensions stay whole, whatever they are.
        let lengths: Vec<usize> = shape.0.iter().map(|d| d.known().unwrap_or(0)).collect();
        let cuts = slice
            .resolve(&lengths, &InferContext::new(&inputs, 1))
            .ok()?;
        let last = *cuts.last()?;
        if !size.is_multiple_of(2) || last.length != size / 2 {
            return None;
        }
        let (second, layout) = match (last.step, last.start) {
            (1, 0) => (false, Layout::Halves),
            (1, start) if start == size / 2 => (true, Layout::Halves),
            (2, 0) => (false, Layout::Beside),
            (2, 1) => (true, Layout::Beside),
            _ => return None,
        };
        Some(Side { of, second, layout })
    }

    /// One of two equal parts of the last dimension.
    fn split(g: &Finder, v: ValueId) -> Option<Side> {
        let (split, node) = g.patch.produced_by::<Split>(Some(v))?;
        let of = node.input(0)?;
        let rank = g.graph.fact(of).rank()?;
        let [first, second] = node.outputs[..] else {
            return None;
        };
        let length = |v: ValueId| g.graph.fact(v).shape.as_ref()?.0.last()?.known();
        let equal = length(first)? == length(second)?;
        let last = normalize_axis(split.axis, rank).ok()? + 1 == rank;
        (equal && last).then_some(Side {
            of,
            second: v == second,
            layout: Layout::Halves,
        })
    }

    /// A part of a last dimension of two, which goes.
    fn squeezed(g: &Finder, v: ValueId) -> Option<Side> {
        let (_, node) = g.patch.produced_by::<Squeeze>(Some(v))?;
        let part = node.input(0)?;
        let rank = g.graph.fact(part).rank()?;
        let axes = g.graph.ints(node.input(1))?;
        let last = axes == [-1] || axes == [rank as i64 - 1];
        let side = Side::sliced(g, part).or_else(|| Side::split(g, part))?;
        let two = g.graph.fact(side.of).shape.as_ref()?.0.last()? == &Dim::Known(2);
        (last && two).then_some(Side {
            layout: Layout::Apart,
            ..side
        })
    }

    /// An element of a last dimension of two.
    fn gathered(g: &Finder, v: ValueId) -> Option<Side> {
        let (gather, node) = g.patch.produced_by::<Gather>(Some(v))?;
        let of = node.input(0)?;
        let shape = g.graph.fact(of).shape.as_ref()?;
        let last = normalize_axis(gather.axis, shape.rank()).ok()? + 1 == shape.rank();
        let index = g.graph.constant(node.input(1)).filter(|t| t.rank() == 0)?;
        let second = match index.to_i64s().ok()?[..] {
            [0 | -2] => false,
            [1 | -1] => true,
            _ => return None,
        };
        (last && shape.0.last()? == &Dim::Known(2)).then_some(Side {
            of,
            second,
            layout: Layout::Apart,
        })
    }
}

/// `x`, where `v` is what x turned by a right angle is, and whether numbers of a pair stand beside each other.
fn rotation(g: &Finder, v: ValueId) -> Option<(ValueId, bool)> {
    let (node, flat) = match g.patch.produced_by::<Reshape>(Some(v)) {
        Some((_, reshape)) => (g.patch.producer(reshape.input(0))?, true),
        None => (g.patch.producer(Some(v))?, false),
    };
    let joined = Joined::of(g, node)?;
    let [negated, first] = joined.sides;
    let second = g.unary(negated, UnaryKind::Neg).or_else(|| {
        let (second, factor) = g.scaled(negated)?;
        (factor == -1.0).then_some(second)
    })?;
    let from = Side::both(g, first, second)?;
    let beside = from.layout == Layout::Beside;
    if from.layout == Layout::Apart || joined.apart != beside || flat != beside {
        return None;
    }
    let [x, y] = [from.of, v].map(|v| g.graph.fact(v).shape.as_ref());
    (!flat || alike(&x?.0, &y?.0)).then_some((from.of, beside))
}

/// Whether `v` holds an angle for each element of the last dimension of `shape`, and broadcasts to the others.
fn turns(g: &Finder, v: ValueId, shape: &Shape) -> bool {
    let Some(own) = &g.graph.fact(v).shape else {
        return false;
    };
    let last = |shape: &Shape| shape.0.last().and_then(Dim::known);
    let dims = own.0.iter().rev().zip(shape.0.iter().rev()).skip(1);
    let fits = |(own, whole): (&Dim, &Dim)| *own == Dim::Known(1) || own.same(whole);
    g.graph.is_f32(v)
        && own.rank() <= shape.rank()
        && last(own).is_some()
        && last(own) == last(shape)
        && dims.into_iter().all(fits)
}

/// Whether these are the same dimensions, whatever the open ones turn out to be.
fn alike(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}
