//! Takes one place along an axis before what computes every place apart: scores of the last word alone, the first word of
//! a text that is classified. What is computed for the other places, nothing reads.

use std::collections::HashMap;

use super::edit::node;
use super::patch::Patch;
use crate::dim::Dim;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::Fact;
use crate::graph::{Graph, Node, NodeView, ValueId};
use crate::ops::{Gather, Slice, Squeeze, normalize_axis};
use crate::tensor::Tensor;

/// Which place along an axis is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// The index of a Gather.
    At(i64),
    /// All from `start` to `end`, one place at most: the dimension may be 0.
    Cut { start: i64, end: i64 },
}

/// One place along an axis of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Taken {
    from: ValueId,
    axis: usize,
    place: Place,
}

/// Moves selections of one place before the nodes that compute what they select from, as far as they can go. True where
/// one moved.
///
/// # Errors
/// Those of [`Patch::finish`]; `Limit` where memory is short.
pub fn run(graph: &mut Graph) -> Result<bool> {
    let mut changed = false;
    // What two nodes read is taken once, and moves on when both do.
    while sweep(graph)? {
        changed = true;
    }
    Ok(changed)
}

fn sweep(graph: &mut Graph) -> Result<bool> {
    let mut patch = Patch::start(graph);
    let mut taken = HashMap::new();
    while let Some(selection) = patch.next_node() {
        match Taken::of(graph, &selection) {
            Some(place) if place.can_move(graph, &patch) => {
                let mut mover = Mover {
                    graph,
                    patch: &mut patch,
                    taken: &mut taken,
                };
                mover.replace(place, selection)?;
            }
            _ => patch.push(selection),
        }
    }
    patch.finish(graph)
}

impl Taken {
    /// What a node takes, if that is one place along one axis.
    fn of(graph: &Graph, selection: &Node) -> Option<Taken> {
        let from = selection.input(0)?;
        let rank = graph.fact(from).rank()?;
        if let Some(gather) = selection.op.downcast_ref::<Gather>() {
            let &[at] = &graph.ints(selection.input(1))?[..] else {
                return None;
            };
            return Some(Taken {
                from,
                axis: normalize_axis(gather.axis, rank).ok()?,
                place: Place::At(at),
            });
        }
        selection.op.is::<Slice>().then_some(())?;
        let ints = |i| graph.ints(selection.input(i));
        let (&[start], &[end]) = (&ints(1)?[..], &ints(2)?[..]) else {
            return None;
        };
        let axis = match selection.input(3) {
            Some(_) => *ints(3)?.first()?,
            None => 0,
        };
        if selection.input(4).is_some() && ints(4)? != [1] {
            return None;
        }
        let to_end = end >= i64::from(i32::MAX);
        let single = start == -1 && to_end || start != -1 && start.checked_add(1) == Some(end);
        single.then_some(Taken {
            from,
            axis: normalize_axis(axis, rank).ok()?,
            place: Place::Cut { start, end },
        })
    }

    /// Whether the node that computes what is taken can compute it from one place of its own inputs.
    fn can_move(self, graph: &Graph, patch: &Patch) -> bool {
        patch.uses(self.from) == 0 && self.sources(graph, patch).is_some()
    }

    /// The inputs that the node which computes it needs at one place alone, each with its own axis.
    fn sources(self, graph: &Graph, patch: &Patch) -> Option<Vec<(usize, usize)>> {
        let producer = patch.producer(Some(self.from))?;
        let dims = &graph.fact(self.from).shape.as_ref()?.0;
        let dim = &dims[self.axis];
        if producer.outputs.len() != 1 || *dim == Dim::Known(1) || !producer.op.deterministic() {
            return None;
        }
        let apart = NodeView::new(graph, producer).apart(self.axis)?;
        let mut sources = Vec::new();
        for i in apart {
            let Some(v) = producer.input(i) else {
                continue;
            };
            let own = &graph.fact(v).shape.as_ref()?.0;
            let Some(axis) = (self.axis + own.len()).checked_sub(dims.len()) else {
                continue;
            };
            match &own[axis] {
                Dim::Known(1) => {}
                own if own.same(dim) => sources.push((i, axis)),
                _ => return None,
            }
        }
        (!sources.is_empty()).then_some(sources)
    }
}

