//! Places the nodes of a stage on backends: asks every backend about every concrete node, takes the
//! first in the order of preference, then prices what crosses ([`price`]).

mod calibration;
mod price;
#[cfg(test)]
mod tests;

use crate::fact::Cost;
use crate::graph::Refusal;
use crate::ids::{BackendId, BackendIndex, PerBackend};

pub use calibration::Calibration;
pub use price::{CostModel, Site};

/// How freely the partitioner may leave the order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The first backend that takes a node gets it. Only islands that cost more in crossings than
    /// they save, beside a larger share of the graph on the same backend, go elsewhere; and what
    /// would still be split goes whole to one backend that takes it all, if that is cheaper.
    #[default]
    Prefer,
    /// Whatever is priced cheapest, even if nothing is left on the preferred backend.
    Priced,
    /// The first backend that takes a node gets it, whatever crosses.
    Fixed,
}

/// What each backend says of a node: its cost, or why it refuses.
pub type Answers = PerBackend<Result<Cost, Refusal>>;

/// A node as the partitioner sees it.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    pub answers: Answers,
    /// Values read, as indices into the byte counts.
    pub reads: Vec<usize>,
    pub writes: Vec<usize>,
}

/// Why a node is not on the first backend that takes it: it went elsewhere with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Where it came from.
    pub from: BackendIndex,
    /// How many went together, this one included.
    pub nodes: usize,
    /// Seconds for all nodes of the move, crossings included.
    pub seconds: f64,
    /// What it would have been without the move.
    pub instead_of: f64,
}

/// Where each node runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Each node's backend.
    pub at: Vec<BackendIndex>,
    /// For each node, what took it away from the first backend that takes it.
    pub moves: Vec<Option<Move>>,
}

impl Placed {
    fn send(
        &mut self,
        nodes: impl Iterator<Item = usize> + Clone,
        to: BackendIndex,
        price: (f64, f64),
    ) {
        let count = nodes.clone().count();
        for i in nodes {
            if self.at[i] != to {
                self.moves[i] = Some(Move {
                    from: self.at[i],
                    nodes: count,
                    seconds: price.0,
                    instead_of: price.1,
                });
                self.at[i] = to;
            }
        }
    }
}

/// Places every node, or says which ones nobody takes.
pub fn place(
    nodes: &[Candidate],
    bytes: &[usize],
    sites: &PerBackend<Site>,
    placement: Placement,
) -> Result<Placed, Vec<usize>> {
    let mut at = Vec::with_capacity(nodes.len());
    let mut homeless = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let first = node.answers.position(Result::is_ok);
        if first.is_none() {
            homeless.push(i);
        }
        at.push(first.unwrap_or_default());
    }
    if !homeless.is_empty() {
        return Err(homeless);
    }
    let mut placed = Placed {
        moves: vec![None; at.len()],
        at,
    };
    if placement != Placement::Fixed && sites.len() > 1 {
        let model = CostModel::new(nodes, bytes, sites);
        for _ in 0..3 {
            if !improve(&model, placement, &mut placed) {
                break;
            }
        }
        gather(&model, placement, &mut placed);
    }
    Ok(placed)
}

/// Groups of nodes on one backend that are connected by values.
fn islands(model: &CostModel, at: &[BackendIndex]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; at.len()];
    let mut islands = Vec::new();
    for start in 0..at.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut island = Vec::new();
        let mut queue = vec![start];
        while let Some(i) = queue.pop() {
            island.push(i);
            for j in model.neighbours(i) {
                if !seen[j] && at[j] == at[i] {
                    seen[j] = true;
                    queue.push(j);
                }
            }
        }
        island.sort_unstable();
        islands.push(island);
    }
    islands
}

/// Moves islands that are cheaper elsewhere. True where one was.
fn improve(model: &CostModel, placement: Placement, placed: &mut Placed) -> bool {
    let islands = islands(model, &placed.at);
    let mut largest: PerBackend<(f64, usize)> = vec![(-1.0, usize::MAX); model.sites.len()].into();
    for (k, island) in islands.iter().enumerate() {
        let here = placed.at[island[0]];
        let size = model.size(island, here);
        if size > largest[here].0 {
            largest[here] = (size, k);
        }
    }
    let mut changed = false;
    for (k, island) in islands.iter().enumerate() {
        let here = placed.at[island[0]];
        if placement == Placement::Prefer && largest[here].1 == k {
            continue;
        }
        let Some(stay) = model.island(island, here, &placed.at) else {
            continue;
        };
        let others = model.sites.indices().filter(|&b| b != here);
        let best = others
            .filter_map(|b| model.island(island, b, &placed.at).map(|price| (price, b)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((price, to)) = best
            && price < stay
        {
            placed.send(island.iter().copied(), to, (price, stay));
            changed = true;
        }
    }
    changed
}

/// Never split where one backend does it all for less.
fn gather(model: &CostModel, placement: Placement, placed: &mut Placed) {
    let Some(&first) = placed.at.first() else {
        return;
    };
    let split = placed.at.iter().any(|&b| b != first);
    if !split && placement == Placement::Prefer {
        return;
    }
    let everything = 0..placed.at.len();
    let now = model.whole(&placed.at);
    let best = (model.sites.indices())
        .filter(|&b| model.takes(b))
        .map(|b| (model.whole(&vec![b; placed.at.len()]), b))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((price, to)) = best
        && price < now
    {
        placed.send(everything, to, (price, now));
    }
}

/// One sentence about a node that no backend takes.
pub fn reasons(candidate: &Candidate, backends: &[BackendId]) -> String {
    let parts: Vec<String> = backends
        .iter()
        .zip(&candidate.answers)
        .filter_map(|(id, a)| a.as_ref().err().map(|r| format!("{id}: {}", r.reason)))
        .collect();
    parts.join("; ")
}
