//! Makes transposes meet and cancel. Each transpose is held back as long as what follows can work
//! on the data as it lies, its axes renumbered; it is carried out where something needs the order
//! it gives. In the end two that undo each other have met, and what is left is as little data as
//! could be found: an estimate of the elements moved decides, and the graph is never left with more.

mod demand;
mod join;
pub mod reshape;
mod sink;

use super::edit::{inverse, is_identity, node};
use super::layout::permuted_fact;
use super::patch::{Patch, Snapshot};
use crate::dim::Dim;
use crate::error::Result;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::{Reshape, Transpose};

/// A value that is not there as such: its dimension `i` is dimension `perm[i]` of `source`.
#[derive(Clone)]
struct Held {
    source: ValueId,
    perm: Vec<usize>,
    /// The node that asked for it.
    name: String,
}

struct Pass<'a> {
    graph: &'a mut Graph,
    patch: Patch,
    held: Vec<Option<Held>>,
    /// Held values that were carried out after all.
    written: Vec<bool>,
    demand: demand::Demand,
    /// Values that were made constants.
    folded: Vec<ValueId>,
}

/// Needs inferred facts. True where less data is moved than before.
///
/// # Errors
/// `Limit` where a constant cannot be transposed for want of memory, and those of [`Patch::finish`].
pub fn run(graph: &mut Graph) -> Result<bool> {
    let before = moved(graph);
    if before.1 == 0 {
        return Ok(false);
    }
    let old = Snapshot::of(graph);
    let mut pass = Pass {
        held: vec![None; graph.values.len()],
        written: vec![false; graph.values.len()],
        demand: demand::Demand::of(graph),
        patch: Patch::forward(graph),
        folded: Vec::new(),
        graph,
    };
    while let Some(node) = pass.patch.next_node() {
        pass.visit(node)?;
    }
    let folded = pass.finish()?;
    super::dead_code::sweep_nodes(graph)?;
    let after = moved(graph);
    if after < before {
        return Ok(true);
    }
    for v in folded {
        graph.value_mut(v).constant = None;
    }
    old.restore(graph);
    Ok(false)
}

fn as_transpose(node: &Node) -> Option<&Transpose> {
    node.op.downcast_ref::<Transpose>()
}

/// The dimension of the input of `rank` dimensions that each one of the output is, where `node` is a transpose that fits.
pub fn permutation(node: &Node, rank: usize) -> Option<Vec<usize>> {
    as_transpose(node)?.resolve(rank).ok()
}

/// What starting one more kernel costs, in elements moved.
const START: u64 = 1024;

/// What all transposes cost, and how many there are.
fn moved(graph: &Graph) -> (u64, usize) {
    graph.nodes.iter().fold((0, 0), |(all, count), node| {
        let Some(op) = as_transpose(node) else {
            return (all, count);
        };
        let cost = node.input(0).map_or(0, |x| price(graph, x, &op.perm));
        (all.saturating_add(cost), count + 1)
    })
}

/// What it costs to transpose `source`: nothing where only dimensions of one element move.
fn price(graph: &Graph, source: ValueId, perm: &[usize]) -> u64 {
    if is_free(graph, source, perm) {
        0
    } else {
        size(graph, source).saturating_add(START)
    }
}

/// An estimate of the elements of `v`.
fn size(graph: &Graph, v: ValueId) -> u64 {
    // A dimension that is not known is rarely large: it is a batch or a length.
    let of = |d: &Dim| d.known().map_or(16, |n| n as u64);
    match &graph.fact(v).shape {
        Some(shape) => shape.0.iter().map(of).fold(1, u64::saturating_mul),
        None => 1 << 20,
    }
}

/// True where `perm` moves only dimensions of one element, so that no data moves.
fn is_free(graph: &Graph, source: ValueId, perm: &[usize]) -> bool {
    let Some(shape) = &graph.fact(source).shape else {
        return false;
    };
    let mut moving = perm
        .iter()
        .filter(|&&p| shape.0.get(p) != Some(&Dim::Known(1)));
    let mut last = moving.next();
    moving.all(|p| last.replace(p).is_none_or(|l| l < p)) && !perm.is_empty()
}