struct Mover<'a> {
    graph: &'a mut Graph,
    patch: &'a mut Patch,
    /// What has been taken so far.
    taken: &'a mut HashMap<Taken, ValueId>,
}

impl Mover<'_> {
    /// Puts nodes in the place of `selection` that take `place` where it is cheapest.
    fn replace(&mut self, place: Taken, selection: Node) -> Result<()> {
        let out = selection.outputs[0];
        let without_axis = self.graph.fact(out).rank() < self.graph.fact(place.from).rank();
        if !without_axis {
            return self.moved(place, out);
        }
        let name = &selection.name;
        let kept = self.one_place(place, &format!("{name}/place"));
        self.moved(place, kept)?;
        let axes = self
            .graph
            .add_ints(format!("{name}/axis"), &[place.axis as i64])?;
        let inputs = vec![Some(kept), Some(axes)];
        self.patch.push(node(name, Squeeze, inputs, out));
        Ok(())
    }

    /// A new value for what is taken.
    fn one_place(&mut self, place: Taken, name: &str) -> ValueId {
        let mut fact: Fact = self.graph.fact(place.from).clone();
        if let Some(shape) = &mut fact.shape {
            shape.0[place.axis] = match place.place {
                Place::At(_) => Dim::Known(1),
                Place::Cut { .. } => Dim::Unknown,
            };
        }
        self.graph.add_value(name, fact)
    }

    /// Lets the node that computes what is taken compute `out`, one place alone.
    fn moved(&mut self, place: Taken, out: ValueId) -> Result<()> {
        let sources = place.sources(self.graph, self.patch);
        let producer = self.patch.take(place.from);
        let (Some(sources), Some(mut producer)) = (sources, producer) else {
            let e = Error::new(ErrorCode::State, "what is taken was moved before");
            return Err(e.with_got(&self.graph.value(place.from).name));
        };
        for (i, axis) in sources {
            let Some(from) = producer.inputs[i] else {
                continue;
            };
            let source = Taken {
                from,
                axis,
                ..place
            };
            producer.inputs[i] = Some(self.take(source)?);
        }
        producer.outputs = vec![out];
        self.patch.push(producer);
        Ok(())
    }

    /// The value of what is taken.
    fn take(&mut self, place: Taken) -> Result<ValueId> {
        if let Some(&out) = self.taken.get(&place) {
            return Ok(out);
        }
        let name = format!("{}/place", self.graph.value(place.from).name);
        let out = self.one_place(place, &name);
        if place.can_move(self.graph, self.patch) {
            self.moved(place, out)?;
        } else {
            let selection = self.selection(place, &name, out)?;
            self.patch.push(selection);
        }
        self.taken.insert(place, out);
        Ok(out)
    }

    fn selection(&mut self, place: Taken, name: &str, out: ValueId) -> Result<Node> {
        let axis = place.axis as i64;
        let mut ints = |what: &str, value: i64| -> Result<Option<ValueId>> {
            let tensor = Tensor::from_slice(&[1], &[value])?;
            Ok(Some(
                self.graph.add_constant(format!("{name}/{what}"), tensor),
            ))
        };
        let from = Some(place.from);
        Ok(match place.place {
            Place::At(at) => {
                let inputs = vec![from, ints("at", at)?];
                node(name, Gather { axis }, inputs, out)
            }
            Place::Cut { start, end } => {
                let [start, end] = [ints("start", start)?, ints("end", end)?];
                let inputs = vec![from, start, end, ints("axis", axis)?];
                node(name, Slice, inputs, out)
            }
        })
    }
}