impl Pass<'_> {
    fn visit(&mut self, node: Node) -> Result<()> {
        if self.transpose(&node)? || self.sink(&node)? {
            return Ok(());
        }
        for v in node.present_inputs() {
            self.carry_out(v)?;
        }
        self.patch.push(node);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ValueId>> {
        for i in 0..self.graph.outputs.len() {
            self.carry_out(self.patch.now(self.graph.outputs[i]))?;
        }
        self.patch.finish(self.graph)?;
        Ok(self.folded)
    }

    fn held(&self, v: ValueId) -> Option<&Held> {
        self.held.get(v.0)?.as_ref()
    }

    fn hold(&mut self, v: ValueId, held: Held) {
        if self.held.len() <= v.0 {
            self.held.resize(v.0 + 1, None);
            self.written.resize(v.0 + 1, false);
        }
        self.held[v.0] = Some(held);
    }

    fn is_written(&self, v: ValueId) -> bool {
        self.held(v).is_none() || self.written.get(v.0) == Some(&true)
    }

    /// Makes sure that `v` is there as such.
    fn carry_out(&mut self, v: ValueId) -> Result<()> {
        if self.is_written(v) {
            return Ok(());
        }
        let Some(held) = self.held(v).cloned() else {
            return Ok(());
        };
        self.written[v.0] = true;
        self.move_data(&held.name, held.source, &held.perm, v)
    }

    /// Writes `to`, the transposed `source`, as a view where nothing moves.
    fn move_data(
        &mut self,
        name: &str,
        source: ValueId,
        perm: &[usize],
        to: ValueId,
    ) -> Result<()> {
        let fact = permuted_fact(self.graph.fact(source), perm);
        if is_free(self.graph, source, perm)
            && let (Some(lies), Some(turned)) = (&self.graph.fact(source).shape, &fact.shape)
            && let Some(shape) = reshape::literal(&lies.0, &turned.0)
        {
            let shape = self.graph.add_ints(format!("{name}/shape"), &shape)?;
            let reshape = Reshape { allow_zero: false };
            self.patch
                .push(node(name, reshape, vec![Some(source), Some(shape)], to));
        } else {
            let perm = perm.to_vec();
            self.patch
                .push(node(name, Transpose { perm }, vec![Some(source)], to));
        }
        self.graph.value_mut(to).fact = fact;
        Ok(())
    }

    /// Takes a transpose out of the list; false where `node` is none.
    fn transpose(&mut self, node: &Node) -> Result<bool> {
        let (Some(x), [out]) = (node.input(0), &node.outputs[..]) else {
            return Ok(false);
        };
        let rank = self.graph.fact(x).rank();
        let Some(perm) = rank.and_then(|rank| permutation(node, rank)) else {
            return Ok(false);
        };
        if let Some(tensor) = &self.graph.value(x).constant {
            let tensor = tensor.permuted(&perm)?;
            self.graph.value_mut(*out).constant = Some(tensor);
            self.graph.value_mut(*out).fact = permuted_fact(self.graph.fact(x), &perm);
            self.folded.push(*out);
            return Ok(true);
        }
        let held = match self.held(x) {
            Some(inner) => Held {
                source: inner.source,
                perm: perm.iter().map(|&i| inner.perm[i]).collect(),
                name: node.name.clone(),
            },
            None => Held {
                source: x,
                perm,
                name: node.name.clone(),
            },
        };
        if is_identity(&held.perm) {
            self.patch.replace(*out, held.source);
        } else {
            self.hold(*out, held);
        }
        Ok(true)
    }

    /// A value whose transpose by `perm` is `v`, where moving data is worth it.
    fn untransposed(&mut self, v: ValueId, perm: &[usize], name: &str) -> Result<ValueId> {
        let back = inverse(perm);
        let (source, perm) = match self.held(v) {
            Some(held) => (held.source, back.iter().map(|&i| held.perm[i]).collect()),
            None => (v, back),
        };
        if is_identity(&perm) {
            return Ok(source);
        }
        if let Some(tensor) = &self.graph.value(source).constant {
            let tensor = tensor.permuted(&perm)?;
            return Ok(self.graph.add_constant(format!("{name}/turned"), tensor));
        }
        let name = format!("{name}/turned");
        let to = self.graph.add_value(name.clone(), Default::default());
        self.move_data(&name, source, &perm, to)?;
        Ok(to)
    }

    /// The price of [`Pass::untransposed`].
    fn price_untransposed(&self, v: ValueId, perm: &[usize]) -> u64 {
        let back = inverse(perm);
        let (source, perm) = match self.held(v) {
            Some(held) => (
                held.source,
                back.iter().map(|&i| held.perm[i]).collect::<Vec<_>>(),
            ),
            None => (v, back),
        };
        if self.graph.value(source).constant.is_some() {
            0
        } else {
            price(self.graph, source, &perm)
        }
    }

    /// The price of [`Pass::carry_out`], nothing where it is paid anyway.
    fn price_of_order(&self, v: ValueId) -> u64 {
        match self.held(v) {
            Some(held) if !self.is_written(v) && !self.demand.is_blocked(v) => {
                price(self.graph, held.source, &held.perm)
            }
            _ => 0,
        }
    }

    /// Whether it costs less to hold back `outputs` in the order `perm` after paying `toll`, or to
    /// compute them from inputs carried out, for `block`.
    fn worth(&self, toll: u64, block: u64, outputs: &[ValueId], perm: &[usize]) -> bool {
        let back = inverse(perm);
        let (mut hold, mut carry) = (toll, block);
        for &out in outputs {
            let cost = price(self.graph, out, &back);
            if self.demand.of_value(out) == Some(&back) {
                carry = carry.saturating_add(cost);
            } else {
                hold = hold.saturating_add(cost);
            }
        }
        hold < carry || (hold == carry && toll == 0)
    }
}

#[cfg(test)]
mod tests;
